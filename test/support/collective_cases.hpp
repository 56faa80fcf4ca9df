// SPDX-License-Identifier: Apache-2.0
// What collectives of a backend are tried with: redistributions of every kind as values, and operands for them.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <shardwise/propagation/halo.hpp>
#include <shardwise/runtime/program/blocks.hpp>
#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/operand.hpp>

namespace test {

namespace sw = shardwise;

// One redistribution: a tensor placed `before` on the axes, and what the placement on `axis` becomes.
struct change {
  std::vector<std::int64_t> extent;
  std::vector<sw::placement> before;
  int axis;
  sw::placement to;
};

template <class Mesh>
sw::spec spec_for(const change& x, sw::dtype type) {
  sw::spec s = sw::detail::mesh_spec<Mesh>(type);
  s.rank = static_cast<std::uint8_t>(x.extent.size());
  for (std::size_t d = 0; d < x.extent.size(); ++d) s.extent[d] = x.extent[d];
  sw::make_contiguous(s);
  for (std::size_t a = 0; a < x.before.size(); ++a) s.place[a] = x.before[a];
  return s;
}

// Every kind, every reduction and dim, extents that the axis divides and that leave short and empty shards; then
// blocks.
inline std::vector<change> changes_of_line(int n) {
  using sw::partial_value, sw::replicate_value, sw::shard_value, sw::reduced_value;
  std::vector<change> all;
  const auto add = [&](std::vector<std::int64_t> e, sw::placement from, sw::placement to) {
    all.push_back({std::move(e), {from}, 0, to});
  };
  std::vector<sw::placement> partials{sw::partial_norm_value(1), sw::partial_norm_value(2)};
  for (int op = 0; op <= 4; ++op) partials.push_back(partial_value(static_cast<sw::reduction>(op)));
  for (const sw::placement& p : partials) {
    for (std::int64_t e : {1, 7, 4096}) add({e, 3}, p, replicate_value());
    add({}, p, reduced_value());
    for (std::int64_t e : {4 * n, 5, 3, 1})
      for (int d = 0; d < 3; ++d) {
        std::vector<std::int64_t> x{6, 2, 8};
        x[static_cast<std::size_t>(d)] = e;
        add(x, p, shard_value(d));
      }
  }
  for (std::int64_t e : {4 * n, 5, 3, 1, 64 * n + 1})
    for (int d = 0; d < 3; ++d)
      for (std::int64_t inner : {8, 5}) {
        std::vector<std::int64_t> x{6, 3, inner};
        x[static_cast<std::size_t>(d)] = e;
        add(x, shard_value(d), replicate_value());
        for (int t = 0; t < 3; ++t)
          if (t != d) add(x, shard_value(d), shard_value(t));
      }
  for (int d = 0; d < 3; ++d) {
    std::vector<std::int64_t> x{2, 2, 2};
    for (std::int64_t e : {4 * n + 8, 20, 4}) {
      x[static_cast<std::size_t>(d)] = e;
      add(x, shard_value(d, 4), replicate_value());
      add(x, partial_value(), shard_value(d, 4));
      add(x, shard_value(d), shard_value(d, 4));
      add(x, shard_value(d, 4), shard_value(d, 2));
      add(x, shard_value(d, 2), shard_value((d + 1) % 3));
    }
  }
  // halos: of one row and of several ranks' rows, without and with gaps between windows, of windows and of what reads elements
  for (const sw::sliding& by : {sw::sliding{1, 1, 1}, sw::sliding{1, 0, 9}, sw::sliding{2, 3, 2}, sw::sliding{3, 0, 0}})
    for (std::int64_t e : {4 * n, 7, 3, 1})
      for (int d = 0; d < 3; ++d) {
        std::vector<std::int64_t> x{6, 3, 5};
        x[static_cast<std::size_t>(d)] = e;
        add(x, shard_value(d), by.windows(d, (e - 1) / by.step + 1));
        add(x, shard_value(d), by.readers(d, e * by.step));
      }
  return all;
}

inline std::vector<change> changes_of_grid() {
  using sw::partial_value, sw::replicate_value, sw::shard_value;
  std::vector<change> all;
  for (std::int64_t e : {16, 7, 3}) {
    for (int d = 0; d < 2; ++d) {
      all.push_back({{e, e, 4}, {partial_value(), shard_value(d)}, 0, replicate_value()});
      all.push_back({{e, e, 4}, {shard_value(d), partial_value()}, 1, shard_value(d)});
      all.push_back({{e, e, 4}, {shard_value(d), shard_value(d)}, 1, replicate_value()});
      all.push_back({{e, e, 4}, {shard_value(d), shard_value(d)}, 1, shard_value(1 - d)});
      all.push_back({{e, e, 4}, {shard_value(d), shard_value(1 - d)}, 0, replicate_value()});
      // the first axis splits what the second left
      const auto after = sw::strided_shard_value(d, 2);
      all.push_back({{e, e, 4}, {after, shard_value(d)}, 0, replicate_value()});
      all.push_back({{e, e, 4}, {after, shard_value(d)}, 0, shard_value(1 - d)});
      all.push_back({{e, e, 4}, {partial_value(), shard_value(d)}, 0, after});
      all.push_back({{e, e, 4}, {shard_value(1 - d), shard_value(d)}, 0, after});
    }
  }
  // halos of columns beside shards of rows, and of rows that have halos of columns
  for (std::int64_t e : {8, 7, 3, 1}) {
    const sw::sliding by{1, 2, 1};
    all.push_back({{e, 5, 2}, {shard_value(0), shard_value(1)}, 1, by.windows(1, 5)});
    all.push_back({{5, e, 2}, {shard_value(0), by.windows(1, e)}, 0, by.windows(0, 5)});
    all.push_back({{5, e, 2}, {shard_value(0), by.readers(1, e)}, 0, by.readers(0, 5)});
  }
  // one dim divided by both axes, the inner division's boundaries moved
  for (std::int64_t e : {24, 40, 8, 4})
    for (int d = 0; d < 2; ++d) {
      std::vector<std::int64_t> x{2, 2, 3};
      x[static_cast<std::size_t>(d)] = e;
      all.push_back({x, {shard_value(d), shard_value(d)}, 1, shard_value(d, 4)});
      all.push_back({x, {shard_value(d, 2), shard_value(d, 4)}, 1, shard_value(d)});
    }
  return all;
}

// Small integers, so that sums are exact in any order; `turn` tells runs of one call apart. Extremes meet NaNs and infinities.
template <class T>
T value_of(sw::reduction op, int turn, int rank, std::int64_t i) {
  const std::int64_t k = (i * 7 + rank * 13 + turn * 5 + i / 11) % 9;
  if (op == sw::reduction::product) return static_cast<T>(k % 3 == 0 ? -1 : k % 3);
  if constexpr (sw::is_floating_element<T>)
    if (op == sw::reduction::max || op == sw::reduction::min) {
      if ((i + rank + turn) % 5 == 0) return static_cast<T>(std::numeric_limits<float>::quiet_NaN());
      if (k == 0) return static_cast<T>(std::numeric_limits<float>::infinity() * (i % 2 == 0 ? 1.F : -1.F));
    }
  return static_cast<T>(k - 3);
}

}  // namespace test
