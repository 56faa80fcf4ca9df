// SPDX-License-Identifier: Apache-2.0
// Attention of two-byte elements: lse and delta are float, and so are they where the adjoint reads them; what its kernels on devices
// are given beside operands and results.
#include <rules.hpp>
#include <shardwise/operations/attention/record.hpp>

namespace {

using rules_test::on_line;
using sw::dtype;

template <class Shape>
constexpr sw::spec of(dtype t) {
  sw::spec s = on_line<Shape>(sw::replicate_value());
  s.type = t;
  return s;
}
constexpr sw::operation attention = sw::operations::attention(-1), adjoint = sw::operations::attention_adjoint(-1);
constexpr sw::op_attr causal = [] {
  sw::attention_attributes a;
  a.causal = 1;
  return sw::pack_attributes(a);
}();
using q = sw::shape<2, 8, 300, 128>;
using k = sw::shape<2, 2, 700, 128>;
using v = sw::shape<2, 2, 700, 64>;
using out = sw::shape<2, 8, 300, 64>;
using rows = sw::shape<2, 8, 300>;

constexpr dtype result_type(dtype t, int result) {
  const sw::spec in[] = {of<q>(t), of<k>(t), of<v>(t)};
  return sw::infer(attention, causal, in, 3, result).out.type;
}
static_assert(result_type(dtype::bf16, 0) == dtype::bf16 && result_type(dtype::bf16, 1) == dtype::f32);
static_assert(result_type(dtype::f16, 0) == dtype::f16 && result_type(dtype::f16, 1) == dtype::f32);
static_assert(result_type(dtype::f64, 0) == dtype::f64 && result_type(dtype::f64, 1) == dtype::f64);

constexpr dtype delta_type(dtype t) {
  const sw::spec in[] = {of<out>(t), of<out>(t)};
  return sw::infer(sw::operations::attention_delta, causal, in, 2).out.type;
}
static_assert(delta_type(dtype::bf16) == dtype::f32 && delta_type(dtype::f64) == dtype::f64);

constexpr sw::outcome gradient(dtype t, dtype lse, dtype delta, int result) {
  const sw::spec in[] = {of<q>(t), of<k>(t), of<v>(t), of<rows>(lse), of<out>(t), of<rows>(delta)};
  return sw::infer(adjoint, causal, in, 6, result);
}
constexpr bool gradients_are(dtype t, dtype statistics) {
  for (int result = 0; result < 3; ++result)
    if (const sw::outcome o = gradient(t, statistics, statistics, result); o.error || o.out.type != t) return false;
  return true;
}
static_assert(gradients_are(dtype::bf16, dtype::f32) && gradients_are(dtype::f64, dtype::f64));
static_assert(gradient(dtype::bf16, dtype::bf16, dtype::f32, 0).error.what == sw::problem::types_differ);
static_assert(gradient(dtype::bf16, dtype::f32, dtype::bf16, 0).error.what == sw::problem::types_differ);

// Float and double run by the library's own kernels, which need nothing.
template <const sw::operation& Op>
constexpr std::int64_t scratch(dtype t) {
  const sw::spec all[] = {of<q>(t), of<k>(t), of<v>(t)};
  const sw::spec* const in[] = {&all[0], &all[1], &all[2]};
  return Op.device_scratch.value(causal, in, 3, all[0]);
}
constexpr sw::attention_extents extents{2, 8, 2, 300, 700, 128, 64};
static_assert(scratch<attention>(dtype::f32) == 0 && scratch<adjoint>(dtype::f32) == 0 && scratch<adjoint>(dtype::f64) == 0);
static_assert(scratch<attention>(dtype::bf16) == sw::operations::attention_library_forward_bytes);
static_assert(scratch<adjoint>(dtype::f16) == sw::operations::attention_library_adjoint_bytes(extents) +
                                                  sw::operations::attention_projection_bytes(extents));

}  // namespace
