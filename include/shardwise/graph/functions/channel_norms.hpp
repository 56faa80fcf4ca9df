// SPDX-License-Identifier: Apache-2.0
// batch_norm and group_norm of (batch, channels, ...), with PyTorch's names and conventions; made of operations like a user's own. Their
// kernels: operations/channel_norm/host.hpp, and device.cuh there in one CUDA source of a program for GPUs.
#pragma once

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/graph/functions/option_number.hpp>
#include <shardwise/graph/functions/reduction_functions.hpp>
#include <shardwise/graph/functions/views.hpp>
#include <shardwise/operations/channel_norm/record.hpp>

namespace shardwise::inline v0_1 {

// As torch.nn.functional.batch_norm's; momentum: the weight of a batch's statistics in the running ones.
struct batch_norm_options {
  bool training = false;
  option_number momentum = 0.1;
  option_number eps = 1e-5;
};

namespace custom {

constexpr void pull_channel_norm(autodiff::pullback& p);
inline constexpr autodiff::adjoint_rule channel_norm_adjoint =
    autodiff::pulled<10 + max_axes>(&pull_channel_norm, autodiff::every_operand & ~6U);
inline constexpr custom_operation channel_moments{
    .name = "channel_moments", .operands = 1, .record = operations::channel_moments, .adjoint = &autodiff::no_derivative};
inline constexpr custom_operation channel_moments_about{.name = "channel_moments_about",
                                                        .operands = 2,
                                                        .record = operations::channel_moments_about,
                                                        .adjoint = &autodiff::no_derivative};
inline constexpr custom_operation channel_norm{
    .name = "channel_norm", .operands = 5, .record = operations::channel_norm, .adjoint = &channel_norm_adjoint};
inline constexpr custom_operation channel_norm_sums{
    .name = "channel_norm_sums", .operands = 4, .record = operations::channel_norm_sums, .adjoint = &autodiff::unknown};
inline constexpr custom_operation channel_norm_dx{
    .name = "channel_norm_dx", .operands = 6, .record = operations::channel_norm_dx, .adjoint = &autodiff::unknown};
inline constexpr custom_operation unbiased_variance{.name = "unbiased_variance",
                                                    .operands = 2,
                                                    .record = operations::unbiased_variance,
                                                    .adjoint = &autodiff::no_derivative};

// What goes to the statistics goes to x here. Where an axis cuts what a statistic is of, sums of all ranks are those of one collective of
// that axis; weight and bias take each rank's own.
constexpr void pull_channel_norm(autodiff::pullback& p) {
  const node& n = p.n;
  const bool all = attributes_of<channel_norm_attributes>(n.a).over_batch != 0;
  const int each = p.make(channel_norm_sums, n.a, 0, p.dy, n.in[0], n.in[1], n.in[2]);
  const bool weights = p.wants(3) || p.wants(4);
  const int total = all || weights ? p.make(op_code::sum, each, -1, 0, 2) : each;
  for (int k = 3; k < 5; ++k)
    if (p.wants(k)) {
      const int row = autodiff::sliced(p.t, total, 0, k == 3 ? 1 : 0, 1, n.scope);
      p.give(k, autodiff::derive(p.t, op_code::sum, attributes<sum_attributes>(3), 0, n.scope, row));
    }
  if (!p.wants(0)) return;
  int sums = all ? total : each;
  for (int a = 0; a < p.operand(0).axes; ++a) {
    spec s = p.t.spec_at(sums);
    if (!s.place[a].is_partial() || !p.operand(0).place[a].is_shard()) continue;
    s.place[a] = reduced_value();
    sums = p.t.b.emit(op_code::redistribute, attributes<redistribute_attributes>(a, pack(s.place[a])), 0, p.t.b.intern(s),
                      n.scope, sums);
  }
  p.give(0, p.make(channel_norm_dx, n.a, 0, p.dy, n.in[0], n.in[1], n.in[2], n.in[3], sums));
}

}  // namespace custom

namespace detail {

// Added up over all ranks, as a tensor that is the same on all of them.
constexpr spec summed_up(spec s) {
  for (placement& p : s.place)
    if (p.is_partial()) p = reduced_value();
  return s;
}
template <class A>
constexpr auto over_ranks(const A& a) {
  if constexpr (!resolved<A>) return a;
  else if constexpr (is_implicit<A>) return as_implicit(over_ranks(a.strict));
  else return planned_steps<A::sp, summed_up(spec(A::sp))>::from(a);
}

// Of what is the same for all parts of a tensor that is placed so.
constexpr placement same_beside(const placement& p) {
  return p.is_shard() || p.is_reduced() ? reduced_value() : replicate_value();
}

// `number` for each channel of x, placed as a weight of it has to be.
constexpr spec of_channels(const spec& x) {
  spec w = scalar_like(x);
  w.rank = 1;
  w.extent[0] = x.extent[1];
  for (int a = 0; a < w.axes; ++a) {
    const placement p = x.place[a];
    w.place[a] = p.is_shard(1) ? split_along(0, p) : same_beside(p);
  }
  make_contiguous(w);
  return w;
}
template <class X>
constexpr auto of_each_channel(const X& x, double number) {
  return leaf_like<op_code::fill, of_channels(spec(X::sp)), no_attr>(x, number);
}

inline constexpr op_attr batch_statistics = pack_attributes(channel_norm_attributes{0, 1});
// Not a local constant of group_norm: nvcc 13's device compiler crashes over one where the call stands in a decltype.
template <std::int64_t Groups>
inline constexpr op_attr statistics_of_groups = pack_attributes(channel_norm_attributes{Groups, 0});

constexpr std::int64_t elements_of_channel(const spec& x) {
  std::int64_t n = 1;
  for (int d = 2; d < x.rank; ++d) n *= x.extent[d];
  return n;
}

// Number K of each pair. A sum, since a view cannot say what becomes of dims of one element that are cut.
template <int K, class A>
constexpr auto of_pairs(const A& a) {
  return sum<0>(narrow<0, K, 1>(a));
}

// Whether some axis cuts dims behind the channels: then no rank has a whole image's statistics.
constexpr bool cuts_points(const spec& x) {
  for (int a = 0; a < x.axes; ++a)
    if (x.place[a].is_shard() && x.place[a].dim > 1) return true;
  return false;
}

// Not of a refused x. The attributes are a value: nvcc 13 does not match a template whose argument is a variable template of another's.
template <class X>
constexpr bool are_of_cut(const op_attr& a) {
  if constexpr (!resolved<X> || is_implicit<X>) return false;
  else return !operations::channel_norm_finding(a, X::sp, 0) && cuts_points(spec(X::sp));
}

// 0 for each statistic of x, placed as those are.
constexpr spec of_statistics(const spec& x, const op_attr& v) {
  const auto a = attributes_of<channel_norm_attributes>(v);
  spec s = scalar_like(x);
  s.rank = 2;
  if (a.over_batch != 0) s.extent[0] = 1;
  else copy_extent(s, 0, x, 0);
  s.extent[1] = operations::norm_groups(a, x);
  if (is_low_precision(s.type)) s.type = dtype::f32;
  for (int k = 0; k < s.axes; ++k) {
    const placement p = x.place[k];
    const bool alike = p.is_shard(1) || (p.is_shard(0) && a.over_batch == 0);
    s.place[k] = alike ? p : same_beside(p);
  }
  make_contiguous(s);
  return s;
}
template <op_attr A, class X>
constexpr auto moments_about_zero(const X& x) {
  return call<custom::channel_moments_about, A>(x, leaf_like<op_code::fill, of_statistics(spec(X::sp), A), no_attr>(x, 0.0));
}

// Of cut images, whose parts' sums add up: first about 0 for the mean, then about that, so that nothing cancels. What rounding the mean has
// lost is put right by the second sums. Two collectives for each axis that cuts, of one and of two numbers for each statistic.
template <op_attr A, class X>
constexpr auto moments_of_cut(const X& x, double share) {
  const auto means = [&](const auto& pairs) {
    if constexpr (attributes_of<channel_norm_attributes>(A).over_batch != 0)
      return shardwise::mean<1>(pairs, keepdim) * share;
    else return pairs * share;
  };
  const auto rough = of_pairs<0>(over_ranks(narrow<0, 0, 1>(means(moments_about_zero<A>(x)))));
  const auto each = call<custom::channel_moments_about, A>(x, rough);
  const auto about = over_ranks(means(each));
  const auto lost = of_pairs<0>(about);
  return std::tuple(each, rough + lost, of_pairs<1>(about) - lost * lost);
}

// The batch's own mean and biased variance of each channel; each image's are put together about their common mean, so that nothing
// cancels. Two collectives of a number for each channel where the batch alone is cut.
template <class X>
constexpr auto batch_moments(const X& x) {
  constexpr double n = static_cast<double>(resolved<X> ? elements_of_channel(spec(X::sp)) : 1);
  constexpr double share = 1 / (n > 0 ? n : 1);
  if constexpr (are_of_cut<X>(batch_statistics)) {
    const auto [each, mean, variance] = moments_of_cut<batch_statistics>(x, share);
    return std::tuple(each, sum<0>(mean), sum<0>(variance));
  } else {
    const auto each = call<custom::channel_moments, pack_attributes(channel_norm_attributes{})>(x);
    const auto means = of_pairs<0>(each);
    const auto mean = over_ranks(shardwise::mean<0>(means));
    const auto apart = means - mean;
    const auto variance = over_ranks(shardwise::mean<0>(of_pairs<1>(each) * share + apart * apart));
    return std::tuple(each, mean, variance);
  }
}

}  // namespace detail

namespace detail {

// a, the same on all ranks of an axis, under the name that `Like` has there: nothing moves.
constexpr spec whole_as(spec a, const spec& like) {
  for (int k = 0; k < a.axes; ++k)
    if (a.place[k].is_whole() && like.place[k].is_whole()) a.place[k] = like.place[k];
  return a;
}
template <spec Like, class A>
constexpr auto named_as(const A& a) {
  if constexpr (!resolved<A>) return a;
  else if constexpr (is_implicit<A>) return as_implicit(named_as<Like>(a.strict));
  else return planned_steps<A::sp, whole_as(spec(A::sp), Like)>::from(a);
}

// (channels) as (channels, 1, ...), to be broadcast over (batch, channels, ...).
template <int More, class A>
constexpr auto beside_channels(const A& a) {
  if constexpr (More <= 0) return a;
  else return beside_channels<More - 1>(unsqueeze<1>(a));
}

template <class R, class A>
constexpr auto of_type(const R&, const A& a) {
  if constexpr (!resolved<R, A> || R::sp.type == A::sp.type) return a;
  else return cast<element_t<R::sp.type>>(a);
}

template <class X, class M, class V>
constexpr problem batch_norm_problem(bool training) {
  if constexpr (!resolved<X, M, V>) {
    return problem::none;
  } else {
    constexpr spec x = X::sp, m = M::sp, v = V::sp;
    if (x.rank < 2) return problem::channel_norm_rank;
    for (int d = 1; d < x.rank; ++d)
      if (is_dyn(x, d)) return problem::channel_norm_dyn;
    if (m.rank != 1 || v.rank != 1 || m.extent[0] != x.extent[1] || v.extent[0] != x.extent[1])
      return problem::channel_norm_weight;
    if (training && !is_dyn(x, 0) && x.extent[0] * elements_of_channel(x) < 2) return problem::batch_norm_values;
    return problem::none;
  }
}

// The derivative is that of the whole, the statistics being x's own.
template <class X, class M, class V, class W, class B>
constexpr auto by_batch(const X& x, const M& mean, const V& variance, const W& weight, const B& bias, double eps) {
  return call<custom::channel_norm, batch_statistics>(x, unsqueeze<0>(mean), unsqueeze<0>(rsqrt(variance + eps)), weight,
                                                      bias);
}

template <batch_norm_options O, class X, class M, class V, class W, class B>
constexpr auto batch_norm(const X& x, const M& running_mean, const V& running_var, const W& weight, const B& bias) {
  if constexpr (O.training) {
    const auto [each, mean, variance] = batch_moments(x);
    lerp_(running_mean, of_type(running_mean, named_as<M::sp>(mean)), O.momentum.value());
    if constexpr (is_dyn(X::sp, 0)) {
      const auto unbiased =
          call<custom::unbiased_variance, pack_attributes(channel_norm_attributes{elements_of_channel(X::sp), 0})>(variance,
                                                                                                                   each);
      lerp_(running_var, of_type(running_var, named_as<V::sp>(unbiased)), O.momentum.value());
    } else {
      constexpr double n = static_cast<double>(X::sp.extent[0] * elements_of_channel(spec(X::sp)));
      lerp_(running_var, of_type(running_var, named_as<V::sp>(variance * (n / (n - 1)))), O.momentum.value());
    }
    return by_batch(x, mean, variance, weight, bias, O.eps.value());
  } else {
    constexpr int more = X::sp.rank - 2;
    constexpr spec like = of_channels(spec(X::sp));
    const auto mean = of_type(x, named_as<like>(running_mean));
    const auto slope = of_type(x, rsqrt(named_as<like>(running_var) + O.eps.value())) * weight;
    return (x - beside_channels<more>(mean)) * beside_channels<more>(slope) + beside_channels<more>(bias);
  }
}

}  // namespace detail

// x (batch, channels, ...): (x - mean) / sqrt(variance + eps) * weight + bias of each channel, weight, bias and running statistics
// (channels). In training mean and biased variance are those of all elements of the channel, and the running ones move towards them,
// the variance unbiased: running += momentum (batch's - running). Else they are the running ones. Statistics are float where elements
// are of two bytes.
//
// x may be cut along the batch: the result is that of one rank, so in training the batch's statistics are added up over its ranks, as
// torch.nn.SyncBatchNorm's, by an all-reduce of `channels` numbers each for mean and variance, and one of 2 * channels backward. Along
// height, width and other dims behind the channels, with all-reduces of `channels` and twice 2 * channels numbers for each axis that cuts
// anything but channels. Or along the channels, each rank its own, which moves nothing. Refused: training of one value per channel; of a
// batch that is known at run time alone by an exception of the run.
template <batch_norm_options Options = batch_norm_options{}, tensor X, tensor M, tensor V, tensor W, tensor B>
constexpr auto batch_norm(const X& x, const M& running_mean, const V& running_var, const W& weight, const B& bias) {
  constexpr problem wrong = detail::batch_norm_problem<X, M, V>(Options.training);
  if constexpr (wrong != problem::none)
    return detail::refused<wrong, op_code::custom, detail::custom_tag<custom::channel_norm>, operand_t<X::sp>,
                           operand_t<M::sp>, operand_t<V::sp>>(x, running_mean, running_var, weight, bias);
  else if constexpr (!detail::resolved<X, M, V, W, B>) return detail::unresolved<typename X::mesh_type>{};
  else return detail::batch_norm<Options>(x, running_mean, running_var, weight, bias);
}
// Without weight and bias.
template <batch_norm_options Options = batch_norm_options{}, tensor X, tensor M, tensor V>
constexpr auto batch_norm(const X& x, const M& running_mean, const V& running_var) {
  constexpr problem wrong = detail::batch_norm_problem<X, M, V>(Options.training);
  if constexpr (wrong != problem::none || !detail::resolved<X, M, V>)
    return batch_norm<Options>(x, running_mean, running_var, running_mean, running_var);
  else
    return detail::batch_norm<Options>(x, running_mean, running_var, detail::of_each_channel(x, 1),
                                       detail::of_each_channel(x, 0));
}

// x (batch, channels, ...), cut along the batch, in whole groups, or along dims behind the channels: each image's groups of channels /
// Groups neighbouring channels by their own mean and biased variance, times weight and plus bias, of each channel. Where dims behind the
// channels are cut, by all-reduces of images * Groups and 2 * images * Groups numbers, and of 2 * images * channels backward.
template <std::int64_t Groups, tensor X, tensor W, tensor B>
constexpr auto group_norm(const X& x, const W& weight, const B& bias, double eps = 1e-5) {
  if constexpr (Groups < 1) {
    return detail::refused<problem::group_norm_groups, op_code::custom, detail::custom_tag<custom::channel_norm>,
                           operand_t<X::sp>>(x, weight, bias);
  } else if constexpr (detail::are_of_cut<X>(detail::statistics_of_groups<Groups>)) {
    constexpr std::int64_t n = X::sp.extent[1] / Groups * detail::elements_of_channel(spec(X::sp));
    const auto [each, mean, variance] =
        detail::moments_of_cut<detail::statistics_of_groups<Groups>>(x, 1.0 / static_cast<double>(n > 0 ? n : 1));
    return call<custom::channel_norm, detail::statistics_of_groups<Groups>>(x, mean, rsqrt(variance + eps), weight, bias);
  } else {
    const auto each = call<custom::channel_moments, detail::statistics_of_groups<Groups>>(x);
    if constexpr (!detail::resolved<decltype(each)>) {
      return each;
    } else {
      constexpr std::int64_t n = X::sp.extent[1] / Groups * detail::elements_of_channel(spec(X::sp));
      const auto variance = detail::of_pairs<1>(each) * (1.0 / static_cast<double>(n > 0 ? n : 1));
      return call<custom::channel_norm, detail::statistics_of_groups<Groups>>(x, detail::of_pairs<0>(each),
                                                                              rsqrt(variance + eps), weight, bias);
    }
  }
}
template <std::int64_t Groups, tensor X>
constexpr auto group_norm(const X& x, double eps = 1e-5) {
  if constexpr (!detail::resolved<X> || X::sp.rank < 2) return group_norm<Groups>(x, x, x, eps);
  else return group_norm<Groups>(x, detail::of_each_channel(x, 1), detail::of_each_channel(x, 0), eps);
}

}  // namespace shardwise::inline v0_1
