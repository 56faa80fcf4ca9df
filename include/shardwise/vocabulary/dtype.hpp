// SPDX-License-Identifier: Apache-2.0
// Element types as values and their C++ types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/shape.hpp>

namespace shardwise::inline v0_1 {

enum class dtype : std::uint8_t { f32 = 0, f64 = 1, i32 = 2 };
inline constexpr int dtypes = 3;

constexpr std::size_t size_of(dtype t) { return t == dtype::f64 ? 8 : 4; }
constexpr bool is_floating(dtype t) { return t != dtype::i32; }

namespace detail {
template <class T>
inline constexpr bool is_element = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t>;
template <class T>
struct dtype_of {
  static_assert(raise<problem::element_type, T>::ok);
  static constexpr dtype value = dtype::f32;
};
template <>
struct dtype_of<float> {
  static constexpr dtype value = dtype::f32;
};
template <>
struct dtype_of<double> {
  static constexpr dtype value = dtype::f64;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr dtype value = dtype::i32;
};
template <dtype D>
struct element;
template <>
struct element<dtype::f32> {
  using type = float;
};
template <>
struct element<dtype::f64> {
  using type = double;
};
template <>
struct element<dtype::i32> {
  using type = std::int32_t;
};
}  // namespace detail

template <>
struct written<std::int32_t> {
  template <class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, "std::int32_t");
  }
};
namespace detail {
template <class Said>
inline constexpr bool says_shape = Said::what == problem::kernel_missing || Said::what == problem::kernel_unwritten ||
                                   Said::what == problem::custom_kernel || Said::what == problem::tensor_shape;
template <problem P, class... Facts>
  requires(is_shape<Facts> || ...)
inline constexpr bool says_shape<told<P, Facts...>> = true;
}  // namespace detail

// The elements of a tensor whose shape is said too; else an argument, as any other type.
template <class T>
  requires detail::is_element<T>
struct fact<T> : detail::type_fact<"element", T> {
  template <class Said>
  static constexpr std::string_view name() {
    return detail::says_shape<Said> ? "element" : "given";
  }
};

template <class T>
inline constexpr dtype dtype_v = detail::dtype_of<T>::value;
template <dtype D>
using element_t = typename detail::element<D>::type;

}  // namespace shardwise::inline v0_1
