// SPDX-License-Identifier: Apache-2.0
// max, min along a dim, with positions, as PyTorch's: one operation with two results, made like a user's own.
#pragma once

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/graph/functions/ranking_functions.hpp>
#include <shardwise/operations/extreme/record.hpp>

namespace shardwise::inline v0_1 {

namespace custom {

// The cotangent goes to the elements that were taken.
inline constexpr autodiff::adjoint_rule extreme_adjoint = autodiff::pulled([](autodiff::pullback& p) {
  if (!p.has(0)) return;
  const std::int64_t d = attributes_of<extreme_attributes>(p.n.a).dim;
  p.give(0, p.emit(op_code::scatter_add, attributes<index_attributes>(d, p.operand(0).extent[d]), 0, 0, p.cotangent(0),
                   p.result(1)));
});
inline constexpr custom_operation max{
    .name = "max", .operands = 1, .record = operations::extreme_along, .adjoint = &extreme_adjoint};
inline constexpr custom_operation min{
    .name = "min", .operands = 1, .record = operations::extreme_along, .adjoint = &extreme_adjoint};

}  // namespace custom

namespace detail {

template <int Dim, int Rank>
inline constexpr extreme_attributes extreme_of_dim{Dim < 0 ? Dim + Rank : Dim};

template <const custom_operation& Op, int Dim, tensor A>
constexpr auto extreme(const A& a) {
  const auto both = call<Op, pack_attributes(extreme_of_dim<Dim, A::sp.rank>)>(a);
  const auto& [values, indices] = both;
  return ranked<std::remove_cvref_t<decltype(values)>, std::remove_cvref_t<decltype(indices)>>{values, indices};
}
template <const custom_operation& Op, int Dim, tensor A>
constexpr auto extreme_dropped(const A& a) {
  const auto kept = extreme<Op, Dim>(a);
  constexpr std::int64_t mask = resolved<decltype(kept.values)> ? dims_mask<Dim>(A::sp.rank) : 0;
  const auto values = drop_dims<mask>(kept.values);
  const auto indices = drop_dims<mask>(kept.indices);
  return ranked<std::remove_cv_t<decltype(values)>, std::remove_cv_t<decltype(indices)>>{values, indices};
}

}  // namespace detail

// auto [values, indices] = max<1>(x): the largest (smallest) element along Dim, which goes, and its int32 position there: of equals
// the first; a NaN wins. The dim has elements and is not sharded. The gradient goes back to the element taken.
template <int Dim, tensor A>
constexpr auto max(const A& a) {
  return detail::extreme_dropped<custom::max, Dim>(a);
}
template <int Dim, tensor A>
constexpr auto min(const A& a) {
  return detail::extreme_dropped<custom::min, Dim>(a);
}
// The dim stays with extent 1.
template <int Dim, tensor A>
constexpr auto max(const A& a, keepdim_t) {
  return detail::extreme<custom::max, Dim>(a);
}
template <int Dim, tensor A>
constexpr auto min(const A& a, keepdim_t) {
  return detail::extreme<custom::min, Dim>(a);
}

}  // namespace shardwise::inline v0_1
