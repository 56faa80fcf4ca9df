// SPDX-License-Identifier: Apache-2.0
// Attention in tiles of queries and keys: scores and weights of one tile at a time, by the host's matrix product, with the largest
// score and the sum of exponentials of the keys so far (Dao et al., 2022). Price of the adjoint: scores are computed once more.
#pragma once

#include <shardwise/operations/attention/host_plain.hpp>
#include <shardwise/runtime/host/finite.hpp>
#include <shardwise/runtime/host/gemm.hpp>
#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/support/config.hpp>
#if defined(SHARDWISE_WITH_BLAS)
#include <shardwise/runtime/host/cblas.hpp>
#endif

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace attention_detail {

#if defined(SHARDWISE_WITH_BLAS)
namespace product = shardwise::host::cblas;
#else
namespace product = shardwise::host;
#endif

using host::is_finite;
template <class T>
bool is_finite(const attention_block<const T>& x, std::int64_t b, std::int64_t h, std::int64_t times, std::int64_t size) {
  bool finite = true;
  for (std::int64_t t = 0; t < times && finite; ++t) finite = is_finite(x.at(b, h, t), size);
  return finite;
}
struct checked_by_heads {};
// Law: of one head, products with what is not finite would take it where it is not seen (0 times infinity), so such heads go
// the plain way; all others have no such factors. dout: null without gradients.
template <class T>
struct finite_heads {
  const attention_call<T>& x;
  const attention_block<const T>* dout;
  bool all;

  finite_heads(const attention_call<T>& of, const attention_block<const T>* gradient)
      : x(of),
        dout(gradient),
        all(is_finite_in(x.q) && is_finite_in(x.k) && is_finite_in(x.v) && (!dout || is_finite_in(*dout))) {}
  // Head by head alone: of a call that has not all of its blocks' keys.
  finite_heads(const attention_call<T>& of, const attention_block<const T>* gradient, checked_by_heads)
      : x(of), dout(gradient), all(false) {}
  // Head kh of k, and those of q that read it.
  bool operator()(std::int64_t b, std::int64_t kh) const {
    if (all) return true;
    bool finite = is_finite<T>(x.k, b, kh, x.keys, x.size) && is_finite<T>(x.v, b, kh, x.keys, x.value_size);
    for (std::int64_t h = kh * x.group; finite && h < (kh + 1) * x.group; ++h)
      finite = is_finite<T>(x.q, b, h, x.queries, x.size) && (!dout || is_finite<T>(*dout, b, h, x.queries, x.value_size));
    return finite;
  }

 private:
  // Where the groups to compute lie, whole elements of the batch.
  bool is_finite_in(const attention_block<const T>& y) const {
    if (x.groups.size == 0) return true;
    const std::int64_t first = x.groups.begin / x.key_heads, last = (x.groups.begin + x.groups.size - 1) / x.key_heads;
    return is_finite(y.data + first * y.batch, (last - first + 1) * y.batch);
  }
};

// Scratch in parts.
template <class T>
struct tile_space {
  T *s, *g, *top, *total;
  void* product;

  tile_space(T* scratch, std::int64_t queries, std::int64_t keys, bool adjoint) {
    using operations::attention_tile_keys, operations::attention_tile_queries;
    const std::int64_t m = queries < attention_tile_queries ? queries : attention_tile_queries,
                       n = keys < attention_tile_keys ? keys : attention_tile_keys;
    const auto elements = [](std::int64_t count) {
      return device_scratch::align(count * static_cast<std::int64_t>(sizeof(T))) / static_cast<std::int64_t>(sizeof(T));
    };
    s = scratch;
    g = s + elements(m * n);
    top = adjoint ? g + elements(m * n) : g;
    total = top + attention_tile_queries;
    product = top + elements(2 * attention_tile_queries);
  }
};

// Where a tile begins: a query of the block, and a key.
struct tile {
  std::int64_t b, h, query, rows, key, columns;
};

// Row r's keys: [first, end) of the tile's columns.
template <class T>
struct seen_columns {
  std::int64_t first, end;
  seen_columns(const attention_call<T>& x, const tile& t, std::int64_t r) {
    const std::int64_t from = x.first_key(t.query + r) - t.key, to = x.end_key(t.query + r) - t.key;
    first = from < 0 ? 0 : from < t.columns ? from : t.columns;
    end = to < first ? first : to < t.columns ? to : t.columns;
  }
};
// Adds the bias, and takes what is not seen to minus infinity.
template <class T>
void add_bias(const attention_call<T>& x, const tile& t, std::int64_t r, const seen_columns<T>& seen, T* row) {
  if (x.bias) {
    const T* const bias = x.bias.row(t.b, t.h, t.query + r) + t.key * x.bias.stride[3];
    const std::int64_t step = x.bias.stride[3];
    for (std::int64_t c = seen.first; c < seen.end; ++c) row[c] = row[c] + bias[c * step];
  }
  if (x.is_marked())
    for (std::int64_t c = seen.first; c < seen.end; ++c)
      if (!x.sees(t.b, t.h, t.query + r, t.key + c)) row[c] = math<T>::lowest();
}
template <class T>
void drop(const attention_call<T>& x, const tile& t, std::int64_t r, const seen_columns<T>& seen, attention_drops& drops,
          T* row) {
  const std::int64_t first = first_weight(x, t.b, t.h, t.query + r) + t.key;
  for (std::int64_t c = seen.first; c < seen.end; ++c) row[c] = row[c] * drops.template factor<T, math<T>>(first + c);
}

// Scores become weights, less a factor of their row; of each row, top and total go on, and what `out` has so far is brought to
// the new top.
template <class T>
void weigh(const attention_call<T>& x, const tile& t, const tile_space<T>& w, attention_drops& drops, bool first_keys,
           const attention_block<T>& out) {
  const auto rows = [&](auto one) {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      const seen_columns<T> seen(x, t, r);
      T* const row = w.s + r * t.columns;
      const std::int64_t n = seen.end - seen.first;
      if (x.bias || x.is_marked()) add_bias(x, t, r, seen, row);
      const T before = w.top[r];
      const T top = n > 0 ? math<T>::max(before, largest_of(static_cast<const T*>(row + seen.first), n, one)) : before;
      const T base = detail::finite_or_zero(top);
      detail::exp_row(static_cast<const T*>(row + seen.first), n, one, base, row + seen.first);
      const T sum = static_cast<T>(sum_of(static_cast<const T*>(row + seen.first), n, one));
      for (std::int64_t c = 0; c < seen.first; ++c) row[c] = T(0);
      for (std::int64_t c = seen.end; c < t.columns; ++c) row[c] = T(0);
      if (x.key) drop(x, t, r, seen, drops, row);
      w.top[r] = top;
      if (first_keys) {
        w.total[r] = sum;
      } else if (before == top) {
        w.total[r] = w.total[r] + sum;
      } else {
        const T factor = math<T>::exp(before - base);
        w.total[r] = w.total[r] * factor + sum;
        T* const o = out.at(t.b, t.h, t.query + r);
        for (std::int64_t c = 0; c < x.value_size; ++c) o[c] = o[c] * factor;
      }
    }
  };
  by_strides<T>(rows, 1);
}

template <class T>
void finish(const attention_call<T>& x, const tile& t, const tile_space<T>& w, const attention_block<T>& out, T* lse) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const bool none = w.total[r] == T(0);
    T* const o = out.at(t.b, t.h, t.query + r);
    const T inverse = T(1) / w.total[r];
    for (std::int64_t c = 0; c < x.value_size; ++c) o[c] = none ? T(0) : o[c] * inverse;
    if (lse) lse[r] = none ? math<T>::lowest() : detail::finite_or_zero(w.top[r]) + math<T>::log(w.total[r]);
  }
}

// The keys that a tile of queries sees by their places, in tiles.
template <class T, class F>
void each_tile(const attention_call<T>& x, tile t, const F& f) {
  const std::int64_t first = x.first_key(t.query), end = x.end_key(t.query + t.rows - 1);
  for (t.key = first; t.key < end; t.key += operations::attention_tile_keys) {
    const std::int64_t rest = end - t.key;
    t.columns = rest < operations::attention_tile_keys ? rest : operations::attention_tile_keys;
    f(t);
  }
}

// s = scale q k^T of a tile.
template <class T>
void score(const attention_call<T>& x, const tile& t, const tile_space<T>& w) {
  product::gemm<T>(t.rows, t.columns, x.size, x.scale, {x.q.at(t.b, t.h, t.query), x.q.time, 1},
                   {x.k.at(t.b, t.h / x.group, t.key), 1, x.k.time}, T(0), {w.s, t.columns, 1}, w.product);
}

template <class T>
void attend_tiles(const attention_call<T>& x, tile t, const tile_space<T>& w, attention_drops& drops,
                  const attention_block<T>& out, T* lse) {
  for (std::int64_t r = 0; r < t.rows; ++r) w.top[r] = math<T>::lowest(), w.total[r] = T(0);
  bool first = true;
  each_tile(x, t, [&](const tile& at) {
    score(x, at, w);
    weigh(x, at, w, drops, first, out);
    product::gemm<T>(at.rows, x.value_size, at.columns, T(1), {w.s, at.columns, 1},
                     {x.v.at(at.b, at.h / x.group, at.key), x.v.time, 1}, first ? T(0) : T(1),
                     {out.at(at.b, at.h, at.query), out.time, 1}, w.product);
    first = false;
  });
  finish(x, t, w, out, lse);
}

// s: the weights that values are multiplied by; g: what the scores' gradient is, less the scale.
template <class T>
void weigh_back(const attention_call<T>& x, const attention_gradients<T>& q, const tile& t, const tile_space<T>& w,
                attention_drops& drops) {
  const std::int64_t at = (t.b * x.heads + t.h) * x.queries + t.query;
  const auto rows = [&](auto one) {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      seen_columns<T> seen(x, t, r);
      T *const p = w.s + r * t.columns, *const g = w.g + r * t.columns;
      const T lse = q.lse[at + r], delta = q.delta[at + r];
      if (lse == math<T>::lowest()) seen.end = seen.first;
      const std::int64_t n = seen.end - seen.first;
      if (x.bias || x.is_marked()) add_bias(x, t, r, seen, p);
      detail::exp_row(static_cast<const T*>(p + seen.first), n, one, lse, p + seen.first);
      if (x.key) {
        drop(x, t, r, seen, drops, g);
        for (std::int64_t c = seen.first; c < seen.end; ++c) g[c] = p[c] * (g[c] - delta);
        drop(x, t, r, seen, drops, p);
      } else {
        SHARDWISE_IVDEP
        for (std::int64_t c = seen.first; c < seen.end; ++c) g[c] = p[c] * (g[c] - delta);
      }
      for (std::int64_t c = 0; c < seen.first; ++c) p[c] = g[c] = T(0);
      for (std::int64_t c = seen.end; c < t.columns; ++c) p[c] = g[c] = T(0);
    }
  };
  by_strides<T>(rows, 1);
}

template <class T>
void attend_tiles_back(const attention_call<T>& x, const attention_gradients<T>& q, tile t, const tile_space<T>& w,
                       attention_drops& drops) {
  bool first = true;
  each_tile(x, t, [&](const tile& at) {
    const std::int64_t kh = at.h / x.group;
    score(x, at, w);
    const T* const dout = q.dout.at(at.b, at.h, at.query);
    product::gemm<T>(at.rows, at.columns, x.value_size, T(1), {dout, q.dout.time, 1},
                     {x.v.at(at.b, kh, at.key), 1, x.v.time}, T(0), {w.g, at.columns, 1}, w.product);
    weigh_back(x, q, at, w, drops);
    if (q.dv.data)
      product::gemm<T>(at.columns, x.value_size, at.rows, T(1), {w.s, 1, at.columns}, {dout, q.dout.time, 1}, T(1),
                       {q.dv.at(at.b, kh, at.key), q.dv.time, 1}, w.product);
    if (q.dk.data)
      product::gemm<T>(at.columns, x.size, at.rows, x.scale, {w.g, 1, at.columns},
                       {x.q.at(at.b, at.h, at.query), x.q.time, 1}, T(1), {q.dk.at(at.b, kh, at.key), q.dk.time, 1},
                       w.product);
    if (q.dq.data)
      product::gemm<T>(at.rows, x.size, at.columns, x.scale, {w.g, at.columns, 1}, {x.k.at(at.b, kh, at.key), x.k.time, 1},
                       first ? T(0) : T(1), {q.dq.at(at.b, at.h, at.query), q.dq.time, 1}, w.product);
    first = false;
  });
  if (first && q.dq.data)  // no key for any of them
    for (std::int64_t r = 0; r < t.rows; ++r)
      for (std::int64_t c = 0; c < x.size; ++c) q.dq.at(t.b, t.h, t.query + r)[c] = T(0);
}

// f(tile without keys) for the queries of the heads that read head kh.
template <class T, class F>
void each_query_tile(const attention_call<T>& x, std::int64_t b, std::int64_t kh, const F& f) {
  using operations::attention_tile_queries;
  for (std::int64_t h = kh * x.group; h < (kh + 1) * x.group; ++h)
    for (std::int64_t i = 0; i < x.queries; i += attention_tile_queries) {
      const std::int64_t rest = x.queries - i;
      f(tile{b, h, i, rest < attention_tile_queries ? rest : attention_tile_queries, 0, 0});
    }
}

}  // namespace attention_detail

// A whole call. lse: null where nobody wants it.
template <class T>
__attribute__((noinline)) void attend(const attention_call<T>& x, const attention_block<T>& out, T* lse, T* scratch) {
  namespace d = attention_detail;
  const d::tile_space<T> w(scratch, x.queries, x.keys, false);
  attention_drops drops;
  if (x.key) drops = drops_of<math<T>>(x.key, x.a.dropout);
  const d::finite_heads<T> finite(x, nullptr);
  each_group(x, [&](std::int64_t b, std::int64_t kh) {
    if (!finite(b, kh)) return attend_group<T>(x, b, kh, out, lse);
    d::each_query_tile(x, b, kh, [&](const d::tile& t) {
      d::attend_tiles(x, t, w, drops, out, lse ? lse + (b * x.heads + t.h) * x.queries + t.query : nullptr);
    });
  });
}
template <class T>
__attribute__((noinline)) void attend_back(const attention_call<T>& x, const attention_gradients<T>& g, T* scratch) {
  namespace d = attention_detail;
  const d::tile_space<T> w(scratch, x.queries, x.keys, true);
  attention_drops drops;
  if (x.key) drops = drops_of<math<T>>(x.key, x.a.dropout);
  const d::finite_heads<T> finite(x, &g.dout);
  each_group(x, [&](std::int64_t b, std::int64_t kh) {
    if (!finite(b, kh)) return attend_group_back<T>(x, g, b, kh);
    clear_attention_keys(g.dk, b, kh, x.keys, x.size);
    clear_attention_keys(g.dv, b, kh, x.keys, x.value_size);
    d::each_query_tile(x, b, kh, [&](const d::tile& t) { d::attend_tiles_back(x, g, t, w, drops); });
  });
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
