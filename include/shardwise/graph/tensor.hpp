// SPDX-License-Identifier: Apache-2.0
// What a tensor is to the operations: a type with a spec and a mesh that knows how to apply an operation to itself.
#pragma once

#include <concepts>
#include <tuple>
#include <utility>

#include <shardwise/graph/graph.hpp>
#include <shardwise/operations/infer.hpp>
#include <shardwise/vocabulary/operand.hpp>

namespace shardwise::inline v0_1 {

// Modelled by sym (records), dtensor (computes at once) and whatever else wants to run a model's forward.
template <class T>
concept tensor = requires {
  { T::sp } -> std::convertible_to<const spec&>;
  typename T::mesh_type;
};

// A tensor in a message is its elements, extents and placements, of whatever kind it is.
template <tensor X>
struct written<X> : detail::written_operand<operand_t<X::sp>, typename X::mesh_type> {};
template <tensor X>
struct fact<X> : detail::type_fact<"tensor", X> {};

namespace detail {

// What an operation that does not compile yields: everything accepts it and says nothing more, so that one mistake is
// one error. No real spec has 0 axes.
template <class Mesh>
struct unresolved {
  static constexpr spec sp = [] {
    spec s{};
    s.rank = max_rank;
    for (int d = 0; d < max_rank; ++d) s.extent[d] = s.stride[d] = 1;
    return s;
  }();
  using mesh_type = Mesh;

  // a number where its value was asked for
  constexpr operator double() const { return 0; }
  constexpr unresolved item() const { return {}; }
  constexpr unresolved full_tensor() const { return {}; }
  constexpr unresolved to_local() const { return {}; }
  constexpr unresolved operator[](std::int64_t) const { return {}; }
};

template <class... T>
inline constexpr bool resolved = ((T::sp.axes != 0) && ...);

template <class T>
inline constexpr bool is_unresolved = false;
template <class Mesh>
inline constexpr bool is_unresolved<unresolved<Mesh>> = true;

// Modelled by implicit_tensor: operations redistribute it where they must.
template <class T>
inline constexpr bool is_implicit = requires { typename T::strict_type; };

// The first of the types that is one: it applies an operation to all.
template <class T, class... More>
struct first_implicit : first_implicit<More...> {};
template <class T, class... More>
  requires is_implicit<T>
struct first_implicit<T, More...> {
  using type = T;
};

// Modelled by pending: a tensor that may not be there yet is no operand.
template <class T>
inline constexpr bool is_pending = requires { typename T::pending_type; };

// Whether applying an operation records it: sym and its like have a node.
template <class T>
constexpr bool is_traced() {
  if constexpr (is_implicit<T>) return is_traced<typename T::strict_type>();
  else return requires(const T& t) { t.id; };
}
// How a refusal is said. `said`: at once, in the template that refuses. `noted`, by a trace: not at all, but the graph's
// builder keeps what it was, and the trace then looks for it with tensors that know the module and the node
// (module/refused_trace.hpp). So a program without mistakes pays nothing for these names.
struct said {};
struct noted {};

template <class X>
struct report_of {
  using type = void;  // an eager tensor, a plain value
};
template <class X>
  requires requires { typename X::report; }
struct report_of<X> {
  using type = typename X::report;
};
template <class X>
  requires is_implicit<X>
struct report_of<X> : report_of<typename X::strict_type> {};
template <class X>
  requires is_pending<X>
struct report_of<X> : report_of<typename X::pending_type> {};
template <class X>
  requires requires { typename X::departing_type; }
struct report_of<X> : report_of<typename X::departing_type> {};

// That of the first operand that has one.
template <class... Report>
struct first_report {
  using type = said;
};
template <class Report, class... More>
struct first_report<Report, More...> {
  using type = Report;
};
template <class... More>
struct first_report<void, More...> : first_report<More...> {};

// What a refused operation was to read.
struct refused_operands {
  builder* b = nullptr;
  int in[max_inputs] = {-1, -1, -1, -1, -1, -1, -1, -1};
  int count = 0;

  template <class X>
  constexpr void add(const X& x) {
    if constexpr (is_implicit<X>) {
      add(x.strict);
    } else if constexpr (is_pending<X>) {
      add(x.flight());
    } else if constexpr (requires { x.flight.b; }) {
      add(x.flight);
    } else if constexpr (requires { x.b->refused; }) {
      if (!b) b = x.b;
      if (count < max_inputs) in[count++] = x.id;
    }
  }
};

// For the node of a refusal that is none's: of the call of a module, or of what is no operation. It has the module's name.
inline constexpr op_code no_node = op_code::count;

template <class... X>
struct mesh_among {
  using type = void;
};
template <class X, class... More>
struct mesh_among<X, More...> : mesh_among<More...> {};
template <tensor X, class... More>
struct mesh_among<X, More...> {
  using type = typename X::mesh_type;
};

// Facts, of which some are lists, as one list; behind them the mesh, of which placements get the names of its axes, unless
// it stands there already.
template <class Fact>
inline constexpr bool names_mesh = is_mesh<Fact>;
template <class Op, class Mesh, class... Operands>
inline constexpr bool names_mesh<where<Op, Mesh, Operands...>> = true;
template <class Fact>
struct fact_list {
  using type = type_list<Fact>;
};
template <class... Fact>
struct fact_list<type_list<Fact...>> {
  using type = type_list<Fact...>;
};
template <class Mesh, class... Facts>
struct facts_with_mesh {
  using own = std::conditional_t<std::is_void_v<Mesh> || (names_mesh<Facts> || ...), type_list<>, type_list<Mesh>>;
  using type = typename joined_lists<typename fact_list<Facts>::type..., own>::type;
};

// What an operation on x yields that is refused; says why, as their report wants it. Op: the node that it would have been.
template <problem P, op_code Op, class... Facts, class... X>
constexpr auto refused(const X&... x) {
  using report = typename first_report<typename report_of<X>::type...>::type;
  using facts = typename facts_with_mesh<typename mesh_among<X...>::type, Facts...>::type;
  if constexpr ((is_unresolved<X> || ...)) {  // what it is made of was refused, and is the mistake
  } else if constexpr (std::is_same_v<report, noted>) {
    refused_operands all;
    (all.add(x), ...);
    if (all.b) all.b->refuse(P, Op, all.in, all.count);
  } else if constexpr (std::is_same_v<report, said>) {
    static_assert(raise_list<P, facts>::ok);
  } else if constexpr (report::template is<P, Op, X...>()) {
    using place = type_list<typename report::module, typename report::node, typename report::operands>;
    static_assert(raise_list<P, typename joined_lists<facts, place>::type>::ok);
  }
  return unresolved<typename mesh_among<X...>::type>{};
}

template <bool Same, class... Mesh>
struct one_mesh {
  static constexpr bool ok = raise<(Same ? problem::none : problem::meshes_differ), Mesh...>::ok;
};

// What errors print of a custom operation.
template <const custom_operation& Op>
struct custom_tag {};
}  // namespace detail

template <const custom_operation& Op>
struct fact<detail::custom_tag<Op>> : detail::fact_named<"operation"> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, Op.name.value);
  }
};

namespace detail {

template <auto Op>
constexpr auto tag_of() {
  if constexpr (std::is_same_v<decltype(Op), op_code>) return std::type_identity<typename op_tag<Op>::type>{};
  else return std::type_identity<custom_tag<*Op>>{};
}

// How many results an operation has, given as a template argument; and what it yields if it is refused: as many.
template <auto Op>
constexpr int operation_results() {
  if constexpr (std::is_same_v<decltype(Op), op_code>) return 1;
  else return operation_of(Op).results;
}
template <int N, class R>
constexpr auto as_results(const R& r) {
  if constexpr (N == 1 || !is_unresolved<R>) return r;
  else
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::tuple{((void)K, r)...};
    }(std::make_index_sequence<N>{});
}

// The results of an application of Op, a custom operation with several; the first one is found to have no fault.
template <auto Op, op_attr A, class... X>
struct several_results {
  using mesh_type = typename mesh_among<X...>::type;
  template <int K>
  using nth = further_result<K, mesh_type, Op, A, X::sp...>;
  static constexpr int count = operation_results<Op>();
  static constexpr int operands = static_cast<int>(sizeof...(X));

  template <int... K>
  static constexpr finding fault(std::integer_sequence<int, K...>) {
    finding f;
    (void)((nth<K>::what != problem::none && (f = nth<K>::value.error, true)) || ...);
    if (!f)
      (void)((!is_of_one_type(operation_of(Op), nth<K>::in, operands, nth<K>::out, K) &&
              (f = {problem::result_type}, true)) ||
             ...);
    return f;
  }
  using each = std::make_integer_sequence<int, count>;
  static constexpr finding found = fault(each{});
};

// The single door of all operations: mesh check, rule, then the tensor kind's own way of applying it. Op: an op_code, or the
// address of a custom operation.
template <auto Op, op_attr A, tensor X, tensor... More>
constexpr auto apply(double f, const X& x, const More&... more) {
  using mesh_type = typename X::mesh_type;
  constexpr op_code code = code_of(Op);
  if constexpr (!(std::is_same_v<mesh_type, typename More::mesh_type> && ...)) {
    return refused<problem::meshes_differ, code, mesh_type, typename More::mesh_type...>(x, more...);
  } else if constexpr (!resolved<X, More...>) {
    return unresolved<mesh_type>{};
  } else if constexpr (is_pending<X> || (is_pending<More> || ...)) {
    return refused<problem::pending_operand, code, operand_t<X::sp>, operand_t<More::sp>...>(x, more...);
  } else if constexpr (!((is_traced<X>() == is_traced<More>()) && ...)) {
    return refused<problem::mixed_tensors, code, operand_t<X::sp>, operand_t<More::sp>...>(x, more...);
  } else if constexpr (is_implicit<X> || (is_implicit<More> || ...)) {
    return first_implicit<X, More...>::type::template apply<Op, A>(f, x, more...);
  } else {
    using rule = rule_result<mesh_type, Op, A, X::sp, More::sp...>;
    if constexpr (rule::what != problem::none)
      return refused<rule::what, code,
                     where<typename decltype(tag_of<Op>())::type, mesh_type, operand_t<X::sp>, operand_t<More::sp>...>,
                     typename finding_facts<rule::value.error, mesh_type>::type>(x, more...);
    else if constexpr (code == op_code::custom &&
                       !is_of_one_type(operation_of(Op), rule::in, 1 + static_cast<int>(sizeof...(More)), rule::out))
      return refused<(operation_results<Op>() == 1 ? problem::custom_record : problem::result_type), code,
                     where<typename decltype(tag_of<Op>())::type, mesh_type, operand_t<X::sp>, operand_t<More::sp>...>>(
          x, more...);
    else if constexpr (operation_results<Op>() > 1) {
      using all = several_results<Op, A, X, More...>;
      if constexpr (all::found.what != problem::none)
        return refused<all::found.what, code,
                       where<typename decltype(tag_of<Op>())::type, mesh_type, operand_t<X::sp>, operand_t<More::sp>...>,
                       typename finding_facts<all::found, mesh_type>::type>(x, more...);
      else
        return [&]<int... K>(std::integer_sequence<int, K...>) {
          return X::template apply_results<Op, A, all::template nth<K>::out...>(f, x, more...);
        }(typename all::each{});
    } else return X::template apply<Op, A, rule::out>(f, x, more...);
  }
}

}  // namespace detail

}  // namespace shardwise::inline v0_1
