// SPDX-License-Identifier: Apache-2.0
// Operations given something that is no tensor, and redistributions to nowhere: one sentence each instead of a list of
// overloads that do not match.
#pragma once

#include <concepts>

#include <shardwise/graph/tensor.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// Neither a tensor nor a number.
template <class T>
concept plain_value = !tensor<T> && !std::convertible_to<T, double>;

// Exactly one of two operands is a tensor, the other nothing that an operation takes.
template <class A, class B>
concept tensor_and_value = (tensor<A> && plain_value<B>) || (plain_value<A> && tensor<B>);

// Modelled by a parameter that no plan has bound.
template <class T>
concept declared_only = requires { typename T::shardwise_declaration; };

template <class A, class B>
constexpr auto refuse_mixed(const A& a, const B& b) {
  constexpr problem what = declared_only<A> || declared_only<B> ? problem::parameter_unregistered : problem::mixed_tensors;
  if constexpr (tensor<A>) return refused<what, no_node, A, B>(a);
  else return refused<what, no_node, A, B>(b);
}

}  // namespace detail

#define SHARDWISE_REFUSE_MIXED(function)            \
  template <class A, class B>                       \
    requires detail::tensor_and_value<A, B>         \
  constexpr auto function(const A& a, const B& b) { \
    return detail::refuse_mixed(a, b);              \
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

}  // namespace shardwise::inline v0_1
