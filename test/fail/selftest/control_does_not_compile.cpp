// SPDX-License-Identifier: Apache-2.0
// The control is wrong for the reason that the wrong program should fail for.
// harness: the control does not compile
// expect: halve: 7 is not even

static_assert(7 % 2 == 0, "halve: 7 is not even");
#ifdef SHARDWISE_FAIL
static_assert(7 % 2 == 0, "halve: 7 is not even");
#endif
