// SPDX-License-Identifier: Apache-2.0
// The records of all operations, by number.
#pragma once

#include <shardwise/operations/contraction/record.hpp>
#include <shardwise/operations/embedding/record.hpp>
#include <shardwise/operations/fill/record.hpp>
#include <shardwise/operations/indexing/record.hpp>
#include <shardwise/operations/join/record.hpp>
#include <shardwise/operations/leaf/record.hpp>
#include <shardwise/operations/loss/record.hpp>
#include <shardwise/operations/movement/record.hpp>
#include <shardwise/operations/norm/record.hpp>
#include <shardwise/operations/opaque/record.hpp>
#include <shardwise/operations/pointwise/record.hpp>
#include <shardwise/operations/reduction/record.hpp>
#include <shardwise/operations/row/record.hpp>
#include <shardwise/operations/update/record.hpp>
#include <shardwise/operations/view/record.hpp>
#include <shardwise/operations/written/record.hpp>

namespace shardwise::inline v0_1 {

namespace operations {

inline constexpr operation unlisted = without_rule(operation_kind::computed);

// An operation that is listed and has no record does not compile.
inline constexpr const operation* all[] = {
#define SHARDWISE_X(name, kernel) &name,
    SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
};

// What of the records is no function, or is read by runs. A run that reads a record has the functions of all of them in its object, and a constant
// evaluator pays for each step on the way to one: who asks for these alone asks here.
struct traits {
  operation_kind kind;
  element_rule elements;
  int indices;
  bool random, scalar;
  launching launch;
  operation::write_rule writes;
};
constexpr traits traits_of(const operation& o) {
  return {o.kind, o.elements, o.indices, o.random, o.scalar, o.launch, o.writes.value};
}
// One for every number that the type of operations holds, so that a question is one look-up; those that are none have the last.
inline constexpr struct traits_table {
  traits of[256];
} all_traits = [] {
  traits_table t{{
#define SHARDWISE_X(name, kernel) traits_of(name),
      SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
  }};
  for (int i = static_cast<int>(op_code::count); i < 256; ++i) t.of[i] = traits_of(unlisted);
  return t;
}();

}  // namespace operations

// Of a number that is no operation's, as a broken graph may hold, a record that nothing admits: verify refuses it.
constexpr const operation& operation_of(op_code op) {
  return op < op_code::count ? *operations::all[static_cast<int>(op)] : operations::unlisted;
}

constexpr const operations::traits& traits_of(op_code op) { return operations::all_traits.of[static_cast<int>(op)]; }

// --- questions to a record --------------------------------------------------------------------------------------------------

constexpr operation_kind kind_of(op_code op) { return operations::all_traits.of[static_cast<int>(op)].kind; }
// The operand that holds int32 indices, targets or a mask, -1: none.
constexpr int index_operand(op_code op) { return traits_of(op).indices; }
constexpr bool is_comparison(op_code op) { return traits_of(op).elements == element_rule::compared; }
// Operations whose result is int32 whatever the operands are: their kernels are named by the operands' element type.
constexpr bool makes_indices(op_code op) { return is_comparison(op) || traits_of(op).elements == element_rule::positions; }

// What belongs to the caller whether or not a program reads it.
constexpr bool is_leaf(op_code op) { return operations::all_traits.of[static_cast<int>(op)].kind == operation_kind::leaf; }
// Leaves that last from run to run, and that the program itself writes.
constexpr bool is_variable_leaf(op_code op) { return is_leaf(op) && op != op_code::input; }
// Operations whose result may be their first operand's storage seen differently: is_view says whether it is.
constexpr bool may_view(op_code op) {
  const operation_kind kind = kind_of(op);
  return kind == operation_kind::view || kind == operation_kind::moving;
}
// Operations that write into an operand's storage and have no result of their own.
constexpr bool is_update(op_code op) {
  return operations::all_traits.of[static_cast<int>(op)].kind == operation_kind::update;
}
// Which operands an operation writes into.
constexpr bool writes_operand(op_code op, const op_attr& a, int k) { return (traits_of(op).writes(a) >> k & 1U) != 0; }

namespace rules {

// Kernels that copy or place elements and do no arithmetic: they exist for integers too.
constexpr bool only_moves(op_code op) { return traits_of(op).elements == element_rule::any; }
// Operations that draw at a site: see random_attributes.
constexpr bool is_random(op_code op) { return traits_of(op).random; }

}  // namespace rules

// Operations whose host kernels compute in float on elements of two bytes, which are copied for them: runtime/host/widened.hpp.
constexpr bool widens(op_code op) {
  return runs_kernel(op) && !rules::only_moves(op) && op != op_code::redistribute && op != op_code::cast &&
         op != op_code::fused && op != op_code::opaque;
}

}  // namespace shardwise::inline v0_1
