// SPDX-License-Identifier: Apache-2.0
// Records of decoding step by step: rows written into a key/value cache at each sequence's position, attention over the positions so
// far, rotary embeddings from a position on, and the positions themselves. A position (batch) of int32 is how many tokens of a sequence
// came before the new ones; it is the last operand of all four.
#pragma once

#include <shardwise/operations/attention/record.hpp>
#include <shardwise/operations/rotary/record.hpp>

namespace shardwise::inline v0_1 {

struct cache_attributes {
  std::int64_t dim = 1;  // the dim of positions
};

namespace operations {

// A position for each sequence of x.
constexpr bool is_position(const spec& p, const spec& x) { return p.rank == 1 && x.rank > 0 && same_extent(p, 0, x, 0); }

// How a row cuts `whole` operands that are alike, and the position behind them, which goes with the batch alone.
constexpr rule_row with_position(int alike, placement p) {
  rule_row row{};
  for (int k = 0; k < alike; ++k) row.in[k] = p;
  row.in[alike] = p.is_shard(0) ? p : replicate_value();
  row.out = p;
  return row;
}

// --- cache_update (cache, rows, position) -----------------------------------------------------------------------------------

constexpr outcome shape_of_cache_update(const op_attr& v, const spec* in, int) {
  const spec &cache = in[0], &rows = in[1];
  const int d = static_cast<int>(attributes_of<cache_attributes>(v).dim);
  if (d < 1 || d >= cache.rank || rows.rank != cache.rank || is_dyn(cache, d)) return fail(problem::cache_shapes, cache, 1);
  for (int k = 0; k < cache.rank; ++k)
    if (k == d ? rows.extent[k] > cache.extent[k] : !same_extent(cache, k, rows, k))
      return fail(problem::cache_shapes, cache, 1, k, rows.extent[k], cache.extent[k]);
  if (!is_position(in[2], cache)) return fail(problem::cache_position, cache, 2);
  return {{}, shardwise::contiguous(cache)};
}

// Linear in cache and rows together; rows of any rank's position may be new, so the dim of positions is whole. Its kernels leave operand
// 0 as it is but for the rows, and may be given it as the result's place.
inline constexpr operation cache_update = [] {
  operation o = linear_in(linearity::joint, by_rows(
                                                &shape_of_cache_update,
                                                [](const operation&, const op_attr& v, const spec* in, int, const spec&) {
                                                  using namespace rows;
                                                  rule_rows t;
                                                  for (const placement p : {R, U, P}) t.push_back(with_position(2, p));
                                                  for (int d = 0; d < in[0].rank; ++d)
                                                    if (d != attributes_of<cache_attributes>(v).dim)
                                                      t.push_back(with_position(2, S(d)));
                                                  return t;
                                                },
                                                &refuse_with<problem::cache_placements>, 2, element_rule::any));
  o.writes_into_first = true;
  o.flops = [](const op_attr&, const spec* const* in, const spec&) {
    constexpr int origin[max_axes]{};
    return static_cast<double>(local_numel(*in[1], origin));
  };
  return o;
}();

// --- cached_attention (q, key cache, value cache, position) -----------------------------------------------------------------

constexpr outcome shape_of_cached_attention(const op_attr& v, const spec* in, int) {
  const auto a = attributes_of<attention_attributes>(v);
  if (const finding f = attention_finding(a, in, attention_inputs)) return {f, in[0]};
  if (in[0].extent[a.time()] > in[1].extent[a.time()] || is_dyn(in[1], a.time()))
    return fail(problem::cache_shapes, in[0], 1, a.time(), in[0].extent[a.time()], in[1].extent[a.time()]);
  if (!is_position(in[3], in[0])) return fail(problem::cache_position, in[0], 3);
  outcome r{{}, shardwise::contiguous(in[0])};
  set_extent(r.out, 3, in[2].extent[3]);
  make_contiguous(r.out);
  return r;
}
constexpr rule_rows rows_of_cached_attention(const operation&, const op_attr& v, const spec* in, int, const spec&) {
  using namespace rows;
  const auto a = attributes_of<attention_attributes>(v);
  const int h = a.heads(), t = a.time();
  rule_rows table;
  table.push_back({{R, R, R, R}, R});
  table.push_back({{U, U, U, R}, U});
  table.push_back({{S(0), S(0), S(0), S(0)}, S(0)});
  if (heads_may_be_cut(in[0], in[1], h)) table.push_back({{S(h), S(h), S(h), R}, S(h)});
  table.push_back({{S(t), U, U, R}, S(t)});  // queries
  table.push_back({{U, U, S(3), R}, S(3)});  // the size of values
  return table;
}
constexpr void refuse_cached_attention(finding& f, bool, const operation&, const op_attr& v, const spec* in, int,
                                       const spec&, bool) {
  const int h = attributes_of<attention_attributes>(v).heads();
  const bool heads = in[0].place[f.axis].is_shard(h) && in[1].place[f.axis].is_shard(h);
  f.what = heads && !heads_may_be_cut(in[0], in[1], h) ? problem::attention_groups : problem::cache_placements;
}
inline constexpr operation cached_attention = [] {
  operation o = by_rows(&shape_of_cached_attention, &rows_of_cached_attention, &refuse_cached_attention, 3);
  o.arithmetic = true;
  o.flops = [](const op_attr& v, const spec* const* in, const spec&) {
    return 2 * attention_products(attributes_of<attention_attributes>(v), *in[0], *in[1]) *
           static_cast<double>(largest_block(*in[0]).extent[3] + largest_block(*in[2]).extent[3]);
  };
  o.host_scratch = &attention_host_scratch<false>;
  return o;
}();

// --- rotary_embedding (x, position), position_ids (x, position) -------------------------------------------------------------

constexpr outcome shape_of_rotary_at(const op_attr& v, const spec* in, int n) {
  outcome o = shape_of_rotary(v, in, n);
  if (!o.error && !is_position(in[1], in[0])) return fail(problem::cache_position, in[0], 1);
  return o;
}
inline constexpr operation rotary_at = [] {
  operation o = linear_in(
      linearity::first, by_rows(
                            &shape_of_rotary_at,
                            [](const operation&, const op_attr&, const spec*, int, const spec&) {
                              using namespace rows;
                              rule_rows t;
                              for (const placement p : {R, U, P, S(0), S(1), S(2)}) t.push_back(with_position(1, p));
                              return t;
                            },
                            [](finding& f, bool, const operation&, const op_attr&, const spec* in, int, const spec&, bool) {
                              f.what =
                                  in[0].place[f.axis].is_shard(3) ? problem::rotary_placements : problem::cache_placements;
                            },
                            1));
  o.host_scratch = rotary.host_scratch;
  return o;
}();

constexpr outcome shape_of_position_ids(const op_attr&, const spec* in, int) {
  if (in[0].rank != 2) return fail(problem::cache_position, in[0], 0);
  if (!is_position(in[1], in[0])) return fail(problem::cache_position, in[0], 1);
  return {{}, shardwise::contiguous(in[0])};
}
inline constexpr operation position_ids = by_rows(
    &shape_of_position_ids,
    [](const operation&, const op_attr&, const spec*, int, const spec&) {
      using namespace rows;
      rule_rows t;
      for (const placement p : {R, S(0), S(1)}) t.push_back(with_position(1, p));
      return t;
    },
    &refuse_with<problem::cache_placements>, 1, element_rule::any);

}  // namespace operations

}  // namespace shardwise::inline v0_1
