// SPDX-License-Identifier: Apache-2.0
// Records of functions along the last dim: softmax, its logarithm, largest elements and where they stand.
#pragma once

#include <shardwise/propagation/operation.hpp>
#include <shardwise/propagation/ordering.hpp>
#include <shardwise/propagation/reduction.hpp>

namespace shardwise::inline v0_1::operations {

// Operands of the rows of operand 0; `Linear`: in the first one.
template <int Operands, int Weights = 0, bool Linear = false>
constexpr rule_rows rows_beside(const operation&, const op_attr&, const spec* in, int, const spec&) {
  return rules::row_rows(in[0].rank, Operands, Weights, Linear);
}
constexpr outcome shape_of_rows(const op_attr&, const spec* in, int) {
  if (in[0].rank < 1) return fail(problem::dim_out_of_range, in[0]);
  return {{}, shardwise::contiguous(in[0])};
}
// One number for each row; Pair: two of them, side by side.
template <bool Pair>
constexpr outcome statistic_of_rows(const op_attr&, const spec* in, int) {
  if (in[0].rank < 1) return fail(problem::dim_out_of_range, in[0]);
  spec s = shardwise::contiguous(in[0]);
  if (Pair) {
    set_extent(s, s.rank - 1, 2);
  } else {
    s.rank = static_cast<std::uint8_t>(s.rank - 1);
    set_extent(s, s.rank, 0);
    s.stride[s.rank] = 0;
  }
  make_contiguous(s);
  return {{}, s};
}

constexpr outcome shape_of_softmax(const op_attr& a, const spec* in, int) {
  if (in[0].rank < 1) return fail(problem::dim_out_of_range, in[0]);
  if (attributes_of<softmax_attributes>(a).causal != 0 && in[0].rank < 2) return fail(problem::causal_rank, in[0]);
  return {{}, shardwise::contiguous(in[0])};
}
inline constexpr operation softmax = by_rows(&shape_of_softmax, &rows_beside<1>,
                                             &refuse_partial<problem::partial_nonlinear, problem::softmax_dim_sharded, true>,
                                             -1, element_rule::real, operand_choice::along_rows, recomputing::cheap);
inline constexpr operation softmax_dx =
    by_rows(&shape_of_softmax, &rows_beside<2, 0, true>,
            &refuse_partial<problem::partial_nonlinear, problem::softmax_dim_sharded, true>);
inline constexpr operation log_softmax =
    by_rows(&shape_of_rows, &rows_beside<1>, &refuse_partial<problem::partial_nonlinear, problem::softmax_dim_sharded, true>,
            -1, element_rule::real, operand_choice::along_rows);

// Positions along the last dim would be the ranks' own where it is sharded.
inline constexpr operation topk =
    by_rows([](const op_attr& a, const spec* in, int) { return rules::topk_shape(a, in[0]); }, &rows_beside<1>,
            &refuse_partial<problem::partial_nonlinear, problem::topk_dim_sharded>, -1, element_rule::positions,
            operand_choice::along_rows);
constexpr rule_rows rows_of_take(const operation&, const op_attr&, const spec* in, int n, const spec&) {
  rule_rows t = rules::row_rows(in[0].rank, 2, 0, true);
  rules::indices_replicate(t, in, n);
  return t;
}
inline constexpr operation take =
    linear_in(linearity::first, by_rows([](const op_attr&, const spec* in, int) { return rules::take_shape(in[0], in[1]); },
                                        &rows_of_take, &refuse_with<problem::topk_dim_sharded>, 1));
inline constexpr operation take_dx = by_rows(
    [](const op_attr& a, const spec* in, int) {
      const spec &x = in[0], &index = in[1];
      const outcome all = rules::take_shape(x, index);
      if (all.error) return all;
      const int last = x.rank - 1;
      if (index.extent[last] != x.extent[last])
        return fail(problem::index_shape, x, 1, last, index.extent[last], x.extent[last]);
      const auto of = attributes_of<take_dx_attributes>(a);
      outcome r{{}, rules::with_last(x, bound_of(of.extent))};
      set_dyn(r.out, last, sizes_in(of.extent));
      for (int i = 0; i < max_dyn_sizes; ++i)
        if (of.bound[i] != 0) r.out.dyn_bound[i] = of.bound[i];
      return r;
    },
    &rows_of_take, &refuse_with<problem::topk_dim_sharded>, 1);

}  // namespace shardwise::inline v0_1::operations
