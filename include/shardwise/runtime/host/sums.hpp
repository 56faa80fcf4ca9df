// SPDX-License-Identifier: Apache-2.0
// Sums over dims of what a function makes of each element; what a product, a mean and a norm of vectors take too.
#pragma once

#include <shardwise/support/config.hpp>
#include <shardwise/runtime/host/kernel.hpp>
#include <shardwise/runtime/host/summation.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {
// Strides with which the summed result follows the operand's dims (0 along summed dims).
constexpr void sum_strides(const op_attr& a, const layout& x, const layout& out, std::int64_t* s) {
  const auto of = attributes_of<sum_attributes>(a);
  int k = 0;
  for (int d = 0; d < x.rank; ++d) {
    const bool summed = (of.dims >> d) & 1, kept = (of.kept >> d) & 1;
    s[d] = summed ? 0 : out.str[k];
    if (!summed || kept) ++k;
  }
}

constexpr std::int64_t summed_count(const op_attr& a, const layout& x) {
  const auto of = attributes_of<sum_attributes>(a);
  std::int64_t n = 1;
  for (int d = 0; d < x.rank; ++d)
    if ((of.dims >> d) & 1) n *= x.global[d];
  return n;
}

struct sum_walks {
  walk<2> kept, summed;
};
constexpr sum_walks walks_of_sum(const op_attr& a, const layout& x, const layout& out) {
  std::int64_t so[max_rank]{};
  sum_strides(a, x, out, so);
  sum_walks w;
  for (int d = 0; d < x.rank; ++d) {
    const std::int64_t s[2] = {so[d], x.str[d]};
    ((attributes_of<sum_attributes>(a).dims >> d) & 1 ? w.summed : w.kept).push(x.ext[d], s);
  }
  w.kept.merge();
  w.summed.merge();
  return w;
}
// Which of the two orders of additions floating-point numbers are added in: columns side by side, or each sum by itself.
constexpr bool sums_columns(const sum_walks& w) {
  return w.kept.ext[w.kept.rank - 1] >= 8 && w.kept.str[1][w.kept.rank - 1] < w.summed.str[1][w.summed.rank - 1] &&
         w.summed.ext[w.summed.rank - 1] > 1;
}

// As by_strides, but for one instruction set where F says that it is narrow.
template <class T, class F, class G, class... S>
constexpr void sum_by_strides(const G& f, S... s) {
  if constexpr (requires { F::narrow; }) f(s...);
  else by_strides<T>(f, s...);
}

// Sums over m <= sum_tile<T> columns sx apart: row after row, four rows at once. Float's columns add up in doubles; what has
// no wider accumulator adds up in stages.
template <class T>
inline constexpr int sum_tile = std::is_same_v<typename math<T>::accumulator, T> ? 512 : 1024;
template <class T, class F, class S>
constexpr void sum_some_columns(const walk<2>& summed, const T* from, std::int64_t m, S sx, const F& value,
                                typename math<T>::accumulator* o) {
  using acc = typename math<T>::accumulator;
  constexpr bool staged = std::is_same_v<acc, T>;
  constexpr int rows_at_once = 4, flush_after = 64;
  acc later[staged ? 2 : 1][sum_tile<T>];
  for (std::int64_t j = 0; j < m; ++j) o[j] = acc(0);
  if constexpr (staged)
    for (auto& row : later)
      for (std::int64_t j = 0; j < m; ++j) row[j] = acc(0);
  const T* pending[rows_at_once]{};
  int have = 0, added = 0;
  const auto term = [&](const T* row, std::int64_t j) { return value(static_cast<acc>(row[j * sx])); };
  const auto add_rows = [&] {
    const T *const a = pending[0], *const b = pending[1], *const c = pending[2], *const d = pending[3];
    if (have == rows_at_once) {
      SHARDWISE_IVDEP
      for (std::int64_t j = 0; j < m; ++j) o[j] = o[j] + ((term(a, j) + term(b, j)) + (term(c, j) + term(d, j)));
    } else {
      for (int k = 0; k < have; ++k)
        for (std::int64_t j = 0; j < m; ++j) o[j] = o[j] + term(pending[k], j);
    }
    have = 0;
    if constexpr (staged) {
      if (++added % flush_after != 0) return;
      for (std::int64_t j = 0; j < m; ++j) later[0][j] = later[0][j] + o[j], o[j] = acc(0);
      if (added % (flush_after * flush_after) != 0) return;
      for (std::int64_t j = 0; j < m; ++j) later[1][j] = later[1][j] + later[0][j], later[0][j] = acc(0);
    }
  };
  summed.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    for (std::int64_t i = 0; i < n; ++i) {
      pending[have++] = from + off[1] + i * s[1];
      if (have == rows_at_once) add_rows();
    }
  });
  if (have > 0) add_rows();
  if constexpr (staged)
    for (std::int64_t j = 0; j < m; ++j) o[j] = later[1][j] + (later[0][j] + o[j]);
}

// The same over all columns of `kept`, a tile of them after the other.
template <class T, class F, class G>
void sum_columns(const walk<2>& kept, const walk<2>& summed, const T* x, T* o, const F& value, const G& finish) {
  const int last = kept.rank - 1;
  const std::int64_t columns = kept.ext[last], sx = kept.str[1][last], so = kept.str[0][last];
  walk<2> outer = kept;
  outer.rank = last;
  typename math<T>::accumulator total[sum_tile<T>];
  each_offset(outer, [&](const std::int64_t* at) {
    for (std::int64_t first = 0; first < columns; first += sum_tile<T>) {
      const std::int64_t m = columns - first < sum_tile<T> ? columns - first : sum_tile<T>;
      const T* const from = x + at[1] + first * sx;
      sum_by_strides<T, F>([&](auto s) { sum_some_columns<T>(summed, from, m, s, value, total); }, sx);
      T* const to = o + at[0] + first * so;
      for (std::int64_t j = 0; j < m; ++j) to[j * so] = finish(total[j]);
    }
  });
}

// Sums of n rows, sx apart, each of `count` elements that are `step` apart.
template <class T, class F>
constexpr void sum_rows(const T* x, std::int64_t n, std::int64_t sx, std::int64_t count, std::int64_t step, const F& value,
                        typename math<T>::accumulator* o) {
  sum_by_strides<T, F>(
      [&](auto s) {
        for (std::int64_t i = 0; i < n; ++i) o[i] = sum_of(x + i * sx, count, s, value);
      },
      step);
}

// The same, where loops over a row's elements are not worth their beginning or not fast: many rows side by side.
template <class T, class F>
constexpr void sum_short_rows(const T* x, std::int64_t n, std::int64_t sx, std::int64_t count, std::int64_t step,
                              const F& value, typename math<T>::accumulator* o) {
  using acc = typename math<T>::accumulator;
  constexpr bool narrow = requires { F::narrow; };
  independent_loop<std::conditional_t<narrow, std::int64_t, T>>(n, [=, value = value](std::int64_t i) {
    acc total = acc(0);
    for (std::int64_t k = 0; k < count; ++k) total = total + value(static_cast<acc>(x[i * sx + k * step]));
    o[i] = total;
  });
}

// finish(sum of value(element)) for every result; terms and sums are of the accumulator's type.
template <class T, class F, class G>
constexpr void sum_values(const call& c, const operands<T>& q, F value, G finish) {
  using acc = typename math<T>::accumulator;
  const sum_walks both = walks_of_sum(c.a, c.l[0], c.l[result]);
  const walk<2>&kept = both.kept, &summed = both.summed;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::is_constant_evaluated() && sums_columns(both)) {
      sum_columns(kept, summed, static_cast<const T*>(q.p[0]), q.p[result], value, finish);
      return;
    }
  const T* const in = q.p[0];
  T* const out = q.p[result];
  const std::int64_t count = summed.ext[summed.rank - 1], step = summed.str[1][summed.rank - 1];
  // several runs that make a sum: each is read for all sums of a tile before the next, as they lie in memory
  constexpr std::int64_t tile = std::is_floating_point_v<T> ? 128 : 8;
  walk<2> outer = summed;
  outer.rank = summed.rank - 1;
  bool empty = false;  // there is nothing to point into
  for (int d = 0; d < summed.rank; ++d) empty = empty || summed.ext[d] == 0;
  kept.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    if (outer.rank == 0 && count == 1) {
      const auto each = [&](auto to, auto from) {
        SHARDWISE_IVDEP
        for (std::int64_t i = 0; i < n; ++i) out[off[0] + i * to] = finish(value(static_cast<acc>(in[off[1] + i * from])));
      };
      return sum_by_strides<T, F>(each, s[0], s[1]);
    }
    for (std::int64_t first = 0; first < n; first += tile) {
      const std::int64_t m = n - first < tile ? n - first : tile;
      const T* const rows = empty ? in : in + off[1] + first * s[1];
      acc total[tile];
      if (outer.rank == 0 && (count < 4 || (step != 1 && count < 64))) {
        sum_short_rows<T>(rows, m, s[1], count, step, value, total);
      } else if (outer.rank == 0) {
        sum_rows<T>(rows, m, s[1], count, step, value, total);
      } else {
        staged_sum<acc> all[tile];
        each_offset(outer, [&](const std::int64_t* at) {
          sum_rows<T>(rows + at[1], m, s[1], count, step, value, total);
          for (std::int64_t i = 0; i < m; ++i) all[i].add(total[i]);
        });
        for (std::int64_t i = 0; i < m; ++i) total[i] = all[i].total();
      }
      for (std::int64_t i = 0; i < m; ++i) out[off[0] + (first + i) * s[0]] = finish(total[i]);
    }
  });
}
template <class T, bool Square>
constexpr void sum_into(const call& c, const operands<T>& q) {
  using acc = typename math<T>::accumulator;
  const auto rounded = [](acc total) { return static_cast<T>(total); };
  if constexpr (Square) sum_values(c, q, squared{}, rounded);
  else sum_values(c, q, as_it_is{}, rounded);
}
}  // namespace detail

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

SHARDWISE_UNFUSED_END
