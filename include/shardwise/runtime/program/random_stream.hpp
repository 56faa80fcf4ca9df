// SPDX-License-Identifier: Apache-2.0
// Where random operations draw: by element, the same on every mesh; or by offset in one stream, as PyTorch's DTensor.
#pragma once

#include <shardwise/operations/all.hpp>
#include <shardwise/support/dynamic_array.hpp>
#include <shardwise/vocabulary/spec.hpp>

namespace shardwise::inline v0_1::runtime {

// random_policy::by_element, the default: a number is a function of (seed, step, site, global element index), so that
// neither mesh nor placement changes it.
//
// random_policy::by_offset: all sites of a step share the stream (seed, step). A site begins where the one before it
// ended: offsets grow by the global number of elements, rounded up to 4. Its ranks draw from that offset on plus
// (linear index of their shard) * (elements of a full shard), rounded up to 4: ranks that hold the same elements draw the
// same numbers, shards others, and a number depends on the placement. A shard of fewer than 4 elements may meet its
// neighbour's numbers, as in PyTorch.

constexpr std::int64_t ceil4(std::int64_t n) { return (n + 3) / 4 * 4; }

constexpr std::int64_t numel_at(const spec& s, const run_sizes& n) {
  std::int64_t k = 1;
  for (int d = 0; d < s.rank; ++d) k *= extent_at(s, d, n);
  return k;
}

// From a site's offset to that of the block at mesh coordinate `c`; nested shards of one dim count in axis order.
constexpr std::int64_t shard_offset(const spec& s, const int* c, const run_sizes& n = {}) {
  constexpr int origin[max_axes]{};
  std::int64_t linear = 0;
  for (int d = 0; d < s.rank; ++d)
    for (int a = 0; a < s.axes; ++a)
      if (s.place[a].is_shard(d)) linear = linear * s.axis_size[a] + c[a];
  return ceil4(linear * local_numel(s, origin, n));
}

// Offsets of a program's sites, from `first` on; returns where the last one ends.
template <class Graph>
std::int64_t site_offsets(const Graph& g, const run_sizes& n, std::int64_t first, dynamic_array<std::int64_t>& offset) {
  const std::size_t before = offset.size();
  offset.resize(before + static_cast<std::size_t>(g.sites), 0);
  for (int i = 0; i < g.node_count; ++i)
    if (rules::is_random(g.nodes[i].op))
      offset[before + static_cast<std::size_t>(attributes_of<random_attributes>(g.nodes[i].a).site)] =
          ceil4(numel_at(g.specs[g.nodes[i].spec], n));
  for (std::size_t s = before; s < offset.size(); ++s) {
    const std::int64_t size = offset[s];
    offset[s] = first;
    first += size;
  }
  return first;
}

}  // namespace shardwise::inline v0_1::runtime
