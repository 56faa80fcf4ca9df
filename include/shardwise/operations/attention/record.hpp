// SPDX-License-Identifier: Apache-2.0
// Records of attention, one operation that never stores its scores, and of its adjoint: out = softmax(scale q k^T + bias) v by
// heads, and lse (batch, heads, queries), the logarithm of the sum of a query's exponentials, from which the adjoint has the weights
// again. delta, of (dout, out): the sum of their products over the size.
#pragma once

#include <shardwise/operations/attention/library_bytes.hpp>
#include <shardwise/operations/contraction/scratch.hpp>
#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1 {

struct attention_attributes {
  std::int64_t layout = 0;  // 0: (batch, heads, time, size), 1: (batch, time, heads, size)
  std::int64_t causal = 0;
  std::int64_t window = 0;  // > 0: query i sees keys i - window + 1 .. i alone
  real dropout;             // the probability that a weight is dropped
  std::int64_t operands =
      0;  // those behind q, k, v (in the adjoint behind delta), as bits of attention_operand, in their order

  constexpr int heads() const { return layout == 0 ? 1 : 2; }
  constexpr int time() const { return layout == 0 ? 2 : 1; }
};

enum class attention_operand : std::uint8_t {
  bias = 1,       // added to the scores, broadcast to (batch, heads, queries, keys)
  mask = 2,       // int32, broadcast alike: 0 hides the key
  documents = 4,  // int32 (batch, time): a query sees the keys of its own document
  key = 8         // four numbers from 0 to 1 that say how weights are dropped
};

namespace operations {

inline constexpr int attention_key_extent = 4;

// Where the operands stand that are not always there; -1: not there.
struct attention_places {
  int bias = -1, mask = -1, documents = -1, key = -1;

  constexpr attention_places(const attention_attributes& a, int first) {
    const auto next = [&](attention_operand o) { return (a.operands & static_cast<int>(o)) != 0 ? first++ : -1; };
    bias = next(attention_operand::bias);
    mask = next(attention_operand::mask);
    documents = next(attention_operand::documents);
    key = next(attention_operand::key);
  }
};
inline constexpr int attention_inputs = 3, attention_adjoint_inputs = 6;  // q, k, v; and lse, dout, delta

constexpr problem attention_problem(const attention_attributes& a) {
  const double p = a.dropout;
  return a.window >= 0 && p >= 0 && p <= 1 ? problem::none : problem::attention_options;
}

// Whether x (of at most four dims) broadcasts to (batch, heads, queries, keys).
constexpr bool is_broadcast_to_scores(const attention_attributes& a, const spec& x, const spec& q, const spec& k) {
  const struct {
    const spec* s;
    int d;
  } whose[4] = {{&q, 0}, {&q, a.heads()}, {&q, a.time()}, {&k, a.time()}};
  if (x.rank > 4) return false;
  for (int d = 0; d < x.rank; ++d) {
    const auto& w = whose[4 - x.rank + d];
    if (!(x.extent[d] == 1 && !is_dyn(x, d)) && !same_extent(x, d, *w.s, w.d)) return false;
  }
  return true;
}
constexpr bool is_document_list(const attention_attributes& a, const spec& x, const spec& q, const spec& k) {
  return x.rank == 2 && same_extent(x, 0, q, 0) && same_extent(x, 1, q, a.time()) && same_extent(x, 1, k, a.time());
}

// Batch, size and keys are everybody's; the heads are, or are a multiple of those of keys and values.
constexpr problem attention_operands_problem(const attention_attributes& a, const spec& q, const spec& k, const spec& v,
                                             bool grouped) {
  if (q.rank != 4 || k.rank != 4 || v.rank != 4) return problem::contraction_rank;
  const int h = a.heads(), t = a.time();
  const auto differ = [](const spec& x, const spec& y, int d) { return !same_extent(x, d, y, d); };
  const bool groups = grouped && !is_dyn(q, h) && !is_dyn(k, h) && k.extent[h] > 0 && q.extent[h] % k.extent[h] == 0;
  if (differ(q, k, 0) || differ(k, v, 0) || differ(k, v, h) || differ(q, k, 3) || differ(k, v, t) ||
      (differ(q, k, h) && !groups))
    return problem::attention_shapes;
  return is_dyn(q, 3) || is_dyn(v, 3) ? problem::attention_dyn : problem::none;
}
constexpr finding attention_finding(const attention_attributes& a, const spec* in, int first) {
  if (const problem p = attention_problem(a); p != problem::none) return {p};
  if (const problem p = attention_operands_problem(a, in[0], in[1], in[2], true); p != problem::none) return {p};
  const attention_places at(a, first);
  for (const int k : {at.bias, at.mask})
    if (k >= 0 && !is_broadcast_to_scores(a, in[k], in[0], in[1])) return {problem::attention_mask_shape, k};
  if (at.documents >= 0 && !is_document_list(a, in[at.documents], in[0], in[1]))
    return {problem::attention_documents_shape, at.documents};
  if (at.key >= 0 && (in[at.key].rank != 1 || in[at.key].extent[0] != attention_key_extent))
    return {problem::attention_options, at.key};
  return {};
}

// (batch, heads, queries), from a tensor laid out as queries are.
constexpr spec attention_statistics(const attention_attributes& a, const spec& q) {
  spec s = scalar_like(q);
  s.rank = 3;
  const int from[] = {0, a.heads(), a.time()};
  for (int d = 0; d < 3; ++d) {
    copy_extent(s, d, q, from[d]);
  }
  make_contiguous(s);
  return s;
}

constexpr outcome shape_of_attention(const op_attr& v, const spec* in, int, int result) {
  const auto a = attributes_of<attention_attributes>(v);
  if (const finding f = attention_finding(a, in, attention_inputs)) return {f, in[0]};
  if (result == 1) return {{}, attention_statistics(a, in[0])};
  outcome r{{}, shardwise::contiguous(in[0])};
  set_extent(r.out, 3, in[2].extent[3]);
  make_contiguous(r.out);
  return r;
}
constexpr outcome shape_of_attention_adjoint(const op_attr& v, const spec* in, int, int result) {
  const auto a = attributes_of<attention_attributes>(v);
  if (const finding f = attention_finding(a, in, attention_adjoint_inputs)) return {f, in[0]};
  return {{}, shardwise::contiguous(in[result])};
}
constexpr outcome shape_of_attention_delta(const op_attr& v, const spec* in, int) {
  if (in[0].rank != 4 || in[1].rank != 4) return fail(problem::contraction_rank, in[0]);
  for (int d = 0; d < 4; ++d)
    if (!same_extent(in[0], d, in[1], d)) return fail(problem::attention_shapes, in[0], 1, d);
  return {{}, attention_statistics(attributes_of<attention_attributes>(v), in[0])};
}

// --- placements -----------------------------------------------------------------------------------------------------------

// Whether blocks of q's heads are, on every rank, the whole groups of the block of k's heads.
constexpr bool are_groups(const spec& q, const spec& k, int h) {
  const std::int64_t group = k.extent[h] > 0 ? q.extent[h] / k.extent[h] : 1;
  int ranks = 1;
  for (int a = 0; a < q.axes; ++a) ranks *= q.place[a].is_shard(h) ? q.axis_size[a] : 1;
  for (int r = 0; r < ranks; ++r) {
    int c[max_axes]{}, left = r;
    for (int a = q.axes - 1; a >= 0; --a) {
      if (!q.place[a].is_shard(h)) continue;
      c[a] = left % q.axis_size[a];
      left /= q.axis_size[a];
    }
    const interval of_q = local_interval(q, h, c), of_k = local_interval(k, h, c);
    if (of_q.size != of_k.size * group || (of_k.size > 0 && of_q.begin != of_k.begin * group)) return false;
  }
  return true;
}
// Heads may be cut where they are equally many, or where no group is cut through: as they are placed, or, if nobody has placed
// them, along any one axis.
constexpr bool heads_may_be_cut(const spec& q, const spec& k, int h) {
  if (same_extent(q, h, k, h)) return true;
  bool placed = false;
  for (int a = 0; a < q.axes; ++a) placed = placed || (q.place[a].is_shard(h) && k.place[a].is_shard(h));
  if (placed) return are_groups(q, k, h);
  for (int a = 0; a < q.axes; ++a) {
    spec cut_q = scalar_like(q), cut_k = scalar_like(k);
    cut_q.rank = cut_k.rank = 4;
    cut_q.extent[h] = q.extent[h];
    cut_k.extent[h] = k.extent[h];
    cut_q.place[a] = cut_k.place[a] = shard_value(h);
    if (!are_groups(cut_q, cut_k, h)) return false;
  }
  return true;
}

// A row's placements of the operands that are not always there. `cut`: which of (batch, heads, queries, keys) the row cuts, -1: none.
// What is broadcast along that is whole there, and so are the documents' ids along the queries, which are keys as well.
constexpr void place_further_operands(results_row& row, const attention_places& at, const spec* in, placement whole,
                                      int cut) {
  for (const int k : {at.bias, at.mask}) {
    if (k < 0) continue;
    const int d = cut - (4 - in[k].rank);
    const bool is_cut = cut >= 0 && d >= 0 && (in[k].extent[d] != 1 || is_dyn(in[k], d));
    row.in[k] = is_cut ? shard_value(d) : k == at.mask ? replicate_value() : whole;
  }
  if (at.documents >= 0) row.in[at.documents] = cut == 0 ? shard_value(0) : replicate_value();
  if (at.key >= 0) row.in[at.key] = whole;
}

constexpr results_rows rows_of_attention(const operation&, const op_attr& v, const spec* in, int, const spec&) {
  using namespace rows;
  const auto a = attributes_of<attention_attributes>(v);
  const attention_places at(a, attention_inputs);
  const int h = a.heads(), t = a.time();
  results_rows table;
  const auto append = [&](results_row row, placement whole, int cut) {
    place_further_operands(row, at, in, whole, cut);
    table.push_back(row);
  };
  append({{R, R, R}, {R, R}}, R, -1);
  append({{U, U, U}, {U, U}}, U, -1);
  append({{S(0), S(0), S(0)}, {S(0), S(0)}}, U, 0);
  if (heads_may_be_cut(in[0], in[1], h)) append({{S(h), S(h), S(h)}, {S(h), S(1)}}, U, 1);
  append({{S(t), U, U}, {S(t), S(2)}}, U, 2);  // queries
  append({{U, U, S(3)}, {S(3), U}}, U, -1);    // the size of values
  return table;
}
constexpr results_rows rows_of_attention_adjoint(const operation&, const op_attr& v, const spec* in, int, const spec&) {
  using namespace rows;
  const auto a = attributes_of<attention_attributes>(v);
  const attention_places at(a, attention_adjoint_inputs);
  const int h = a.heads(), t = a.time();
  results_rows table;
  const auto append = [&](results_row row, placement whole, int cut) {
    place_further_operands(row, at, in, whole, cut);
    table.push_back(row);
  };
  append({{R, R, R, R, R, R}, {R, R, R}}, R, -1);
  append({{U, U, U, U, P, P}, {P, P, P}}, U, -1);  // linear in dout and delta together
  append({{S(0), S(0), S(0), S(0), S(0), S(0)}, {S(0), S(0), S(0)}}, U, 0);
  if (heads_may_be_cut(in[0], in[1], h)) append({{S(h), S(h), S(h), S(1), S(h), S(1)}, {S(h), S(h), S(h)}}, U, 1);
  append({{S(t), U, U, S(2), S(t), S(2)}, {S(t), P, P}}, U, 2);
  append({{U, U, S(3), U, S(3), P}, {P, P, S(3)}}, U, -1);
  return table;
}
constexpr rule_rows rows_of_attention_delta(const operation&, const op_attr& v, const spec*, int, const spec&) {
  using namespace rows;
  const auto a = attributes_of<attention_attributes>(v);
  rule_rows t;
  t.push_back({{R, R}, R});
  t.push_back({{P, U}, P});
  t.push_back({{U, P}, P});
  t.push_back({{S(0), S(0)}, S(0)});
  t.push_back({{S(a.heads()), S(a.heads())}, S(1)});
  t.push_back({{S(a.time()), S(a.time())}, S(2)});
  t.push_back({{S(3), S(3)}, P});
  return t;
}
constexpr void refuse_attention(finding& f, bool, const operation&, const op_attr& v, const spec* in, int, const spec&,
                                bool) {
  const int h = attributes_of<attention_attributes>(v).heads();
  const bool heads = in[0].place[f.axis].is_shard(h) && in[1].place[f.axis].is_shard(h);
  f.what = heads && !heads_may_be_cut(in[0], in[1], h) ? problem::attention_groups : problem::attention_placements;
}

// --- costs ----------------------------------------------------------------------------------------------------------------

// Tiles of the host's kernels: queries by keys.
inline constexpr std::int64_t attention_tile_queries = 48, attention_tile_keys = 256;

// Products of all queries with all keys they may see, for each element of the size: about half where later keys are hidden.
constexpr double attention_products(const attention_attributes& a, const spec& q, const spec& k) {
  const largest_block bq(q), bk(k);
  const double pairs = static_cast<double>(bq.extent[a.time()]) * static_cast<double>(bk.extent[a.time()]);
  return static_cast<double>(bq.extent[0]) * static_cast<double>(bq.extent[a.heads()]) *
         (a.causal != 0 || a.window > 0 ? pairs / 2 : pairs);
}

// Elements of the host's scratch: tiles of scores (of an adjoint two), two numbers a query, and what products pack.
template <class T>
constexpr std::int64_t attention_host_bytes(std::int64_t tq, std::int64_t tk, std::int64_t d, std::int64_t dv,
                                            bool adjoint) {
  const std::int64_t m = tq < attention_tile_queries ? tq : attention_tile_queries,
                     n = tk < attention_tile_keys ? tk : attention_tile_keys;
  const std::int64_t size = d > dv ? d : dv;
  const std::int64_t tiles = (adjoint ? 2 : 1) * device_scratch::align(m * n * static_cast<std::int64_t>(sizeof(T))) +
                             device_scratch::align(2 * attention_tile_queries * static_cast<std::int64_t>(sizeof(T)));
  std::int64_t most = 0;
  const auto product = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    const auto bytes = static_cast<std::int64_t>(host::gemm_workspace_bytes<T>(x, y, z));
    if (bytes > most) most = bytes;
  };
  product(m, n, size);
  product(m, size, n);
  if (adjoint) product(n, size, m);
  return tiles + most;
}
template <bool Adjoint>
constexpr std::int64_t attention_host_scratch(const op_attr& v, const spec* const* in, int, const spec&) {
  const auto a = attributes_of<attention_attributes>(v);
  const largest_block q(*in[0]), k(*in[1]), value(*in[2]);
  const std::int64_t tq = q.extent[a.time()], tk = k.extent[a.time()], d = q.extent[3], dv = value.extent[3];
  return in[0]->type == dtype::f64 ? attention_host_bytes<double>(tq, tk, d, dv, Adjoint)
                                   : attention_host_bytes<float>(tq, tk, d, dv, Adjoint);
}

// Of elements of two bytes, which a library may take (runtime/cuda/attention_library.hpp); linked or not, since a plan knows no
// linker: up to 256 MiB, of one head's adjoint more where that needs it.
template <bool Adjoint>
constexpr std::int64_t attention_device_scratch(const op_attr& v, const spec* const* in, int, const spec&) {
  if (!is_low_precision(in[0]->type)) return 0;
  const auto a = attributes_of<attention_attributes>(v);
  const largest_block q(*in[0]), k(*in[1]), value(*in[2]);
  const attention_extents e{q.extent[0],        q.extent[a.heads()], k.extent[a.heads()], q.extent[a.time()],
                            k.extent[a.time()], q.extent[3],         value.extent[3]};
  if (!Adjoint) return attention_library_forward_bytes;
  return attention_library_adjoint_bytes(e) + attention_projection_bytes(e);
}

// `indices`: the operand that is a mask or documents, -1: none.
constexpr operation attention(int indices) {
  operation o = by_rows(&shape_of_attention, &rows_of_attention, &refuse_attention, indices, element_rule::real,
                        operand_choice::cheapest, recomputing::never, 2);
  o.arithmetic = true;
  o.flops = [](const op_attr& v, const spec* const* in, const spec&) {
    const auto a = attributes_of<attention_attributes>(v);
    return 2 * attention_products(a, *in[0], *in[1]) *
           static_cast<double>(largest_block(*in[0]).extent[3] + largest_block(*in[2]).extent[3]);
  };
  o.host_scratch = &attention_host_scratch<false>;
  o.device_scratch = &attention_device_scratch<false>;
  o.wide = wide_values{0, 2U};  // lse
  return o;
}
constexpr operation attention_adjoint(int indices) {
  operation o = by_rows(&shape_of_attention_adjoint, &rows_of_attention_adjoint, &refuse_attention, indices,
                        element_rule::real, operand_choice::cheapest, recomputing::never, 3);
  o.arithmetic = true;
  o.flops = [](const op_attr& v, const spec* const* in, const spec&) {
    const auto a = attributes_of<attention_attributes>(v);
    return 2 * attention_products(a, *in[0], *in[1]) *
           static_cast<double>(3 * largest_block(*in[0]).extent[3] + 2 * largest_block(*in[2]).extent[3]);
  };
  o.host_scratch = &attention_host_scratch<true>;
  o.device_scratch = &attention_device_scratch<true>;
  o.wide = wide_values{8U + 32U, 0};  // lse and delta
  return o;
}
inline constexpr operation attention_delta = with_wide(
    0, 1U, linear_in(linearity::each, by_rows(&shape_of_attention_delta, &rows_of_attention_delta, &refuse_attention)));

}  // namespace operations

}  // namespace shardwise::inline v0_1
