// SPDX-License-Identifier: Apache-2.0
// plan: what users write, styles and settings at paths, and how errors print it.
#pragma once

#include <type_traits>

#include <shardwise/module/checkpoint.hpp>
#include <shardwise/module/settings.hpp>
#include <shardwise/support/diagnose.hpp>
#include <shardwise/support/fixed_string.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class T>
inline constexpr bool is_style = requires {
  typename T::axis;
  T::whole_model;
};
// fully_shard (fully_shard.hpp): like a setting it holds for the module named and all below, up to inner modules that are named.
template <class T>
inline constexpr bool is_sharding = requires { typename T::shardwise_sharding; };
// Over two axes.
template <class T>
inline constexpr bool is_nested_sharding = requires { requires !std::is_void_v<typename T::inner>; };
// With flat_parameters.
template <class T>
inline constexpr bool is_flat_sharding = requires { requires T::flat; };
// accumulate (accumulate.hpp), of the whole model alone.
template <class T>
inline constexpr bool is_accumulation = requires { T::shardwise_micro_batches; };
// keep_gradients (keep_gradients.hpp), of the whole model alone, too.
template <class T>
inline constexpr bool is_keeping = requires { T::shardwise_keeps_gradients; };
// What is said of the program as a whole, and is no style.
template <class T>
inline constexpr bool is_of_program = is_accumulation<T> || is_keeping<T> || is_loss_scale<T> || is_reduction_bound<T>;
// A style alone names no module, so only one of the whole model is an entry.
template <class T>
constexpr bool is_plan_entry() {
  if constexpr (requires { typename T::shardwise_entry; } || is_setting<T> || is_checkpoint<T> || is_of_program<T>)
    return true;
  else if constexpr (is_style<T>) return T::whole_model;
  else return false;
}
template <bool Entries, class... Facts>
struct only_entries {
  static constexpr bool ok = raise<(Entries ? problem::none : problem::plan_not_an_entry), Facts...>::ok;
};

}  // namespace detail

// One entry: a dotted path whose segments are names, list indices, or shell patterns ('*', '?', '[set]'); "" is the model itself.
// It names modules, one with frozen parameters, too.
// Of several styles for one mesh axis, and of several checkpoints, the last entry that matches wins. A setting (a mode, frozen, a
// param_group, mixed) has an entry of its own.
template <fixed_string Path, class... Styles>
struct at {
  static_assert(detail::only_entries<
                ((detail::is_style<Styles> || detail::is_setting<Styles> || detail::is_checkpoint<Styles>) && ...),
                Styles...>::ok);
  static constexpr int checkpoints = (0 + ... + (detail::is_checkpoint<Styles> ? 1 : 0));
  static_assert(raise<(checkpoints > 1 ? problem::checkpoint_twice : problem::none), at>::ok);
  static_assert(raise<(sizeof...(Styles) == 0 ? problem::plan_entry_without_style : problem::none), at>::ok);
  static constexpr bool setting_beside = (sizeof...(Styles) > 1) && (detail::is_setting<Styles> || ... || false);
  static_assert(raise<(setting_beside ? problem::plan_mode_beside : problem::none), at>::ok);
  using shardwise_entry = std::conditional_t<setting_beside, style_list<>, style_list<Styles...>>;
  static constexpr auto path = Path;
};

// Entries, and styles, settings, checkpoints, one accumulate, keep_gradients, loss_scale and reduce_within for the whole model (data_parallel<dp>,
// frozen).
template <class... Entries>
struct plan {
  static constexpr int entries = static_cast<int>(sizeof...(Entries));
  static_assert(detail::only_entries<(detail::is_plan_entry<Entries>() && ...), Entries...>::ok);
  static_assert(raise<((entries > 32) ? problem::plan_too_large : problem::none), plan, have<entries>, want<32>>::ok);
  static constexpr int accumulations = (0 + ... + (detail::is_accumulation<Entries> ? 1 : 0));
  static_assert(raise<(accumulations > 1 ? problem::accumulate_twice : problem::none), plan>::ok);
  static constexpr int keepings = (0 + ... + (detail::is_keeping<Entries> ? 1 : 0));
  static_assert(raise<(keepings > 1 ? problem::keep_gradients_twice : problem::none), plan>::ok);
  static constexpr bool adjusts = (detail::is_dynamic_scale<Entries> || ... || false);
  static_assert(raise<(keepings > 0 && adjusts ? problem::keep_gradients_scaled : problem::none), plan>::ok);
  static constexpr bool said_twice = (0 + ... + (detail::is_loss_scale<Entries> ? 1 : 0)) > 1 ||
                                     (0 + ... + (detail::is_reduction_bound<Entries> ? 1 : 0)) > 1;
  static_assert(raise<(said_twice ? problem::precision_twice : problem::none), plan>::ok);
};

// What the error prints of an unmatched entry: its path, and the nearest paths that the model has.
template <class Entry>
struct plan_entry;
template <fixed_string... Names>
struct nearest;

template <fixed_string Path, class... Styles>
struct written<at<Path, Styles...>> {
  template <class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, "at<\"");
    text::put(out, Path.view());
    out.push_back('"');
    ((text::put(out, ", "), written<Styles>::put(out)), ...);
    out.push_back('>');
  }
};
template <class Entry>
struct fact<plan_entry<Entry>> : detail::type_fact<"plan_entry", Entry> {};
template <fixed_string... Names>
struct fact<nearest<Names...>> : detail::quoted_fact<"nearest", Names...> {};
template <class Style>
  requires detail::is_style<Style>
struct fact<Style> : detail::type_fact<"style", Style> {};

}  // namespace shardwise::inline v0_1
