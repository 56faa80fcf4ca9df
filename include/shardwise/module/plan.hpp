// SPDX-License-Identifier: Apache-2.0
// plan: which style applies to which module, by path; matching moves along the path once for each distinct state.
#pragma once

#include <string_view>

#include <shardwise/support/diagnose.hpp>
#include <shardwise/support/fixed_string.hpp>
#include <shardwise/vocabulary/spec.hpp>

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

namespace detail {

template <class T>
inline constexpr bool is_style = requires {
  typename T::axis;
  T::whole_model;
};
template <class T>
inline constexpr bool is_mode = requires { T::shardwise_mode; };
// A style alone names no module, so only one of the whole model is an entry.
template <class T>
constexpr bool is_plan_entry() {
  if constexpr (requires { typename T::shardwise_entry; } || is_mode<T>) return true;
  else if constexpr (is_style<T>) return T::whole_model;
  else return false;
}
template <bool Entries, class... Facts>
struct only_entries {
  static constexpr bool ok = raise<(Entries ? problem::none : problem::plan_not_an_entry), Facts...>::ok;
};

}  // namespace detail

// One entry: a dotted path whose segments are names, list indices, or shell patterns ('*', '?', '[set]'); "" is the model itself.
// Of several styles for one mesh axis the last entry that matches wins. A mode has an entry of its own.
template <fixed_string Path, class... Styles>
struct at {
  static_assert(detail::only_entries<((detail::is_style<Styles> || detail::is_mode<Styles>) && ...), Styles...>::ok);
  static_assert(raise<(sizeof...(Styles) == 0 ? problem::plan_entry_without_style : problem::none), at>::ok);
  static constexpr bool mode_beside = (sizeof...(Styles) > 1) && (detail::is_mode<Styles> || ... || false);
  static_assert(raise<(mode_beside ? problem::plan_mode_beside : problem::none), at>::ok);
  using shardwise_entry = std::conditional_t<mode_beside, style_list<>, style_list<Styles...>>;
  static constexpr auto path = Path;
};

// Entries, and styles for the whole model (data_parallel<dp>).
template <class... Entries>
struct plan {
  static constexpr int entries = static_cast<int>(sizeof...(Entries));
  static_assert(detail::only_entries<(detail::is_plan_entry<Entries>() && ...), Entries...>::ok);
  static_assert(raise<((entries > 32) ? problem::plan_too_large : problem::none), plan, have<entries>, want<32>>::ok);
};

namespace detail {

constexpr int segment_count(std::string_view path) {
  if (path.empty()) return 0;
  int n = 1;
  for (char c : path) n += c == '.' ? 1 : 0;
  return n;
}

// string_view::find by hand: under g++'s undefined-behaviour sanitizer the library's own is no constant.
constexpr std::size_t find_char(std::string_view text, char c, std::size_t from) {
  while (from < text.size() && text[from] != c) ++from;
  return from;
}

constexpr std::string_view segment(std::string_view path, int k) {
  std::size_t begin = 0;
  for (; k > 0; --k) begin = find_char(path, '.', begin) + 1;
  return path.substr(begin, find_char(path, '.', begin) - begin);
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

// Entry by entry: how many segments the path so far has matched, or -1. A mode's entry stays matched below the module that
// it names. Modules with equal states get equal types.
template <int N>
struct plan_state {
  signed char at[N > 0 ? N : 1];
  constexpr bool operator==(const plan_state&) const = default;
};

template <class List>
struct listed_mode {
  static constexpr run_mode value = run_mode::unsaid;
};
template <class Mode>
  requires is_mode<Mode>
struct listed_mode<style_list<Mode>> {
  static constexpr run_mode value = Mode::shardwise_mode;
};

template <class Entry>
struct entry_traits {  // a style or a mode for the whole model
  static constexpr bool is_entry = false;
  static constexpr run_mode mode = listed_mode<style_list<Entry>>::value;
  static constexpr std::string_view path = "";
  using styles = style_list<>;
};
template <class Entry>  // nvcc cannot deduce a string argument: the entry is asked instead
  requires requires { typename Entry::shardwise_entry; }
struct entry_traits<Entry> {
  static constexpr bool is_entry = true;
  static constexpr run_mode mode = listed_mode<typename Entry::shardwise_entry>::value;
  static constexpr std::string_view path = Entry::path.view();
  using styles = std::conditional_t<mode == run_mode::unsaid, typename Entry::shardwise_entry, style_list<>>;
};

template <class Plan>
struct plan_traits;
template <class... E>
struct plan_traits<plan<E...>> {
  static constexpr int n = static_cast<int>(sizeof...(E));
  using state = plan_state<n>;
  static constexpr std::string_view path[n > 0 ? n : 1] = {entry_traits<E>::path...};
  static constexpr bool is_entry[n > 0 ? n : 1] = {entry_traits<E>::is_entry...};
  static constexpr int segments[n > 0 ? n : 1] = {segment_count(entry_traits<E>::path)...};
  static constexpr run_mode mode[n > 0 ? n : 1] = {entry_traits<E>::mode...};

  static constexpr state root() {
    state s{};
    for (int e = 0; e < n; ++e) s.at[e] = is_entry[e] ? 0 : -1;
    return s;
  }
  static constexpr state advance(const state& from, std::string_view name) {
    state s{};
    for (int e = 0; e < n; ++e) {
      const int k = from.at[e];
      if (mode[e] != run_mode::unsaid && k == segments[e]) s.at[e] = from.at[e];
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
  // What the plan says of the mode of the module with this state.
  static constexpr run_mode mode_at(const state& s) {
    run_mode r = run_mode::unsaid;
    for (int e = 0; e < n; ++e)
      if (!is_entry[e] && mode[e] != run_mode::unsaid) r = mode[e];
    for (int e = 0; e < n; ++e)
      if (is_entry[e] && mode[e] != run_mode::unsaid && s.at[e] == segments[e]) r = mode[e];
    return r;
  }
  // Entries that say a mode.
  static constexpr unsigned modes() {
    unsigned m = 0;
    for (int e = 0; e < n; ++e) m |= mode[e] != run_mode::unsaid ? 1U << e : 0U;
    return m;
  }
};

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

// Levenshtein distance, for "did you mean".
constexpr int edit_distance(std::string_view a, std::string_view b) {
  int row[65]{};
  if (b.size() > 64 || a.size() > 64) return 1000;
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int up = row[j];
      int best = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      if (up + 1 < best) best = up + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diagonal = up;
      row[j] = best;
    }
  }
  return row[b.size()];
}

}  // namespace detail

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
