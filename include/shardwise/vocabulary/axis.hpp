// SPDX-License-Identifier: Apache-2.0
// A mesh axis is a named type with a size, so that errors print its name: struct tp : axis<2> {};
#pragma once

#include <type_traits>

#include <shardwise/support/message.hpp>

namespace shardwise::inline v0_1 {

template <int Size>
struct axis {
  static constexpr int size = Size;
};

namespace detail {

template <class T>
inline constexpr bool is_axis = false;
template <class T>
  requires requires { T::size; }
inline constexpr bool is_axis<T> = [] {
  if constexpr (std::is_convertible_v<decltype(T::size), int>)
    return std::is_convertible_v<const T*, const axis<static_cast<int>(T::size)>*>;
  else return false;
}();

// The axis's own name, without what it is declared in.
template <class Axis, class Sink>
constexpr void put_axis(Sink& out) {
  text_buffer<120> name;
  written<Axis>::put(name);
  std::string_view s = name.view();
  for (std::size_t i = 0; i + 1 < s.size() && s[i] != '<'; ++i)
    if (s[i] == ':') s = s.substr(i + 1), i = 0;
  out.push_back('"');
  text::put(out, s[0] == ':' ? s.substr(1) : s);
  text::put(out, "\" of ");
  text::put(out, std::int64_t{Axis::size});
}

}  // namespace detail

template <class Axis>
  requires detail::is_axis<Axis>
struct fact<Axis> : detail::fact_named<"axis"> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    detail::put_axis<Axis>(out);
  }
};

}  // namespace shardwise::inline v0_1
