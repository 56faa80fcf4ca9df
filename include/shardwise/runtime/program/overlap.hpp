// SPDX-License-Identifier: Apache-2.0
// overlap: what a host program does beside its kernels: which collectives, and what is done before which call.
#pragma once

#include <shardwise/graph/batches.hpp>
#include <shardwise/graph/waits.hpp>
#include <shardwise/runtime/program/schedule.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1::runtime {

struct overlap {
  dynamic_array<bool> beside;  // calls that go to the stream; of a batch the first alone
  dynamic_array<int> await;    // before each call, and at the end: the last call of the stream that must be done, -1: none
};

// A collective goes to the stream if the program waits for it and a kernel can run meanwhile; it is awaited where the
// program's wait stands, and before anything that would meet it in memory. The others run where they stand: they have
// meeting places of their own, so they need not wait for those of the stream.
inline overlap overlap_of(const program_tables& program, const dynamic_array<call>& calls) {
  const graph_view& g = program.graph;
  dynamic_array<int> wait_at(static_cast<std::size_t>(g.node_count), -1);  // a collective's first wait
  for (int i = g.node_count - 1; i >= 0; --i)
    if (g.nodes[i].op == op_code::wait)
      if (const int c = collective_of(g, i); c >= 0) wait_at[static_cast<std::size_t>(batch_begin(g, c))] = i;
  const auto waited = [&](const call& c) { return wait_at[static_cast<std::size_t>(c.node)] >= 0; };
  const dynamic_array<scheduled_call> s = schedule(program, calls, false, waited);
  overlap o{dynamic_array<bool>(calls.size(), false), dynamic_array<int>(calls.size() + 1, -1)};
  dynamic_array<int> pending;
  int done = -1;  // the stream is in order: all up to this call have been awaited
  for (std::size_t i = 0; i <= calls.size(); ++i) {
    int w = i < calls.size() && s[i].stream == compute_stream ? s[i].wait : -1;
    for (const int k : pending) {
      const int wait = wait_at[static_cast<std::size_t>(calls[static_cast<std::size_t>(k)].node)];
      if (k > w && (i == calls.size() || wait < calls[i].node)) w = k;
    }
    if (w > done) o.await[i] = done = w;
    std::size_t left = 0;
    for (const int k : pending)
      if (k > done) pending[left++] = k;
    pending.resize(left);
    if (i == calls.size() || s[i].stream != communication_stream || calls[i].members == 0) continue;
    o.beside[i] = true;
    pending.push_back(static_cast<int>(i));
  }
  return o;
}

}  // namespace shardwise::inline v0_1::runtime
