// SPDX-License-Identifier: Apache-2.0
// Nothing is expected.
// harness: no '// expect:' line

#ifdef SHARDWISE_FAIL
static_assert(7 % 2 == 0, "halve: 7 is not even");
#endif
