// SPDX-License-Identifier: Apache-2.0
// Views under PyTorch's names: other dims, other order, parts, repeated elements. Nothing is copied unless it says so.
#pragma once

#include <shardwise/graph/functions/functions.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

constexpr int own_dim(int dim, int rank) { return dim < 0 ? dim + rank : dim; }

// An extent as attributes and shape<...> spell it: a dim with run-time extent as minus its bound.

// The extents of a view in the making.
struct extent_list {
  std::int64_t extent[max_rank]{};
  int rank = 0;
  problem problem_met = problem::none;

  constexpr void push(std::int64_t e) {
    if (rank < max_rank) extent[rank] = e;
    ++rank;
  }
  constexpr op_attr attributes() const { return pack_extents(extent, rank); }
  constexpr problem wrong() const { return problem_met != problem::none ? problem_met : packed_problem(attributes()); }
};
constexpr extent_list no_extents(problem p) { return {{}, 0, p}; }

// Extents of which one may be -1: what the others leave of dims [begin, end) of s, run-time sizes with them where they fit.
constexpr extent_list inferred(std::initializer_list<std::int64_t> extents, const spec& s, int begin, int end) {
  extent_list r;
  if (too_large(extents.begin(), static_cast<int>(extents.size()))) return no_extents(problem::tensor_too_large);
  std::int64_t others = 1, count = 1;
  unsigned given = 0, all = 0;
  for (int d = begin; d < end; ++d) {
    count *= s.extent[d];
    all |= dyn_sizes(s, d);
  }
  int free = 0;
  for (const std::int64_t e : extents) {
    if (e == -1) ++free;
    else {
      others *= bound_of(e);
      given |= sizes_in(e);
    }
  }
  if (free > 1 || (free == 1 && (others == 0 || count % others != 0))) return no_extents(problem::view_infer);
  if (free == 0) {
    for (const std::int64_t e : extents) r.push(e);
    return r;
  }
  const std::int64_t left = count / others;
  const unsigned sizes = left % product_of(s.dyn_bound, all & ~given) == 0 ? all & ~given : 0;
  for (const std::int64_t e : extents) r.push(e == -1 ? spelled_extent(left, sizes) : e);
  return r;
}

constexpr extent_list squeezed(const spec& s, std::initializer_list<int> dims) {
  extent_list r;
  const std::int64_t mask = mask_of(dims, s.rank);
  if ((mask >> s.rank) != 0) return no_extents(problem::dim_out_of_range);
  for (int d = 0; d < s.rank; ++d) {
    const bool named = dims.size() == 0 || ((mask >> d) & 1) != 0;
    if (!named || s.extent[d] != 1 || is_dyn(s, d)) r.push(spelled(s, d));
  }
  return r;
}
constexpr extent_list unsqueezed(const spec& s, int dim) {
  extent_list r;
  const int at = dim < 0 ? dim + s.rank + 1 : dim;
  if (at < 0 || at > s.rank) return no_extents(problem::dim_out_of_range);
  for (int d = 0; d <= s.rank; ++d) {
    if (d == at) r.push(1);
    if (d < s.rank) r.push(spelled(s, d));
  }
  return r;
}
constexpr extent_list flattened_dims(const spec& s, int first, int last) {
  extent_list r;
  if (s.rank == 0) {
    r.push(1);
    return r;
  }
  const int a = own_dim(first, s.rank), b = own_dim(last, s.rank);
  if (a < 0 || b >= s.rank || a > b) return no_extents(problem::dim_out_of_range);
  for (int d = 0; d < s.rank; ++d) {
    if (d > a && d <= b) {
      std::int64_t& e = r.extent[a];
      if ((sizes_in(e) & dyn_sizes(s, d)) != 0) return no_extents(problem::dyn_square);
      e = extent_product(e, spelled(s, d));
    } else {
      r.push(spelled(s, d));
    }
  }
  return r;
}
constexpr extent_list unflattened(const spec& s, int dim, std::initializer_list<std::int64_t> sizes) {
  extent_list r;
  const int at = own_dim(dim, s.rank);
  if (at < 0 || at >= s.rank) return no_extents(problem::dim_out_of_range);
  const extent_list part = inferred(sizes, s, at, at + 1);
  if (part.problem_met != problem::none) return part;
  for (int d = 0; d < s.rank; ++d) {
    if (d != at) r.push(spelled(s, d));
    else
      for (int i = 0; i < part.rank; ++i) r.push(i < max_rank ? part.extent[i] : 1);
  }
  return r;
}
constexpr extent_list without_dim(const spec& s, int dim) {
  extent_list r;
  for (int d = 0; d < s.rank; ++d)
    if (d != dim) r.push(spelled(s, d));
  return r;
}
// -1 keeps an extent; of a new dim it has no meaning.
constexpr extent_list expanded(const spec& s, std::initializer_list<std::int64_t> extents) {
  extent_list r;
  const int rank = static_cast<int>(extents.size());
  int d = 0;
  for (const std::int64_t e : extents) {
    const int own = d++ - (rank - s.rank);
    if (e == -1 && own < 0) return no_extents(problem::expand_extents);
    r.push(e == -1 ? spelled(s, own) : e);
  }
  return r;
}

constexpr op_attr transposed(int rank, int a, int b) {
  std::int64_t dims = 0;
  for (int d = 0; d < rank; ++d) dims |= static_cast<std::int64_t>(d == a ? b : d == b ? a : d) << (4 * d);
  return attributes<permute_attributes>(dims);
}

// Ends every view: says what is wrong with the list, or sees the tensor in these extents.
template <op_code Op, op_attr Extents, problem Wrong, class A>
constexpr auto seen_as(const A& a) {
  if constexpr (!resolved<A>) return unresolved<typename A::mesh_type>{};
  else if constexpr (Wrong != problem::none) return refused<Wrong, Op, operand_t<A::sp>>(a);
  else return apply<Op, Extents>(0, a);
}

}  // namespace detail

// Other extents of the same elements, in the same storage; one extent may be -1. A tensor that is not stored densely is
// refused: reshape copies it.
template <std::int64_t... Extents, tensor A>
constexpr auto view(const A& a) {
  constexpr auto list = detail::inferred({Extents...}, spec(A::sp), 0, spec(A::sp).rank);
  return detail::seen_as<op_code::reshape, list.attributes(), list.wrong()>(a);
}

// Dims First to Last as one; a copy where storage does not allow it.
template <int First = 0, int Last = -1, tensor A>
constexpr auto flatten(const A& a) {
  constexpr auto list = detail::flattened_dims(spec(A::sp), First, Last);
  return detail::seen_as<op_code::reshape, list.attributes(), list.wrong()>(contiguous(a));
}
// One dim as several, one of which may be -1; a copy where storage does not allow it.
template <int Dim, std::int64_t... Sizes, tensor A>
constexpr auto unflatten(const A& a) {
  constexpr auto list = detail::unflattened(spec(A::sp), Dim, {Sizes...});
  return detail::seen_as<op_code::reshape, list.attributes(), list.wrong()>(contiguous(a));
}

// Without the dims given that have extent 1 (others stay), or without any such dim.
template <int... Dims, tensor A>
constexpr auto squeeze(const A& a) {
  constexpr auto list = detail::squeezed(spec(A::sp), {Dims...});
  return detail::seen_as<op_code::reshape, list.attributes(), list.wrong()>(a);
}
// With a dim of extent 1 at position Dim of the result.
template <int Dim, tensor A>
constexpr auto unsqueeze(const A& a) {
  constexpr auto list = detail::unsqueezed(spec(A::sp), Dim);
  return detail::seen_as<op_code::reshape, list.attributes(), list.wrong()>(a);
}

template <int First, int Second, tensor A>
constexpr auto transpose(const A& a) {
  constexpr int rank = A::sp.rank, i = detail::own_dim(First, rank), j = detail::own_dim(Second, rank);
  constexpr bool wrong = detail::resolved<A> && (i < 0 || i >= rank || j < 0 || j >= rank);
  if constexpr (wrong) return detail::refused<problem::dim_out_of_range, op_code::permute, operand_t<A::sp>>(a);
  else return detail::apply<op_code::permute, detail::transposed(rank, i, j)>(0, a);
}

// Dims of extent 1, and new ones in front, made longer without a copy: strides are 0 there. -1 keeps an extent. The
// gradient is summed over them.
template <std::int64_t... Extents, tensor A>
constexpr auto expand(const A& a) {
  constexpr auto list = detail::expanded(spec(A::sp), {Extents...});
  return detail::seen_as<op_code::broadcast, list.attributes(), list.wrong()>(a);
}
template <tensor A, tensor Like>
constexpr auto expand_as(const A& a, const Like&) {
  constexpr auto list = detail::without_dim(spec(Like::sp), -1);
  return detail::seen_as<op_code::broadcast, list.attributes(), list.wrong()>(a);
}

// The same value, through which no gradient flows: a view, placed as its operand is. Law: d/dx f(x, detach(x)) is the partial
// derivative of f by its first argument alone. A reduced tensor stays reduced, so that it fits beside a split one; no sum
// over the axis is owed for it, since nothing pulls it back. What is written into it in place would be a value that x's
// gradient knows nothing of, and is refused where anything reads x afterwards (problem::mutation_view).
template <tensor A>
constexpr auto detach(const A& a) {
  return detail::apply<op_code::detach, detail::no_attr>(0, a);
}

// Length elements of one dim from Start on; a negative Start counts from the end.
template <int Dim, std::int64_t Start, std::int64_t Length, tensor A>
constexpr auto narrow(const A& a) {
  constexpr int d = detail::own_dim(Dim, A::sp.rank);
  constexpr std::int64_t extent = d >= 0 && d < A::sp.rank ? A::sp.extent[d] : 0;
  return detail::apply<op_code::slice, attributes<slice_attributes>(d, Start < 0 ? Start + extent : Start, Length)>(0, a);
}

// One index of a dim, which goes; a negative index counts from the end.
template <int Dim, std::int64_t Index, tensor A>
constexpr auto select(const A& a) {
  const auto one = narrow<Dim, Index, 1>(a);
  using type = std::remove_const_t<decltype(one)>;
  constexpr auto list = detail::without_dim(spec(type::sp), detail::own_dim(Dim, A::sp.rank));
  return detail::seen_as<op_code::reshape, list.attributes(), list.wrong()>(one);
}

}  // namespace shardwise::inline v0_1
