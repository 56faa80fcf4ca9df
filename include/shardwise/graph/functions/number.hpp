// SPDX-License-Identifier: Apache-2.0
// Numbers that a call gives beside its tensors: what is refused, and where. In a traced function the error belongs to the
// program, which does not compile; an eager call throws.
#pragma once

#include <cstdint>

#include <shardwise/graph/tensor.hpp>

namespace shardwise::inline v0_1::detail {

inline constexpr double least_int32 = -2147483648.0, most_int32 = 2147483647.0;

constexpr bool is_int32(double x) {
  return x >= least_int32 && x <= most_int32 && x == static_cast<double>(static_cast<std::int64_t>(x));
}
// The largest whole number that is at most x, the smallest that is at least x; for numbers of int32's range.
constexpr double floor_of(double x) {
  const double whole = static_cast<double>(static_cast<std::int64_t>(x));
  return whole > x ? whole - 1 : whole;
}
constexpr double ceil_of(double x) { return -floor_of(-x); }

template <problem Wrong, op_code Op, tensor A>
constexpr void refuse_number(const A& a, bool wrong, const char* what, double given, const char* fix) {
  if constexpr (is_implicit<A>) {
    refuse_number<Wrong, Op>(a.strict, wrong, what, given, fix);
  } else if constexpr (is_traced<A>()) {
    if (wrong && a.b) a.b->refuse_value({Wrong, a.b->node_count}, Op);
  } else if constexpr (requires { A::refuse_number(what, given, fix); }) {
    if (wrong) A::refuse_number(what, given, fix);
  }
}

// A number that becomes an element of a tensor like `a`.
template <spec S, op_code Op, tensor A>
constexpr void check_element(const A& a, double number, const char* what) {
  if constexpr (resolved<A> && !is_floating(S.type))
    refuse_number<problem::number_not_int32, Op>(
        a, !is_int32(number), what, number,
        ", and the tensor's elements are int32; give a whole number from -2147483648 to "
        "2147483647, or make the tensor float or double");
}

// A probability, from 0 to 1.
template <tensor A>
constexpr void check_probability(const A& a, double p, const char* what) {
  if constexpr (resolved<A>)
    refuse_number<problem::number_not_probability, op_code::dropout>(a, !(p >= 0 && p <= 1), what, p,
                                                                     "; a probability is from 0 to 1");
}

}  // namespace shardwise::inline v0_1::detail
