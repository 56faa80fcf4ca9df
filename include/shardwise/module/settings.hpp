// SPDX-License-Identifier: Apache-2.0
// settings: what a plan says of a module and of all below it, beside its styles: whether it trains, whether its parameters are
// trained, in which group of the optimizer, and in which element types.
#pragma once

#include <cstdint>
#include <string_view>

#include <shardwise/module/precision.hpp>
#include <shardwise/support/diagnose.hpp>
#include <shardwise/support/fixed_string.hpp>

namespace shardwise::inline v0_1 {

template <class... Styles>
struct style_list {};

// What a module runs for, known in types: training<Bound>. A train_step trains, a forward_step and calls of eager models
// evaluate, value_and_grad of an eager model trains; a plan may say otherwise, of all modules or of some.
enum class run_mode : std::uint8_t { unsaid, train, eval };

// Entries of a plan: plan<eval_mode> for the whole model, at<"backbone", eval_mode> for a module and all below it, as
// model.backbone.eval() in PyTorch. The last entry that holds for a module wins, entries with a path behind those without.
struct train_mode {
  static constexpr run_mode shardwise_mode = run_mode::train;
};
struct eval_mode {
  static constexpr run_mode shardwise_mode = run_mode::eval;
};

// An entry of a plan: plan<frozen> for the whole model, at<"backbone", frozen> for a module and all below it,
// at<"backbone.up.weight", frozen> for one parameter, as requires_grad_(False) in PyTorch. Frozen parameters are read as ever, and are not trained: no gradient is computed for them, none
// is reduced, clipped or bucketed, and no state is kept. Law: the step is that of a model whose frozen parameters are constants.
struct frozen {
  static constexpr bool shardwise_frozen = true;
};

namespace detail {

// string_view::find by hand: under g++'s undefined-behaviour sanitizer the library's own is no constant.
constexpr std::size_t find_char(std::string_view text, char c, std::size_t from) {
  while (from < text.size() && text[from] != c) ++from;
  return from;
}

// Length of the pattern element at p ('?', a character, or a set "[abc]") if it matches `c`, else 0.
constexpr std::size_t match_one(std::string_view pattern, std::size_t p, char c) {
  if (pattern[p] == '[') {
    const std::size_t close = find_char(pattern, ']', p);
    if (close < pattern.size()) {
      for (std::size_t i = p + 1; i < close; ++i)
        if (pattern[i] == c) return close - p + 1;
      return 0;
    }
  }
  return pattern[p] == '?' || (pattern[p] != '*' && pattern[p] == c) ? 1 : 0;
}

// Shell-style match of one segment: '*', '?', '[set]'.
constexpr bool glob(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    const std::size_t step = p < pattern.size() ? match_one(pattern, p, name[n]) : 0;
    if (step > 0) {
      p += step;
      ++n;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace detail

// An entry of a plan: param_group<"no_decay", "bias", "norm*"> for the whole model, at<"layers.*", param_group<"slow">> for a module
// and all below it: the parameters there whose own names match one of the patterns, by default all, are updated with the numbers
// of that group, env.group<"no_decay">().weight_decay = 0 of an env_of<step>, where those that are not set are the main group's. A
// parameter that several entries name is in the last one's group, entries with a path behind those without. Frozen parameters
// are in none. As parameter groups of torch.optim.
template <fixed_string Name, fixed_string... Patterns>
struct param_group {
  static constexpr auto name = Name;
  static constexpr std::string_view shardwise_group = name.view();
  static_assert(raise<(Name.view().empty() ? problem::param_group_unnamed : problem::none), param_group>::ok);
  static constexpr bool takes([[maybe_unused]] std::string_view parameter) {
    return sizeof...(Patterns) == 0 || (detail::glob(Patterns.view(), parameter) || ...);
  }
  // For "did you mean".
  static constexpr std::string_view wanted() {
    std::string_view first;
    ((first = first.empty() ? Patterns.view() : first), ...);
    return first;
  }
};

namespace detail {

template <class T>
inline constexpr bool is_mode = requires { T::shardwise_mode; };
template <class T>
inline constexpr bool is_frozen = requires { T::shardwise_frozen; };
template <class T>
inline constexpr bool is_param_group = requires { T::shardwise_group; };
template <class T>
inline constexpr bool is_setting = is_mode<T> || is_frozen<T> || is_param_group<T> || is_mixed<T>;

// What an entry's list says: of one that is no setting, nothing.
template <class List>
struct listed_setting {
  static constexpr bool is = false, freezes = false;
  static constexpr run_mode mode = run_mode::unsaid;
  static constexpr precision elements{};
  static constexpr std::string_view group = "";
  static constexpr bool takes(std::string_view) { return false; }
  static constexpr std::string_view wanted() { return ""; }
};
template <class Mode>
  requires is_mode<Mode>
struct listed_setting<style_list<Mode>> : listed_setting<void> {
  static constexpr bool is = true;
  static constexpr run_mode mode = Mode::shardwise_mode;
};
template <class Frozen>
  requires is_frozen<Frozen>
struct listed_setting<style_list<Frozen>> : listed_setting<void> {
  static constexpr bool is = true, freezes = true;
};
template <class Mixed>
  requires is_mixed<Mixed>
struct listed_setting<style_list<Mixed>> : listed_setting<void> {
  static constexpr bool is = true;
  static constexpr precision elements = Mixed::shardwise_precision;
};
template <class Group>
  requires is_param_group<Group>
struct listed_setting<style_list<Group>> : listed_setting<void> {
  static constexpr bool is = true;
  static constexpr std::string_view group = Group::shardwise_group;
  static constexpr bool takes(std::string_view parameter) { return Group::takes(parameter); }
  static constexpr std::string_view wanted() { return Group::wanted(); }
};

}  // namespace detail

template <fixed_string Name, fixed_string... Patterns>
struct written<param_group<Name, Patterns...>> {
  template <class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, "param_group<\"");
    text::put(out, Name.view());
    out.push_back('"');
    ((text::put(out, ", \""), text::put(out, Patterns.view()), out.push_back('"')), ...);
    out.push_back('>');
  }
};

}  // namespace shardwise::inline v0_1
