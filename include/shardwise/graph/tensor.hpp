// SPDX-License-Identifier: Apache-2.0
// What a tensor is to the operations: a type with a spec and a mesh that knows how to apply an operation to itself.
#pragma once

#include <concepts>

#include <shardwise/propagation/infer.hpp>

namespace shardwise {

// Modelled by sym (records), dtensor (computes at once) and whatever else wants to run a model's forward.
template <class T>
concept tensor = requires {
  { T::sp } -> std::convertible_to<const spec&>;
  typename T::mesh_type;
};

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
};

template <class... T>
inline constexpr bool resolved = ((T::sp.axes != 0) && ...);

// Modelled by implicit_tensor: operations redistribute it where they must.
template <class T>
inline constexpr bool is_implicit = requires { typename T::strict_type; };

// Modelled by pending: a tensor that may not be there yet is no operand.
template <class T>
inline constexpr bool is_pending = requires { typename T::pending_type; };

template <op_code Op, op_attr A>
struct implicit_application;

// Whether applying an operation records it: sym and its like have a node.
template <class T>
constexpr bool is_traced() {
  if constexpr (is_implicit<T>) return is_traced<typename T::strict_type>();
  else return requires(const T& t) { t.id; };
}
template <bool Same, class... Operand>
struct one_kind {
  static constexpr bool ok = raise<Same ? problem::none : problem::mixed_tensors, Operand...>::ok;
};

template <bool Same, class... Mesh>
struct one_mesh {
  static constexpr bool ok = raise<Same ? problem::none : problem::meshes_differ, Mesh...>::ok;
};

// The single door of all operations: mesh check, rule, then the tensor kind's own way of applying it.
template <op_code Op, op_attr A, tensor X, tensor... More>
constexpr auto apply(double f, const X& x, const More&... more) {
  using mesh_type = typename X::mesh_type;
  constexpr bool same = (std::is_same_v<mesh_type, typename More::mesh_type> && ...);
  static_assert(one_mesh<same, mesh_type, typename More::mesh_type...>::ok);
  constexpr bool alike = !resolved<X, More...> || ((is_traced<X>() == is_traced<More>()) && ...);
  static_assert(one_kind<alike, operand_t<X::sp>, operand_t<More::sp>...>::ok);
  constexpr bool here = !is_pending<X> && (true && ... && !is_pending<More>);
  static_assert(raise<here ? problem::none : problem::pending_operand, operand_t<X::sp>, operand_t<More::sp>...>::ok);
  if constexpr (!same || !alike || !here || !resolved<X, More...>) {
    return unresolved<mesh_type>{};
  } else if constexpr (is_implicit<X> || (is_implicit<More> || ...)) {
    return implicit_application<Op, A>::run(f, x, more...);
  } else {
    using rule = checked_rule<mesh_type, Op, A, X::sp, More::sp...>;
    if constexpr (rule::result::what != problem::none) return unresolved<mesh_type>{};
    else return X::template record<Op, A, rule::out>(f, x, more...);
  }
}

}  // namespace detail

}  // namespace shardwise
