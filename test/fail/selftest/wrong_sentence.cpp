// SPDX-License-Identifier: Apache-2.0
// The program fails, but for another reason than the file says; the sentence stands in the source only.
// harness: the compiler does not say
// expect: halve: 7 is not even

#ifdef SHARDWISE_FAIL
static_assert(7 % 2 == 0, "double: 7 is odd");
#endif
