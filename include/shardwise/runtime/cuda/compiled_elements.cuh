// SPDX-License-Identifier: Apache-2.0
// For which element types a program's kernels, casts and collectives are compiled. nvcc's device pass does not know the program,
// so its type says them: the program's element and int32, and those that its plan and its task state (program_traits). Where a pass has
// written expressions, the device pass reads the program anyway, and of these types the kernels of its nodes alone are compiled. All others
// SHARDWISE_DEVICE_ELEMENTS(sw::bf16, std::int64_t) at namespace scope compiles in one CUDA source, for every program of the binary:
// a type's kernels, and its casts from and to all types.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <shardwise/pass/framework/program_traits.hpp>
#include <shardwise/runtime/cuda/collectives.cuh>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/runtime/cuda/kernels.cuh>

namespace shardwise::inline v0_1::cuda {

// What runs calls on elements of one type, and casts between it and others; null where there is nothing.
struct compiled_element {
  dtype type;
  launcher (*of)(op_code);
  launcher_of_all (*of_neighbours)(op_code);
  const collective_functions* collectives;
  launcher cast_to[dtypes], cast_from[dtypes];
  launcher_of_all casts_to[dtypes],
      casts_from[dtypes];  // side by side: of parameters to two bytes, of a bucket's gradients to float
};

namespace detail {

struct all_kernels_and_casts : all_kernels {
  static constexpr bool casts(dtype, dtype) { return true; }
};
// By operation and element type: those that a graph's nodes are launched with, alone and beside neighbours. Kernels with an expression
// behind them have tables of their own (followed_launchers).
struct kernel_marks {
  bool alone[static_cast<int>(op_code::count)][dtypes]{};
  bool together[static_cast<int>(op_code::count)][dtypes]{};
  bool casts[dtypes][dtypes]{};

  template <class Graph>
  static constexpr kernel_marks of(const Graph& g) {
    kernel_marks m;
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      if (!runs_kernel(n.op)) continue;
      const int op = static_cast<int>(n.op), type = static_cast<int>(kernel_type(g, n));
      m.together[op][type] = true;
      if (n.expression < 0) m.alone[op][type] = true;
      if (n.op == op_code::cast) m.casts[static_cast<int>(g.spec_of(n.in[0]).type)][type] = true;
    }
    return m;
  }
};
template <class Step, bool Read = program_traits<Step>::has_expressions>
struct kernels_of_program : all_kernels_and_casts {};
template <class Step>
struct kernels_of_program<Step, true> {
  static constexpr kernel_marks marks = kernel_marks::of(Step::program);
  static constexpr bool alone(op_code op, dtype t) { return marks.alone[static_cast<int>(op)][static_cast<int>(t)]; }
  static constexpr bool together(op_code op, dtype t) { return marks.together[static_cast<int>(op)][static_cast<int>(t)]; }
  static constexpr bool casts(dtype from, dtype to) { return marks.casts[static_cast<int>(from)][static_cast<int>(to)]; }
};

template <class From, class To>
constexpr launcher cast_launcher() {
  if constexpr (std::is_same_v<From, To>) return nullptr;
  else return &cast_elements<From, To>;
}
template <class From, class To>
constexpr launcher_of_all casts_launcher() {
  constexpr bool narrows = std::is_floating_point_v<From> && is_low_precision(dtype_v<To>),
                 widens = is_low_precision(dtype_v<From>) && std::is_same_v<To, float>;
  if constexpr (narrows || widens) return &cast_all<From, To>;
  else return nullptr;
}
template <class T, bool Arithmetic, class Needed = all_kernels>
constexpr compiled_element element_without_casts{dtype_v<T>,
                                                 &launcher_of<T, Arithmetic, Needed>,
                                                 &launcher_of_neighbours<T, Arithmetic, Needed>,
                                                 &collectives_of<T>,
                                                 {},
                                                 {},
                                                 {},
                                                 {}};

// With casts to the others of a program.
template <class Needed, class From, class To>
constexpr void add_casts(compiled_element& e) {
  if constexpr (Needed::casts(dtype_v<From>, dtype_v<To>)) {
    e.cast_to[static_cast<int>(dtype_v<To>)] = cast_launcher<From, To>();
    e.casts_to[static_cast<int>(dtype_v<To>)] = casts_launcher<From, To>();
  }
}
template <class Needed, class T, class... Others>
constexpr compiled_element element_of_program() {
  compiled_element e = element_without_casts<T, is_floating_element<T>, Needed>;
  (add_casts<Needed, T, Others>(e), ...);
  return e;
}
template <class List, class Needed = all_kernels_and_casts>
struct compiled_list;
template <class... T, class Needed>
struct compiled_list<shardwise::detail::type_list<T...>, Needed> {
  template <class U>
  static constexpr compiled_element of() {
    return element_of_program<Needed, U, T...>();
  }
  static constexpr compiled_element list[sizeof...(T)] = {of<T>()...};
};

using all_elements = shardwise::detail::type_list<float, double, std::int32_t, bfloat16, float16, std::int64_t, bool>;
template <class T, class... Others>
constexpr compiled_element element_with_all(shardwise::detail::type_list<Others...>) {
  compiled_element e = element_without_casts<T, true>;
  ((e.cast_to[static_cast<int>(dtype_v<Others>)] = cast_launcher<T, Others>()), ...);
  ((e.cast_from[static_cast<int>(dtype_v<Others>)] = cast_launcher<Others, T>()), ...);
  ((e.casts_to[static_cast<int>(dtype_v<Others>)] = casts_launcher<T, Others>()), ...);
  ((e.casts_from[static_cast<int>(dtype_v<Others>)] = casts_launcher<Others, T>()), ...);
  return e;
}

inline std::vector<compiled_element>& elements_on_request() {
  static std::vector<compiled_element> all;
  return all;
}
template <class T>
bool compile_element() {
  elements_on_request().push_back(element_with_all<T>(all_elements{}));
  return true;
}

template <class Step>
using elements_of_program = typename shardwise::detail::joined_lists<
    shardwise::detail::type_list<typename program_traits<Step>::element, std::int32_t>,
    typename program_traits<Step>::low_elements>::type;

// The first of what `find` gives of a compiled type that is not null: a program's own types, then those asked for. Price: a walk
// over a handful of entries for each launch that is not replayed.
template <class Step, class Find>
auto find_compiled(const Find& find) {
  for (const compiled_element& e : compiled_list<elements_of_program<Step>, kernels_of_program<Step>>::list)
    if (const auto found = find(e)) return found;
  for (const compiled_element& e : elements_on_request())
    if (const auto found = find(e)) return found;
  return decltype(find(elements_on_request()[0])){};
}

}  // namespace detail

template <class... T>
inline const bool elements_compiled = (detail::compile_element<T>() && ...);

// Null where nothing is compiled.
template <class Step>
launcher compiled_launcher(op_code op, dtype type) {
  return detail::find_compiled<Step>([&](const compiled_element& e) { return e.type == type ? e.of(op) : launcher{}; });
}
template <class Step>
launcher compiled_cast(dtype from, dtype to) {
  return detail::find_compiled<Step>([&](const compiled_element& e) {
    return e.type == from ? e.cast_to[static_cast<int>(to)]
           : e.type == to ? e.cast_from[static_cast<int>(from)]
                          : launcher{};
  });
}
template <class Step>
launcher_of_all compiled_casts(dtype from, dtype to) {
  return detail::find_compiled<Step>([&](const compiled_element& e) {
    return e.type == from ? e.casts_to[static_cast<int>(to)]
           : e.type == to ? e.casts_from[static_cast<int>(from)]
                          : launcher_of_all{};
  });
}
template <class Step>
launcher_of_all compiled_neighbours(op_code op, dtype type) {
  return detail::find_compiled<Step>(
      [&](const compiled_element& e) { return e.type == type ? e.of_neighbours(op) : launcher_of_all{}; });
}
template <class Step>
const collective_functions* compiled_collectives(dtype type) {
  return detail::find_compiled<Step>(
      [&](const compiled_element& e) -> const collective_functions* { return e.type == type ? e.collectives : nullptr; });
}
template <class Step>
bool compiles_element(dtype type) {
  return compiled_collectives<Step>(type) != nullptr;
}

[[noreturn]] inline void refuse_uncompiled(const std::string& what, dtype type, const std::string& place) {
  throw std::logic_error("shardwise: executor: " + what + " works on elements of type " + name_of(type) +
                         ", for which no device kernel is compiled; write SHARDWISE_DEVICE_ELEMENTS(" + name_of(type) +
                         ") at namespace scope in one CUDA source (" + place + ")");
}

}  // namespace shardwise::inline v0_1::cuda

#define SHARDWISE_DEVICE_ELEMENTS(...) \
  [[maybe_unused]] static const bool SHARDWISE_UNIQUE_NAME(__LINE__) = shardwise::cuda::elements_compiled<__VA_ARGS__>;
