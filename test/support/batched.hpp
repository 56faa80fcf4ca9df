// SPDX-License-Identifier: Apache-2.0
// What tests of batched collectives share: graphs without their batches, and what is said of batches.
#pragma once

#include <shardwise/graph/batches.hpp>
#include <shardwise/operations/infer.hpp>

#include <random_graph.hpp>

#include <set>
#include <string>
#include <vector>

namespace test {

namespace sw = shardwise;

template <class Graph>
Graph without_batches(const Graph& g) {
  Graph r = g;
  for (int i = 0; i < r.node_count; ++i)
    if (r.nodes[i].op == sw::op_code::redistribute) sw::set_batch(r.nodes[i], 0);
  return r;
}

// First node and size of every batch, in program order.
struct batch_at {
  int first = 0, members = 0;
  bool operator==(const batch_at&) const = default;
};
template <class Graph>
std::vector<batch_at> batches_of(const Graph& g) {
  std::vector<batch_at> all;
  for (int i = 0; i < g.node_count; ++i)
    if (sw::batch_number(g.nodes[i]) != 0 && !sw::joins_batch(g, i)) all.push_back({i, sw::batch_end(g, i) - i});
  return all;
}

// Every node by what it computes, of the whole tree below it: the order of nodes, waits and batches left out.
template <class Graph>
std::multiset<std::string> computed(const Graph& g) {
  std::vector<std::string> e;
  std::multiset<std::string> all;
  for (int i = 0; i < g.node_count; ++i) {
    sw::node n = g.nodes[i];
    if (n.op == sw::op_code::wait) {  // the value of its operand
      e.push_back(e[static_cast<std::size_t>(n.in[0])]);
      continue;
    }
    if (n.op == sw::op_code::redistribute) sw::set_batch(n, 0);
    std::string s = std::string(sw::name_of(n.op)) + "." + std::to_string(n.spec) + "." + std::to_string(n.f);
    for (const std::int64_t v : n.a.v) s += "." + std::to_string(v);
    s += "(";
    for (int k = 0; k < n.inputs; ++k) s += e[static_cast<std::size_t>(n.in[k])] + ",";
    e.push_back(std::to_string(std::hash<std::string>{}(s + ")")));
    all.insert(e.back());
  }
  return all;
}

// The same on a mesh with one axis more, of one rank: about every second value that a collective or a pointwise operation reads
// is seen as a shard along that axis, and as a whole again. Capacity: of the result.
template <class To, class From>
To with_views(const From& from, std::uint64_t seed) {
  using sw::op_code;
  To g;
  dice roll{seed ^ 0x3131, 0};
  sw::builder b = g.edit();
  std::vector<int> to;
  const auto move = [&](int x, sw::placement p) {
    sw::node n = sw::empty_node;
    n.op = op_code::redistribute;
    n.a = {{1, sw::pack(p), 0, 0, 0, 0}};
    n.inputs = 1;
    n.in[0] = x;
    sw::spec s = b.specs[b.nodes[x].spec];
    s.place[1] = p;
    n.spec = b.intern(s);
    return b.append(n);
  };
  for (int i = 0; i < from.node_count; ++i) {
    sw::node n = from.nodes[i];
    const bool reads = sw::rules::is_scalar(n.op) || sw::communicates(sw::detail::transition_at(from, i));
    for (int k = 0; k < n.inputs; ++k) {
      n.in[k] = to[static_cast<std::size_t>(n.in[k])];
      const sw::spec& s = b.specs[b.nodes[n.in[k]].spec];
      if (reads && s.rank > 0 && sw::is_contiguous(s) && roll(2) == 0)
        n.in[k] = move(move(n.in[k], sw::shard_value(0)), sw::replicate_value());
    }
    sw::spec s = from.spec_of(i);
    s.axes = 2;
    s.axis_size[1] = 1;
    s.place[1] = sw::replicate_value();
    n.spec = b.intern(s);
    to.push_back(b.append(n));
  }
  g.finish(b);
  for (int k = 0; k < from.output_count; ++k) g.outputs[g.output_count++] = to[static_cast<std::size_t>(from.outputs[k])];
  return g;
}

// Makes a batch of whatever neighbours may be one.
template <class Graph>
void batch_neighbours(Graph& g) {
  std::int64_t number = 0;
  for (int i = 0; i < g.node_count; ++i) {
    if (g.nodes[i].op != sw::op_code::redistribute || !sw::is_batchable(g, i, i)) continue;
    const bool goes_on = i > 0 && sw::batch_number(g.nodes[i - 1]) != 0 && sw::is_batchable(g, i - 1, i) &&
                         g.nodes[i].in[0] < sw::batch_begin(g, i - 1);
    sw::set_batch(g.nodes[i], goes_on ? number : ++number);
  }
  sw::number_batches(g);
}

// A step of a model whose parameters are sharded in groups: each group's shards are gathered one after the other before it is
// used, forward and again backward, and the sums of its gradients are scattered one after the other. Group k's scope is k. On one
// axis of `ranks`; rows are uneven, some shards empty. Nodes that pass through it: of group k, `members` parameters.
template <int Nodes>
struct sharded_step {
  using graph_type = sw::graph<Nodes, 64>;
  graph_type g{};
  std::vector<std::vector<int>> gathers, again, scatters;  // by group

  sharded_step(int ranks, int groups, int members, bool regather = true) {
    using sw::op_code;
    sw::builder b = g.edit();
    const std::int32_t sizes[] = {ranks};
    const auto leaf = [&](op_code op, int rows, sw::placement p, int index, int parameter = 0, int which = 0) {
      sw::spec s = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
      s.rank = 2;
      s.extent[0] = rows;
      s.extent[1] = 6;
      sw::make_contiguous(s);
      s.place[0] = p;
      sw::node n = sw::empty_node;
      n.op = op;
      n.a.v[0] = index;
      n.a.v[1] = parameter;
      n.a.v[2] = which;
      n.spec = b.intern(s);
      return b.append(n);
    };
    const auto apply = [&](op_code op, const sw::op_attr& a, std::initializer_list<int> of, int scope, double f = 0) {
      sw::node n = sw::empty_node;
      n.op = op;
      n.a = a;
      n.f = f;
      n.scope = scope;
      sw::spec in[sw::max_inputs]{};
      for (const int x : of) {
        in[n.inputs] = b.specs[b.nodes[x].spec];
        n.in[n.inputs++] = x;
      }
      if (sw::is_update(op)) n.spec = b.nodes[n.in[0]].spec;
      else n.spec = b.intern(sw::infer(op, a, in, n.inputs).out);
      return b.append(n);
    };
    const auto move = [&](int x, sw::placement to, int scope) {
      return apply(op_code::redistribute, {{0, sw::pack(to), 0, 0, 0, 0}}, {x}, scope);
    };
    std::vector<std::vector<int>> p(static_cast<std::size_t>(groups)), kept(p), gradients(p);
    const auto rows = [&](int k, int m) { return 1 + (3 * k + 2 * m) % 5; };
    for (int k = 0; k < groups; ++k)
      for (int m = 0; m < members; ++m)
        p[static_cast<std::size_t>(k)].push_back(leaf(op_code::param, rows(k, m), sw::shard_value(0), k * members + m));
    int x = leaf(op_code::input, 1, sw::partial_value(), 0);
    // x -> x + relu-like mixtures of the group's parameters' column sums, which are partial as x is
    const auto gather = [&](int k) {
      std::vector<int> w;
      for (const int shard : p[static_cast<std::size_t>(k)]) w.push_back(move(shard, sw::reduced_value(), k));
      return w;
    };
    const auto use = [&](const std::vector<int>& w, int k) {
      for (const int one : w) {
        const int row = apply(op_code::sum, {{1, 1, 0, 0, 0, 0}}, {one}, k);
        x = apply(op_code::mul, {}, {x, apply(op_code::tanh, {}, {row}, k)}, k);
      }
    };
    for (int k = 0; k < groups; ++k) {
      gathers.push_back(gather(k));
      use(gathers.back(), k);
    }
    for (int k = groups - 1; k >= 0; --k) {
      const std::vector<int> w = regather ? gather(k) : gathers[static_cast<std::size_t>(k)];
      again.insert(again.begin(), w);
      use(w, k);
      std::vector<int> sums, made;
      for (const int one : w) made.push_back(apply(op_code::mul, {}, {x, apply(op_code::tanh, {}, {one}, k)}, k));
      for (const int one : made) sums.push_back(move(one, sw::shard_value(0), k));
      scatters.insert(scatters.begin(), sums);
    }
    for (int k = 0; k < groups; ++k)
      for (int m = 0; m < members; ++m) {
        const auto at = static_cast<std::size_t>(k), of = static_cast<std::size_t>(m);
        apply(op_code::sgd, {{0, 0, 0, 0, 0, 0}}, {p[at][of], scatters[at][of]}, k);
      }
    g.finish(b);
    g.outputs[g.output_count++] = x;
  }
};

}  // namespace test
