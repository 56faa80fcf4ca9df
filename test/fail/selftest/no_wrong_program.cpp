// SPDX-License-Identifier: Apache-2.0
// The macro is only mentioned (SHARDWISE_FAIL), nothing depends on it.
// harness: nothing depends on SHARDWISE_FAIL
// expect: halve: 7 is not even

constexpr int half = 4;
