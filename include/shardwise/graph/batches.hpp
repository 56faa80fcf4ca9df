// SPDX-License-Identifier: Apache-2.0
// Batches: neighbouring redistributions that run as one collective, without a buffer that holds them side by side.
#pragma once

#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1 {

// A batch is a run of neighbouring redistributions that have one number, not 0. Law, which verify checks: its members
// communicate on one axis, by the same transition, elements of one type; none reads another one's result; and numbers rise
// along the graph, so that a number belongs to one run. What it means: the members start together, where the first one stands,
// and end together. So their order among themselves is nobody's concern, the results have storage from the first member on,
// the operands keep theirs until the last one, and what waits for one waits for all.
constexpr std::int64_t batch_number(const node& n) {
  return n.op == op_code::redistribute ? attributes_of<redistribute_attributes>(n.a).batch : 0;
}
constexpr void set_batch(node& n, std::int64_t number) {
  auto of = attributes_of<redistribute_attributes>(n.a);
  of.batch = number;
  n.a = pack_attributes(of);
}

// Whether node i is in a batch that begins before it.
template <class Graph>
constexpr bool joins_batch(const Graph& g, int i) {
  const std::int64_t number = batch_number(g.nodes[i]);
  return number != 0 && i > 0 && batch_number(g.nodes[i - 1]) == number;
}
// The first member of node i's batch, and one past the last one; of a node in none, itself and the next.
template <class Graph>
constexpr int batch_begin(const Graph& g, int i) {
  while (joins_batch(g, i)) --i;
  return i;
}
template <class Graph>
constexpr int batch_end(const Graph& g, int i) {
  for (++i; i < g.node_count && joins_batch(g, i);) ++i;
  return i;
}

// Calls f(j) for every member of node i's batch, in order.
template <class Graph, class F>
constexpr void each_member(const Graph& g, int i, F&& f) {
  const int end = batch_end(g, i);
  for (int j = batch_begin(g, i); j < end; ++j) f(j);
}
// The same for every operand's storage among them, each once: f(owner).
template <class Graph, class F>
constexpr void each_operand_storage(const Graph& g, const std::int32_t* owner, int i, F&& f) {
  const int begin = batch_begin(g, i), end = batch_end(g, i);
  for (int j = begin; j < end; ++j) {
    const std::int32_t o = owner[g.nodes[j].in[0]];
    bool again = false;
    for (int e = begin; e < j; ++e) again = again || owner[g.nodes[e].in[0]] == o;
    if (!again) f(o);
  }
}

// Calls f(j) for the nodes that start where node i stands: itself, of a batch's first member all of them, of a later one none. A
// pass that writes, where an operand is read, what it has put off does so for all of these: then nothing comes between members.
template <class Graph, class F>
constexpr void each_starting(const Graph& g, int i, F&& f) {
  if (batch_number(g.nodes[i]) == 0) f(i);
  else if (!joins_batch(g, i)) each_member(g, i, f);
}

// Whether two redistributions may be members of one batch, as far as what they are decides it.
template <class Graph>
constexpr bool is_batchable(const Graph& g, int a, int b) {
  const node &x = g.nodes[a], &y = g.nodes[b];
  const transition t = detail::transition_at(g, a);
  return communicates(t) && t == detail::transition_at(g, b) && g.specs[x.spec].type == g.specs[y.spec].type &&
         attributes_of<redistribute_attributes>(x.a).axis == attributes_of<redistribute_attributes>(y.a).axis;
}

// What is wrong with node i, which has a number; `last` is the largest one before it, and is then its own.
template <class Graph>
constexpr problem batch_problem(const Graph& g, int i, std::int64_t& last) {
  const std::int64_t number = batch_number(g.nodes[i]), before = last;
  last = number;
  if (!joins_batch(g, i)) return number > before && is_batchable(g, i, i) ? problem::none : problem::graph_batch;
  if (number != before || !is_batchable(g, i - 1, i)) return problem::graph_batch;
  return g.nodes[i].in[0] >= batch_begin(g, i) ? problem::graph_batch : problem::none;
}

// Numbers the batches of a graph or a builder anew, in their order, after a pass that may have moved some of their members: what
// still stands together is a batch, a member by itself has no number.
template <class Graph>
constexpr void number_batches(Graph& g) {
  std::int64_t number = 0;
  const int count = g.node_count;
  for (int i = 0; i < count;) {
    if (batch_number(g.nodes[i]) == 0) {
      ++i;
      continue;
    }
    const int end = batch_end(g, i);
    const std::int64_t own = end - i > 1 ? ++number : 0;
    for (; i < end; ++i) set_batch(g.nodes[i], own);
  }
}

}  // namespace shardwise::inline v0_1
