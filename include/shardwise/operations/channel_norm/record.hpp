// SPDX-License-Identifier: Apache-2.0
// Records of norms of (batch, channels, ...) over the elements of channels: moments of each group of channels of each image, the
// normalised tensor, and what its adjoint is made of. Statistics (images or 1, groups): of each image, or of all of the batch. Where
// the dims behind the channels are cut, each rank has sums of its elements, which add up.
#pragma once

#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1 {

struct channel_norm_attributes {
  std::int64_t groups = 0;      // of neighbouring channels, 0: each channel alone
  std::int64_t over_batch = 0;  // the statistics are those of all images together
};

namespace operations {

constexpr std::int64_t norm_groups(const channel_norm_attributes& a, const spec& x) {
  return a.groups > 0 ? a.groups : x.extent[1];
}
constexpr finding channel_norm_finding(const op_attr& v, const spec& x, int operand) {
  const auto a = attributes_of<channel_norm_attributes>(v);
  if (x.rank < 2) return {problem::channel_norm_rank, operand, -1, -1, x.rank, 2};
  for (int d = 1; d < x.rank; ++d)
    if (is_dyn(x, d)) return {problem::channel_norm_dyn, operand, d};
  if (a.groups < 0 || (a.groups > 0 && x.extent[1] % a.groups != 0))
    return {problem::group_norm_groups, operand, 1, -1, x.extent[1], a.groups};
  return {};
}
// (2, images, groups): two numbers for each group of each image; `groups` 0: for each channel.
constexpr spec of_images(const spec& x, std::int64_t groups) {
  spec s = scalar_like(x);
  s.rank = 3;
  s.extent[0] = 2;
  copy_extent(s, 1, x, 0);
  s.extent[2] = groups;
  make_contiguous(s);
  return s;
}
constexpr finding statistics_finding(const op_attr& v, const spec& x, const spec& s, int operand) {
  const auto a = attributes_of<channel_norm_attributes>(v);
  const bool fits = s.rank == 2 && s.extent[1] == norm_groups(a, x) &&
                    (a.over_batch != 0 ? s.extent[0] == 1 && !is_dyn(s, 0) : same_extent(s, 0, x, 0));
  return fits ? finding{} : finding{problem::channel_norm_statistics, operand};
}

// Whether blocks of channels are, on every rank, whole groups: as they are placed, or, if nobody has placed them, along any one axis.
constexpr bool cuts_whole_groups(const spec& x, const channel_norm_attributes& a) {
  const std::int64_t groups = norm_groups(a, x);
  if (a.groups == 0 || groups == 0) return true;
  const auto whole = [&](const spec& channels) {
    spec g = channels;
    g.extent[1] = groups;
    const std::int64_t each = x.extent[1] / groups;
    int ranks = 1;
    for (int i = 0; i < x.axes; ++i) ranks *= channels.place[i].is_shard(1) ? x.axis_size[i] : 1;
    for (int r = 0; r < ranks; ++r) {
      int c[max_axes]{}, left = r;
      for (int i = x.axes - 1; i >= 0; --i) {
        if (!channels.place[i].is_shard(1)) continue;
        c[i] = left % x.axis_size[i];
        left /= x.axis_size[i];
      }
      const interval of_x = local_interval(channels, 1, c), of_g = local_interval(g, 1, c);
      if (of_x.size != of_g.size * each || (of_g.size > 0 && of_x.begin != of_g.begin * each)) return false;
    }
    return true;
  };
  bool placed = false;
  for (int i = 0; i < x.axes; ++i) placed = placed || x.place[i].is_shard(1);
  if (placed) return whole(x);
  for (int i = 0; i < x.axes; ++i) {
    spec cut = x;
    cut.place[i] = shard_value(1);
    if (!whole(cut)) return false;
  }
  return true;
}

// x: (2, images, groups), the mean and the sum of squares about it of each group of each image.
constexpr outcome shape_of_moments(const op_attr& v, const spec* in, int) {
  if (const finding f = channel_norm_finding(v, in[0], 0)) return {f, in[0]};
  return {{}, of_images(in[0], norm_groups(attributes_of<channel_norm_attributes>(v), in[0]))};
}
// x, numbers for its statistics: (2, images, groups), the sums of x less them and of its square, of each group of each image.
constexpr outcome shape_of_moments_about(const op_attr& v, const spec* in, int) {
  if (const finding f = channel_norm_finding(v, in[0], 0)) return {f, in[0]};
  if (const finding f = statistics_finding(v, in[0], in[1], 1)) return {f, in[0]};
  return {{}, of_images(in[0], norm_groups(attributes_of<channel_norm_attributes>(v), in[0]))};
}
// x, mean, 1 / deviation, weight (channels), bias (channels).
constexpr outcome shape_of_channel_norm(const op_attr& v, const spec* in, int) {
  const spec& x = in[0];
  if (const finding f = channel_norm_finding(v, x, 0)) return {f, x};
  for (int k = 1; k < 3; ++k)
    if (const finding f = statistics_finding(v, x, in[k], k)) return {f, x};
  for (int k = 3; k < 5; ++k)
    if (in[k].rank != 1 || is_dyn(in[k], 0) || in[k].extent[0] != x.extent[1])
      return fail(problem::channel_norm_weight, x, k, 0, in[k].extent[0], x.extent[1]);
  return {{}, shardwise::contiguous(x)};
}
// dy, x, mean, 1 / deviation: (2, images, channels), the sums of dy and of dy times the normalised x.
constexpr outcome shape_of_channel_norm_sums(const op_attr& v, const spec* in, int) {
  if (const finding f = channel_norm_finding(v, in[0], 0)) return {f, in[0]};
  for (int d = 0; d < in[0].rank; ++d)
    if (in[0].rank != in[1].rank || !same_extent(in[0], d, in[1], d))
      return fail(problem::channel_norm_statistics, in[0], 1);
  for (int k = 2; k < 4; ++k)
    if (const finding f = statistics_finding(v, in[1], in[k], k)) return {f, in[0]};
  return {{}, of_images(in[0], in[0].extent[1])};
}
// dy, x, mean, 1 / deviation, weight, and these sums, of each image or added up over all.
constexpr outcome shape_of_channel_norm_dx(const op_attr& v, const spec* in, int) {
  if (const outcome o = shape_of_channel_norm_sums(v, in, 4); o.error) return o;
  const spec& x = in[1];
  if (in[4].rank != 1 || in[4].extent[0] != x.extent[1])
    return fail(problem::channel_norm_weight, x, 4, 0, in[4].extent[0], x.extent[1]);
  const spec& t = in[5];
  const bool over_all = attributes_of<channel_norm_attributes>(v).over_batch != 0;
  if (t.rank != 3 || t.extent[0] != 2 || t.extent[2] != x.extent[1] ||
      (over_all ? t.extent[1] != 1 : !same_extent(t, 1, x, 0)))
    return fail(problem::channel_norm_statistics, x, 5);
  return {{}, shardwise::contiguous(x)};
}

// The row that is linear, one that cuts the batch, one that cuts channels, and, points(d), one for each dim behind them.
template <class Points>
constexpr rule_rows rows_of_norm(const op_attr& v, const spec& x, rule_row linear, rule_row batch, rule_row channels,
                                 const Points& points) {
  rule_rows t;
  t.push_back(rows::all(rows::R, rows::R));
  t.push_back(linear);
  t.push_back(batch);
  if (cuts_whole_groups(x, attributes_of<channel_norm_attributes>(v))) t.push_back(channels);
  for (int d = 2; d < x.rank; ++d) t.push_back(points(rows::S(d)));
  return t;
}
constexpr placement statistics_of_cut_batch(const op_attr& v) {
  return attributes_of<channel_norm_attributes>(v).over_batch != 0 ? rows::U : rows::S(0);
}

constexpr operation channel_norm_record(operation::shape_rule shape, operation::row_rule rows) {
  operation o = by_rows(shape, rows, &refuse_with<problem::channel_norm_placements>);
  o.strided = true;
  return o;
}

// Means of parts of an image are no sums of theirs: no row cuts the dims behind the channels.
inline constexpr operation channel_moments = with_wide(
    0, 1U, channel_norm_record(&shape_of_moments, [](const operation&, const op_attr& v, const spec* in, int, const spec&) {
      using namespace rows;
      rule_rows t;
      t.push_back(rows::all(R, R));
      t.push_back(rows::all(U, U));
      t.push_back({{S(0)}, S(1)});
      if (cuts_whole_groups(in[0], attributes_of<channel_norm_attributes>(v))) t.push_back({{S(1)}, S(2)});
      return t;
    }));
inline constexpr operation channel_moments_about = with_wide(
    2U, 1U,
    channel_norm_record(&shape_of_moments_about, [](const operation&, const op_attr& v, const spec* in, int, const spec&) {
      using namespace rows;
      return rows_of_norm(v, in[0], rows::all(U, U), {{S(0), statistics_of_cut_batch(v)}, S(1)}, {{S(1), S(1)}, S(2)},
                          [](placement d) { return rule_row{{d, U}, P}; });
    }));
inline constexpr operation channel_norm = with_wide(
    2U + 4U, 0,
    channel_norm_record(&shape_of_channel_norm, [](const operation&, const op_attr& v, const spec* in, int, const spec&) {
      using namespace rows;
      const placement s = statistics_of_cut_batch(v);
      return rows_of_norm(v, in[0], rows::all(U, U), {{S(0), s, s, U, U}, S(0)}, {{S(1), S(1), S(1), S(0), S(0)}, S(1)},
                          [](placement d) { return rule_row{{d, U, U, U, U}, d}; });
    }));
// What makes gradients is linear in that of the result, which is partial where all operands are reduced.
inline constexpr operation channel_norm_sums = with_wide(
    4U + 8U, 1U,
    linear_in(linearity::first, channel_norm_record(&shape_of_channel_norm_sums, [](const operation&, const op_attr& v,
                                                                                    const spec* in, int, const spec&) {
                using namespace rows;
                const placement s = statistics_of_cut_batch(v);
                return rows_of_norm(v, in[1], {{P, U, U, U}, P}, {{S(0), S(0), s, s}, S(1)},
                                    {{S(1), S(1), S(1), S(1)}, S(2)}, [](placement d) { return rule_row{{d, d, U, U}, P}; });
              })));
inline constexpr operation channel_norm_dx = with_wide(
    4U + 8U + 32U, 0,
    channel_norm_record(&shape_of_channel_norm_dx, [](const operation&, const op_attr& v, const spec* in, int, const spec&) {
      using namespace rows;
      const placement s = statistics_of_cut_batch(v), t = s.is_shard() ? S(1) : U;
      return rows_of_norm(v, in[1], {{P, U, U, U, U, P}, P}, {{S(0), S(0), s, s, U, t}, S(0)},
                          {{S(1), S(1), S(1), S(1), S(0), S(2)}, S(1)},
                          [](placement d) { return rule_row{{d, d, U, U, U, U}, d}; });
    }));

// (variance of all images (channels), moments (2, images, channels)): times n / (n - 1), n the elements of a channel. `groups` is how
// many elements a channel of one image has.
inline constexpr operation unbiased_variance = by_rows(
    [](const op_attr&, const spec* in, int) {
      if (in[0].rank != 1 || in[1].rank != 3 || in[0].extent[0] != in[1].extent[2])
        return fail(problem::channel_norm_statistics, in[0], 1);
      return outcome{{}, shardwise::contiguous(in[0])};
    },
    [](const operation&, const op_attr&, const spec*, int, const spec&) {
      using namespace rows;
      rule_rows t;
      t.push_back(rows::all(R, R));
      t.push_back(rows::all(U, U));
      t.push_back({{U, S(1)}, U});
      t.push_back({{U, P}, U});
      t.push_back({{S(0), S(2)}, S(0)});
      return t;
    },
    &refuse_with<problem::channel_norm_placements>);

}  // namespace operations

}  // namespace shardwise::inline v0_1
