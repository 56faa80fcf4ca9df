// SPDX-License-Identifier: Apache-2.0
// Records of views, and of what reads and writes parts of tensors.
#pragma once

#include <shardwise/propagation/operation.hpp>
#include <shardwise/propagation/join.hpp>
#include <shardwise/propagation/view.hpp>

namespace shardwise::inline v0_1::operations {

template <auto Result>
constexpr operation view_by(operand_choice choice) {
  operation o = without_rule(operation_kind::view, &writes_nothing, element_rule::real, recomputing::cheap);
  o.choice = choice;
  o.linear = linearity::first;
  o.tabled = false;
  o.shape = [](const op_attr& a, const spec* in, int) { return Result(a, in[0]); };
  return o;
}
inline constexpr operation permute = view_by<&rules::permute_spec>(operand_choice::none);
inline constexpr operation reshape = view_by<&rules::reshape_spec>(operand_choice::kept);
inline constexpr operation slice = view_by<&rules::slice_spec>(operand_choice::kept);

// Its operand in every respect, partial placements too: what it is not, stands in its adjoint.
inline constexpr operation detach = [] {
  operation o = without_rule(operation_kind::view, &writes_nothing, element_rule::any, recomputing::cheap);
  o.choice = operand_choice::none;
  o.linear = linearity::first;
  o.tabled = false;
  o.shape = [](const op_attr&, const spec* in, int) { return outcome{{}, in[0]}; };
  return o;
}();

// Strides are 0 along dims that are new or were 1.
inline constexpr operation broadcast = [] {
  operation o = by_rows([](const op_attr& a, const spec* in, int) { return rules::broadcast_to_shape(a, in[0]); },
                        [](const operation&, const op_attr&, const spec* in, int, const spec& out) {
                          return rules::broadcast_to_rows(in[0], out);
                        },
                        &refuse_partial<problem::partial_nonlinear, problem::expand_dim_sharded>, -1, element_rule::any,
                        operand_choice::kept, recomputing::cheap);
  o.kind = operation_kind::view;
  o.linear = linearity::first;
  return o;
}();

// A slice's adjoint: zeros around it.
inline constexpr operation pad = [] {
  operation o = view_by<&rules::pad_spec>(operand_choice::kept);
  o.kind = operation_kind::computed;
  o.elements = element_rule::any;
  return o;
}();
inline constexpr operation slice_scatter = [] {
  operation o = without_rule(operation_kind::computed, &writes_nothing, element_rule::any, recomputing::cheap);
  o.choice = operand_choice::merged;
  o.linear = linearity::joint;
  o.tabled = false;
  o.shape = [](const op_attr& a, const spec* in, int) { return rules::slice_scatter_spec(a, in); };
  return o;
}();
inline constexpr operation copy_ = [] {
  operation o = without_rule(operation_kind::update, &writes_first);
  o.choice = operand_choice::written;
  o.tabled = false;
  o.shape = [](const op_attr&, const spec* in, int) { return rules::copy_spec(in); };
  return o;
}();

}  // namespace shardwise::inline v0_1::operations
