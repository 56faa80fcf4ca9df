// SPDX-License-Identifier: Apache-2.0
// Paddings, triangles, and tensors made of a number, of positions or of random numbers, under PyTorch's names.
#pragma once

#include <shardwise/graph/functions/views.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// Pairs (before, after) from the last dim on, as in PyTorch. An operation pads five neighbouring dims: `a` the last ones, `front`
// those before them, if there are any to pad.
struct pad_list {
  op_attr a{{0, 0, 0, 0, 0, 0}}, front{{0, 0, 0, 0, 0, 0}};
  bool wrong = false, in_front = false;
};
static_assert(max_rank <= 2 * rules::padded_dims);
constexpr pad_list padded_by(const spec& s, std::initializer_list<std::int64_t> numbers, bool zero) {
  pad_list r;
  const int count = static_cast<int>(numbers.size());
  if (count % 2 != 0 || count > 2 * s.rank) {
    r.wrong = true;
    return r;
  }
  const int first = s.rank > rules::padded_dims ? s.rank - rules::padded_dims : 0;  // of those that `a` pads
  int i = 0;
  for (const std::int64_t e : numbers) {
    r.wrong = r.wrong || e < 0 || e > 0x7FFFFFFF;
    const int d = s.rank - 1 - i / 2;
    if (!r.wrong) (d < first ? r.front.v[d] : r.a.v[d - first]) |= i % 2 == 0 ? e : e << 32;
    r.in_front = r.in_front || (d < first && e != 0);
    ++i;
  }
  r.front.v[5] = zero ? 1 : 0;
  r.a.v[5] = (zero ? 1 : 0) | first << 1;
  return r;
}

template <bool Zero, std::int64_t... Numbers, class A>
constexpr auto pad_with(const A& a, double value) {
  constexpr pad_list list = padded_by(spec(A::sp), {Numbers...}, Zero);
  constexpr problem wrong = resolved<A> && list.wrong ? problem::pad_negative : problem::none;
  check_element<A::sp, op_code::constant_pad>(a, value, "constant_pad");
  if constexpr (wrong != problem::none) return refused<wrong, op_code::constant_pad, operand_t<A::sp>>(a);
  else if constexpr (list.in_front)
    return apply<op_code::constant_pad, list.a>(value, apply<op_code::constant_pad, list.front>(value, a));
  else return apply<op_code::constant_pad, list.a>(value, a);
}

// Extents and placements of `like`; a partial tensor's fill is the same number on every rank.
constexpr spec like_spec(const spec& like) {
  spec s = contiguous(like);
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_partial()) s.place[a] = replicate_value();
  return s;
}
// A constant has no gradient that could miss a sum. So on axes where its placement is not said it fits beside `like`: reduced where that
// is sharded, reduced or partial.
template <class T, class Shape, class Like, class... Placements>
inline constexpr spec spec_beside = [] {
  spec s = like_spec(spec(spec_of<T, Shape, typename Like::mesh_type, Placements...>::value));
  if constexpr (resolved<Like>) {
    const spec& beside = Like::sp;
    [[maybe_unused]] constexpr auto axis = [](int a) { return a < 0 ? 0U : 1U << a; };
    unsigned said = sizeof...(Placements) > 0 ? ~0U : 0U;
    if constexpr ((is_on<Placements>::value && ...))
      said = (0U | ... | axis(Like::mesh_type::template index_of<typename Placements::axis>));
    for (int a = 0; a < s.axes; ++a)
      if (is_floating(s.type) && ((said >> a) & 1U) == 0 && !beside.place[a].is_replicate()) s.place[a] = reduced_value();
    normalise(s);
  }
  return s;
}();
constexpr bool has_partial(const spec& s) {
  bool any = false;
  for (int a = 0; a < s.axes; ++a) any = any || s.place[a].is_partial();
  return any;
}

template <op_code Op, spec S, op_attr A, class Like>
constexpr auto leaf_like(const Like& like, double f) {
  if constexpr (Op == op_code::fill) check_element<S, Op>(like, f, "full, fill_");
  if constexpr (is_implicit<Like>) return as_implicit(leaf_like<Op, S, A>(like.strict, f));
  else if constexpr (!resolved<Like>) return like;
  else return Like::template apply_leaf<Op, S, A>(f, like);
}
template <op_code Op, spec S, class Like>
constexpr auto random_like(const Like& like) {
  constexpr problem wrong = !resolved<Like>        ? problem::none
                            : has_partial(S)       ? problem::random_partial
                            : !is_floating(S.type) ? problem::needs_floating_point
                                                   : problem::none;
  if constexpr (wrong != problem::none) return refused<wrong, Op, typename op_tag<Op>::type, operand_t<S>>(like);
  else return leaf_like<Op, contiguous(S), no_attr>(like, 0);
}

}  // namespace detail

// Numbers are pairs, before and after, from the last dim on: constant_pad<1, 2>(x) pads the last dim. Padded dims must not
// be sharded.
template <std::int64_t... Numbers, tensor A>
constexpr auto constant_pad(const A& a, double value) {
  return detail::pad_with<false, Numbers...>(a, value);
}
// With zeros, which a partial tensor may have too.
template <std::int64_t... Numbers, tensor A>
constexpr auto constant_pad(const A& a) {
  return detail::pad_with<true, Numbers...>(a, 0);
}

// The last two dims' elements on and below (tril), on and above (triu) a diagonal; zeros elsewhere.
template <int Diagonal = 0, tensor A>
constexpr auto tril(const A& a) {
  return detail::apply<op_code::triangle, attributes<triangle_attributes>(Diagonal, 0)>(0, a);
}
template <int Diagonal = 0, tensor A>
constexpr auto triu(const A& a) {
  return detail::apply<op_code::triangle, attributes<triangle_attributes>(Diagonal, 1)>(0, a);
}

// --- a number, positions: tensors without operands in the program of `like` -------------------------------------------------

// As `like`, where it is partial replicate.
template <tensor A>
constexpr auto full_like(const A& like, double value) {
  return detail::leaf_like<op_code::fill, detail::like_spec(A::sp), detail::no_attr>(like, value);
}
template <tensor A>
constexpr auto zeros_like(const A& like) {
  return full_like(like, 0);
}
template <tensor A>
constexpr auto ones_like(const A& like) {
  return full_like(like, 1);
}
// full<float, shape<4, 8>, on<tp, shard<0>>>(like, 2). Where the placement on an axis is not said it is replicate, and reduced if `like` is
// not replicate there, so that it may be broadcast beside shards; so of arange. Integers are replicate.
template <class T, class Shape, class... Placements, tensor A>
constexpr auto full(const A& like, double value) {
  return detail::leaf_like<op_code::fill, detail::spec_beside<T, Shape, A, Placements...>, detail::no_attr>(like, value);
}
// First, First + Step, ... Count of them: element i is that of the whole tensor wherever it lies.
template <class T, std::int64_t Count, class... Placements, tensor A>
constexpr auto arange(const A& like) {
  return detail::leaf_like<op_code::arange, detail::spec_beside<T, shape<Count>, A, Placements...>,
                           attributes<arange_attributes>(0, 1)>(like, 0);
}
template <class T, std::int64_t First, std::int64_t Last, std::int64_t Step, class... Placements, tensor A>
constexpr auto arange_from(const A& like) {
  static_assert(Step != 0, "shardwise: arange_from: the step is 0; give one that leads from the first number to the last.");
  constexpr std::int64_t count = Step > 0 ? ceil_div(Last - First, Step) : ceil_div(First - Last, -Step);
  return detail::leaf_like<op_code::arange, detail::spec_beside<T, shape<(count > 0 ? count : 0)>, A, Placements...>,
                           attributes<arange_attributes>(First, Step)>(like, 0);
}

// --- random numbers: see runtime/program/random_stream.hpp --------------------------------------------------------------------------

// Uniform in [0, 1), normal with mean 0 and deviation 1; drawn anew at every call.
template <tensor A>
constexpr auto rand_like(const A& like) {
  return detail::random_like<op_code::rand, A::sp>(like);
}
template <tensor A>
constexpr auto randn_like(const A& like) {
  return detail::random_like<op_code::randn, A::sp>(like);
}
template <class T, class Shape, class... Placements, tensor A>
constexpr auto rand(const A& like) {
  return detail::random_like<op_code::rand, spec_of<T, Shape, typename A::mesh_type, Placements...>::value>(like);
}
template <class T, class Shape, class... Placements, tensor A>
constexpr auto randn(const A& like) {
  return detail::random_like<op_code::randn, spec_of<T, Shape, typename A::mesh_type, Placements...>::value>(like);
}
// 1 with the probability that the operand says, else 0. An element outside 0 to 1, or NaN, is an error at run time.
template <tensor A>
constexpr auto bernoulli(const A& probability) {
  return detail::apply<op_code::bernoulli, detail::no_attr>(0, probability);
}

}  // namespace shardwise::inline v0_1
