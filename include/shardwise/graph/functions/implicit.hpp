// SPDX-License-Identifier: Apache-2.0
// implicit: tensors whose operations redistribute operands where a rule needs it, by the cheapest strategy.
#pragma once

#include <tuple>
#include <utility>

#include <shardwise/graph/graph.hpp>
#include <shardwise/graph/redistribution.hpp>
#include <shardwise/operations/strategy.hpp>

namespace shardwise::inline v0_1 {

namespace detail {
template <auto Op, op_attr A>
struct implicit_application;
}

// What implicit(x) yields. Its operations record, or compute, the redistributions that they insert like written ones,
// so they are seen in the graph and counted in its traffic. With View it is a view of another one, which a redistribution
// may have come before: whether one does depends on the mesh, so it is a tensor of its own, and not for writing in place.
template <class X, bool View = false>
struct implicit_tensor {
  using strict_type = X;
  static constexpr bool is_view = View;
  static constexpr spec sp = X::sp;
  using mesh_type = typename X::mesh_type;

  X strict;

  // Of operands of which one at least is implicit: detail::apply, once they are where the cheapest strategy wants them.
  template <auto Op, op_attr A, class... Y>
  static constexpr auto apply(double f, const Y&... y) {
    return detail::implicit_application<Op, A>::run(f, y...);
  }
};

namespace detail {

template <class X>
constexpr auto as_implicit(const X& x) {
  if constexpr (is_implicit<X> || !resolved<X>) return x;
  else return implicit_tensor<X>{x};
}
template <class X>
constexpr auto as_strict(const X& x) {
  if constexpr (is_implicit<X>) return x.strict;
  else return x;
}

template <auto Op, op_attr A, spec... In>
struct strategy_of {
  static constexpr int operands = static_cast<int>(sizeof...(In));
  static constexpr spec in[] = {In...};

 private:
  // Combinations that one constant looks at.
  static constexpr int at_once = 48;
  static constexpr int constants = [] {
    if (!rules::is_searched(operation_of(Op)) || !infer(operation_of(Op), A, in, operands).error) return 1;
    const int all = rules::combinations(operation_of(Op), A, in, operands);
    return all > at_once ? (all + at_once - 1) / at_once : 1;
  }();
  template <int K>
  static constexpr strategy some = choose_strategy(operation_of(Op), A, in, operands, (K * at_once), at_once);
  template <int... K>
  static constexpr strategy cheapest(std::integer_sequence<int, K...>) {
    strategy best = some<0>;
    ((best = some<K>.found && (!best.found || some<K>.cost < best.cost) ? some<K> : best), ...);
    return best;
  }

 public:
  static constexpr strategy value = cheapest(std::make_integer_sequence<int, constants>{});
  static constexpr bool found = value.found;
};

// Operand I of a strategy, moved there step by step.
template <class Strategy, int I>
struct moved_operand : planned_steps<Strategy::in[I], Strategy::value.target[I]> {};

template <auto Op, op_attr A>
struct implicit_application {
  template <class... X>
  static constexpr auto run(double f, const X&... x) {
    return place<X...>(std::index_sequence_for<X...>{}, f, as_strict(x)...);
  }

 private:
  template <class... Given, std::size_t... I, class... X>
  static constexpr auto place(std::index_sequence<I...>, double f, const X&... x) {
    using chosen = strategy_of<Op, A, X::sp...>;
    if constexpr (!chosen::found) return apply<Op, A>(f, x...);  // says what is wrong with the operands as given
    else return result(apply<Op, A>(f, moved_operand<chosen, static_cast<int>(I)>::from(x)...));
  }
  template <class... R>
  static constexpr auto result(const std::tuple<R...>& r) {
    return std::apply([](const R&... each) { return std::tuple{as_implicit(each)...}; }, r);
  }
  template <class R>
  static constexpr auto result(const R& r) {
    if constexpr (resolved<R> && may_view(code_of(Op)) && code_of(Op) != op_code::redistribute &&
                  code_of(Op) != op_code::wait)
      return implicit_tensor<R, true>{owned(r)};
    else return as_implicit(r);
  }
};

// An operand that several applications share, moved once to where `Op` wants it. Strict tensors are there already.
template <op_code Op, op_attr A, class X>
constexpr auto ready_for(const X& x) {
  if constexpr (!is_implicit<X>) {
    return x;
  } else {
    using chosen = strategy_of<Op, A, X::sp>;
    if constexpr (!chosen::found) return x;
    else return as_implicit(moved_operand<chosen, 0>::from(x.strict));
  }
}

template <class T>
struct is_tuple : std::false_type {};
template <class... T>
struct is_tuple<std::tuple<T...>> : std::true_type {};

// The tensors of a function's result, strict, as a tuple.
template <class R>
constexpr auto strict_results(const R& r) {
  if constexpr (is_tuple<R>::value) return std::apply([](const auto&... x) { return std::tuple{as_strict(x)...}; }, r);
  else return std::tuple{as_strict(r)};
}

}  // namespace detail

// Communication that is not written: x and what is computed from it is redistributed where an operation needs it.
template <tensor X>
constexpr auto implicit(const X& x) {
  return detail::as_implicit(x);
}
// And back.
template <tensor X>
constexpr auto strict(const X& x) {
  return detail::as_strict(x);
}

// The function F with implicit operands and strict results.
template <class F>
struct implicitly {
  template <tensor... X>
  constexpr auto operator()(const X&... x) const {
    const auto r = F{}(detail::as_implicit(x)...);
    if constexpr (detail::is_tuple<std::remove_const_t<decltype(r)>>::value) return detail::strict_results(r);
    else return detail::as_strict(r);
  }
};

}  // namespace shardwise::inline v0_1
