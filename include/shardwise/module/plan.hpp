// SPDX-License-Identifier: Apache-2.0
// Which style of a plan applies to which module, by path; matching moves along the path once for each distinct state.
#pragma once

#include <string_view>
#include <utility>

#include <shardwise/module/checkpoint.hpp>
#include <shardwise/module/plan_entries.hpp>
#include <shardwise/module/settings.hpp>
#include <shardwise/support/diagnose.hpp>
#include <shardwise/support/edit_distance.hpp>
#include <shardwise/support/fixed_string.hpp>
#include <shardwise/vocabulary/param_groups.hpp>
#include <shardwise/vocabulary/operand.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

constexpr int segment_count(std::string_view path) {
  if (path.empty()) return 0;
  int n = 1;
  for (char c : path) n += c == '.' ? 1 : 0;
  return n;
}

constexpr std::string_view segment(std::string_view path, int k) {
  std::size_t begin = 0;
  for (; k > 0; --k) begin = find_char(path, '.', begin) + 1;
  return path.substr(begin, find_char(path, '.', begin) - begin);
}

// Entry by entry: how many segments the path so far has matched, or -1. A setting's entry stays matched below the module that
// it names, and one of fully_shard or mixed has one more there, since it asks which module it names. Modules with equal states get
// equal types.
template <int N>
struct plan_state {
  signed char at[N > 0 ? N : 1];
  constexpr bool operator==(const plan_state&) const = default;
};

// The first of a list's styles that shards parameters; void: none.
template <class List>
struct sharding_in {
  using type = void;
  static constexpr int count = 0;
};
template <class S, class... R>
struct sharding_in<style_list<S, R...>> {
  using rest = sharding_in<style_list<R...>>;
  using type = std::conditional_t<is_sharding<S>, S, typename rest::type>;
  static constexpr int count = rest::count + (is_sharding<S> ? 1 : 0);
};

// What an entry lists: its styles, and its checkpoint.
template <class List, class... Found>
struct listed_styles;
template <class... Found>
struct listed_styles<style_list<>, Found...> {
  using type = style_list<Found...>;
};
template <class S, class... Rest, class... Found>
struct listed_styles<style_list<S, Rest...>, Found...>
    : std::conditional_t<is_style<S>, listed_styles<style_list<Rest...>, Found..., S>,
                         listed_styles<style_list<Rest...>, Found...>> {};
struct no_checkpoint {
  using names = void;
};
template <class... S>
constexpr auto checkpoint_among(style_list<S...>) {
  if constexpr ((is_checkpoint<S> || ... || false)) {
    constexpr auto first = []<class T, class... More>(auto&& self, style_list<T, More...>) {
      if constexpr (is_checkpoint<T>) return std::type_identity<T>{};
      else return self(self, style_list<More...>{});
    };
    return decltype(first(first, style_list<S...>{})){};
  } else {
    return std::type_identity<no_checkpoint>{};
  }
}
template <class List>
using listed_checkpoint = typename decltype(checkpoint_among(List{}))::type;

template <class Entry>
struct entry_traits {                                     // a style, a setting or a checkpoint for the whole model
  static constexpr bool is_entry = is_checkpoint<Entry>;  // that of the model itself
  using setting = listed_setting<style_list<Entry>>;
  using sharding = typename sharding_in<style_list<Entry>>::type;
  using checkpoint = listed_checkpoint<style_list<Entry>>;
  static constexpr std::string_view path = "";
  using styles = style_list<>;
};
template <class Entry>  // nvcc cannot deduce a string argument: the entry is asked instead
  requires requires { typename Entry::shardwise_entry; }
struct entry_traits<Entry> {
  static constexpr bool is_entry = true;
  using setting = listed_setting<typename Entry::shardwise_entry>;
  using sharding = typename sharding_in<typename Entry::shardwise_entry>::type;
  using checkpoint = listed_checkpoint<typename Entry::shardwise_entry>;
  static constexpr std::string_view path = Entry::path.view();
  using styles = typename listed_styles<typename Entry::shardwise_entry>::type;
};
template <class Entry>
constexpr const checkpoint_policy* policy_of() {
  if constexpr (is_checkpoint<typename entry_traits<Entry>::checkpoint>)
    return &entry_traits<Entry>::checkpoint::shardwise_checkpoint;
  else return nullptr;
}

template <class Plan>
struct plan_traits;
template <class... E>
struct plan_traits<plan<E...>> {
  static constexpr int n = static_cast<int>(sizeof...(E));
  using state = plan_state<n>;
  static constexpr std::string_view path[n > 0 ? n : 1] = {entry_traits<E>::path...};
  static constexpr bool is_entry[n > 0 ? n : 1] = {entry_traits<E>::is_entry...};
  static constexpr int segments[n > 0 ? n : 1] = {segment_count(entry_traits<E>::path)...};
  static constexpr run_mode mode[n > 0 ? n : 1] = {entry_traits<E>::setting::mode...};
  static constexpr bool setting[n > 0 ? n : 1] = {entry_traits<E>::setting::is...};
  static constexpr bool freezes[n > 0 ? n : 1] = {entry_traits<E>::setting::freezes...};
  static constexpr std::string_view group[n > 0 ? n : 1] = {entry_traits<E>::setting::group...};
  static constexpr bool shards[n > 0 ? n : 1] = {!std::is_void_v<typename entry_traits<E>::sharding>...};
  static constexpr precision elements[n > 0 ? n : 1] = {entry_traits<E>::setting::elements...};
  static constexpr bool any_mixed = (entry_traits<E>::setting::elements.said || ... || false);
  static constexpr bool any_shards = (false || ... || !std::is_void_v<typename entry_traits<E>::sharding>);
  static constexpr bool any_nested = (false || ... || is_nested_sharding<typename entry_traits<E>::sharding>);
  static constexpr bool any_flat = (false || ... || is_flat_sharding<typename entry_traits<E>::sharding>);
  static constexpr int checkpoints = (0 + ... + (is_checkpoint<typename entry_traits<E>::checkpoint> ? 1 : 0));

  // A group of the whole model is one of the model's path: its parameters are asked for by name. So is its precision, of which
  // something is said of the model alone.
  static constexpr state root() {
    state s{};
    for (int e = 0; e < n; ++e) s.at[e] = is_entry[e] || !group[e].empty() || elements[e].said ? 0 : -1;
    return s;
  }
  static constexpr state advance(const state& from, std::string_view name) {
    state s{};
    for (int e = 0; e < n; ++e) {
      const int k = from.at[e];
      if (setting[e] && !elements[e].said && k == segments[e]) s.at[e] = from.at[e];
      else if ((shards[e] || elements[e].said) && k >= segments[e]) s.at[e] = static_cast<signed char>(segments[e] + 1);
      else s.at[e] = k >= 0 && k < segments[e] && glob(segment(path[e], k), name) ? static_cast<signed char>(k + 1) : -1;
    }
    return s;
  }
  // Entries that name the module with this state.
  static constexpr unsigned matched(const state& s) {
    unsigned m = 0;
    for (int e = 0; e < n; ++e)
      if (s.at[e] >= 0 && s.at[e] == segments[e]) m |= 1U << e;
    return m;
  }
  // How far below the model the modules stand that entry e names: 0 is the model, -1 an entry without a path.
  static constexpr int depth(int e) { return is_entry[e] ? segments[e] : -1; }
  // The entry of fully_shard that owns the parameters of the module with this state: of those that name it or a module above
  // it the one with the longest path, and of such the last; else the last for the whole model; -1: none.
  static constexpr int owner_at(const state& s) {
    int r = -1;
    for (int e = 0; e < n && any_shards; ++e) {
      const bool holds = shards[e] && (!is_entry[e] || s.at[e] >= segments[e]);
      if (holds && (r < 0 || depth(e) >= depth(r))) r = e;
    }
    return r;
  }
  // Entries of fully_shard.
  static constexpr unsigned shardings() {
    unsigned m = 0;
    for (int e = 0; e < n; ++e) m |= shards[e] ? 1U << e : 0U;
    return m;
  }
  // The entry that says in which types the module, or the parameter, with this state computes; -1: none.
  static constexpr int mixing_at(const state& s) {
    int r = -1;
    for (int with_path = 0; with_path < 2 && any_mixed; ++with_path)
      for (int e = 0; e < n; ++e)
        if (elements[e].said && is_entry[e] == (with_path != 0) && s.at[e] >= segments[e]) r = e;
    return r;
  }
  // What the plan says of the mode of the module with this state.
  static constexpr run_mode mode_at(const state& s) {
    run_mode r = run_mode::unsaid;
    for (int e = 0; e < n; ++e)
      if (!is_entry[e] && mode[e] != run_mode::unsaid) r = mode[e];
    for (int e = 0; e < n; ++e)
      if (is_entry[e] && mode[e] != run_mode::unsaid && s.at[e] == segments[e]) r = mode[e];
    return r;
  }
  // The checkpoint of the module with this state, null: none.
  static constexpr const checkpoint_policy* checkpoint_at(const state& s) {
    constexpr const checkpoint_policy* policy[n > 0 ? n : 1] = {policy_of<E>()...};
    constexpr bool has[n > 0 ? n : 1] = {is_checkpoint<typename entry_traits<E>::checkpoint>...};
    const unsigned hit = matched(s);
    const checkpoint_policy* r = nullptr;
    for (int e = 0; e < n; ++e)
      if ((hit >> e & 1U) != 0 && has[e]) r = policy[e];  // g++'s sanitizers compare no pointer with null in constants
    return r;
  }
  // Entries that are settings.
  static constexpr unsigned settings() {
    unsigned m = 0;
    for (int e = 0; e < n; ++e) m |= setting[e] ? 1U << e : 0U;
    return m;
  }

  // --- how parameters are updated: see frozen and param_group ---

  static constexpr bool any_freezes = (entry_traits<E>::setting::freezes || ... || false);
  static constexpr bool any_groups = (!entry_traits<E>::setting::group.empty() || ... || false);

  // Entries that freeze the parameters of a module with this state, or the parameter that it is the state of.
  static constexpr unsigned freezing(const state& s) {
    unsigned m = 0;
    for (int e = 0; e < n; ++e) m |= freezes[e] && (!is_entry[e] || s.at[e] == segments[e]) ? 1U << e : 0U;
    return m;
  }
  static constexpr bool frozen_at(const state& s) { return freezing(s) != 0; }
  // Entries whose group the parameter of this name has a place in, in a module with this state.
  static constexpr unsigned groups_of([[maybe_unused]] const state& s, [[maybe_unused]] std::string_view parameter) {
    unsigned m = 0;
    int e = 0;
    ((m |= s.at[e] == segments[e] && entry_traits<E>::setting::takes(parameter) ? 1U << e : 0U, ++e), ...);
    return m;
  }
  // The one of them that it is in: the last, those with a path behind those without; -1: none.
  static constexpr int deciding(unsigned entries) {
    int r = -1;
    for (int with_path = 0; with_path < 2; ++with_path)
      for (int e = 0; e < n; ++e)
        if (((entries >> e) & 1U) != 0 && is_entry[e] == (with_path != 0)) r = e;
    return r;
  }
  // Groups by number, from 1, in the order in which the plan names them first. 0: the main group.
  static constexpr int group_number(std::string_view name) {
    int count = 0;
    for (int e = 0; e < n; ++e) {
      if (group[e].empty() || first_of(group[e]) != e) continue;
      ++count;
      if (group[e] == name) return count;
    }
    return 0;
  }
  static constexpr int group_count() {
    int count = 0;
    for (int e = 0; e < n; ++e) count += !group[e].empty() && first_of(group[e]) == e ? 1 : 0;
    return count;
  }
  static constexpr std::string_view group_name(int number) {
    for (int e = 0; e < n; ++e)
      if (!group[e].empty() && group_number(group[e]) == number) return group[e];
    return "";
  }
  // What parameter_attributes::group says of a parameter.
  static constexpr int update_group(const state& s, std::string_view parameter) {
    if constexpr (any_freezes)
      if (frozen_at(advance(s, parameter))) return -1;
    if constexpr (!any_groups) return 0;
    else {
      const int e = deciding(groups_of(s, parameter));
      return e < 0 ? 0 : group_number(group[e]);
    }
  }

 private:
  static constexpr int first_of(std::string_view name) {
    int e = 0;
    while (group[e] != name) ++e;
    return e;
  }
};

// The names of a plan's groups of parameters, by number.
template <class Plan, int Number>
struct name_of_group {
  static constexpr std::string_view view = plan_traits<Plan>::group_name(Number);
  static constexpr auto value = exact_string<view.size()>(view);
};
template <class Plan, class Numbers>
struct names_of_groups;
template <class Plan, int... K>
struct names_of_groups<Plan, std::integer_sequence<int, K...>> {
  using type = group_names<name_of_group<Plan, K + 1>::value...>;
};
template <class Plan>
struct groups_of_plan {
  using type = group_names<>;
};
template <class... E>
  requires(plan_traits<plan<E...>>::any_groups)
struct groups_of_plan<plan<E...>> {
  using type =
      typename names_of_groups<plan<E...>, std::make_integer_sequence<int, plan_traits<plan<E...>>::group_count()>>::type;
};

// What a plan scales the loss by, at first, 0: it says nothing; what adjusts that, void: nothing; and over how many ranks it lets tensors of two bytes be summed.
template <class Plan>
inline constexpr std::int64_t loss_scale_of = 0;
template <class... E>
inline constexpr std::int64_t loss_scale_of<plan<E...>> = loss_scale_among<E...>();
template <class Plan>
struct dynamic_scale_of {
  using type = void;
};
template <class... E>
struct dynamic_scale_of<plan<E...>> : dynamic_scale_among<E...> {};
template <class Plan>
inline constexpr int reduction_bound_of = default_reduction_bound;
template <class... E>
inline constexpr int reduction_bound_of<plan<E...>> = reduction_bound_among<E...>();

// Name of list element i, without <string>.
struct index_name {
  char text[12]{};
  int size = 0;
  constexpr explicit index_name(int i) {
    char reversed[12]{};
    int n = 0;
    do {
      reversed[n++] = static_cast<char>('0' + i % 10);
      i /= 10;
    } while (i > 0);
    for (int k = 0; k < n; ++k) text[k] = reversed[n - 1 - k];
    size = n;
  }
  constexpr std::string_view view() const { return {text, static_cast<std::size_t>(size)}; }
};

}  // namespace detail

}  // namespace shardwise::inline v0_1
