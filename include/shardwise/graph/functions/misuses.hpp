// SPDX-License-Identifier: Apache-2.0
// What users of other libraries write of tensors and what has another spelling here: each of these compiles to one sentence.
#pragma once

#include <concepts>
#include <type_traits>

#include <shardwise/graph/tensor.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <problem P, class... Facts, class X>
constexpr auto misused(const X& x) {
  return refused<P, no_node, operand_t<X::sp>, Facts...>(x);
}

// What a comparison or an assignment may have on its other side.
template <class T>
concept operand_like = tensor<T> || std::is_arithmetic_v<T>;

}  // namespace detail

// --- dims and extents as function arguments: they decide types, so they are template arguments ----------------------------

#define SHARDWISE_X(name)                                           \
  template <tensor A, std::integral... Dims>                        \
    requires(sizeof...(Dims) > 0)                                   \
  constexpr auto name(const A& a, Dims...) {                        \
    return detail::misused<problem::dims_as_arguments, Dims...>(a); \
  }
SHARDWISE_X(sum)
SHARDWISE_X(mean)
SHARDWISE_X(amax)
SHARDWISE_X(amin)
SHARDWISE_X(prod)
SHARDWISE_X(max)
SHARDWISE_X(min)
SHARDWISE_X(argmax)
SHARDWISE_X(argmin)
SHARDWISE_X(softmax)
SHARDWISE_X(log_softmax)
SHARDWISE_X(logsumexp)
SHARDWISE_X(topk)
SHARDWISE_X(reshape)
SHARDWISE_X(view)
SHARDWISE_X(permute)
SHARDWISE_X(transpose)
SHARDWISE_X(expand)
SHARDWISE_X(flatten)
SHARDWISE_X(squeeze)
SHARDWISE_X(unsqueeze)
SHARDWISE_X(select)
SHARDWISE_X(slice)
SHARDWISE_X(narrow)
SHARDWISE_X(split)
SHARDWISE_X(chunk)
SHARDWISE_X(unbind)
SHARDWISE_X(one_hot)
#undef SHARDWISE_X

// Joins without their dim, or with it behind the tensors.
template <tensor A, tensor B>
constexpr auto cat(const A& a, const B&) {
  return detail::misused<problem::dims_as_arguments>(a);
}
template <tensor A, tensor B, std::integral Dim>
constexpr auto cat(const A& a, const B&, Dim) {
  return detail::misused<problem::dims_as_arguments, Dim>(a);
}
template <tensor A, tensor B>
constexpr auto stack(const A& a, const B&) {
  return detail::misused<problem::dims_as_arguments>(a);
}
template <tensor A, tensor B, std::integral Dim>
constexpr auto stack(const A& a, const B&, Dim) {
  return detail::misused<problem::dims_as_arguments, Dim>(a);
}

// The other way round: a probability, which is a value of the program.
template <auto P, tensor A>
constexpr auto dropout(const A& a) {
  return detail::misused<problem::value_as_template_argument>(a);
}

// --- operators that tensors do not have -----------------------------------------------------------------------------------

#define SHARDWISE_X(op)                                      \
  template <tensor A, detail::operand_like B>                \
  constexpr auto operator op(const A& a, const B&) {         \
    return detail::misused<problem::comparison_operator>(a); \
  }                                                          \
  template <class B, tensor A>                               \
    requires std::is_arithmetic_v<B>                         \
  constexpr auto operator op(const B&, const A& a) {         \
    return detail::misused<problem::comparison_operator>(a); \
  }
SHARDWISE_X(<)
SHARDWISE_X(>)
SHARDWISE_X(<=)
SHARDWISE_X(>=)
SHARDWISE_X(==)
SHARDWISE_X(!=)
#undef SHARDWISE_X

#define SHARDWISE_X(op)                               \
  template <tensor A, detail::operand_like B>         \
  constexpr A& operator op(A & a, const B&) {         \
    detail::misused<problem::compound_assignment>(a); \
    return a;                                         \
  }
SHARDWISE_X(+=)
SHARDWISE_X(-=)
SHARDWISE_X(*=)
SHARDWISE_X(/=)
#undef SHARDWISE_X

// Printing what has no value yet.
template <class Stream, tensor A>
  requires(detail::is_traced<A>() && requires(Stream& s) { s.flush(); })
Stream& operator<<(Stream& s, const A& a) {
  detail::misused<problem::traced_value>(a);
  return s;
}

}  // namespace shardwise::inline v0_1
