// SPDX-License-Identifier: Apache-2.0
// Losses under PyTorch's names: squared and absolute errors, binary and soft cross entropy, divergence; label smoothing and class weights.
// Each loss takes how its elements, or rows, become one: mse_loss<loss_reduction::sum>(x, y); without it the mean, which is exact
// however the ranks are cut. Include shardwise/operations/loss/host_more.hpp beside it, and device_more.cuh in one CUDA source of a
// program for GPUs.
#pragma once

#include <shardwise/graph/functions/activations.hpp>
#include <shardwise/graph/functions/loss_functions.hpp>

namespace shardwise::inline v0_1 {

// none: all elements; mean over all; sum; batchmean: the sum over the extent of dim 0.
enum class loss_reduction { none, mean, sum, batchmean };

namespace custom {

inline constexpr custom_operation smooth_l1_dx{
    .name = "smooth_l1_dx", .operands = 2, .record = operations::activation_dx, .adjoint = &autodiff::unknown};
inline constexpr autodiff::adjoint_rule smooth_l1_rule = autodiff::pulled(&pull_activation<smooth_l1_dx>);
// Of a difference; the call's number is beta.
inline constexpr custom_operation smooth_l1{
    .name = "smooth_l1", .operands = 1, .record = operations::activation, .adjoint = &smooth_l1_rule};

// Of (logits, targets), and of (log-probabilities, targets): dx for the first operand, the second one's beside it.
#define SHARDWISE_X(function)                                                                                           \
  inline constexpr custom_operation function##_dx{                                                                      \
      .name = #function "_dx", .operands = 3, .record = operations::activation_dx, .adjoint = &autodiff::unknown};      \
  inline constexpr custom_operation function##_dtarget{                                                                 \
      .name = #function "_dtarget", .operands = 3, .record = operations::activation_dx, .adjoint = &autodiff::unknown}; \
  inline constexpr autodiff::adjoint_rule function##_rule = autodiff::pulled<2>([](autodiff::pullback& p) {             \
    if (p.wants(0)) p.give_summed(0, p.make(function##_dx, {}, 0, p.dy, p.n.in[0], p.n.in[1]));                         \
    if (p.wants(1)) p.give_summed(1, p.make(function##_dtarget, {}, 0, p.dy, p.n.in[0], p.n.in[1]));                    \
  });                                                                                                                   \
  inline constexpr custom_operation function{                                                                           \
      .name = #function, .operands = 2, .record = operations::activation, .adjoint = &function##_rule};
SHARDWISE_X(logits_loss)
SHARDWISE_X(divergence)
#undef SHARDWISE_X

}  // namespace custom

namespace detail {

template <loss_reduction R, tensor L>
constexpr auto reduce_loss(const L& elements) {
  if constexpr (!resolved<L> || R == loss_reduction::none) return elements;
  else if constexpr (R == loss_reduction::mean) return mean(elements);
  else if constexpr (R == loss_reduction::sum) return sum(elements);
  else if constexpr (L::sp.rank == 0) return refused<problem::dim_out_of_range, op_code::sum, operand_t<L::sp>>(elements);
  else if constexpr (is_dyn(L::sp, 0)) return refused<problem::dyn_dim_changed, op_code::sum, operand_t<L::sp>>(elements);
  else return scale(sum(elements), 1.0 / static_cast<double>(L::sp.extent[0]));
}

template <tensor A>
constexpr void check_loss_number(const A& a, bool holds, const char* what, double number, const char* fix) {
  if constexpr (resolved<A>) refuse_number<problem::loss_number, op_code::custom>(a, !holds, what, number, fix);
}

}  // namespace detail

// --- of two tensors -------------------------------------------------------------------------------------------------------------

template <loss_reduction R = loss_reduction::mean, tensor X, tensor Y>
constexpr auto mse_loss(const X& x, const Y& target) {
  const auto away = sub(x, target);
  return detail::reduce_loss<R>(mul(away, away));
}
template <loss_reduction R = loss_reduction::mean, tensor X, tensor Y>
constexpr auto l1_loss(const X& x, const Y& target) {
  return detail::reduce_loss<R>(abs(sub(x, target)));
}
// d^2 / (2 beta) where |d| < beta, else |d| - beta / 2; with beta 0 it is l1_loss. A negative beta is refused.
template <loss_reduction R = loss_reduction::mean, tensor X, tensor Y>
constexpr auto smooth_l1_loss(const X& x, const Y& target, double beta = 1) {
  detail::check_loss_number(x, beta >= 0, "smooth_l1_loss", beta, "; beta is at least 0");
  return detail::reduce_loss<R>(call<custom::smooth_l1>(beta, sub(x, target)));
}
// delta times smooth_l1_loss with beta delta, which is above 0.
template <loss_reduction R = loss_reduction::mean, tensor X, tensor Y>
constexpr auto huber_loss(const X& x, const Y& target, double delta = 1) {
  detail::check_loss_number(x, delta > 0, "huber_loss", delta, "; delta is above 0");
  return detail::reduce_loss<R>(scale(call<custom::smooth_l1>(delta, sub(x, target)), delta));
}

// -(y log s + (1 - y) log(1 - s)) of the sigmoid s of logits and targets y from 0 to 1, without loss of digits where s is near 0 or 1.
template <loss_reduction R = loss_reduction::mean, tensor X, tensor Y>
constexpr auto binary_cross_entropy_with_logits(const X& logits, const Y& target) {
  return detail::reduce_loss<R>(call<custom::logits_loss>(logits, target));
}
// The first summand times pos_weight, a tensor that broadcasts: one for each class.
template <loss_reduction R = loss_reduction::mean, tensor X, tensor Y, tensor P>
constexpr auto binary_cross_entropy_with_logits(const X& logits, const Y& target, const P& pos_weight) {
  const auto share = mul(pos_weight - 1.0, target) + 1.0;
  return detail::reduce_loss<R>(sub(mul(1.0 - target, logits), mul(share, log_sigmoid(logits))));
}

// Of log-probabilities x and targets y that are probabilities: y (log y - x), 0 where y is 0. With loss_reduction::batchmean it is the
// divergence; the mean over all elements, which is PyTorch's default, is not.
template <loss_reduction R = loss_reduction::mean, tensor X, tensor Y>
constexpr auto kl_div(const X& x, const Y& target) {
  return detail::reduce_loss<R>(call<custom::divergence>(x, target));
}
// The same of targets that are logarithms, too.
template <loss_reduction R = loss_reduction::mean, tensor X, tensor Y>
constexpr auto kl_div_log_target(const X& x, const Y& target) {
  return detail::reduce_loss<R>(mul(exp(target), sub(target, x)));
}

// --- cross entropy with options ---------------------------------------------------------------------------------------------------

// What cross_entropy takes behind its target: cross_entropy(logits, target, label_smoothing{0.1}, class_weights(w)).
// Each target is mixed with `share` of all classes alike, from 0 to 1.
struct label_smoothing {
  double share;
};
// A row's loss times its class's weight, and the mean over the rows' weights. weights: (classes), equal on all ranks; no gradient flows to
// them.
template <tensor W>
struct class_weights {
  W weights;
  constexpr explicit class_weights(const W& w) : weights(w) {}
};
// Targets that are probabilities of all classes, of the logits' extents.
template <tensor P>
struct soft_targets {
  P probabilities;
  constexpr explicit soft_targets(const P& p) : probabilities(p) {}
};

namespace detail {

template <class>
inline constexpr bool is_class_weights = false;
template <class W>
inline constexpr bool is_class_weights<class_weights<W>> = true;
template <class O>
concept loss_option = std::is_same_v<O, label_smoothing> || is_class_weights<O>;

constexpr double share_of() { return 0; }
template <class... More>
constexpr double share_of(const label_smoothing& s, const More&...) {
  return s.share;
}
template <class W, class... More>
constexpr double share_of(const class_weights<W>&, const More&... more) {
  return share_of(more...);
}
struct no_weights {};
constexpr no_weights weights_of() { return {}; }
template <class W, class... More>
constexpr auto weights_of(const class_weights<W>& w, const More&...) {
  return w.weights;
}
template <class... More>
constexpr auto weights_of(const label_smoothing&, const More&... more) {
  return weights_of(more...);
}

// A tensor without gradient, equal on all ranks, as one that may stand beside x: reduced where x is split. Nothing is sent.
template <int Axis = 0, tensor W, tensor X>
constexpr auto placed_beside(const W& w, const X& x) {
  if constexpr (!resolved<W, X> || Axis == W::sp.axes) return w;
  else if constexpr (!X::sp.place[Axis].is_shard() || !W::sp.place[Axis].is_replicate())
    return placed_beside<Axis + 1>(w, x);
  else
    return placed_beside<Axis + 1>(
        apply<op_code::redistribute, attributes<redistribute_attributes>(Axis, pack(reduced_value()))>(0, w), x);
}
template <tensor X, class... Options>
constexpr auto weights_beside(const X& x, const Options&... options) {
  const auto weights = weights_of(options...);
  if constexpr (tensor<std::remove_cvref_t<decltype(weights)>>) return placed_beside(detach(weights), x);
  else return weights;
}

// In the type of losses.
template <tensor X>
constexpr auto as_wide(const X& x) {
  if constexpr (!resolved<X>) return x;
  else return cast<element_t<wide_of(X::sp.type)>>(x);
}
// Of each class id its weight. Ignored ones, which need not be classes, count 0.
template <counting I, tensor W, tensor T>
constexpr auto weight_of_rows(const W& weights, const T& target) {
  const auto table = unsqueeze<1>(weights);
  if constexpr (!I::ignores) {
    return drop_dims<(std::int64_t{1} << T::sp.rank)>(embedding(table, target));
  } else {
    const auto ignored = eq(target, static_cast<double>(I::value));
    const auto known = drop_dims<(std::int64_t{1} << T::sp.rank)>(embedding(table, mul(target, eq(ignored, 0.0))));
    return apply<op_code::mask_keep, attributes<mask_keep_attributes>(1)>(0, known, ignored);
  }
}
template <counting I, tensor L, tensor T>
constexpr auto without_ignored(const L& rows, const T& target) {
  if constexpr (!I::ignores || !resolved<L, T>) return rows;
  else
    return apply<op_code::mask_keep, attributes<mask_keep_attributes>(1)>(0, rows,
                                                                          eq(target, static_cast<double>(I::value)));
}
// Each row's mean, by W its weighted sum over the classes' number, of minus the logarithms of all probabilities.
template <tensor X, class W>
constexpr auto mean_of_classes(const X& wide, const W& weights) {
  if constexpr (tensor<W>) {
    constexpr std::int64_t classes = X::sp.rank > 0 ? X::sp.extent[X::sp.rank - 1] : 1;
    return scale(sum<-1>(mul(log_softmax(wide), weights)), -1.0 / static_cast<double>(classes));
  } else {
    return sub(logsumexp(wide), mean<-1>(wide));
  }
}

}  // namespace detail

// Each row's loss: (1 - share) w[target] (-log p[target]) + share / classes sum of w[c] (-log p[c]), 0 for ignored rows. With
// smoothing, logits of two bytes are copied as floats.
template <detail::counting I = count_all, tensor X, tensor T, detail::loss_option First, detail::loss_option... More>
constexpr auto cross_entropy_rows(const X& logits, const T& target, const First& first, const More&... more) {
  const double share = detail::share_of(first, more...);
  detail::check_loss_number(logits, share >= 0 && share <= 1, "label_smoothing", share, "; a share is from 0 to 1");
  const auto weights = detail::weights_beside(target, first, more...);
  const auto plain = [&] {
    if constexpr (I::ignores) return cross_entropy_rows<I>(logits, target);
    else return cross_entropy_rows(logits, target);
  }();
  using weights_type = std::remove_cvref_t<decltype(weights)>;
  const auto of_target = [&] {
    if constexpr (tensor<weights_type>) return mul(plain, detail::as_wide(detail::weight_of_rows<I>(weights, target)));
    else return plain;
  }();
  if constexpr (!(std::is_same_v<First, label_smoothing> || ... || std::is_same_v<More, label_smoothing>)) {
    return of_target;
  } else {
    const auto of_all = [&] {
      if constexpr (tensor<weights_type>) return detail::mean_of_classes(detail::as_wide(logits), detail::as_wide(weights));
      else return detail::mean_of_classes(detail::as_wide(logits), weights);
    }();
    return add(scale(of_target, 1 - share), scale(detail::without_ignored<I>(of_all, target), share));
  }
}
// Their mean over the rows that count, by class weights over those rows' weights; or their sum.
template <detail::counting I = count_all, loss_reduction R = loss_reduction::mean, tensor X, tensor T,
          detail::loss_option First, detail::loss_option... More>
constexpr auto cross_entropy(const X& logits, const T& target, const First& first, const More&... more) {
  const auto rows = cross_entropy_rows<I>(logits, target, first, more...);
  const auto weights = detail::weights_beside(target, first, more...);
  using rows_type = std::remove_cvref_t<decltype(rows)>;
  if constexpr (R != loss_reduction::mean) {
    return detail::reduce_loss<R>(rows);
  } else if constexpr (!detail::resolved<rows_type>) {
    return rows;
  } else if constexpr (tensor<std::remove_cvref_t<decltype(weights)>>) {
    const auto total = sum(rows);
    const auto count = sum(detail::as_wide(detail::weight_of_rows<I>(weights, target)));
    return div(total, detail::divisor_of<std::remove_cvref_t<decltype(total)>::sp, 0>(count));
  } else {
    return detail::mean_of_rows<I>(rows, target);
  }
}

// Rows of minus the sum of p[c] w[c] log softmax(logits)[c], p mixed with `share` of all classes alike. Their mean is over the rows,
// whatever the weights, as PyTorch's.
template <tensor X, tensor P, detail::loss_option... Options>
constexpr auto cross_entropy_rows(const X& logits, const soft_targets<P>& target, const Options&... options) {
  const double share = detail::share_of(options...);
  detail::check_loss_number(logits, share >= 0 && share <= 1, "label_smoothing", share, "; a share is from 0 to 1");
  const auto weights = detail::weights_beside(logits, options...);
  using weights_type = std::remove_cvref_t<decltype(weights)>;
  const auto wide = detail::as_wide(logits);
  const auto likely = [&] {
    if constexpr (tensor<weights_type>) return mul(log_softmax(wide), detail::as_wide(weights));
    else return log_softmax(wide);
  }();
  const auto of_target = neg(sum<-1>(mul(likely, detail::as_wide(target.probabilities))));
  if constexpr (!(... || std::is_same_v<Options, label_smoothing>)) {
    return of_target;
  } else {
    const auto of_all = neg(mean<-1>(likely));
    return add(scale(of_target, 1 - share), scale(of_all, share));
  }
}
template <loss_reduction R = loss_reduction::mean, tensor X, tensor P, detail::loss_option... Options>
constexpr auto cross_entropy(const X& logits, const soft_targets<P>& target, const Options&... options) {
  return detail::reduce_loss<R>(cross_entropy_rows(logits, target, options...));
}

}  // namespace shardwise::inline v0_1
