// SPDX-License-Identifier: Apache-2.0
// What is true of elements, under PyTorch's names: int32 tensors of 0 and 1 without gradient, as comparisons give, which where,
// masked_fill and these functions take. True is every number but 0, a NaN too. Compositions of comparisons, products and sums.
#pragma once

#include <limits>

#include <shardwise/graph/functions/reduction_functions.hpp>

namespace shardwise::inline v0_1 {

template <tensor A>
constexpr auto isnan(const A& a) {
  return ne(a, a);
}
// Integers are finite, all of them.
template <tensor A>
constexpr auto isinf(const A& a) {
  if constexpr (!detail::resolved<A> || is_floating(A::sp.type)) return eq(abs(a), std::numeric_limits<double>::infinity());
  else return ne(a, a);
}
template <tensor A>
constexpr auto isfinite(const A& a) {
  if constexpr (!detail::resolved<A> || is_floating(A::sp.type)) return lt(abs(a), std::numeric_limits<double>::infinity());
  else return eq(a, a);
}

// Operands may be of two element types, and broadcast.
template <tensor A>
constexpr auto logical_not(const A& a) {
  return eq(a, 0.0);
}
template <tensor A, tensor B>
constexpr auto logical_and(const A& a, const B& b) {
  return mul(ne(a, 0.0), ne(b, 0.0));
}
template <tensor A, tensor B>
constexpr auto logical_or(const A& a, const B& b) {
  return ne(add(ne(a, 0.0), ne(b, 0.0)), 0.0);
}
template <tensor A, tensor B>
constexpr auto logical_xor(const A& a, const B& b) {
  return ne(ne(a, 0.0), ne(b, 0.0));
}

// Whether one element, or each, along the dims given, or of all dims, is true. Of no elements: any 0, all 1. A reduced dim must not be
// sharded: the count of true elements is a sum over ranks, ne(redistribute<axis, replicate>(sum(ne(x, 0.0))), 0.0).
template <int... Dims, tensor A>
constexpr auto any(const A& a) {
  return ne(sum<Dims...>(ne(a, 0.0)), 0.0);
}
template <int... Dims, tensor A>
constexpr auto any(const A& a, keepdim_t) {
  return ne(sum<Dims...>(ne(a, 0.0), keepdim), 0.0);
}
template <int... Dims, tensor A>
constexpr auto all(const A& a) {
  return eq(sum<Dims...>(eq(a, 0.0)), 0.0);
}
template <int... Dims, tensor A>
constexpr auto all(const A& a, keepdim_t) {
  return eq(sum<Dims...>(eq(a, 0.0), keepdim), 0.0);
}

}  // namespace shardwise::inline v0_1
