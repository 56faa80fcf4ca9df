// SPDX-License-Identifier: Apache-2.0
// A mesh axis is a named type with a size, so that errors print its name: struct tp : axis<2> {};
#pragma once

#include <type_traits>

namespace shardwise {

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
  if constexpr (std::is_convertible_v<decltype(T::size), int>) return std::is_convertible_v<const T*, const axis<static_cast<int>(T::size)>*>;
  else return false;
}();

}  // namespace detail

}  // namespace shardwise
