// SPDX-License-Identifier: Apache-2.0
// Records of pooling in two dims: the largest element of each window with its position, the mean of each window, and what their adjoints
// are made of: sums over the windows that an element is in, or whose largest it is, and the elements at given positions.
#pragma once

#include <shardwise/propagation/halo.hpp>
#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1 {

struct pool_attributes {
  std::int16_t kernel[2] = {1, 1};
  std::int16_t stride[2] = {1, 1};
  std::int16_t padding[2] = {0, 0};   // on both sides
  std::int16_t dilation[2] = {1, 1};  // of the largest element's windows
  std::int16_t counts_padding = 1;    // of a mean: whether what is outside counts, as zeros
  std::int16_t ceil = 0;              // a last window may reach beyond the padding
  std::int32_t divisor = 0;           // of a mean, in place of how many are counted
  std::int64_t extent[2] = {0, 0};    // of an adjoint's result: (h, w)

  // From the first to the last element of a window.
  constexpr std::int64_t reach(int d) const { return std::int64_t{dilation[d]} * (kernel[d] - 1) + 1; }
};

namespace operations {

// Rounded up, a last window begins in the image or in front of it.
constexpr std::int64_t pooled_extent(const pool_attributes& a, int d, std::int64_t n) {
  const std::int64_t last = n + 2 * a.padding[d] - a.reach(d);
  if (a.ceil == 0 || last < 0) return last < 0 ? 0 : last / a.stride[d] + 1;
  const std::int64_t count = (last + a.stride[d] - 1) / a.stride[d] + 1;
  return (count - 1) * a.stride[d] >= n + a.padding[d] ? count - 1 : count;
}
// With padding of at most half of a window every one has an element of an image of `dilation` elements; of a smaller one it may step over
// all of them.
constexpr bool all_have_elements(const pool_attributes& a, int d, std::int64_t n) {
  if (n >= a.dilation[d]) return true;
  for (std::int64_t t = 0; t < pooled_extent(a, d, n); ++t) {
    const std::int64_t first = t * a.stride[d] - a.padding[d], step = a.dilation[d];
    const std::int64_t in = first < 0 ? first + (step - 1 - first) / step * step : first;
    if (in >= n || in >= first + a.reach(d)) return false;
  }
  return true;
}
constexpr finding pool_finding(const pool_attributes& a, const spec& x) {
  for (int d = 0; d < 2; ++d)
    if (a.kernel[d] < 1 || a.stride[d] < 1 || a.dilation[d] < 1 || a.padding[d] < 0 || 2 * a.padding[d] > a.reach(d) ||
        a.divisor < 0)
      return {problem::pool_options};
  if (x.rank != 4) return {problem::pool_rank, 0, -1, -1, x.rank, 4};
  for (int d = 2; d < 4; ++d)
    if (is_dyn(x, d)) return {problem::pool_dyn, 0, d};
  for (int d = 0; d < 2; ++d)
    if (x.extent[2 + d] < 1 || pooled_extent(a, d, x.extent[2 + d]) < 1 || !all_have_elements(a, d, x.extent[2 + d]))
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
constexpr bool is_dilated(const pool_attributes& a) { return a.dilation[0] != 1 || a.dilation[1] != 1; }
constexpr outcome shape_of_mean_pool(const op_attr& v, const spec* in, int) {
  if (is_dilated(attributes_of<pool_attributes>(v))) return fail(problem::pool_options, in[0], 0);
  return pooled(v, in[0]);
}
constexpr outcome shape_of_max_pool(const op_attr& v, const spec* in, int, int result) {
  outcome r = pooled(v, in[0]);
  if (result == 1) r.out.type = dtype::i32;
  return r;
}
constexpr outcome shape_of_pool_dx(const op_attr& v, const spec* in, int) {
  const auto a = attributes_of<pool_attributes>(v);
  if (in[0].rank != 4) return fail(problem::pool_rank, in[0], 0, -1, in[0].rank, 4);
  outcome r{{}, shardwise::contiguous(in[0])};
  for (int d = 0; d < 2; ++d) r.out.extent[2 + d] = a.extent[d];
  make_contiguous(r.out);
  if (const finding f = pool_finding(a, r.out)) return {f, in[0]};
  return r;
}

constexpr outcome shape_of_mean_pool_dx(const op_attr& v, const spec* in, int n) {
  if (is_dilated(attributes_of<pool_attributes>(v))) return fail(problem::pool_options, in[0], 0);
  return shape_of_pool_dx(v, in, n);
}
// (dy, positions): of the image.
constexpr outcome shape_of_max_pool_dx(const op_attr& v, const spec* in, int n) {
  const outcome r = shape_of_pool_dx(v, in, n);
  if (r.error) return r;
  for (int d = 0; d < 4; ++d)
    if (in[1].rank != 4 || !same_extent(in[0], d, in[1], d)) return fail(problem::pool_positions, in[0], 1, d);
  return r;
}
// (x, positions): of the windows.
constexpr outcome shape_of_max_pool_at(const op_attr& v, const spec* in, int) {
  outcome r = pooled(v, in[0]);
  for (int d = 0; d < 4 && !r.error; ++d)
    if (in[1].rank != 4 || !same_extent(r.out, d, in[1], d)) return fail(problem::pool_positions, in[0], 1, d);
  return r;
}

// Of windows in height (0) or width (1).
constexpr sliding sliding_of(const pool_attributes& a, int d) {
  return {a.stride[d], a.padding[d], a.reach(d) - 1 - a.padding[d]};
}

// Images are pooled one by one and channel by channel; height and width are cut where ranks have the halos of their shares.
template <bool Back>
constexpr rule_rows mean_pool_rows(const operation&, const op_attr& v, const spec* in, int, const spec& out) {
  using namespace rows;
  rule_rows t;
  t.push_back({{R}, R});
  t.push_back({{U}, U});
  t.push_back({{S(0)}, S(0)});
  t.push_back({{S(1)}, S(1)});
  t.push_back({{P}, P});
  for (int d = 0; d < 2; ++d) {
    const int dim = 2 + d;
    const sliding s = sliding_of(attributes_of<pool_attributes>(v), d);
    if (s.is_alone()) t.push_back({{S(dim)}, S(dim)});
    if (any_overlaps(in[0], dim))
      t.push_back({{Back ? s.readers(dim, out.extent[dim]) : s.windows(dim, out.extent[dim])}, S(dim)});
  }
  return t;
}
// Of cotangents or images, and positions. Back: positions have the cotangent's halos; else they have none.
template <bool Back>
constexpr rule_rows max_pool_rows(const operation&, const op_attr& v, const spec* in, int, const spec& out) {
  using namespace rows;
  rule_rows t;
  t.push_back({{R, R}, R});
  t.push_back({{U, R}, U});
  t.push_back({{S(0), S(0)}, S(0)});
  t.push_back({{S(1), S(1)}, S(1)});
  t.push_back({{P, R}, P});
  for (int d = 0; d < 2; ++d) {
    const int dim = 2 + d;
    const sliding s = sliding_of(attributes_of<pool_attributes>(v), d);
    if (s.is_alone()) t.push_back({{S(dim), S(dim)}, S(dim)});
    if (!any_overlaps(in[0], dim)) continue;
    const placement p = Back ? s.readers(dim, out.extent[dim]) : s.windows(dim, out.extent[dim]);
    if (Back) t.push_back({{p, p}, S(dim)});
    else if (halo_axis(in[1], dim) >= 0) t.push_back({{p, S(dim)}, S(dim)});
  }
  return t;
}

inline constexpr operation mean_pool =
    linear_in(linearity::each, by_rows(&shape_of_mean_pool, &mean_pool_rows<false>, &refuse_with<problem::pool_placements>));
inline constexpr operation mean_pool_dx = linear_in(
    linearity::each, by_rows(&shape_of_mean_pool_dx, &mean_pool_rows<true>, &refuse_with<problem::pool_placements>));
inline constexpr operation max_pool = by_rows(
    &shape_of_max_pool,
    [](const operation&, const op_attr& v, const spec* in, int, const spec& out) {
      using namespace rows;
      results_rows t;
      t.push_back({{R}, {R, R}});
      t.push_back({{U}, {U, U}});
      t.push_back({{S(0)}, {S(0), S(0)}});
      t.push_back({{S(1)}, {S(1), S(1)}});
      for (int d = 0; d < 2; ++d) {
        const int dim = 2 + d;
        const sliding s = sliding_of(attributes_of<pool_attributes>(v), d);
        if (s.is_alone()) t.push_back({{S(dim)}, {S(dim), S(dim)}});
        if (any_overlaps(in[0], dim)) t.push_back({{s.windows(dim, out.extent[dim])}, {S(dim), S(dim)}});
      }
      return t;
    },
    &refuse_with<problem::pool_placements>, -1, element_rule::real, operand_choice::cheapest, recomputing::never, 2);
inline constexpr operation max_pool_dx = linear_in(
    linearity::first, by_rows(&shape_of_max_pool_dx, &max_pool_rows<true>, &refuse_with<problem::pool_placements>, 1));
inline constexpr operation max_pool_at = linear_in(
    linearity::first, by_rows(&shape_of_max_pool_at, &max_pool_rows<false>, &refuse_with<problem::pool_placements>, 1));

}  // namespace operations

}  // namespace shardwise::inline v0_1
