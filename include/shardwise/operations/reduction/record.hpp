// SPDX-License-Identifier: Apache-2.0
// Records of sums, norms, extremes and products over dims.
#pragma once

#include <shardwise/operations/reduction/scratch.hpp>
#include <shardwise/propagation/operation.hpp>
#include <shardwise/propagation/ordering.hpp>
#include <shardwise/propagation/reduction.hpp>

namespace shardwise::inline v0_1::operations {

// Of integers there are sums and no means.
constexpr outcome shape_of_sum(const op_attr& a, const spec* in, int) {
  if (attributes_of<sum_attributes>(a).mean != 0 && !is_floating(in[0].type))
    return fail(problem::needs_floating_point, in[0]);
  return rules::sum_shape(a, in[0]);
}

inline constexpr operation sum =
    with_scratch(no_scratch, &reduction_device_scratch,
                 linear_in(linearity::first, by_rows(
                                                 &shape_of_sum,
                                                 [](const operation&, const op_attr& a, const spec* in, int, const spec&) {
                                                   return rules::sum_rows(a, in[0]);
                                                 },
                                                 &refuse_pointwise, -1, element_rule::number)));
// Not linear: the partial row, which stands last, goes.
inline constexpr operation sumsq = [] {
  operation o = by_rows(
      &shape_of_sum,
      [](const operation&, const op_attr& a, const spec* in, int, const spec&) {
        rule_rows t = rules::sum_rows(a, in[0]);
        --t.count;
        return t;
      },
      &refuse_with<problem::partial_nonlinear>);
  o.wide = wide_values{0, 1U};
  o.launch = launching::chained;
  o.device_scratch = &sumsq_device_scratch;
  return o;
}();
// sum's adjoint, whose placement the primal chooses.
inline constexpr operation expand =
    without_rule(operation_kind::computed, &writes_nothing, element_rule::real, recomputing::cheap);

// Norms are float where the elements have two bytes.
inline constexpr operation vector_norm =
    with_wide(0, 1U,
              with_scratch(no_scratch, &reduction_device_scratch,
                           by_rows([](const op_attr& a, const spec* in, int) { return rules::vector_norm_shape(a, in[0]); },
                                   [](const operation&, const op_attr& a, const spec* in, int, const spec&) {
                                     return rules::vector_norm_rows(a, in[0]);
                                   },
                                   &refuse_pointwise)));
inline constexpr operation vector_norm_dx = with_wide(5U, 0,
                                                      by_rows(
                                                          &like_second,
                                                          [](const operation&, const op_attr& a, const spec* in, int,
                                                             const spec&) { return rules::vector_norm_dx_rows(a, in[1]); },
                                                          &refuse_pointwise));

template <reduction Op>
constexpr operation extreme() {
  return with_scratch(
      no_scratch, &reduction_device_scratch,
      by_rows([](const op_attr& a, const spec* in, int) { return rules::sum_shape(rules::kept_dims(a), in[0]); },
              [](const operation&, const op_attr& a, const spec* in, int, const spec&) {
                return rules::extreme_rows(a, in[0], Op);
              },
              &refuse_partial<problem::partial_other_reduction, problem::pointwise_placements>));
}
inline constexpr operation amax = extreme<reduction::max>();
inline constexpr operation amin = extreme<reduction::min>();
inline constexpr operation prod = extreme<reduction::product>();
inline constexpr operation prod_dx = by_rows(
    &like_second,
    [](const operation&, const op_attr& a, const spec* in, int, const spec&) { return rules::prod_dx_rows(a, in[1]); },
    &refuse_pointwise);

}  // namespace shardwise::inline v0_1::operations
