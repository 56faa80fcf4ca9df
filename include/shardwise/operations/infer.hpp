// SPDX-License-Identifier: Apache-2.0
// infer: the one entry to all rules, operation and operand specs to result spec or finding; as a value and as a type.
#pragma once

#include <shardwise/operations/all.hpp>
#include <shardwise/propagation/transition.hpp>

namespace shardwise::inline v0_1 {

namespace rules {

constexpr bool is_pointwise(op_code op) { return kind_of(op) == operation_kind::pointwise; }

// Pointwise operations whose value at an element needs no more than the operands' there and one real parameter: what a
// fused kernel may contain.
constexpr bool is_scalar(op_code op) { return traits_of(op).scalar; }

// Extents of a result and the checks that need no placement.
constexpr outcome infer_shape(const operation& o, const op_attr& a, const spec* in, int n, int result = 0) {
  const spec& x = in[0];
  const int index = o.indices;
  const element_rule elements = o.elements;
  const wide_values wide = o.wide;
  int value = index == 0 && n > 1 ? 1 : 0;  // the first operand that says what elements the others have
  while (value + 1 < n && ((wide.operands >> value & 1U) != 0 || value == index)) ++value;
  const dtype type = in[value].type;
  for (int k = 0; k < n; ++k) {
    if (k == index) {
      if (in[k].type != dtype::i32) return fail(problem::needs_integers, x, k);
      continue;
    }
    if (!is_floating(in[k].type) && !(elements == element_rule::number && in[k].type != dtype::boolean) &&
        elements != element_rule::any && elements != element_rule::compared && elements != element_rule::converted)
      return fail(problem::needs_floating_point, x, k);
    if (in[k].type != wide.operand(k, type)) return fail(problem::types_differ, x, k);
  }
  outcome r = o.shape.value(a, in, n, result);
  if (o.kind == operation_kind::pointwise)
    r.out.type = elements == element_rule::compared    ? dtype::i32
                 : elements == element_rule::converted ? static_cast<dtype>(attributes_of<cast_attributes>(a).type)
                                                       : type;
  if ((wide.results >> result & 1U) != 0 && !r.error) r.out.type = wide_of(type);
  return r;
}

constexpr outcome infer_shape(op_code op, const op_attr& a, const spec* in, int n) {
  return infer_shape(operation_of(op), a, in, n);
}

// `out`: the first result. The rows place the one that is asked for.
constexpr rule_rows infer_rows(const operation& o, const op_attr& a, const spec* in, int n, const spec& out,
                               int result = 0) {
  return o.rows.value(o, a, in, n, out, result);
}
constexpr rule_rows infer_rows(op_code op, const op_attr& a, const spec* in, int n, const spec& out) {
  return infer_rows(operation_of(op), a, in, n, out);
}

// The sentence for operands that no row admits on `axis`.
constexpr finding placement_finding(const operation& o, const op_attr& a, const spec* in, int n, const spec& out, int axis,
                                    bool split_differs) {
  finding f{problem::pointwise_placements, 0, -1, axis};
  bool partial_in = false;
  for (int k = 0; k < n; ++k)
    if (in[k].place[axis].is_partial()) {
      partial_in = true;
      f.operand = k;
    }
  o.refusal.value(f, partial_in, o, a, in, n, out, split_differs);
  return f;
}

}  // namespace rules

// A result of an operation in strict mode: no operand is redistributed on the quiet. Of several results each has extents, and a
// placement in every row.
constexpr outcome infer(const operation& o, const op_attr& a, const spec* in, int n, int result = 0) {
  if (result < 0 || result >= o.results) return fail(problem::result_number, in[0], -1, -1, result, o.results);
  if (!o.tabled) return o.shape.value(a, in, n, result);
  outcome r = rules::infer_shape(o, a, in, n, result);
  for (auto& p : r.out.place) p = placement{};
  if (r.error) return r;
  if (o.results > 1 && o.rows.value.incomplete(o, a, in, n, rules::infer_shape(o, a, in, n).out, o.results)) {
    r.error = {problem::result_rows};
    return r;
  }
  const rule_rows t = result == 0 ? rules::infer_rows(o, a, in, n, r.out)
                                  : rules::infer_rows(o, a, in, n, rules::infer_shape(o, a, in, n).out, result);
  if (t.count == 0) {
    r.error = {problem::rule_missing, 0, -1, -1, static_cast<long long>(op_code::custom), 0};
    return r;
  }
  for (int axis = 0; axis < in[0].axes; ++axis) {
    const row_match m = match(t, in, n, axis);
    if (!m.found) {
      r.error = rules::placement_finding(o, a, in, n, r.out, axis, m.split_differs);
      for (auto& p : r.out.place) p = placement{};
      return r;
    }
    r.out.place[axis] = o.split.value(a, axis, m.out);
  }
  normalise(r.out);
  return r;
}
constexpr outcome infer(op_code op, const op_attr& a, const spec* in, int n) {
  outcome r = infer(operation_of(op), a, in, n);
  if (r.error.what == problem::rule_missing) r.error.have = static_cast<long long>(op);
  return r;
}

// What the error prints beside the sentence: the operation, the mesh, and every operand's shape and placements.
namespace detail {
template <class Op, class Mesh, class... Operands>
struct where;
}  // namespace detail

template <class Op, class Mesh, class... Operands>
struct facts_in<detail::where<Op, Mesh, Operands...>> {
  using type = detail::type_list<Op, Operands..., Mesh>;
};

// Each distinct application of a rule is evaluated once, within its own evaluation budget; so is each further result.
// Op: an op_code, or the address of a custom operation.
template <class Mesh, auto Op, op_attr A, spec... In>
struct rule_result {
  static constexpr spec in[] = {In...};
  static constexpr outcome value = infer(operation_of(Op), A, in, static_cast<int>(sizeof...(In)));
  static constexpr problem what = value.error.what;
  static constexpr spec out = value.out;
};
template <int Result, class Mesh, auto Op, op_attr A, spec... In>
struct further_result {
  static constexpr spec in[] = {In...};
  static constexpr outcome value = infer(operation_of(Op), A, in, static_cast<int>(sizeof...(In)), Result);
  static constexpr problem what = value.error.what;
  static constexpr spec out = value.out;
};
template <class Mesh, auto Op, op_attr A, spec... In>
struct further_result<0, Mesh, Op, A, In...> : rule_result<Mesh, Op, A, In...> {};

}  // namespace shardwise::inline v0_1
