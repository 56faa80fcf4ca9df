// SPDX-License-Identifier: Apache-2.0
// schedule: which calls of a program run on the communication stream, and which must wait for a call of the other one.
#pragma once

#include <array>
#include <cstdint>

#include <shardwise/runtime/program/lowered.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1::runtime {

inline constexpr int compute_stream = 0, communication_stream = 1, stream_count = 2;

struct scheduled_call {
  int stream = compute_stream;
  int wait = -1;         // the call of the other stream that must be done before this one starts, -1: none
  bool awaited = false;  // a later call of the other stream waits for this one
};

// The bytes of the arena that a call reads and writes. All communicators of a device together are one more thing that
// every collective writes: two of them at once can lock each other out of it, so they run in program order.
struct access {
  std::int64_t begin, end;
  bool write;
};

constexpr bool conflict(const access& a, const access& b) {
  return (a.write || b.write) && a.begin < b.end && b.begin < a.end;
}

inline dynamic_array<access> accesses_of(const program_tables& program, const call& c, bool one_device = true) {
  const graph_view& g = program.graph;
  const plan_view& plan = program.plan;
  const node& n = g.nodes[c.node];
  dynamic_array<access> all;
  auto touch = [&](int id, bool write) {
    const int own = plan.owner[id];
    if (plan.bytes[own] > 0) all.push_back({plan.offset[own], plan.offset[own] + plan.bytes[own], write});
  };
  // an update writes its parameter and states, and reads its gradient and the clip factor; a buffer is there to be written
  for (int j = 0; j < n.inputs; ++j) touch(n.in[j], g.nodes[n.in[j]].op == op_code::room || writes_operand(n, j));
  if (c.results) {
    for (int j = c.node + 1; j < g.node_count; ++j)
      if (g.nodes[j].op == op_code::getitem && g.nodes[j].in[0] == c.node) touch(j, true);
  } else if (!is_update(n.op)) {
    touch(c.node, true);
  }
  if (one_device && communicates(c.kind)) all.push_back({-1, 0, true});
  return all;
}

inline bool conflict(const dynamic_array<access>& a, const dynamic_array<access>& b) {
  for (const access& x : a)
    for (const access& y : b)
      if (conflict(x, y)) return true;
  return false;
}

// Law: two calls on different streams that touch the same bytes, one of them writing, keep their order in the program.
// Streams are ordered in themselves, so of all earlier calls that a call must wait for, the last one is enough, and none
// if the stream has waited for that one or a later one before.
// A collective whose result the next kernel needs stays between its neighbours: there is nothing to run meanwhile, and
// each change of streams costs a graph some microseconds.
// Only collectives of which `leaves` is true of the call may leave the compute stream. A batch is on the stream of its first
// member, which waits and is waited for in place of all.
template <class Leaves>
dynamic_array<scheduled_call> schedule(const program_tables& program, const dynamic_array<call>& calls, bool one_device,
                                       Leaves&& leaves) {
  dynamic_array<scheduled_call> s(calls.size());
  dynamic_array<dynamic_array<access>> touched;
  touched.reserve(calls.size());
  std::size_t first = 0;  // of the batch
  for (std::size_t i = 0; i < calls.size(); ++i) {
    touched.push_back(accesses_of(program, calls[i], one_device));
    if (calls[i].members != 0) first = i;
    else
      for (const access& a : touched[i]) touched[first].push_back(a);
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].members == 0) s[i].stream = s[i - 1].stream;
    if (!communicates(calls[i].kind) || calls[i].members == 0 || !leaves(calls[i])) continue;
    std::size_t next = i + 1;
    while (next < calls.size() && communicates(calls[next].kind)) ++next;
    if (next < calls.size() && !conflict(touched[i], touched[next])) s[i].stream = communication_stream;
  }
  std::array<dynamic_array<int>, stream_count> on;  // calls of each stream, in order
  std::array<int, stream_count> seen{-1, -1};       // last call of the other stream that a stream has waited for
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].members == 0) continue;
    const auto mine = static_cast<std::size_t>(s[i].stream);
    const dynamic_array<int>& other = on[1 - mine];
    for (std::size_t k = other.size(); k-- > 0 && other[k] > seen[mine];) {
      const int j = other[k];
      if (!conflict(touched[i], touched[static_cast<std::size_t>(j)])) continue;
      s[i].wait = seen[mine] = j;
      s[static_cast<std::size_t>(j)].awaited = true;
      break;
    }
    on[mine].push_back(static_cast<int>(i));
  }
  return s;
}
inline dynamic_array<scheduled_call> schedule(const program_tables& program, const dynamic_array<call>& calls) {
  return schedule(program, calls, true, [](const call&) { return true; });
}

}  // namespace shardwise::inline v0_1::runtime
