// SPDX-License-Identifier: Apache-2.0
// Records of rows of a table read by index, and of the table's gradient.
#pragma once

#include <shardwise/propagation/operation.hpp>
#include <shardwise/propagation/reduction.hpp>

namespace shardwise::inline v0_1::operations {

inline constexpr operation embedding = linear_in(
    linearity::first,
    by_rows(
        [](const op_attr&, const spec* in, int) {
          const spec &x = in[0], &index = in[1];
          if (x.rank != 2) return fail(problem::embedding_rank, x, 0, -1, x.rank, 2);
          if (index.rank + 1 > max_rank) return fail(problem::rank_too_large, x, 1, -1, index.rank + 1, max_rank);
          if (is_dyn(x, 0)) return fail(problem::dyn_dim_changed, x, 0, 0);
          outcome r{{}, scalar_like(x)};
          for (int d = 0; d < index.rank; ++d) copy_extent(r.out, d, index, d);
          copy_extent(r.out, index.rank, x, 1);
          r.out.rank = static_cast<std::uint8_t>(index.rank + 1);
          make_contiguous(r.out);
          return r;
        },
        [](const operation&, const op_attr&, const spec* in, int, const spec&) { return rules::embedding_rows(in[1]); },
        &refuse_with<problem::embedding_placements>, 1));
inline constexpr operation embedding_dw = [] {
  operation o = by_rows(
      [](const op_attr& a, const spec* in, int) {
        outcome r{{}, scalar_like(in[0])};
        r.out.rank = 2;
        r.out.extent[0] = attributes_of<embedding_dw_attributes>(a).rows;
        copy_extent(r.out, 1, in[0], in[0].rank - 1);
        make_contiguous(r.out);
        return r;
      },
      [](const operation&, const op_attr&, const spec* in, int, const spec&) { return rules::embedding_dw_rows(in[1]); },
      &refuse_with<problem::embedding_placements>, 1);
  o.split = &rules::embedding_dw_split;
  return o;
}();

}  // namespace shardwise::inline v0_1::operations
