// SPDX-License-Identifier: Apache-2.0
// fully_shard: parameters stored in shards and made whole where they are used, group by group (FSDP, ZeRO-3), in a plan.
#pragma once

#include <shardwise/module/style.hpp>
#include <shardwise/vocabulary/flat_group.hpp>

namespace shardwise::inline v0_1 {

// Options of fully_shard.
//
// reshard_after_forward<true>: a group's whole parameters are freed when the forward pass has used them, and the backward pass
// gathers those that it reads again, once for the group, right before it first does. <false>: they stay until the backward
// pass has used them. A number is the ranks over which they are kept in between: 1 is false, all ranks that share them true, and
// the size of shard_over's axis keeps them over that one, so that the backward pass gathers over it alone. Where nothing is said
// it is true, but for the whole model's group, of which the backward pass needs first what the forward pass needed last.
template <auto Ranks>
struct reshard_after_forward {};
// Rows are split over Axis first and then over fully_shard's own, and the batch over both: parameters lie in shards on all ranks
// of the two. Groups of ranks, over which reshard_after_forward keeps parameters, are an axis of the mesh: the fast links within
// a machine, where fully_shard's own axis joins machines.
template <class Axis>
struct shard_over {};
// The batch is split over Axis too, and each of its coordinates has all shards: hybrid sharding (HSDP). Parameters are reduced
// there, as under data_parallel.
template <class Axis>
struct replicate_over {};
// A group's parameters are one (FSDP1's FlatParameter): row-major one after the other in the order in which the model declares them,
// parameters without dims too, behind them zeros up to a multiple of the ranks, of which each stores an equal part, with its gradients
// and states. One gather and one reduce-scatter for the group, of even parts; the parameters that modules read are views of what is
// gathered, and their gradients are written into one.
//
// Law: what is computed is what fully_shard computes without it, bit for bit but for the order in which a gradient norm adds; names,
// initial values and shapes of full_parameter, set_parameter and copy_parameters are the same. The differences: a rank's block of a
// parameter (executor::parameter, parameter_layout) is a run of its elements, row-major and of one dim, which may be empty and may end
// within a row. A parameter that the loss does not depend on has a gradient of zeros here, and so decays where weight_decay is not 0,
// if another one of its group has a gradient. Parts begin anywhere, so a kernel may find them less aligned.
//
// For parameters that no style splits, and whose gradients are reduced over the same axes (those of a sequence-parallel norm
// are a group of their own). Not beside shard_over, mixed, frozen, param_group, accumulate, keep_gradients, shard_optimizer_states,
// decay of matrices alone, iterated and eager models: each is a sentence.
struct flat_parameters {};

namespace detail {

template <class... Options>
struct sharding_options {
  using replicated = void;
  using inner = void;                  // shard_over
  static constexpr bool said = false;  // reshard_after_forward
  static constexpr bool fully = true;  // it: to each rank's shard
  static constexpr int ranks = 0;      // or else over these
  static constexpr bool known = true, repeated = false;
  static constexpr bool flat = false;
};
template <class... More>
struct sharding_options<average_gradients, More...> : sharding_options<More...> {};
template <class Axis, class... More>
struct sharding_options<replicate_over<Axis>, More...> : sharding_options<More...> {
  using replicated = Axis;
  static constexpr bool repeated =
      sharding_options<More...>::repeated || !std::is_void_v<typename sharding_options<More...>::replicated>;
};
template <class Axis, class... More>
struct sharding_options<shard_over<Axis>, More...> : sharding_options<More...> {
  using inner = Axis;
  static constexpr bool repeated =
      sharding_options<More...>::repeated || !std::is_void_v<typename sharding_options<More...>::inner>;
};
template <auto Ranks, class... More>
struct sharding_options<reshard_after_forward<Ranks>, More...> : sharding_options<More...> {
  static constexpr bool said = true;
  static constexpr bool of_numbers = !std::is_same_v<decltype(Ranks), bool>;
  static constexpr bool fully = !of_numbers && Ranks;
  static constexpr int ranks = of_numbers ? static_cast<int>(Ranks) : 1;
  static constexpr bool repeated = sharding_options<More...>::repeated || sharding_options<More...>::said;
};
template <class... More>
struct sharding_options<flat_parameters, More...> : sharding_options<More...> {
  static constexpr bool flat = true;
  static constexpr bool repeated = sharding_options<More...>::repeated || sharding_options<More...>::flat;
};
template <class Other, class... More>
struct sharding_options<Other, More...> : sharding_options<More...> {
  static constexpr bool known = false;
};

template <class Axis>
inline constexpr int axis_ranks = 1;
template <class Axis>
  requires is_axis<Axis>
inline constexpr int axis_ranks<Axis> = Axis::size;

template <class Axis, class Options>
constexpr problem sharding_problem() {
  using inner = typename Options::inner;
  using copies = typename Options::replicated;
  if (!Options::known) return problem::fully_shard_option;
  if (Options::repeated) return problem::fully_shard_option_twice;
  if (std::is_same_v<Axis, inner>) return problem::fully_shard_same_axis;
  if (std::is_same_v<Axis, copies> || (!std::is_void_v<copies> && std::is_same_v<inner, copies>))
    return problem::fully_shard_hybrid_axes;
  if (Options::flat && !std::is_void_v<inner>) return problem::flat_parameters_axes;
  if (Options::fully) return problem::none;
  constexpr reshard_setting kept = reshard_over_ranks(Options::ranks, axis_ranks<Axis> * axis_ranks<inner>);
  if (kept.error) return problem::fsdp_factor;
  return kept.kind == reshard::to_groups && kept.group != axis_ranks<inner> ? problem::fully_shard_groups : problem::none;
}

template <class... Axis>
using given_axes =
    typename joined_lists<type_list<>, std::conditional_t<std::is_void_v<Axis>, type_list<>, type_list<Axis>>...>::type;

}  // namespace detail

// A module's parameters, and those of all modules below it that no inner fully_shard names, are one group: each rank of Axis
// stores their rows of a chunk, ceil(rows / ranks), with their gradients and the optimizer's states, and the whole is gathered
// for use. As an entry of a plan it names the whole model: plan<fully_shard<dp>>; at<"layers.*", fully_shard<dp>> makes a group
// of each module there. Options: reshard_after_forward, shard_over, replicate_over, average_gradients, flat_parameters.
//
// Law: what a program computes is what it computes under data_parallel<Axis>, bit for bit but for the order in which a
// reduction adds. The group's parameters are gathered side by side at the first use of any of them, and their gradients
// reduce-scattered side by side when the backward pass has passed it. Where tensor parallelism splits the rows too, it does so
// first. Buffers, and parameters without dims, are whole on all ranks. With shard_over a group is gathered over Axis and then over
// the second axis, and its gradients are scattered over the second and then over Axis: each way a rank sends what it would if all
// these ranks were one axis.
template <class Axis, class... Options>
struct fully_shard : detail::style_base {
  using options = detail::sharding_options<Options...>;
  static constexpr problem wrong = detail::sharding_problem<Axis, options>();  // a plan says it when it binds a model
  using axis = Axis;
  using shardwise_sharding = void;
  using inner = typename options::inner;
  using replicated = typename options::replicated;
  using split_batch = detail::given_axes<Axis, inner, replicated>;
  static constexpr int ranks = detail::axis_ranks<Axis> * detail::axis_ranks<inner>;
  static constexpr bool flat = options::flat;
  static constexpr bool averages = detail::has_option<average_gradients, Options...>;
  static constexpr bool whole_model = true;
  static constexpr bool accepts(module_kind) { return true; }
  // What becomes of gathered parameters of the whole model's group (Root), or of a module's; and of what is gathered over Axis
  // alone, before the inner one.
  template <bool Root>
  static constexpr unsharding gathered =
      (options::said ? !options::fully && options::ranks == 1 : Root) ? unsharding::kept : unsharding::freed;
  template <bool Root>
  static constexpr unsharding gathered_part =
      options::said && !options::fully && options::ranks < ranks ? unsharding::kept : gathered<Root>;
};

}  // namespace shardwise::inline v0_1
