// SPDX-License-Identifier: Apache-2.0
// Records of layer norm and rms norm over the last dim, their statistics and adjoints.
#pragma once

#include <shardwise/operations/reduction/scratch.hpp>
#include <shardwise/propagation/operation.hpp>
#include <shardwise/operations/row/record.hpp>

namespace shardwise::inline v0_1::operations {

inline constexpr operation norm_stats =
    with_wide(0, 1U,
              by_rows(&statistic_of_rows<true>, &rows_beside<1>,
                      &refuse_partial<problem::partial_nonlinear, problem::norm_dim_sharded, true>, -1, element_rule::real,
                      operand_choice::along_rows));
inline constexpr operation norm_apply =
    with_wide(2U, 0,
              by_rows(
                  [](const op_attr&, const spec* in, int n) {
                    const spec& x = in[0];
                    for (int k = 2; k < n; ++k) {
                      if (in[k].rank != 1 || in[k].extent[0] != x.extent[x.rank - 1])
                        return fail(problem::norm_weight_shape, x, k, 0, in[k].extent[0], x.extent[x.rank - 1]);
                      if (!same_extent(in[k], 0, x, x.rank - 1)) return fail(problem::dyn_meets_static, x, k, 0);
                    }
                    return outcome{{}, shardwise::contiguous(x)};
                  },
                  [](const operation&, const op_attr&, const spec* in, int n, const spec&) {
                    return rules::row_rows(in[0].rank, n, n - 2, false);
                  },
                  &refuse_partial<problem::partial_nonlinear, problem::norm_weight_placement, false, 2>, -1,
                  element_rule::real, operand_choice::along_rows, recomputing::cheap));
inline constexpr operation norm_dx =
    with_wide(4U, 0,
              by_rows(&like_first, &rows_beside<4, 1, true>,
                      &refuse_partial<problem::partial_nonlinear, problem::norm_weight_placement, false, 2>));
inline constexpr operation norm_dw =
    with_wide(4U, 0,
              with_scratch(no_scratch, &columns_device_scratch<1>,
                           by_rows(
                               [](const op_attr&, const spec* in, int) {
                                 outcome r{{}, scalar_like(in[0])};
                                 r.out.rank = 1;
                                 copy_extent(r.out, 0, in[0], in[0].rank - 1);
                                 make_contiguous(r.out);
                                 return r;
                               },
                               [](const operation&, const op_attr&, const spec* in, int, const spec&) {
                                 return rules::norm_dw_rows(in[0].rank);
                               },
                               &refuse_partial<problem::partial_nonlinear, problem::norm_weight_placement, false, 2>)));

// What passes write after differentiation: several of these in one kernel; verify checks them by the rules of their parts.
inline constexpr operation norm = without_rule(operation_kind::computed);
inline constexpr operation norm_dw_db =
    with_scratch(no_scratch, &columns_device_scratch<2>, without_rule(operation_kind::computed));
inline constexpr std::int64_t norm_dx_dw_blocks = 72;  // with four teams each: two for each of up to 144 multiprocessors
// Two sums a column of each team, of which there are at most four in a block.
inline constexpr operation norm_dx_dw = with_scratch(
    no_scratch,
    [](const op_attr&, const spec* const* in, int, const spec&) {
      const std::int64_t columns = largest_block(*in[0]).extent[in[0]->rank - 1];
      return device_scratch::align(norm_dx_dw_blocks * 4 * 2 * columns * static_cast<std::int64_t>(sizeof(double)));
    },
    without_rule(operation_kind::computed));

}  // namespace shardwise::inline v0_1::operations
