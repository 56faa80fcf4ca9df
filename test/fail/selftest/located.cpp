// SPDX-License-Identifier: Apache-2.0
// A place that the first error does not name.
// harness: the first error is not at module
// expect: matmul: the contracted extents differ
// located: layers.1 einsum
template <int>
struct operand;
#ifdef SHARDWISE_FAIL
static_assert(sizeof(operand<1>*) == 1, "matmul: the contracted extents differ");
#endif
