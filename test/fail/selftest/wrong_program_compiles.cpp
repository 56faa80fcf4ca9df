// SPDX-License-Identifier: Apache-2.0
// The wrong program is right.
// harness: the wrong program compiles
// expect: halve: 7 is not even

#ifdef SHARDWISE_FAIL
constexpr int half = 4;
#endif
