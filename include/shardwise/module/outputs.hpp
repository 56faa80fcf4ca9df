// SPDX-License-Identifier: Apache-2.0
// outputs: what a task returns beside its loss, each value with a name: outputs(named<"loss">(l), named<"accuracy">(a)).
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>

#include <shardwise/graph/graph.hpp>
#include <shardwise/graph/functions/implicit.hpp>
#include <shardwise/support/fixed_string.hpp>

namespace shardwise::inline v0_1 {

template <fixed_string Name, class T>
struct named_output {
  static constexpr auto name = Name;
  using type = T;
  template <class Other>
  using with = named_output<Name, Other>;

  T value;
};

template <fixed_string Name, class T>
struct written<named_output<Name, T>> {
  template <class Sink>
  static constexpr void put(Sink& out) {
    out.push_back('"');
    text::put(out, Name.view());
    out.push_back('"');
  }
};

// A tensor and what it is called.
template <fixed_string Name, class T>
constexpr named_output<Name, T> named(const T& value) {
  return {value};
}

namespace detail {

// What errors print of a program's outputs.
struct no_value {};
template <class... Named>
struct output_names;

template <class N>
inline constexpr bool is_named = requires { typename N::template with<int>; };
template <class T>
inline constexpr bool is_result = tensor<T> && !is_pending<T>;
template <class N>
constexpr bool names_tensor() {
  if constexpr (is_named<N>) return is_result<typename N::type>;
  else return false;
}

// Their names, in order.
template <class... N>
struct output_names {
  static constexpr int count = static_cast<int>(sizeof...(N));
  // -1: there is none.
  static constexpr int find([[maybe_unused]] std::string_view name) {
    int at = -1, k = 0;
    ((at = at < 0 && N::name.view() == name ? k : at, ++k), ...);
    return at;
  }
  static constexpr std::string_view name(int index) {
    std::string_view found;
    int k = 0;
    ((found = k++ == index ? N::name.view() : found), ...);
    return found;
  }
  static constexpr bool distinct() {
    int k = 0;
    return (... && (find(N::name.view()) == k++));
  }
  using printed = output_names<N...>;

  template <fixed_string Name>
  static constexpr int at() {
    constexpr int index = find(Name.view());
    static_assert(raise<(index < 0 ? problem::output_unknown : problem::none), named_output<Name, no_value>,
                        output_names<typename N::template with<no_value>...>>::ok);
    return index;
  }
};

}  // namespace detail

template <fixed_string Name, class T>
struct fact<named_output<Name, T>> : detail::quoted_fact<"asked for", Name> {};
template <class... N>
struct fact<detail::output_names<N...>> : detail::types_fact<"outputs", N...> {};

// The values of a task, the first of them its loss.
template <class... N>
struct named_outputs {
  using names = detail::output_names<N...>;
  std::tuple<N...> all;

  // The value of this name.
  template <fixed_string Name>
  constexpr const auto& get() const {
    constexpr int index = names::template at<Name>();
    return std::get<static_cast<std::size_t>(index < 0 ? 0 : index)>(all).value;
  }
};

// What a task returns that has metrics: its loss first, which alone is differentiated; the others are outputs of the step,
// made whole over the mesh where they are partial, and read by name.
template <class... N>
constexpr named_outputs<N...> outputs(const N&... named) {
  return {std::tuple<N...>(named...)};
}

namespace detail {

// What a task's result is: one tensor, or named ones. `what` says what is wrong with it, and `each` calls f(tensor).
template <class R>
struct task_result {
  using names = output_names<>;
  static constexpr int count = 0;
  static constexpr problem what = problem::task_result;
};
// Of a call that was refused: nothing more is said.
struct no_result {};
template <>
struct task_result<no_result> {
  using names = output_names<>;
  static constexpr int count = 0;
  static constexpr problem what = problem::none;
};
template <class R>
  requires is_result<R>
struct task_result<R> {
  using names = output_names<>;
  static constexpr int count = 1;
  static constexpr problem what = problem::none;
  template <class F>
  static constexpr void each(const R& r, F&& f) {
    f(as_strict(r));
  }
};
template <class... N>
struct task_result<named_outputs<N...>> {
  static constexpr bool tensors = sizeof...(N) >= 1 && (... && names_tensor<N>());
  static constexpr bool named() {
    if constexpr (tensors) return output_names<N...>::distinct();
    else return true;
  }
  using names = std::conditional_t<tensors, output_names<N...>, output_names<>>;
  static constexpr int count = tensors ? static_cast<int>(sizeof...(N)) : 0;
  static constexpr problem what = !tensors ? problem::task_result : !named() ? problem::output_named_twice : problem::none;
  template <class F>
  static constexpr void each(const named_outputs<N...>& r, F&& f) {
    std::apply([&](const auto&... x) { (f(as_strict(x.value)), ...); }, r.all);
  }
};

}  // namespace detail

}  // namespace shardwise::inline v0_1
