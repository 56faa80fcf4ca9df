// SPDX-License-Identifier: Apache-2.0
// DTensor's cost model: what it takes to have an operand in other placements, to choose between strategies.
#pragma once

#include <limits>

#include <shardwise/propagation/transition.hpp>

namespace shardwise::inline v0_1 {

// In microseconds: a latency for each hop and a bandwidth; axes that leave a host are slower.
namespace cost_model {
inline constexpr double start = 6.6;
inline constexpr double hop = 0.6;
inline constexpr double hop_between_hosts = 2.7;
inline constexpr double gib_per_second = 87.7;
inline constexpr double share_between_hosts = 0.22;
inline constexpr double no_exchange = 1.0;  // shard to shard is taken for a gather and a little more
inline constexpr double infinite = std::numeric_limits<double>::infinity();
}  // namespace cost_model

namespace detail {

constexpr double hops_cost(const spec& s, int axis, int hops, double gib, int devices_per_host) {
  std::int64_t spanned = 1;  // devices from one step along the axis to the next, times its size
  for (int a = axis; a < s.axes; ++a) spanned *= s.axis_size[a];
  const bool one_host = devices_per_host <= 0 || spanned <= devices_per_host;
  const double latency = one_host ? cost_model::hop : cost_model::hop_between_hosts;
  const double bandwidth = cost_model::gib_per_second * (one_host ? 1.0 : cost_model::share_between_hosts);
  return cost_model::start + hops * latency + gib * hops / s.axis_size[axis] / bandwidth * 1e6;
}

constexpr bool same_mesh(const spec& a, const spec& b) {
  bool same = a.axes == b.axes && a.device == b.device;
  for (int k = 0; k < max_axes; ++k) same = same && a.axis_size[k] == b.axis_size[k];
  return same;
}

}  // namespace detail

// A sum over the axes that differ, blind to the steps of a plan, so that every policy chooses alike. A dyn dim counts
// at its bound. devices_per_host 0: all ranks are on one host.
constexpr double redistribution_cost(const spec& from, const spec& to, int devices_per_host = 0) {
  if (!detail::same_mesh(from, to)) return cost_model::infinite;
  double gib = static_cast<double>(numel(from) * static_cast<std::int64_t>(size_of(from.type))) / (1 << 30);
  for (int a = 0; a < from.axes; ++a)
    if (from.place[a].is_shard()) gib /= from.axis_size[a];
  double total = 0;
  for (int a = 0; a < from.axes; ++a) {
    const placement p = from.place[a], q = to.place[a];
    const int ranks = from.axis_size[a];
    if (p == q || p.is_whole() || (ranks == 1 && q.is_partial())) continue;
    if (q.is_partial()) return cost_model::infinite;
    if (p.is_shard()) {
      if (q.is_whole()) gib *= ranks;
      total += detail::hops_cost(from, a, ranks - 1, gib, devices_per_host);
      if (q.is_shard()) total += cost_model::no_exchange;
    } else if (q.is_whole()) {
      total += detail::hops_cost(from, a, 2 * ranks - 1, gib, devices_per_host);
    } else {
      total += detail::hops_cost(from, a, ranks - 1, gib, devices_per_host);
      gib /= ranks;
    }
  }
  return total;
}

}  // namespace shardwise::inline v0_1
