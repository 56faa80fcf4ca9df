// SPDX-License-Identifier: Apache-2.0
// precision: in which element types a plan's modules compute, in which their gradients are summed, and what loss they are taken of.
#pragma once

#include <cstdint>
#include <type_traits>

#include <shardwise/vocabulary/dtype.hpp>

namespace shardwise::inline v0_1 {

// Options of mixed, as those of PyTorch's MixedPrecisionPolicy; and reduce_dtype (vocabulary/dtype.hpp), here the type in which
// parameters' gradients are added up and summed over ranks; by default that of the step, float.
//
// The type of what the named module's call returns; by default what its forward returns.
template <class T>
struct output_dtype {};
// Whether floating-point tensors that a module is called with are cast to the type of its parameters; by default they are.
template <bool Casts>
struct cast_forward_inputs {};

namespace detail {

// What one entry says. A type that is not said is -1: it is the step's, or nothing is cast to it.
struct precision {
  bool said = false, casts_inputs = true;
  dtype parameters = dtype::f32;
  int reduce = -1, output = -1;
};

template <class... Options>
struct precision_options {
  static constexpr precision value{};
  static constexpr bool known = true, floating = true;
  static constexpr int reduces = 0, outputs = 0, inputs = 0;
};
template <class T, class... More>
struct precision_options<reduce_dtype<T>, More...> : precision_options<More...> {
  using rest = precision_options<More...>;
  static constexpr precision value = [] {
    precision p = rest::value;
    p.reduce = static_cast<int>(dtype_v<T>);
    return p;
  }();
  static constexpr bool floating = rest::floating && is_floating_element<T>;
  static constexpr int reduces = rest::reduces + 1;
};
template <class T, class... More>
struct precision_options<output_dtype<T>, More...> : precision_options<More...> {
  using rest = precision_options<More...>;
  static constexpr precision value = [] {
    precision p = rest::value;
    p.output = static_cast<int>(dtype_v<T>);
    return p;
  }();
  static constexpr bool floating = rest::floating && is_floating_element<T>;
  static constexpr int outputs = rest::outputs + 1;
};
template <bool Casts, class... More>
struct precision_options<cast_forward_inputs<Casts>, More...> : precision_options<More...> {
  using rest = precision_options<More...>;
  static constexpr precision value = [] {
    precision p = rest::value;
    p.casts_inputs = Casts;
    return p;
  }();
  static constexpr int inputs = rest::inputs + 1;
};
template <class Other, class... More>
struct precision_options<Other, More...> : precision_options<More...> {
  static constexpr bool known = false;
};

template <class T, class Options>
constexpr problem precision_problem() {
  if (!Options::known) return problem::mixed_option;
  if (Options::reduces > 1 || Options::outputs > 1 || Options::inputs > 1) return problem::mixed_option_twice;
  return is_floating_element<T> && Options::floating ? problem::none : problem::mixed_type;
}

}  // namespace detail

// An entry of a plan: plan<mixed<bf16>> for the whole model, at<"head", mixed<float>> for a module and all below it,
// at<"head.weight", mixed<float>> for one parameter. The last entry that holds wins, entries with a path behind those without.
//
// A parameter is stored in the step's element type (float: the master weight, which the optimizer updates, with moments of that
// type) and used in T: the first that reads it in a step casts it once, and a group of fully_shard casts its shards and gathers
// those. Modules cast floating-point tensors that they are called with to T. Every cast is a node of the graph.
//
// Laws. The gradient of a parameter is, as far as it is local, of type T where it is computed, and is cast to reduce_dtype before it is
// added to another one of that parameter or summed over ranks; norm and update read what that gives as the step's type. Buffers stay
// in the step's type; statistics of norms, log-sum-exp and losses are float, and softmax computes in float, whatever T is. The step is,
// bit for bit, the one that is written by hand with cast<T>.
//
// value_and_grad of an eager model gives gradients in the step's type; what its optimizer still sums over ranks it sums in that.
template <class T, class... Options>
struct mixed {
  using options = detail::precision_options<Options...>;
  using low_element = T;  // for devices: see program_traits
  static_assert(raise<detail::precision_problem<T, options>(), mixed>::ok);
  static constexpr detail::precision shardwise_precision = [] {
    detail::precision p = options::value;
    p.said = true;
    if constexpr (is_floating_element<T>) p.parameters = dtype_v<T>;
    return p;
  }();
};

// An entry of a plan, of the whole model: the backward pass begins with Factor, a power of two, in place of 1, and gradients are
// divided by it before they are clipped and updated, so that small ones are no zeros in f16. A step that trains through f16 needs
// it; loss_scale<1> says that none is wanted. Law: outputs are as without it, and so is every gradient, bit for bit, of which no
// summand is too large or too small for its type in either. Price: one operation.
template <std::int64_t Factor>
struct loss_scale {
  static_assert(
      raise<((Factor < 1 || (Factor & (Factor - 1)) != 0) ? problem::loss_scale_factor : problem::none), loss_scale>::ok);
  static constexpr std::int64_t shardwise_loss_scale = Factor;
};

// An entry of a plan, of the whole model, in place of loss_scale: the scale is a number of the step's state that the step itself adjusts,
// as torch.amp.GradScaler does. It begins as InitScale. A step whose gradients hold an infinity or a NaN on any rank leaves parameters and
// the optimizer's states as they are and divides it by BackoffDivisor (GradScaler's backoff_factor is one over that); after
// GrowthInterval good steps in a row it is multiplied by GrowthFactor, unless that is infinite. All but the interval are powers of two.
//
// Laws. All ranks agree, since one sum of all gradients' squares says it, reduced over the mesh; with clip_norm it is the one that
// clipping asks for. Gradients of which it overflows (in floats some 1e19) count as infinite. Steps that are taken are those of a
// loss_scale of that number, bit for bit, where no summand is too large or too small for its type; Adam counts them alone, so env.step goes
// on by one from run to run as ever. Modules' buffers are written by the forward pass and are not taken back, as in PyTorch. The host is
// not asked: executor::scaler_state() says what it has come to. Price: without clip_norm one reading of all gradients, with it one
// kernel of a thread.
template <std::int64_t InitScale = 65536, std::int64_t GrowthInterval = 2000, std::int64_t GrowthFactor = 2,
          std::int64_t BackoffDivisor = 2>
struct dynamic_loss_scale {
  static constexpr bool powers = InitScale >= 1 && (InitScale & (InitScale - 1)) == 0 && GrowthFactor >= 1 &&
                                 (GrowthFactor & (GrowthFactor - 1)) == 0 && BackoffDivisor >= 2 &&
                                 (BackoffDivisor & (BackoffDivisor - 1)) == 0;
  static constexpr bool counts = GrowthInterval >= 1 && GrowthInterval <= (std::int64_t{1} << 24);  // in float, one by one
  static_assert(raise<(!powers   ? problem::dynamic_scale_factor
                       : !counts ? problem::dynamic_scale_interval
                                 : problem::none),
                      dynamic_loss_scale>::ok);
  static constexpr std::int64_t shardwise_loss_scale = InitScale;
  static constexpr std::int64_t interval = GrowthInterval, growth = GrowthFactor, backoff = BackoffDivisor;
};

// An entry of a plan, of the whole model: over how many ranks tensors of two bytes may be summed, those of several mesh axes
// multiplied. Without it 8. Law: a sum over n ranks is rounded n - 1 times, so in bf16 it may be off by (n - 1) / 256 of its largest
// partial sum; at 8 ranks that is less than three hundredths.
template <int Ranks>
struct reduce_within {
  static_assert(raise<(Ranks < 1 ? problem::reduce_within_ranks : problem::none), reduce_within>::ok);
  static constexpr int shardwise_reduce_within = Ranks;
};

namespace detail {

template <class T>
inline constexpr bool is_mixed = requires { T::shardwise_precision; };
template <class T>
inline constexpr bool is_loss_scale = requires { T::shardwise_loss_scale; };
template <class T>
inline constexpr bool is_dynamic_scale = requires {
  T::backoff;
  requires is_loss_scale<T>;
};
template <class T>
inline constexpr bool is_reduction_bound = requires { T::shardwise_reduce_within; };

inline constexpr int default_reduction_bound = 8;

// What a plan's entries of the whole model say.
template <class... E>
constexpr std::int64_t loss_scale_among() {
  std::int64_t r = 0;
  [[maybe_unused]] const auto see = [&r]<class One>() {
    if constexpr (is_loss_scale<One>) r = One::shardwise_loss_scale;
  };
  (see.template operator()<E>(), ...);
  return r;
}
// The one that is dynamic; void: none is.
template <class... E>
struct dynamic_scale_among {
  using type = void;
};
template <class First, class... More>
struct dynamic_scale_among<First, More...> : dynamic_scale_among<More...> {};
template <class First, class... More>
  requires is_dynamic_scale<First>
struct dynamic_scale_among<First, More...> {
  using type = First;
};
template <class... E>
constexpr int reduction_bound_among() {
  int r = default_reduction_bound;
  [[maybe_unused]] const auto see = [&r]<class One>() {
    if constexpr (is_reduction_bound<One>) r = One::shardwise_reduce_within;
  };
  (see.template operator()<E>(), ...);
  return r;
}

}  // namespace detail

}  // namespace shardwise::inline v0_1
