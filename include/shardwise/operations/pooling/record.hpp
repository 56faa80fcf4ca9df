// SPDX-License-Identifier: Apache-2.0
// Records of pooling in two dims: the largest element of each window with its position, the mean of each window, and the mean's adjoint.
#pragma once

#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1 {

struct pool_attributes {
  std::int16_t kernel[2] = {1, 1};
  std::int16_t stride[2] = {1, 1};
  std::int16_t padding[2] = {0, 0};  // on both sides
  std::int32_t counts_padding = 1;   // of a mean: whether what is outside counts, as zeros
  std::int64_t extent[2] = {0, 0};   // of an adjoint's result: (h, w)
};

namespace operations {

constexpr std::int64_t pooled_extent(const pool_attributes& a, int d, std::int64_t n) {
  const std::int64_t last = n + 2 * a.padding[d] - a.kernel[d];
  return last < 0 ? 0 : last / a.stride[d] + 1;
}
// With at most half a kernel of padding every window has an element.
constexpr finding pool_finding(const pool_attributes& a, const spec& x) {
  for (int d = 0; d < 2; ++d)
    if (a.kernel[d] < 1 || a.stride[d] < 1 || a.padding[d] < 0 || 2 * a.padding[d] > a.kernel[d])
      return {problem::pool_options};
  if (x.rank != 4) return {problem::pool_rank, 0, -1, -1, x.rank, 4};
  for (int d = 2; d < 4; ++d)
    if (is_dyn(x, d)) return {problem::pool_dyn, 0, d};
  for (int d = 0; d < 2; ++d)
    if (pooled_extent(a, d, x.extent[2 + d]) < 1)
      return {problem::pool_kernel, 0, 2 + d, -1, a.kernel[d], x.extent[2 + d] + 2 * a.padding[d]};
  return {};
}
constexpr outcome pooled(const op_attr& v, const spec& x) {
  const auto a = attributes_of<pool_attributes>(v);
  if (const finding f = pool_finding(a, x)) return {f, x};
  outcome r{{}, shardwise::contiguous(x)};
  for (int d = 0; d < 2; ++d) r.out.extent[2 + d] = pooled_extent(a, d, x.extent[2 + d]);
  make_contiguous(r.out);
  return r;
}
constexpr outcome shape_of_mean_pool(const op_attr& v, const spec* in, int) { return pooled(v, in[0]); }
constexpr outcome shape_of_max_pool(const op_attr& v, const spec* in, int, int result) {
  outcome r = pooled(v, in[0]);
  if (result == 1) r.out.type = dtype::i32;
  return r;
}
constexpr outcome shape_of_mean_pool_dx(const op_attr& v, const spec* in, int) {
  const auto a = attributes_of<pool_attributes>(v);
  if (in[0].rank != 4) return fail(problem::pool_rank, in[0], 0, -1, in[0].rank, 4);
  outcome r{{}, shardwise::contiguous(in[0])};
  for (int d = 0; d < 2; ++d) r.out.extent[2 + d] = a.extent[d];
  make_contiguous(r.out);
  if (const finding f = pool_finding(a, r.out)) return {f, in[0]};
  return r;
}

// Images are pooled one by one and channel by channel.
constexpr rule_rows mean_pool_rows(const operation&, const op_attr&, const spec*, int, const spec&) {
  using namespace rows;
  rule_rows t;
  t.push_back({{R}, R});
  t.push_back({{U}, U});
  t.push_back({{S(0)}, S(0)});
  t.push_back({{S(1)}, S(1)});
  t.push_back({{P}, P});
  return t;
}

inline constexpr operation mean_pool =
    linear_in(linearity::each, by_rows(&shape_of_mean_pool, &mean_pool_rows, &refuse_with<problem::pool_placements>));
inline constexpr operation mean_pool_dx =
    linear_in(linearity::each, by_rows(&shape_of_mean_pool_dx, &mean_pool_rows, &refuse_with<problem::pool_placements>));
inline constexpr operation max_pool = by_rows(
    &shape_of_max_pool,
    [](const operation&, const op_attr&, const spec*, int, const spec&) {
      using namespace rows;
      results_rows t;
      t.push_back({{R}, {R, R}});
      t.push_back({{U}, {U, U}});
      t.push_back({{S(0)}, {S(0), S(0)}});
      t.push_back({{S(1)}, {S(1), S(1)}});
      return t;
    },
    &refuse_with<problem::pool_placements>, -1, element_rule::real, operand_choice::cheapest, recomputing::never, 2);

}  // namespace operations

}  // namespace shardwise::inline v0_1
