// SPDX-License-Identifier: Apache-2.0
// Tensors joined and split along one dim, under PyTorch's names.
#pragma once

#include <tuple>

#include <shardwise/graph/views.hpp>

namespace shardwise {

namespace detail {

template <class... X>
struct first_of;
template <class X, class... More>
struct first_of<X, More...> {
  using type = X;
};

constexpr int groups_of(int n) { return (n + max_inputs - 1) / max_inputs; }

// Operands First.. of a tuple, Count of them, joined by one operation.
template <int Dim, int First, class Tuple, std::size_t... I>
constexpr auto cat_some(const Tuple& x, std::index_sequence<I...>) {
  constexpr auto attributes = attr(Dim);
  return apply<op_code::cat, attributes>(0, std::get<static_cast<std::size_t>(First) + I>(x)...);
}

// More operands than an operation takes are joined in groups, and the groups then: each element is copied once for each
// level, and the levels are the logarithm of the count.
template <int Dim, class Tuple>
constexpr auto cat_all(const Tuple& x);
template <int Dim, class Tuple, std::size_t... G>
constexpr auto cat_groups(const Tuple& x, std::index_sequence<G...>) {
  constexpr int n = static_cast<int>(std::tuple_size_v<Tuple>);
  return cat_all<Dim>(std::tuple{cat_some<Dim, static_cast<int>(G) * max_inputs>(
      x, std::make_index_sequence<static_cast<std::size_t>(
             n - static_cast<int>(G) * max_inputs < max_inputs ? n - static_cast<int>(G) * max_inputs : max_inputs)>{})...});
}
template <int Dim, class Tuple>
constexpr auto cat_all(const Tuple& x) {
  constexpr int n = static_cast<int>(std::tuple_size_v<Tuple>);
  if constexpr (n <= max_inputs) return cat_some<Dim, 0>(x, std::make_index_sequence<std::tuple_size_v<Tuple>>{});
  else return cat_groups<Dim>(x, std::make_index_sequence<static_cast<std::size_t>(groups_of(n))>{});
}

constexpr bool splits(const spec& s, int dim, std::initializer_list<std::int64_t> sizes) {
  if (dim < 0 || dim >= s.rank) return true;  // said by slice
  std::int64_t total = 0;
  for (const std::int64_t e : sizes) {
    if (e < 0) return false;
    total += e;
  }
  return total == s.extent[dim];
}

struct split_part {
  std::int64_t start = 0, length = 0;
};
constexpr split_part part_at(std::initializer_list<std::int64_t> sizes, std::size_t index) {
  split_part p;
  for (const std::int64_t e : sizes) {
    p.length = e;
    if (index-- == 0) return p;
    p.start += e;
  }
  return p;
}
// A part that does not begin the dim, which shows what all but the first need.
constexpr split_part inner_part(std::initializer_list<std::int64_t> sizes) {
  for (std::size_t i = 1; i < sizes.size(); ++i)
    if (const split_part p = part_at(sizes, i); p.start > 0 && p.length > 0) return p;
  return {};
}

// In implicit mode the dim is gathered once for all parts.
template <int Dim, std::int64_t Start, std::int64_t Length, class X>
constexpr auto ready_to_split(const X& x) {
  if constexpr (Start > 0) return ready_for<op_code::slice, attr(Dim, Start, Length)>(x);
  else return x;
}
template <int Dim, std::int64_t... Sizes, class X, std::size_t... I>
constexpr auto split_parts(const X& given, std::index_sequence<I...>) {
  constexpr split_part inner = inner_part({Sizes...});
  const auto x = ready_to_split<Dim, inner.start, inner.length>(given);
  return std::tuple{slice<Dim, part_at({Sizes...}, I).start, part_at({Sizes...}, I).length>(x)...};
}

// PyTorch's chunks: all of ceil(extent / n) but the last, which may be smaller, and fewer than n where they suffice.
constexpr std::int64_t chunk_extent(std::int64_t extent, std::int64_t n) {
  const std::int64_t size = n > 0 ? ceil_div(extent, n) : 0;
  return size > 0 ? size : 1;
}
// What a split that does not compile yields: as many parts as were asked for.
template <class Mesh, std::size_t... I>
constexpr auto unresolved_parts(std::index_sequence<I...>) {
  return std::tuple{(static_cast<void>(I), unresolved<Mesh>{})...};
}
template <int Dim, std::int64_t Size, class X, std::size_t... I>
constexpr auto split_evenly(const X& x, std::index_sequence<I...>) {
  constexpr std::int64_t extent = X::sp.extent[Dim];
  constexpr std::int64_t count = static_cast<std::int64_t>(sizeof...(I));
  return split_parts<Dim, (static_cast<std::int64_t>(I) + 1 < count ? Size : extent - (count - 1) * Size)...>(
      x, std::index_sequence<I...>{});
}

}  // namespace detail

// Tensors one after the other along Dim. All are placed alike, and not sharded on Dim; partial tensors join as such. In
// implicit mode they are merged axis by axis as DTensor does: a shard takes replicate and partial ones along, partial
// takes replicate, two different shards or reductions are gathered.
template <int Dim, tensor X, tensor... More>
constexpr auto cat(const X& x, const More&... more) {
  constexpr int d = detail::own_dim(Dim, X::sp.rank);
  if constexpr (!detail::resolved<X, More...>) return detail::unresolved<typename X::mesh_type>{};
  else return detail::cat_all<d>(std::tuple<X, More...>{x, more...});
}

// Tensors of equal extents along a new dim, Dim of the result.
template <int Dim, tensor X, tensor... More>
constexpr auto stack(const X& x, const More&... more) {
  constexpr int d = Dim < 0 ? Dim + X::sp.rank + 1 : Dim;
  return cat<d>(unsqueeze<d>(x), unsqueeze<d>(more)...);
}

// Parts of the given sizes along Dim, as a tuple of views. Unlike in PyTorch a partial tensor may be split: each part is
// a part of every share. A gradient goes back as one padded tensor for each part, summed.
template <int Dim, std::int64_t... Sizes, tensor X>
constexpr auto split(const X& x) {
  constexpr int d = detail::own_dim(Dim, X::sp.rank);
  constexpr bool wrong = detail::resolved<X> && (sizeof...(Sizes) == 0 || !detail::splits(X::sp, d, {Sizes...}));
  static_assert(detail::refuse<wrong ? problem::split_sizes : problem::none, operand_t<X::sp>>());
  if constexpr (wrong || !detail::resolved<X>)
    return detail::unresolved_parts<typename X::mesh_type>(std::make_index_sequence<sizeof...(Sizes)>{});
  else
    return detail::split_parts<d, Sizes...>(x, std::make_index_sequence<sizeof...(Sizes)>{});
}

// At most Count parts of equal size, the last one perhaps smaller, as a tuple of views.
template <int Dim, std::int64_t Count, tensor X>
constexpr auto chunk(const X& x) {
  constexpr int d = detail::own_dim(Dim, X::sp.rank);
  constexpr bool in_range = d >= 0 && d < X::sp.rank;
  constexpr problem wrong = !detail::resolved<X> ? problem::none
                            : !in_range          ? problem::dim_out_of_range
                            : Count < 1          ? problem::split_sizes
                                                 : problem::none;
  static_assert(detail::refuse<wrong, operand_t<X::sp>>());
  if constexpr (wrong != problem::none || !detail::resolved<X>) {
    return detail::unresolved_parts<typename X::mesh_type>(std::make_index_sequence<(Count < 1 ? 1 : static_cast<std::size_t>(Count))>{});
  } else {
    constexpr std::int64_t extent = X::sp.extent[d], size = detail::chunk_extent(extent, Count);
    constexpr std::int64_t parts = extent == 0 ? 1 : ceil_div(extent, size);
    return detail::split_evenly<d, size>(x, std::make_index_sequence<static_cast<std::size_t>(parts)>{});
  }
}

// Every index of a dim, which goes, as a tuple of views.
template <int Dim, tensor X>
constexpr auto unbind(const X& x) {
  constexpr int d = detail::own_dim(Dim, X::sp.rank);
  return std::apply([](const auto&... part) { return std::tuple{squeeze<d>(part)...}; },
                    chunk<Dim, (d >= 0 && d < X::sp.rank && X::sp.extent[d] > 0 ? X::sp.extent[d] : 1)>(x));
}

// x with `part` in place of the slice of Dim that begins at Start and is as long as `part` is; a negative Start counts from
// the end. A copy of x, unless nothing reads x afterwards.
template <int Dim, std::int64_t Start = 0, tensor X, tensor Y>
constexpr auto slice_scatter(const X& x, const Y& part) {
  constexpr int d = detail::own_dim(Dim, X::sp.rank);
  constexpr bool fits = d >= 0 && d < X::sp.rank && d < Y::sp.rank;
  constexpr std::int64_t start = Start < 0 && fits ? Start + X::sp.extent[fits ? d : 0] : Start;
  constexpr std::int64_t length = fits ? Y::sp.extent[fits ? d : 0] : 0;
  return detail::apply<op_code::slice_scatter, detail::attr(d, start, length)>(0, x, part);
}

}  // namespace shardwise
