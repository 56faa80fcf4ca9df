// SPDX-License-Identifier: Apache-2.0
// keep_gradients: gradients are added up from run to run of a train step, which updates when it is told to.
#pragma once

#include <type_traits>

#include <shardwise/autodiff/keep_sums.hpp>
#include <shardwise/module/plan_passes.hpp>
#include <shardwise/pass/framework/updates_last.hpp>

namespace shardwise::inline v0_1 {

// An option of keep_gradients: nothing of a gradient is sent before the update, of groups of fully_shard neither (PyTorch's no_sync,
// set_requires_gradient_sync(false)). The price: gradients are kept whole, as if parameters were not in shards.
struct no_sync {
  using shardwise_no_sync = void;
};

// An entry of a plan: plan<data_parallel<dp>, keep_gradients<>>. The train step is one program in two parts, over one arena:
//   run.accumulate(env)       forward and backward; gradients are added to the sums that the program keeps
//   run.update(env)           reduces the sums, clips, updates; the next accumulate begins new sums
//   run.run(env)              both, for the last batch
//   run.zero_gradients()      forgets the sums, as of a batch that went wrong
// as backward() several times and one optimizer.step(), zero_grad() in PyTorch. Outputs are those of the last batch.
//
// Sums are kept as parameters are stored: under data_parallel each rank has its own, and they are all-reduced by update; of groups of
// fully_shard every accumulate reduce-scatters into shards (PyTorch's default), what hybrid groups sum over their copies, update does
// (set_requires_all_reduce(false)). keep_gradients<no_sync>: update does all of it.
//
// Laws: k times accumulate and an update are the step of a plan with accumulate<k> whose batch those are in pieces, where the task
// returns the loss over k: the same draws, buffers written k times in order, the same sums in the same order, so the same bits (a zero's
// sign aside). But for the order in which ranks' shares and batches are added, where shards are reduced by every accumulate, and the uses
// of a parameter that several calls have; then up to rounding. Gradients are a sum; of a mean the task returns its loss over k.
//
// Memory: peak_bytes <= that of the step without, and one gradient for each parameter as it is kept. Price: each sum is read and written
// once more a run. update without accumulate before it throws. Programs that train nothing, and eager models, have no use for it.
template <class Option = void>
struct keep_gradients {
  static constexpr bool known = std::is_void_v<Option> || requires { typename Option::shardwise_no_sync; };
  static_assert(raise<(known ? problem::none : problem::keep_gradients_option), keep_gradients>::ok);
  static constexpr bool shardwise_keeps_gradients = true;
  static constexpr bool whole = !std::is_void_v<Option>;
};

namespace detail {

// What a plan says of kept gradients.
template <class Plan>
struct keeping_of;
template <class... E>
struct keeping_of<plan<E...>> {
  static constexpr bool any = (is_keeping<E> || ... || false);
  static constexpr bool whole = [] {
    bool r = false;
    [[maybe_unused]] const auto see = [&r]<class One>() {
      if constexpr (is_keeping<One>) r = One::whole;
    };
    (see.template operator()<E>(), ...);
    return r;
  }();
};

template <class Pipeline>
inline constexpr bool any_makes_buckets = false;
template <class... P>
inline constexpr bool any_makes_buckets<pipeline<P...>> = (makes_buckets<P> || ... || false);

// A joint graph whose gradients are summed up as the plan says, and the final graph in its two parts.
template <class Plan, class Pipeline, class Joint, bool Keeps = keeping_of<Plan>::any>
struct with_kept_gradients {
  using type = Joint;
};
template <class Plan, class Pipeline, class Joint>
struct with_kept_gradients<Plan, Pipeline, Joint, true> {
  static constexpr bool copies = any_buckets<Plan> || any_makes_buckets<Pipeline>;
  using type = staged<autodiff::keep_sums<keeping_of<Plan>::whole, copies>, Joint>;
};
template <class Plan, class Source, bool Keeps = keeping_of<Plan>::any>
struct in_two_parts {
  using type = Source;
};
template <class Plan, class Source>
struct in_two_parts<Plan, Source, true> {
  using type = passes::updates_last<Source>;
};

}  // namespace detail

}  // namespace shardwise::inline v0_1
