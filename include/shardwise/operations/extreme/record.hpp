// SPDX-License-Identifier: Apache-2.0
// Record of the largest or smallest elements along a dim and where they stand: two results, of which the dim stays with extent 1.
#pragma once

#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1 {

struct extreme_attributes {
  std::int64_t dim = 0;
};

namespace operations {

constexpr outcome shape_of_extreme(const op_attr& v, const spec* in, int, int result) {
  const spec& x = in[0];
  const int d = static_cast<int>(attributes_of<extreme_attributes>(v).dim);
  if (d < 0 || d >= x.rank) return fail(problem::dim_out_of_range, x, 0, d, d, x.rank);
  if (is_dyn(x, d)) return fail(problem::dyn_dim_changed, x, 0, d);
  if (x.extent[d] == 0) return fail(problem::extreme_empty, x, 0, d);
  outcome r{{}, shardwise::contiguous(x)};
  r.out.extent[d] = 1;
  make_contiguous(r.out);
  if (result == 1) r.out.type = dtype::i32;
  return r;
}

// A rank sees all elements along the dim: positions among some of them would be its own.
inline constexpr operation extreme_along = by_rows(
    &shape_of_extreme,
    [](const operation&, const op_attr& v, const spec* in, int, const spec&) {
      using namespace rows;
      results_rows t;
      t.push_back({{R}, {R, R}});
      t.push_back({{U}, {U, U}});
      for (int d = 0; d < in[0].rank; ++d)
        if (d != attributes_of<extreme_attributes>(v).dim) t.push_back({{S(d)}, {S(d), S(d)}});
      return t;
    },
    &refuse_with<problem::extreme_placements>, -1, element_rule::any, operand_choice::kept, recomputing::never, 2);

}  // namespace operations

}  // namespace shardwise::inline v0_1
