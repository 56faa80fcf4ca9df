// SPDX-License-Identifier: Apache-2.0
// Operations given something that is no tensor, and redistributions to nowhere: one sentence each instead of a list of
// overloads that do not match.
#pragma once

#include <concepts>

#include <shardwise/graph/tensor.hpp>

namespace shardwise {

namespace detail {

// Neither a tensor nor a number.
template <class T>
concept plain_value = !tensor<T> && !std::convertible_to<T, double>;

// Exactly one of two operands is a tensor, the other nothing that an operation takes.
template <class A, class B>
concept mixed = (tensor<A> && plain_value<B>) || (plain_value<A> && tensor<B>);

// Modelled by a parameter that no plan has bound.
template <class T>
concept declared_only = requires { typename T::shardwise_declaration; };

template <class A, class B>
constexpr auto refuse_mixed() {
  constexpr bool declared = declared_only<A> || declared_only<B>;
  static_assert(raise<declared ? problem::parameter_unregistered : problem::none, A, B>::ok);
  static_assert(one_kind<declared || !mixed<A, B>, A, B>::ok);
  if constexpr (tensor<A>) return unresolved<typename A::mesh_type>{};
  else return unresolved<typename B::mesh_type>{};
}

template <class A, class... Given>
struct no_target {
  static constexpr bool ok = raise<problem::redistribute_target_missing, operand_t<A::sp>, Given...>::ok;
};

}  // namespace detail

#define SHARDWISE_REFUSE_MIXED(function)              \
  template <class A, class B>                         \
    requires detail::mixed<A, B>                      \
  constexpr auto function(const A&, const B&) {       \
    return detail::refuse_mixed<A, B>();              \
  }
SHARDWISE_REFUSE_MIXED(add)
SHARDWISE_REFUSE_MIXED(sub)
SHARDWISE_REFUSE_MIXED(mul)
SHARDWISE_REFUSE_MIXED(operator+)
SHARDWISE_REFUSE_MIXED(operator-)
SHARDWISE_REFUSE_MIXED(operator*)
SHARDWISE_REFUSE_MIXED(matmul)
SHARDWISE_REFUSE_MIXED(linear_product)
SHARDWISE_REFUSE_MIXED(embedding)
SHARDWISE_REFUSE_MIXED(cross_entropy_rows)
SHARDWISE_REFUSE_MIXED(cross_entropy)
#undef SHARDWISE_REFUSE_MIXED

}  // namespace shardwise
