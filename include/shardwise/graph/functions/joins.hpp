// SPDX-License-Identifier: Apache-2.0
// Tensors joined and split along one dim, under PyTorch's names.
#pragma once

#include <array>
#include <tuple>

#include <shardwise/graph/functions/views.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class... X>
struct first_of;
template <class X, class... More>
struct first_of<X, More...> {
  using type = X;
};

constexpr int groups_of(int n) { return (n + max_inputs - 1) / max_inputs; }

// Many operands by number: a std::tuple of hundreds costs compilers the cube of their number.
template <std::size_t I, class T>
struct numbered {
  T value;
};
template <class Indices, class... T>
struct operand_list;
template <std::size_t... I, class... T>
struct operand_list<std::index_sequence<I...>, T...> : numbered<I, T>... {
  static constexpr std::size_t size = sizeof...(T);
};
template <std::size_t I, class T>
constexpr const T& at(const numbered<I, T>& x) {
  return x.value;
}
template <class... T>
using operands_of = operand_list<std::index_sequence_for<T...>, T...>;
// Operands of one type.
template <class T, std::size_t N>
struct operand_array {
  static constexpr std::size_t size = N;
  const std::array<T, N>& value;
};
template <std::size_t I, class T, std::size_t N>
constexpr const T& at(const operand_array<T, N>& x) {
  return x.value[I];
}

// Operands First.. of a list, Count of them, joined by one operation.
template <int Dim, int First, class List, std::size_t... I>
constexpr auto cat_some(const List& x, std::index_sequence<I...>) {
  constexpr auto joined = attributes<cat_attributes>(Dim);
  return apply<op_code::cat, joined>(0, at<static_cast<std::size_t>(First) + I>(x)...);
}

// More operands than an operation takes are joined in groups, and the groups then: each element is copied once for each
// level, and the levels are the logarithm of the count.
template <int Dim, class List>
constexpr auto cat_all(const List& x);
// Group G.
template <int Dim, std::size_t G, class List>
constexpr auto cat_group(const List& x) {
  constexpr std::size_t first = G * max_inputs, left = List::size - first;
  return cat_some<Dim, static_cast<int>(first)>(x, std::make_index_sequence<(left < max_inputs ? left : max_inputs)>{});
}
template <int Dim, class List, std::size_t... G>
constexpr auto cat_groups(const List& x, std::index_sequence<G...>) {
  // a braced list keeps the groups in their order
  return cat_all<Dim>(operands_of<decltype(cat_group<Dim, G>(x))...>{{cat_group<Dim, G>(x)}...});
}
template <int Dim, class List>
constexpr auto cat_all(const List& x) {
  constexpr int n = static_cast<int>(List::size);
  if constexpr (n <= max_inputs) return cat_some<Dim, 0>(x, std::make_index_sequence<List::size>{});
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
// The parts in order, written down once for all of them.
template <std::int64_t... Sizes>
struct split_table {
  static constexpr std::size_t count = sizeof...(Sizes);
  struct list {
    split_part part[count]{};
    bool equal = true;
    split_part inner{};  // a part that does not begin the dim, which shows what all but the first need
  };
  static constexpr list value = [] {
    list r;
    std::size_t i = 0;
    std::int64_t start = 0;
    for (const std::int64_t e : {Sizes...}) {
      r.part[i] = {start, e};
      r.equal = r.equal && e == r.part[0].length;
      if (r.inner.length == 0 && start > 0 && e > 0) r.inner = r.part[i];
      start += e;
      ++i;
    }
    return r;
  }();
  static constexpr bool equal = value.equal;
  static constexpr split_part inner = value.inner;
  template <std::size_t I>
  static constexpr split_part at = value.part[I];
};

// A std::tuple of hundreds costs compilers minutes, an array of them nothing; so more equal parts than these are of one type.
inline constexpr std::size_t parts_in_tuple = 16;

// In implicit mode the dim is gathered once for all parts.
template <int Dim, std::int64_t Start, std::int64_t Length, class X>
constexpr auto ready_to_split(const X& x) {
  if constexpr (Start > 0) return ready_for<op_code::slice, attributes<slice_attributes>(Dim, Start, Length)>(x);
  else return x;
}
// One of many equal parts: see op_attr.
template <int Dim, std::int64_t Start, std::int64_t Length, class X>
constexpr auto equal_part(const X& x) {
  constexpr op_attr part = attributes<slice_attributes>(Dim, Start, Length, 1);
  return apply<op_code::slice, part>(0, x);
}
template <int Dim, std::int64_t... Sizes, class X, std::size_t... I>
constexpr auto split_parts(const X& given, std::index_sequence<I...>) {
  using table = split_table<Sizes...>;
  constexpr split_part inner = table::inner;
  const auto x = ready_to_split<Dim, inner.start, inner.length>(given);
  if constexpr (table::equal && sizeof...(I) > parts_in_tuple) {
    using part = decltype(equal_part<Dim, inner.start, inner.length>(x));
    if constexpr (!resolved<part>) return std::array<part, sizeof...(I)>{};
    else return std::array<part, sizeof...(I)>{equal_part<Dim, table::template at<I>.start, inner.length>(x)...};
  } else {
    return std::tuple{slice<Dim, table::template at<I>.start, table::template at<I>.length>(x)...};
  }
}
// Every element of a list without dim Dim, which has extent 1.
template <int Dim, class... T>
constexpr auto squeeze_each(const std::tuple<T...>& parts) {
  return std::apply([](const auto&... part) { return std::tuple{squeeze<Dim>(part)...}; }, parts);
}
template <class T, std::size_t N, std::size_t... I, class F>
constexpr auto each_part(const std::array<T, N>& parts, std::index_sequence<I...>, F&& f) {
  return std::array<decltype(f(parts[0])), N>{f(parts[I])...};
}
template <int Dim, class T, std::size_t N>
constexpr auto squeeze_each(const std::array<T, N>& parts) {
  return each_part(parts, std::make_index_sequence<N>{}, [](const auto& part) { return squeeze<Dim>(part); });
}

template <class T>
inline constexpr bool is_list = false;
template <class T, class... More>
inline constexpr bool is_list<std::tuple<T, More...>> = tensor<T> && (tensor<More> && ...);

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
  else return detail::cat_all<d>(detail::operands_of<X, More...>{{x}, {more}...});
}

// Tensors of equal extents along a new dim, Dim of the result.
template <int Dim, tensor X, tensor... More>
constexpr auto stack(const X& x, const More&... more) {
  constexpr int d = Dim < 0 ? Dim + X::sp.rank + 1 : Dim;
  using detail::operands_of;
  if constexpr (!detail::resolved<X, More...>) return detail::unresolved<typename X::mesh_type>{};
  else if constexpr (!detail::resolved<decltype(unsqueeze<d>(x)), decltype(unsqueeze<d>(more))...>)
    return unsqueeze<d>(x);  // says why; of one of the others, cat does
  else                       // a braced list keeps them in their order
    return detail::cat_all<d>(
        operands_of<decltype(unsqueeze<d>(x)), decltype(unsqueeze<d>(more))...>{{unsqueeze<d>(x)}, {unsqueeze<d>(more)}...});
}
// The same of a list, as split, chunk and unbind give it.
template <int Dim, class... T>
  requires detail::is_list<std::tuple<T...>>
constexpr auto cat(const std::tuple<T...>& parts) {
  return std::apply([](const auto&... part) { return cat<Dim>(part...); }, parts);
}
template <int Dim, tensor T, std::size_t N>
  requires(N > 0)
constexpr auto cat(const std::array<T, N>& parts) {
  if constexpr (!detail::resolved<T>) return detail::unresolved<typename T::mesh_type>{};
  else return detail::cat_all<detail::own_dim(Dim, T::sp.rank)>(detail::operand_array<T, N>{parts});
}
template <int Dim, class... T>
  requires detail::is_list<std::tuple<T...>>
constexpr auto stack(const std::tuple<T...>& parts) {
  return std::apply([](const auto&... part) { return stack<Dim>(part...); }, parts);
}
template <int Dim, tensor T, std::size_t N>
  requires(N > 0)
constexpr auto stack(const std::array<T, N>& parts) {
  constexpr int d = Dim < 0 ? Dim + T::sp.rank + 1 : Dim;
  return cat<d>(
      detail::each_part(parts, std::make_index_sequence<N>{}, [](const auto& part) { return unsqueeze<d>(part); }));
}

// Parts of the given sizes along Dim, as a std::tuple of views, or as a std::array where they are more than 16 and equal:
// std::get, std::apply and structured bindings serve both. Unlike in PyTorch a partial tensor may be split: each part is
// a part of every share. A gradient goes back as one padded tensor for each part, summed.
template <int Dim, std::int64_t... Sizes, tensor X>
constexpr auto split(const X& x) {
  constexpr int d = detail::own_dim(Dim, X::sp.rank);
  constexpr bool wrong = detail::resolved<X> && (sizeof...(Sizes) == 0 || !detail::splits(spec(X::sp), d, {Sizes...}));
  if constexpr (wrong) detail::refused<problem::split_sizes, op_code::slice, operand_t<X::sp>>(x);
  if constexpr (wrong || !detail::resolved<X>)
    return detail::unresolved_parts<typename X::mesh_type>(std::make_index_sequence<sizeof...(Sizes)>{});
  else return detail::split_parts<d, Sizes...>(x, std::make_index_sequence<sizeof...(Sizes)>{});
}

// At most Count parts of equal size, the last one perhaps smaller, as split gives them.
template <int Dim, std::int64_t Count, tensor X>
constexpr auto chunk(const X& x) {
  constexpr int d = detail::own_dim(Dim, X::sp.rank);
  constexpr bool in_range = d >= 0 && d < X::sp.rank;
  constexpr problem wrong = !detail::resolved<X> ? problem::none
                            : !in_range          ? problem::dim_out_of_range
                            : Count < 1          ? problem::split_sizes
                                                 : problem::none;
  if constexpr (wrong != problem::none) detail::refused<wrong, op_code::slice, operand_t<X::sp>>(x);
  if constexpr (wrong != problem::none || !detail::resolved<X>) {
    return detail::unresolved_parts<typename X::mesh_type>(
        std::make_index_sequence<(Count < 1 ? 1 : static_cast<std::size_t>(Count))>{});
  } else {
    constexpr std::int64_t extent = X::sp.extent[d], size = detail::chunk_extent(extent, Count);
    constexpr std::int64_t parts = extent == 0 ? 1 : ceil_div(extent, size);
    return detail::split_evenly<d, size>(x, std::make_index_sequence<static_cast<std::size_t>(parts)>{});
  }
}

// Every index of a dim, which goes, as split gives them.
template <int Dim, tensor X>
constexpr auto unbind(const X& x) {
  constexpr int d = detail::own_dim(Dim, X::sp.rank);
  return detail::squeeze_each<d>(chunk<Dim, (d >= 0 && d < X::sp.rank && X::sp.extent[d] > 0 ? X::sp.extent[d] : 1)>(x));
}

// x with `part` in place of the slice of Dim that begins at Start and is as long as `part` is; a negative Start counts from
// the end. A copy of x, unless nothing reads x afterwards.
template <int Dim, std::int64_t Start = 0, tensor X, tensor Y>
constexpr auto slice_scatter(const X& x, const Y& part) {
  constexpr int d = detail::own_dim(Dim, X::sp.rank);
  constexpr bool fits = d >= 0 && d < X::sp.rank && d < Y::sp.rank;
  constexpr std::int64_t start = Start < 0 && fits ? Start + X::sp.extent[fits ? d : 0] : Start;
  constexpr std::int64_t length = fits ? Y::sp.extent[fits ? d : 0] : 0;
  return detail::apply<op_code::slice_scatter, attributes<slice_attributes>(d, start, length)>(0, x, part);
}

}  // namespace shardwise::inline v0_1
