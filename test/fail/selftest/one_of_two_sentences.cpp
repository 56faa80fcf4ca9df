// SPDX-License-Identifier: Apache-2.0
// Both expectations must match, one does not.
// harness: the compiler does not say
// expect: double: 7 is odd
// expect: halve: 7 is not even

#ifdef SHARDWISE_FAIL
static_assert(7 % 2 == 0, "double: 7 is odd");
#endif
