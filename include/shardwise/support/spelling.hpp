// SPDX-License-Identifier: Apache-2.0
// How a type is written: as the compiler spells it, and as a user would, without the library's namespaces and defaults.
#pragma once

#include <type_traits>

#include <shardwise/support/config.hpp>
#include <shardwise/support/words.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class T>
constexpr auto signature() {
  return std::string_view(__PRETTY_FUNCTION__, sizeof(__PRETTY_FUNCTION__) - 1);
}

constexpr bool begins_at(std::string_view s, std::size_t at, std::string_view part) {
  if (s.size() < at + part.size()) return false;
  for (std::size_t i = 0; i < part.size(); ++i)
    if (s[at + i] != part[i]) return false;
  return true;
}

// How long the library's namespace at `at` is, with the version's that some compilers write; 0: it is not there.
constexpr std::size_t library_at(std::string_view s, std::size_t at) {
  constexpr std::string_view library = "shardwise::", version = SHARDWISE_VERSION_NAMESPACE "::";
  if (!begins_at(s, at, library)) return 0;
  return begins_at(s, at + library.size(), version) ? library.size() + version.size() : library.size();
}

// Where `double` stands in its own signature; every other type stands there too.
constexpr std::size_t spelling_begin() {
  const std::string_view s = signature<double>();
  std::size_t at = 0;
  while (!begins_at(s, at, "double")) ++at;
  return at;
}

}  // namespace detail

// The compiler's own words. They differ between compilers; equal types have equal ones.
template <class T>
constexpr std::string_view spelling() {
  const std::string_view s = detail::signature<T>();
  return s.substr(detail::spelling_begin(), s.size() - (detail::signature<double>().size() - 6));
}

namespace detail {
// Whether T is of a namespace of the library, given with its colons.
template <class T>
constexpr bool in_library_namespace(std::string_view name) {
  const std::size_t at = library_at(spelling<T>(), 0);
  return at > 0 && begins_at(spelling<T>(), at, name);
}
}  // namespace detail

namespace text {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_in_name(char c) { return is_digit(c) || is_letter(c); }

// Behind the bracket that closes the one at `at`; the end where none does.
constexpr std::size_t behind_bracket(std::string_view s, std::size_t at) {
  const char open = s[at], close = open == '<' ? '>' : open == '(' ? ')' : '}';
  int depth = 0;
  bool quoted = false;
  for (; at < s.size(); ++at) {
    if (s[at] == '"' && (at == 0 || s[at - 1] != '\\')) quoted = !quoted;
    if (quoted) continue;
    if (s[at] == open) ++depth;
    if (s[at] == close && --depth == 0) return at + 1;
  }
  return s.size();
}

// A namespace of the library, below shardwise::.
constexpr bool is_library_namespace(std::string_view s) {
  for (const std::string_view name : {"detail", "op", "passes", "pass_order", "rules", "kept", "rank_member", "init", "text",
                                      "runtime", "checked", "unchecked", "checked_with_blas", "unchecked_with_blas"})
    if (s.size() == name.size() && detail::begins_at(s, 0, name)) return true;
  return false;
}

// What a spelling begins with that a user does not write: the name of a namespace without a name.
constexpr std::size_t unnamed_at(std::string_view s, std::size_t i) {
  for (const std::string_view unnamed : {"(anonymous namespace)::", "{anonymous}::", "<unnamed>::", "(anonymous)::"})
    if (detail::begins_at(s, i, unnamed)) return unnamed.size();
  return 0;
}

// The quote of a string that begins at `i`, braces before it or none; the end where there is none.
constexpr std::size_t opening_quote(std::string_view s, std::size_t i) {
  while (i < s.size() && s[i] == '{') ++i;
  return i < s.size() && s[i] == '"' ? i : s.size();
}

// "(long)4" is 4, of an enumeration it stays: the number behind the cast, or `i`.
constexpr std::size_t behind_cast(std::string_view s, std::size_t i) {
  std::size_t k = i + 1;
  while (k < s.size() && (is_letter(s[k]) || s[k] == ' ')) ++k;
  const bool cast = k > i + 1 && k + 1 < s.size() && s[k] == ')' && (is_digit(s[k + 1]) || s[k + 1] == '-');
  return cast ? k + 1 : i;
}

// The binding that no user writes, last or alone among arguments: where it ends (before the bracket that closes others, behind
// its own), or 0.
constexpr std::size_t behind_unbound(std::string_view s, std::size_t i) {
  if (s[i] != ',' && s[i] != '<') return 0;
  const std::size_t at = i + (detail::begins_at(s, i, ", ") ? 2 : 1), n = detail::library_at(s, at);
  if (n == 0 || !detail::begins_at(s, at + n, "unbound>")) return 0;
  return at + n + (s[i] == '<' ? 8 : 7);
}

// A type's spelling as a user would write it.
template <class Sink>
constexpr void put_spelling(Sink& out, std::string_view s) {
  bool in_library = false;
  for (std::size_t i = 0; i < s.size();) {
    const char c = s[i];
    if (const std::size_t n = unnamed_at(s, i); n > 0) {
      i += n;
    } else if (is_digit(c)) {
      while (i < s.size() && (is_in_name(s[i]) || s[i] == '.')) {
        if (s[i] != 'L' && s[i] != 'U' && s[i] != 'l' && s[i] != 'u') out.push_back(s[i]);
        ++i;
      }
    } else if (is_letter(c)) {
      std::size_t j = i;
      while (j < s.size() && is_in_name(s[j])) ++j;
      const std::string_view word = s.substr(i, j - i);
      const std::size_t call = j < s.size() && s[j] == '(' ? behind_bracket(s, j) : 0;
      if (call > 0 && detail::begins_at(s, call, "::")) {  // local to a function
        i = call + 2;
      } else if (detail::begins_at(s, j, "::") && (word == "shardwise" || (in_library && is_library_namespace(word)))) {
        in_library = true;
        i = word == "shardwise" ? i + detail::library_at(s, i) : j + 2;
      } else if (word == "fixed_string" && j < s.size() && s[j] == '<') {
        i = behind_bracket(s, j);
        in_library = false;
      } else {
        put(out, word);
        i = j;
        in_library = false;
      }
    } else if (const std::size_t open = opening_quote(s, i); open != s.size()) {  // a fixed_string has braces around it
      std::size_t j = open + 1;
      while (j < s.size() && s[j] != '"') j += s[j] == '\\' ? 2 : 1;
      put(out, s.substr(open, j + 1 - open));
      std::size_t braces = open - i;
      for (i = j + 1; braces > 0 && i < s.size() && s[i] == '}'; --braces) ++i;
    } else if (c == '(' && behind_cast(s, i) != i) {
      i = behind_cast(s, i);
    } else if (const std::size_t behind = behind_unbound(s, i); behind > 0) {
      i = behind;
    } else if (c == ' ' && i + 1 < s.size() && (s[i + 1] == '>' || s[i + 1] == '&' || s[i + 1] == '*')) {
      ++i;
    } else {
      out.push_back(c);
      ++i;
    }
  }
}

// "mesh" of "shardwise::mesh<dp, tp>".
constexpr std::string_view template_name(std::string_view s) {
  if (s.empty() || s.back() != '>') return s;
  for (std::size_t i = 0; i < s.size(); ++i)
    if (s[i] == '<' && unnamed_at(s, i) == 0 && behind_bracket(s, i) == s.size()) return s.substr(0, i);
  return s;
}

}  // namespace text

// A type in a message: written<T>::put(out). Specialised beside a type that is better written otherwise.
template <class T>
struct written {
  template <class Sink>
  static constexpr void put(Sink& out) {
    text::put_spelling(out, spelling<T>());
  }
};

// A template argument that users leave out.
template <class T>
inline constexpr bool unwritten = false;

namespace detail {

template <class... T>
struct type_list {};

// The first arguments of a template that make the whole type: those behind them are its defaults.
template <template <class...> class C, class Whole, class... Kept>
inline constexpr bool makes_whole = false;
template <template <class...> class C, class Whole, class... Kept>
  requires requires { typename C<Kept...>; }
inline constexpr bool makes_whole<C, Whole, Kept...> = std::is_same_v<C<Kept...>, Whole>;

template <template <class...> class C, class Whole, class Kept, class... Rest>
struct needed_arguments;
template <template <class...> class C, class Whole, class... Kept>
struct needed_arguments<C, Whole, type_list<Kept...>> {
  using type = type_list<Kept...>;
};
template <template <class...> class C, class Whole, class... Kept, class Next, class... Rest>
struct needed_arguments<C, Whole, type_list<Kept...>, Next, Rest...> {
  static constexpr auto find() {
    if constexpr (makes_whole<C, Whole, Kept...>) return std::type_identity<type_list<Kept...>>{};
    else return std::type_identity<typename needed_arguments<C, Whole, type_list<Kept..., Next>, Rest...>::type>{};
  }
  using type = typename decltype(find())::type;
};

template <class Sink, class... A>
constexpr void put_list(Sink& out, type_list<A...>) {
  [[maybe_unused]] bool first = true;
  (
      [&] {
        if constexpr (!unwritten<A>) {
          if (!first) text::put(out, ", ");
          first = false;
          written<A>::put(out);
        }
      }(),
      ...);
}

}  // namespace detail

// Templates whose arguments are types: each argument as it is written.
template <template <class...> class C, class... A>
struct written<C<A...>> {
  template <class Sink>
  static constexpr void put(Sink& out) {
    using needed = typename detail::needed_arguments<C, C<A...>, detail::type_list<>, A...>::type;
    text::put_spelling(out, text::template_name(spelling<C<A...>>()));
    if constexpr (sizeof...(A) > 0 && (unwritten<A> && ...)) return;
    out.push_back('<');
    detail::put_list(out, needed{});
    out.push_back('>');
  }
};

}  // namespace shardwise::inline v0_1
