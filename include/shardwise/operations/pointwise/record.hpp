// SPDX-License-Identifier: Apache-2.0
// Records of functions whose result at an element needs the operands there alone, broadcast from the right.
#pragma once

#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1::operations {

constexpr operation pointwise(linearity linear, int indices = -1, element_rule elements = element_rule::real) {
  return {.kind = operation_kind::pointwise,
          .results = 1,
          .linear = linear,
          .indices = indices,
          .elements = elements,
          .wide = nothing_wide,
          .random = false,
          .strided = true,
          .scalar = indices < 0 && elements != element_rule::compared,
          .choice = operand_choice::followed,
          .recompute = recomputing::cheap,
          .shape = [](const op_attr&, const spec* in, int n) { return rules::broadcast_shape(in, n); },
          .rows = &rows_of_pointwise,
          .tabled = true,
          .split = &as_the_row_says,
          .refusal = &refuse_pointwise,
          .writes = &writes_nothing,
          .writes_into_first = false,
          .launch = launching::alone,
          .arithmetic = false,
          .flops = &one_an_element,
          .host_scratch = no_scratch,
          .device_scratch = no_scratch};
}

inline constexpr operation add = pointwise(linearity::joint, -1, element_rule::number);
inline constexpr operation sub = pointwise(linearity::joint, -1, element_rule::number);
inline constexpr operation mul = pointwise(linearity::each, -1, element_rule::number);
inline constexpr operation div = pointwise(linearity::first);
inline constexpr operation scale = pointwise(linearity::first);

inline constexpr operation relu = pointwise(linearity::none);
inline constexpr operation tanh = pointwise(linearity::none);
inline constexpr operation gelu_tanh = pointwise(linearity::none);
inline constexpr operation gelu_erf = pointwise(linearity::none);
inline constexpr operation abs = pointwise(linearity::none);
inline constexpr operation sign = pointwise(linearity::none);
inline constexpr operation exp = pointwise(linearity::none);
inline constexpr operation log = pointwise(linearity::none);
inline constexpr operation sqrt = pointwise(linearity::none);
inline constexpr operation rsqrt = pointwise(linearity::none);
inline constexpr operation reciprocal = pointwise(linearity::none);
inline constexpr operation sigmoid = pointwise(linearity::none);
inline constexpr operation sin = pointwise(linearity::none);
inline constexpr operation cos = pointwise(linearity::none);
inline constexpr operation pow = pointwise(linearity::none);
inline constexpr operation clamp_min = pointwise(linearity::none);
inline constexpr operation clamp_max = pointwise(linearity::none);
inline constexpr operation maximum = pointwise(linearity::none);
inline constexpr operation minimum = pointwise(linearity::none);
inline constexpr operation wins = pointwise(linearity::none);
inline constexpr operation keeps = pointwise(linearity::none);

// Adjoints of those whose factor is computed where it is used: linear in the cotangent.
inline constexpr operation relu_dx = pointwise(linearity::first);
inline constexpr operation tanh_dx = pointwise(linearity::first);
inline constexpr operation gelu_tanh_dx = pointwise(linearity::first);
inline constexpr operation gelu_erf_dx = pointwise(linearity::first);

inline constexpr operation eq = pointwise(linearity::none, -1, element_rule::compared);
inline constexpr operation ne = pointwise(linearity::none, -1, element_rule::compared);
inline constexpr operation lt = pointwise(linearity::none, -1, element_rule::compared);
inline constexpr operation le = pointwise(linearity::none, -1, element_rule::compared);
inline constexpr operation gt = pointwise(linearity::none, -1, element_rule::compared);
inline constexpr operation ge = pointwise(linearity::none, -1, element_rule::compared);

// Chooses between two values, and is linear in them.
inline constexpr operation where = [] {
  operation o = pointwise(linearity::joint, 0);
  o.refusal = [](finding& f, bool partial, const operation&, const op_attr&, const spec* in, int n, const spec& out, bool) {
    f.what = partial ? problem::where_partial : rules::pointwise_problem(in, n, out, f.axis, linearity::none);
  };
  return o;
}();
inline constexpr operation mask_keep = pointwise(linearity::first, 1);

// Its mask is drawn by the element's place in the whole tensor.
inline constexpr operation dropout = [] {
  operation o = pointwise(linearity::first);
  o.random = true;
  o.strided = false;
  o.scalar = false;
  return o;
}();
// Needs a step's largest norm beside its operand.
inline constexpr operation clip_factor = [] {
  operation o = pointwise(linearity::none);
  o.strided = false;
  o.scalar = false;
  return o;
}();
// Another element type. Law: of a partial sum each summand is converted, which rounds as often as there are summands; integers are
// no summands of rounded numbers, so they are whole before they are converted, and what becomes an integer is whole before.
inline constexpr operation cast = [] {
  operation o = pointwise(linearity::first, -1, element_rule::converted);
  o.scalar = false;
  o.launch = launching::together;
  o.rows = [](const operation&, const op_attr& a, const spec* in, int n, const spec& out) {
    const bool linear = is_floating(in[0].type) && is_floating(static_cast<dtype>(attributes_of<cast_attributes>(a).type));
    return rules::pointwise_rows(in, n, out, linear ? linearity::first : linearity::none);
  };
  o.refusal = [](finding& f, bool, const operation&, const op_attr&, const spec* in, int n, const spec& out, bool) {
    f.what = rules::pointwise_problem(in, n, out, f.axis, linearity::none);
  };
  return o;
}();
// A copy is placed as what it copies, whatever that is, and stored as its attributes say.
inline constexpr operation contiguous = [] {
  operation o = pointwise(linearity::first, -1, element_rule::any);
  o.tabled = false;
  o.shape = [](const op_attr& a, const spec* in, int) {
    const auto format = static_cast<memory_format>(attributes_of<contiguous_attributes>(a).format);
    if (format == memory_format::channels_last && in[0].rank != 4)
      return fail(problem::memory_format_rank, in[0], 0, -1, in[0].rank, 4);
    return outcome{{}, in_format(in[0], format)};
  };
  return o;
}();

}  // namespace shardwise::inline v0_1::operations
