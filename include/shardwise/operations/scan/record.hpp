// SPDX-License-Identifier: Apache-2.0
// Record of running sums along a dim, made as a user's own operation is.
#pragma once

#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1 {

struct scan_attributes {
  std::int64_t dim = 0;
  std::int64_t back = 0;  // from the last element on: the adjoint
};

namespace operations {

constexpr outcome shape_of_scan(const op_attr& v, const spec* in, int) {
  const int d = static_cast<int>(attributes_of<scan_attributes>(v).dim);
  if (d < 0 || d >= in[0].rank) return fail(problem::dim_out_of_range, in[0], 0, d, d, in[0].rank);
  return {{}, shardwise::contiguous(in[0])};
}

// Linear; a rank sees all elements along the dim, since a sum needs those before it.
inline constexpr operation scan =
    linear_in(linearity::first, by_rows(
                                    &shape_of_scan,
                                    [](const operation&, const op_attr& v, const spec* in, int, const spec&) {
                                      using namespace rows;
                                      rule_rows t;
                                      for (const placement p : {R, U, P}) t.push_back(rows::all(p, p));
                                      for (int d = 0; d < in[0].rank; ++d)
                                        if (d != attributes_of<scan_attributes>(v).dim) t.push_back(rows::all(S(d), S(d)));
                                      return t;
                                    },
                                    &refuse_with<problem::scan_dim_sharded>));

}  // namespace operations

}  // namespace shardwise::inline v0_1
