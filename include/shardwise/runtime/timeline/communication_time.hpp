// SPDX-License-Identifier: Apache-2.0
// communication_time: how long a recorded step's collectives took, and how much of that lay under kernels of the same rank.
#pragma once

#include <shardwise/runtime/timeline/timeline.hpp>

namespace shardwise::inline v0_1 {

// Nanoseconds. `hidden` is the part of `total` during which a kernel of this rank ran. A collective that waits for ranks that come late
// counts from when it began.
struct communication_time {
  std::int64_t total = 0, hidden = 0;

  // Of all, between 0 and 1; 1 where there is no collective.
  double hidden_share() const { return total > 0 ? static_cast<double>(hidden) / static_cast<double>(total) : 1; }
};

// Of one of `line`'s runs. Law: hidden = the sum over collectives of the length of [begin, end) intersected with the union of all
// kernels' spans, which an executor records in order. Copies (call_kind::copy) hide nothing, and what has not ended does not count.
// Price: one walk over the run's events for each collective. Throws nothing.
inline communication_time communication_time_of(const timeline& line, const timeline_run& run) {
  const auto events = line.events(run);
  const auto& calls = line.program_of(run).calls;
  const auto is = [&](const timeline_event& e, call_kind kind) {
    return e.kind == event_kind::call && e.time.end >= e.time.begin && e.time.begin >= 0 &&
           calls[static_cast<std::size_t>(e.call)].kind == kind;
  };
  communication_time r;
  for (const timeline_event& c : events) {
    if (!is(c, call_kind::communication)) continue;
    r.total += c.time.end - c.time.begin;
    std::int64_t at = c.time.begin;           // all before it is counted
    for (const timeline_event& k : events) {  // kernels of one stream, one after the other
      if (!is(k, call_kind::compute)) continue;
      const std::int64_t begin = k.time.begin > at ? k.time.begin : at,
                         end = k.time.end < c.time.end ? k.time.end : c.time.end;
      if (end <= begin) continue;
      r.hidden += end - begin;
      at = end;
    }
  }
  return r;
}

}  // namespace shardwise::inline v0_1
