// SPDX-License-Identifier: Apache-2.0
// Views: permute, contiguous, reshape, slice; all else about shapes is in graph/functions/views.hpp.
#pragma once

#include <shardwise/graph/functions/implicit.hpp>
#include <shardwise/graph/functions/mixed.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

inline constexpr op_attr no_attr{};

constexpr std::int64_t pack_dims(std::initializer_list<int> dims) {
  std::int64_t m = 0;
  int i = 0;
  for (int d : dims) m |= static_cast<std::int64_t>(d & 15) << (4 * i++);
  return m;
}

}  // namespace detail

template <int... Dims, tensor A>
constexpr auto permute(const A& a) {
  constexpr bool wrong = detail::resolved<A> && sizeof...(Dims) != A::sp.rank;
  if constexpr (wrong) return detail::refused<problem::permute_not_a_permutation, op_code::permute, operand_t<A::sp>>(a);
  else return detail::apply<op_code::permute, attributes<permute_attributes>(detail::pack_dims({Dims...}))>(0, a);
}

template <tensor A>
constexpr auto contiguous(const A& a) {
  if constexpr (is_contiguous(A::sp) || !detail::resolved<A>) return a;
  else return detail::apply<op_code::contiguous, detail::no_attr>(0, a);
}

// The same with its elements stored in the order of a format: PyTorch's x.contiguous(memory_format=torch.channels_last). A tensor of
// four dims that is stored so already is itself; any other one is copied. The values are the same; results of operations are
// contiguous whatever their operands are. Gradients come back contiguous.
template <memory_format Format, tensor A>
constexpr auto contiguous(const A& a) {
  if constexpr (Format == memory_format::contiguous || !detail::resolved<A>) return contiguous(a);
  else if constexpr (is_channels_last(A::sp)) return a;
  else return detail::apply<op_code::contiguous, attributes<contiguous_attributes>(static_cast<int>(Format))>(0, a);
}

namespace detail {
// x, densely stored, as a tensor of its own.
template <class X>
constexpr auto own_dense(const X& x) {
  if constexpr (resolved<X> && is_contiguous(X::sp)) return owned(x);
  else return contiguous(x);
}
}  // namespace detail

// A view where the storage allows it, else of a contiguous copy.
template <std::int64_t... Extents, tensor A>
constexpr auto reshape(const A& a) {
  constexpr problem wrong = packed_problem(pack_extents({Extents...}));
  if constexpr (wrong != problem::none) return detail::refused<wrong, op_code::reshape, operand_t<A::sp>>(a);
  else return detail::apply<op_code::reshape, pack_extents({Extents...})>(0, contiguous(a));
}

template <int Dim, std::int64_t Start, std::int64_t Length, tensor A>
constexpr auto slice(const A& a) {
  return detail::apply<op_code::slice, attributes<slice_attributes>(Dim < 0 ? Dim + A::sp.rank : Dim, Start, Length)>(0, a);
}

}  // namespace shardwise::inline v0_1
