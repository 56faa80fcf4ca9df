// SPDX-License-Identifier: Apache-2.0
// Element types as values and their C++ types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/float16.hpp>
#include <shardwise/vocabulary/shape.hpp>

namespace shardwise::inline v0_1 {

// Its members have the names of types, which g++ calls shadowing.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class dtype : std::uint8_t { f32 = 0, f64 = 1, i32 = 2, bf16 = 3, f16 = 4, i64 = 5, boolean = 6 };
#pragma GCC diagnostic pop
inline constexpr int dtypes = 7;

namespace detail {

// Name, C++ type, what errors call it.
#define SHARDWISE_ELEMENTS(X)          \
  X(f32, float, "float")               \
  X(f64, double, "double")             \
  X(i32, std::int32_t, "std::int32_t") \
  X(bf16, bfloat16, "bfloat16")        \
  X(f16, float16, "float16")           \
  X(i64, std::int64_t, "std::int64_t") \
  X(boolean, bool, "bool")

inline constexpr const char* element_names[dtypes] = {
#define SHARDWISE_X(name, type, text) text,
    SHARDWISE_ELEMENTS(SHARDWISE_X)
#undef SHARDWISE_X
};
inline constexpr std::size_t element_sizes[dtypes] = {
#define SHARDWISE_X(name, type, text) sizeof(type),
    SHARDWISE_ELEMENTS(SHARDWISE_X)
#undef SHARDWISE_X
};
static_assert(sizeof(bool) == 1 && sizeof(bfloat16) == 2 && sizeof(float16) == 2);

}  // namespace detail

constexpr std::size_t size_of(dtype t) { return detail::element_sizes[static_cast<int>(t)]; }
constexpr const char* name_of(dtype t) { return detail::element_names[static_cast<int>(t)]; }
// Floating-point numbers of two bytes: stored so, computed with in float.
constexpr bool is_low_precision(dtype t) { return t == dtype::bf16 || t == dtype::f16; }
constexpr bool is_floating(dtype t) { return t <= dtype::f64 || is_low_precision(t); }
// What sums, statistics and losses of such elements are computed in, and stored in between operations.
constexpr dtype wide_of(dtype t) { return is_low_precision(t) ? dtype::f32 : t; }

namespace detail {
template <class T>
inline constexpr bool is_element = false;
template <class T>
struct dtype_of {
  static_assert(raise<problem::element_type, T>::ok);
  static constexpr dtype value = dtype::f32;
};
template <dtype D>
struct element;
#define SHARDWISE_X(name, cpp, text)            \
  template <>                                   \
  inline constexpr bool is_element<cpp> = true; \
  template <>                                   \
  struct dtype_of<cpp> {                        \
    static constexpr dtype value = dtype::name; \
  };                                            \
  template <>                                   \
  struct element<dtype::name> {                 \
    using type = cpp;                           \
  };
SHARDWISE_ELEMENTS(SHARDWISE_X)
#undef SHARDWISE_X
#undef SHARDWISE_ELEMENTS
}  // namespace detail

#define SHARDWISE_WRITTEN(type)                               \
  template <>                                                 \
  struct written<type> {                                      \
    template <class Sink>                                     \
    static constexpr void put(Sink& out) {                    \
      text::put(out, name_of(detail::dtype_of<type>::value)); \
    }                                                         \
  };
SHARDWISE_WRITTEN(std::int32_t)
SHARDWISE_WRITTEN(std::int64_t)
SHARDWISE_WRITTEN(bfloat16)
SHARDWISE_WRITTEN(float16)
#undef SHARDWISE_WRITTEN
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
// Floating-point numbers, those of two bytes too.
template <class T>
inline constexpr bool is_floating_element = std::is_floating_point_v<T>;
template <>
inline constexpr bool is_floating_element<bfloat16> = true;
template <>
inline constexpr bool is_floating_element<float16> = true;
// What kernels compute in on elements of T.
template <class T>
using computed_in = std::conditional_t<is_floating_element<T> && sizeof(T) == 2, float, T>;
template <dtype D>
using element_t = typename detail::element<D>::type;

// An option: the type in which gradients are added up and summed over ranks, of parameters (mixed) or of one redistribution.
template <class T>
struct reduce_dtype {};

namespace detail {
// One more than the dtype that an option names, as attributes say it; 0: nothing is named. -1: it is no such option.
template <class Option>
inline constexpr std::int64_t reduction_type = -1;
template <>
inline constexpr std::int64_t reduction_type<void> = 0;
template <class T>
  requires is_floating_element<T>
inline constexpr std::int64_t reduction_type<reduce_dtype<T>> = static_cast<std::int64_t>(dtype_v<T>) + 1;
}  // namespace detail

}  // namespace shardwise::inline v0_1
