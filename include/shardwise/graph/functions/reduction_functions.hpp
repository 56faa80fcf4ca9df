// SPDX-License-Identifier: Apache-2.0
// Reductions over any dims (negative ones count from the end; none named: over all), with PyTorch's names. Over a
// sharded dim a sum or mean is partial<>, a largest element partial<reduction::max>, and so on: redistribute makes it
// whole.
#pragma once

#include <limits>

#include <shardwise/graph/functions/pointwise_functions.hpp>
#include <shardwise/graph/functions/views.hpp>

namespace shardwise::inline v0_1 {

// sum<0>(x, keepdim): reduced dims stay with extent 1.
struct keepdim_t {};
inline constexpr keepdim_t keepdim{};

namespace detail {

template <int... Dims>
constexpr std::int64_t dims_mask(int rank) {
  return sizeof...(Dims) == 0 ? (std::int64_t{1} << rank) - 1 : mask_of({Dims...}, rank);
}

constexpr op_attr without_dims(const spec& s, std::int64_t mask) {
  extent_list r;
  for (int d = 0; d < s.rank; ++d)
    if (!((mask >> d) & 1)) r.push(spelled(s, d));
  return r.attributes();
}

// A view without the dims of the mask, whose extents are 1.
template <std::int64_t Mask, tensor A>
constexpr auto drop_dims(const A& a) {
  if constexpr (!resolved<A>) return a;
  else return apply<op_code::reshape, without_dims(A::sp, Mask)>(0, contiguous(a));
}
constexpr op_attr with_one_more(const spec& s) {
  extent_list r = without_dim(s, -1);
  r.push(1);
  return r.attributes();
}

constexpr bool any_sharded(const spec& s, std::int64_t mask) {
  bool any = false;
  for (int a = 0; a < s.axes; ++a) any = any || (s.place[a].is_shard() && ((mask >> s.place[a].dim) & 1));
  return any;
}

constexpr std::int64_t reduced_count(const spec& s, std::int64_t mask) {
  std::int64_t n = 1;
  for (int d = 0; d < s.rank; ++d)
    if ((mask >> d) & 1) n *= s.extent[d];
  return n;
}
// 1 / (count - correction): infinite where no degree of freedom is left, so that a variance is NaN or infinite there, and never
// negative.
constexpr double per_degree(std::int64_t count, double correction) {
  const double left = static_cast<double>(count) - correction;
  return left <= 0 ? std::numeric_limits<double>::infinity() : 1 / left;
}
constexpr bool any_dyn(const spec& s, std::int64_t mask) {
  bool any = false;
  for (int d = 0; d < s.rank; ++d) any = any || (((mask >> d) & 1) && is_dyn(s, d));
  return any;
}

}  // namespace detail

template <int... Dims, tensor A>
constexpr auto sum(const A& a, keepdim_t) {
  constexpr std::int64_t mask = detail::dims_mask<Dims...>(A::sp.rank);
  return detail::apply<op_code::sum, attributes<sum_attributes>(mask, mask)>(0, a);
}
// The sum of the ranks' elements over the number of all: partial<> over a sharded dim, exact for uneven shards, where
// DTensor has a mean of means.
template <int... Dims, tensor A>
constexpr auto mean(const A& a, keepdim_t) {
  constexpr std::int64_t mask = detail::dims_mask<Dims...>(A::sp.rank);
  return detail::apply<op_code::sum, attributes<sum_attributes>(mask, mask, 1)>(0, a);
}

// amax, amin: equal largest elements share the gradient evenly. prod: exact gradients with any number of zeros. Of no
// elements: -infinity, infinity, 1. Over a sharded dim there is no gradient; make the operand whole first for one.
#define SHARDWISE_X(name)                                                                                                 \
  template <int... Dims, tensor A>                                                                                        \
  constexpr auto name(const A& a, keepdim_t) {                                                                            \
    return detail::apply<op_code::name, attributes<extent_one_attributes>(detail::dims_mask<Dims...>(A::sp.rank))>(0, a); \
  }                                                                                                                       \
  template <int... Dims, tensor A>                                                                                        \
  constexpr auto name(const A& a) {                                                                                       \
    return detail::drop_dims<detail::dims_mask<Dims...>(A::sp.rank)>(name<Dims...>(a, keepdim));                          \
  }
SHARDWISE_X(amax)
SHARDWISE_X(amin)
SHARDWISE_X(prod)
#undef SHARDWISE_X

// Largest and smallest of all elements.
template <tensor A>
constexpr auto max(const A& a) {
  return amax(a);
}
template <tensor A>
constexpr auto min(const A& a) {
  return amin(a);
}

// Sum of squared distances from the mean over (count - correction), from the mean first and squares then: two passes.
// No reduced dim may be sharded, but in implicit mode, which gathers the mean; see var_over.
template <int... Dims, tensor A>
constexpr auto var(const A& a, double correction = 1) {
  constexpr std::int64_t mask = detail::dims_mask<Dims...>(A::sp.rank);
  constexpr problem wrong = !detail::resolved<A>                                                ? problem::none
                            : detail::any_dyn(spec(A::sp), mask)                                ? problem::var_dyn
                            : !detail::is_implicit<A> && detail::any_sharded(spec(A::sp), mask) ? problem::var_dim_sharded
                                                                                                : problem::none;
  if constexpr (wrong != problem::none) {
    return detail::refused<wrong, op_code::sub, operand_t<A::sp>>(a);
  } else {
    const auto away = sub(a, mean<Dims...>(a, keepdim));
    return scale(sum<Dims...>(mul(away, away)), detail::per_degree(detail::reduced_count(A::sp, mask), correction));
  }
}
// The root of var. Its gradient where all elements are equal is 0.
template <int... Dims, tensor A>
constexpr auto std(const A& a, double correction = 1) {
  return detail::apply<op_code::sqrt, attributes<sqrt_attributes>(1)>(0, var<Dims...>(a, correction));
}

// The same where Axis shards a reduced dim: an all-reduce of the means comes before the squares, so that uneven shards
// are exact. The result is partial<> on Axis.
template <class Axis, int... Dims, tensor A>
constexpr auto var_over(const A& a, double correction = 1) {
  constexpr std::int64_t mask = detail::dims_mask<Dims...>(A::sp.rank);
  constexpr problem wrong = detail::resolved<A> && detail::any_dyn(spec(A::sp), mask) ? problem::var_dyn : problem::none;
  if constexpr (wrong != problem::none) {
    return detail::refused<wrong, op_code::sub, operand_t<A::sp>>(a);
  } else {
    const auto away = sub(a, redistribute<Axis, reduced>(mean<Dims...>(a, keepdim)));
    return scale(sum<Dims...>(mul(away, away)), detail::per_degree(detail::reduced_count(A::sp, mask), correction));
  }
}

// log(sum of exp(x)) along Dim, which nothing overflows.
template <int Dim = -1, tensor A>
constexpr auto logsumexp(const A& a, keepdim_t) {
  using line = detail::along<Dim, A>;
  const auto wide = detail::apply<op_code::lse, detail::no_attr>(0, line::exchange(a));
  const auto sums = cast<element_t<A::sp.type>>(wide);
  using type = std::remove_cvref_t<decltype(sums)>;
  if constexpr (!detail::resolved<type>) return sums;
  else return line::exchange(detail::apply<op_code::reshape, detail::with_one_more(type::sp)>(0, sums));
}
template <int Dim = -1, tensor A>
constexpr auto logsumexp(const A& a) {
  return detail::drop_dims<detail::dims_mask<Dim>(A::sp.rank)>(logsumexp<Dim>(a, keepdim));
}
// log(softmax(x)) along Dim, in one pass.
template <int Dim = -1, tensor A>
constexpr auto log_softmax(const A& a) {
  return detail::along<Dim, A>::template run<op_code::log_softmax, detail::no_attr>(0, a);
}

}  // namespace shardwise::inline v0_1
