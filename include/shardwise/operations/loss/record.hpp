// SPDX-License-Identifier: Apache-2.0
// Records of cross entropy: log-sum-exp and the negative log-likelihood of targets, classes whole or sharded.
#pragma once

#include <shardwise/propagation/operation.hpp>
#include <shardwise/operations/row/record.hpp>

namespace shardwise::inline v0_1::operations {

inline constexpr operation lse =
    with_wide(0, 1U,
              by_rows(&statistic_of_rows<false>, &rows_beside<1>,
                      &refuse_partial<problem::partial_nonlinear, problem::loss_class_dim_sharded>, -1, element_rule::real,
                      operand_choice::along_rows));
// Classes that are sharded give shares of the sum.
inline constexpr operation exp_sum =
    with_wide(0, 1U,
              by_rows(
                  &statistic_of_rows<false>,
                  [](const operation&, const op_attr&, const spec* in, int, const spec&) {
                    rule_rows t = rules::row_rows(in[0].rank, 2, 0, false);
                    t.push_back(rules::classes_sharded(in[0].rank, 0, rows::P));
                    return t;
                  },
                  &refuse_partial<problem::partial_nonlinear, problem::loss_target_placement, false, 2>));
inline constexpr operation nll =
    with_wide(2U, 1U,
              by_rows(
                  [](const op_attr& a, const spec* in, int n) {
                    const outcome rows = statistic_of_rows<false>(a, in, n);
                    if (rows.error) return rows;
                    const spec& t = in[2];
                    if (t.rank != rows.out.rank)
                      return fail(problem::loss_target_shape, rows.out, 2, -1, t.rank, rows.out.rank);
                    for (int d = 0; d < t.rank; ++d) {
                      if (t.extent[d] != rows.out.extent[d])
                        return fail(problem::loss_target_shape, rows.out, 2, d, t.extent[d], rows.out.extent[d]);
                      if (!same_extent(t, d, rows.out, d)) return fail(problem::dyn_meets_static, rows.out, 2, d);
                    }
                    return rows;
                  },
                  [](const operation&, const op_attr&, const spec* in, int n, const spec&) {
                    rule_rows t = rules::row_rows(in[0].rank, 3, 0, false);
                    t.push_back(rules::classes_sharded(in[0].rank, 0, rows::P));
                    rules::indices_replicate(t, in, n);
                    return t;
                  },
                  &refuse_partial<problem::partial_nonlinear, problem::loss_target_placement, false, 2>, 2,
                  element_rule::real, operand_choice::along_rows));
inline constexpr operation nll_dx =
    with_wide(5U, 0,
              by_rows(
                  &like_second,
                  [](const operation&, const op_attr&, const spec* in, int n, const spec&) {
                    rule_rows t = rules::row_rows(in[1].rank, 4, 0, true);
                    t.push_back(rules::classes_sharded(in[1].rank, 1, rows::S(in[1].rank - 1)));
                    rules::indices_replicate(t, in, n);
                    return t;
                  },
                  &refuse_partial<problem::partial_nonlinear, problem::loss_target_placement, false, 2>, 3));

// What a pass writes after differentiation: lse, nll and nll_dx in one kernel; verify checks it by their rules. Of dy, logits, target and
// a room for nll; dy and nll are float where logits have two bytes.
inline constexpr operation nll_dx_loss = [] {
  operation o = with_wide(9U, 0, without_rule(operation_kind::computed));
  o.indices = 2;
  return o;
}();

}  // namespace shardwise::inline v0_1::operations
