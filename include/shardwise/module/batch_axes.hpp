// SPDX-License-Identifier: Apache-2.0
// The mesh axes over which a plan splits the batch: what its styles say of each, together, and over how many ranks gradients
// are averaged.
#pragma once

#include <shardwise/module/fully_shard.hpp>

namespace shardwise::inline v0_1::detail {

// Of one axis.
struct batch_axis {
  bool whole = false;    // parameters are stored whole, by data_parallel
  bool sharded = false;  // in shards, by fully_shard
  bool averaged = false, summed = false;
  std::int64_t bucket =
      -1;  // mebibytes of a bucket of gradients, 0: none; -1: nobody speaks of gradients that are all-reduced
  bool buckets_differ = false;
};

template <class Axis, class... A>
constexpr bool is_among(type_list<A...>) {
  return (std::is_same_v<Axis, A> || ...);
}
template <class Axis, class S>
constexpr bool splits_over() {
  if constexpr (requires { typename S::split_batch; }) return is_among<Axis>(typename S::split_batch{});
  else return false;
}
template <class Axis, class... S>
constexpr bool any_splits_over(style_list<S...>) {
  return (splits_over<Axis, S>() || ...);
}

// All styles of an entry, which may be one itself.
template <class Entry>
using entry_styles =
    std::conditional_t<entry_traits<Entry>::is_entry, typename entry_traits<Entry>::styles, style_list<Entry>>;

template <class Axis, class S>
constexpr void add_to(batch_axis& r) {
  if constexpr (splits_over<Axis, S>()) {
    if constexpr (is_sharding<S>) {
      if (!std::is_same_v<Axis, typename S::replicated>) r.sharded = true;
    } else {
      r.whole = true;
    }
    (S::averages ? r.averaged : r.summed) = true;
    if constexpr (requires { S::bucket_mebibytes; }) {
      if (S::splits_states) return;
      r.buckets_differ = r.buckets_differ || (r.bucket >= 0 && r.bucket != S::bucket_mebibytes);
      r.bucket = S::bucket_mebibytes;
    }
  }
}
template <class Axis, class... S>
constexpr void add_all_to(batch_axis& r, style_list<S...>) {
  (add_to<Axis, S>(r), ...);
}
template <class Axis, class Plan>
struct batch_over;
template <class Axis, class... E>
struct batch_over<Axis, plan<E...>> {
  static constexpr batch_axis value = [] {
    batch_axis r;
    (add_all_to<Axis>(r, entry_styles<E>{}), ...);
    return r;
  }();
  // The entries that say it.
  using entries = typename joined_lists<type_list<>, std::conditional_t<any_splits_over<Axis>(entry_styles<E>{}),
                                                                        type_list<plan_entry<E>>, type_list<>>...>::type;
  static constexpr problem what = value.whole && value.sharded     ? problem::fully_shard_beside_data_parallel
                                  : value.averaged && value.summed ? problem::average_gradients_mixed
                                  : value.buckets_differ           ? problem::buckets_mixed
                                                                   : problem::none;
  static constexpr bool ok = [] {
    if constexpr (what == problem::none) return true;
    else return raise_list<what, typename joined_lists<type_list<Axis>, entries>::type>::ok;
  }();
};

// Whether a style splits the optimizer's states while parameters are whole, and whether any of a plan does.
template <class S>
constexpr bool splits_states() {
  if constexpr (requires { S::splits_states; }) return S::splits_states;
  else return false;
}
template <class... S>
constexpr bool any_splits_states(style_list<S...>) {
  return (splits_states<S>() || ... || false);
}
template <class Plan>
inline constexpr bool splits_any_states = false;
template <class... E>
inline constexpr bool splits_any_states<plan<E...>> = (any_splits_states(entry_styles<E>{}) || ... || false);

// Whether a plan puts gradients into buckets, over the axes of a mesh that are asked for.
template <class S>
constexpr bool has_buckets() {
  if constexpr (requires { S::bucket_mebibytes; }) return S::bucket_mebibytes > 0;
  else return false;
}
template <class... S>
constexpr bool any_has_buckets(style_list<S...>) {
  return (has_buckets<S>() || ... || false);
}
template <class Plan>
inline constexpr bool any_buckets = false;
template <class... E>
inline constexpr bool any_buckets<plan<E...>> = (any_has_buckets(entry_styles<E>{}) || ... || false);

// Over the axes of a mesh: whether the styles agree, and over how many ranks they average gradients.
template <class Plan, class Mesh, class Axes = axes_list<Mesh>>
struct batch_axes;
template <class Plan, class Mesh, class... Axis>
struct batch_axes<Plan, Mesh, type_list<Axis...>> {
  static constexpr bool agree = (batch_over<Axis, Plan>::ok && ...);
  static constexpr std::int64_t averaged =
      (std::int64_t{1} * ... * (batch_over<Axis, Plan>::value.averaged ? Axis::size : 1));
  template <template <std::int64_t...> class Pass>
  using in_buckets = Pass<(batch_over<Axis, Plan>::value.bucket > 0 ? batch_over<Axis, Plan>::value.bucket : 0)...>;
};

}  // namespace shardwise::inline v0_1::detail
