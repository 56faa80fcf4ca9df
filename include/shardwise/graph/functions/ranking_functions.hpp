// SPDX-License-Identifier: Apache-2.0
// Largest elements along a dim and where they stand. The dim may not be sharded: positions would be the ranks' own.
#pragma once

#include <shardwise/graph/functions/reduction_functions.hpp>

namespace shardwise::inline v0_1 {

// As PyTorch's named tuples: auto [values, indices] = topk<3>(x). Indices are int32.
template <class Values, class Indices>
struct ranked {
  Values values;
  Indices indices;
};

namespace detail {

// Of the largest or the smallest; a NaN is both, as in PyTorch's argmax and argmin.
template <int K, int Dim, bool Largest, tensor A>
constexpr auto positions(const A& a) {
  return along<Dim, A>::exchange(
      apply<op_code::topk, attributes<topk_attributes>(K, Largest ? 0 : 2)>(0, along<Dim, A>::exchange(a)));
}

// Position of the largest (smallest) element of all, row-major, or along one dim, which goes.
template <bool Largest, int... Dim, tensor A>
constexpr auto position(const A& a) {
  static_assert(sizeof...(Dim) <= 1,
                "shardwise: argmax, argmin: name one dim, or none for the position among all elements.");
  if constexpr (!resolved<A>) {
    return a;
  } else if constexpr (sizeof...(Dim) == 0) {
    return drop_dims<1>(positions<1, 0, Largest>(apply<op_code::reshape, pack_extent(numel(A::sp))>(0, contiguous(a))));
  } else {
    return drop_dims<dims_mask<Dim...>(A::sp.rank)>(positions<1, Dim..., Largest>(a));
  }
}

}  // namespace detail

// The K largest (smallest) elements along Dim, the largest first; of equals the one that stands first. A NaN is larger than
// any number: first of the largest, last of the smallest. The gradient goes back to the elements taken.
template <int K, int Dim = -1, bool Largest = true, tensor A>
constexpr auto topk(const A& a) {
  using line = detail::along<Dim, A>;
  const auto rows = detail::ready_for<op_code::topk, attributes<topk_attributes>(K, Largest ? 0 : 1)>(line::exchange(a));
  const auto indices = detail::apply<op_code::topk, attributes<topk_attributes>(K, Largest ? 0 : 1)>(0, rows);
  const auto values = detail::apply<op_code::take, detail::no_attr>(0, rows, indices);
  return ranked<decltype(line::exchange(values)), decltype(line::exchange(indices))>{line::exchange(values),
                                                                                     line::exchange(indices)};
}

// All elements along Dim in order.
template <int Dim = -1, bool Descending = false, tensor A>
constexpr auto sort(const A& a) {
  constexpr int rank = A::sp.rank, dim = Dim < 0 ? Dim + rank : Dim;
  return topk<static_cast<int>(A::sp.extent[dim >= 0 && dim < rank ? dim : 0]), Dim, Descending>(a);
}

template <int... Dim, tensor A>
constexpr auto argmax(const A& a) {
  return detail::position<true, Dim...>(a);
}
template <int... Dim, tensor A>
constexpr auto argmin(const A& a) {
  return detail::position<false, Dim...>(a);
}

}  // namespace shardwise::inline v0_1
