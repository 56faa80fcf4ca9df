// SPDX-License-Identifier: Apache-2.0
// Record of rotary position embeddings: pairs of numbers of a head turned by an angle that grows with the position (Su et al., 2021).
#pragma once

#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1 {

struct rotary_attributes {
  std::int64_t time = 2;         // the dim of positions
  std::int64_t interleaved = 0;  // pairs are neighbours (2 i, 2 i + 1); else (i, i + size / 2)
  real base;
  std::int64_t back = 0;  // turned the other way: the adjoint
};

namespace operations {

constexpr outcome shape_of_rotary(const op_attr& v, const spec* in, int) {
  const spec& x = in[0];
  const double base = attributes_of<rotary_attributes>(v).base;
  if (x.rank != 4 || is_dyn(x, 3) || x.extent[3] % 2 != 0) return fail(problem::rotary_shape, x);
  if (!(base > 0 && base - base == 0)) return fail(problem::rotary_base, x);
  return {{}, shardwise::contiguous(x)};
}

// Linear in x, and pairs stay together: cut along any dim but the last. The call's real parameter is the first position.
inline constexpr operation rotary = [] {
  operation o = linear_in(linearity::first, by_rows(
                                                &shape_of_rotary,
                                                [](const operation&, const op_attr&, const spec*, int, const spec&) {
                                                  using namespace rows;
                                                  rule_rows t;
                                                  for (const placement p : {R, U, P, S(0), S(1), S(2)})
                                                    t.push_back(rows::all(p, p));
                                                  return t;
                                                },
                                                &refuse_with<problem::rotary_placements>));
  o.host_scratch = [](const op_attr&, const spec* const* in, int, const spec&) {
    return in[0]->extent[3] * static_cast<std::int64_t>(size_of(in[0]->type));
  };
  return o;
}();

}  // namespace operations

}  // namespace shardwise::inline v0_1
