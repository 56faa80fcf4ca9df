// SPDX-License-Identifier: Apache-2.0
// Random training graphs: a random graph, reductions of some of its values, updates that read them, readers of what is
// updated. And a runner of graph values on a planned arena, with the host's kernels.
#pragma once

#include <random_graph.hpp>

#include <cstring>
#include <map>
#include <string>

namespace test {

// About Body nodes of random_graph, then Updates reductions with an update each. Some reductions depend on others, some
// gradients are read twice, some parameters are read before and after their update, or updated twice.
template <int Nodes, int Body>
constexpr value_graph<Nodes> random_step(std::uint64_t seed, int ranks, int updates, bool adam_only) {
  using sw::op_code;
  value_graph<Nodes> g;
  sw::copy_into(g, random_graph<Body>(seed, ranks));
  dice roll{seed ^ 0x5757, 0};
  sw::builder b = g.edit();
  const auto emit = [&b](op_code op, int x, int y, const sw::op_attr& a, double f) {
    sw::node n = sw::empty_node;
    n.op = op;
    n.a = a;
    n.f = f;
    n.inputs = y < 0 ? 1 : 2;
    n.in[0] = x;
    n.in[1] = y;
    sw::spec in[2] = {b.specs[b.nodes[x].spec], b.specs[b.nodes[y < 0 ? x : y].spec]};
    const sw::outcome o = sw::infer(op, a, in, n.inputs);
    if (o.error) return -1;
    n.spec = b.intern(o.out);
    return b.append(n);
  };
  const auto leaf = [&b](op_code op, sw::spec s, int index, int parameter, int kind) {
    for (int a = 0; a < s.axes; ++a)
      if (!s.place[a].is_shard()) s.place[a] = sw::replicate_value();
    sw::node n = sw::empty_node;
    n.op = op;
    n.a.v[0] = index;
    n.a.v[1] = parameter;
    n.a.v[2] = kind;
    n.spec = b.intern(sw::contiguous(s));
    return b.append(n);
  };
  int parameters = 0, states = 0, last_parameter = -1;
  int sums[Nodes]{}, sum_count = 0;
  for (int attempt = 0; attempt < 60 * updates && parameters < updates && b.node_count + 12 < Nodes; ++attempt) {
    // a partial value: of the body, or made from an earlier sum, so that a reduction depends on another one
    int x = roll(b.node_count);
    if (sum_count > 0 && roll(4) == 0) {
      x = emit(op_code::tanh, sums[roll(sum_count)], -1, {}, 0);
      if (x >= 0) x = emit(op_code::redistribute, x, -1, {{0, sw::pack(sw::partial_value()), 0, 0, 0, 0}}, 0);
    }
    if (x < 0 || sw::is_update(b.nodes[x].op)) continue;
    const sw::spec s = b.specs[b.nodes[x].spec];
    if (s.rank != 2 || !s.place[0].is_partial() || s.place[0].op != sw::reduction::sum) continue;
    const sw::placement to = roll(2) == 0 ? sw::replicate_value() : sw::reduced_value();
    if (roll(4) != 0 && !sw::is_contiguous(s)) x = emit(op_code::contiguous, x, -1, {}, 0);
    if (!sw::is_contiguous(b.specs[b.nodes[x].spec])) continue;
    int sum = emit(op_code::redistribute, x, -1, {{0, sw::pack(to), 0, 0, 0, 0}}, 0);
    if (sum < 0) continue;
    sums[sum_count++] = sum;
    const int p = leaf(op_code::param, b.specs[b.nodes[sum].spec], parameters, 0, 0);
    if (roll(4) == 0 && g.output_count < 6) g.outputs[g.output_count++] = emit(op_code::relu, p, -1, {}, 0);
    sw::node n = sw::empty_node;
    n.op = adam_only || roll(3) != 0 ? op_code::adam : op_code::sgd;
    n.f = roll(3) == 0 ? 0 : 1;
    n.a.v[1] = n.op == op_code::adam ? roll(2) : 1;
    n.spec = b.nodes[p].spec;
    n.in[n.inputs++] = p;
    n.in[n.inputs++] = sum;
    for (int k = 0; k < (n.op == op_code::adam ? 2 : 1); ++k)
      n.in[n.inputs++] = leaf(op_code::state, b.specs[b.nodes[p].spec], states++, parameters, k);
    b.append(n);
    if (roll(5) == 0 && last_parameter >= 0 && g.output_count < 7) {  // read after an update
      const int late = emit(op_code::tanh, last_parameter, -1, {}, 0);
      g.outputs[g.output_count++] = late;
    }
    ++parameters;
    last_parameter = p;
  }
  g.finish(b);
  return g;
}

// One rank's run of a graph value of elements T: its leaves keep what they hold from run to run.
template <class Rank, class Graph, class T = float>
class graph_runner {
 public:
  using element = T;
  using word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

  // Several graphs may share an arena: then they must be given the same workspace.
  graph_runner(Rank& rank, const Graph& g, std::int64_t workspace, std::vector<std::byte>* shared = nullptr)
      : rank_(&rank), g_(g), plan_(sw::passes::plan_memory<sw::host_backend>::plan_of(g, workspace)) {
    const auto size = static_cast<std::size_t>(plan_.peak) + 64;
    std::vector<std::byte>& memory = shared ? *shared : own_;
    if (memory.size() < size) memory.resize(size, std::byte{0xFF});
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    arena_ = memory.data() + (64 - at % 64) % 64;
    lower();
  }
  static std::int64_t workspace_of(const Graph& g) { return sw::host_backend::largest_workspace(g); }

  std::int64_t peak() const { return plan_.peak; }
  std::int64_t offset(int i) const { return plan_.offset[i]; }

  void start() {
    for (int i = 0; i < g_.node_count; ++i) {
      const sw::node& n = g_.nodes[i];
      if (n.op == sw::op_code::state) std::memset(data(i), 0, bytes(i));
      if (n.op == sw::op_code::param) fill(i, 100 + static_cast<int>(n.a.v[0]), 0);
    }
  }
  void feed(int iteration) {
    for (int i = 0; i < g_.node_count; ++i)
      if (g_.nodes[i].op == sw::op_code::input)
        fill(i, static_cast<int>(g_.nodes[i].a.v[0]) + 10 * iteration, rank_->index());
  }
  void run(const sw::step_env& env) {
    static constexpr auto kernels =
        all_kernels<Rank, T>(std::make_index_sequence<static_cast<std::size_t>(sw::op_code::count)>{});
    for (const sw::runtime::call& c : calls_)
      if (c.members != 0) kernels[static_cast<std::size_t>(g_.nodes[c.node].op)](c, env, *rank_);
  }

  // Bits of outputs, and of parameters and states by (parameter, kind): their order may differ between graphs.
  std::vector<std::vector<word>> outputs() const {
    std::vector<std::vector<word>> r;
    for (int k = 0; k < g_.output_count; ++k) r.push_back(bits(g_.outputs[k]));
    return r;
  }
  std::map<std::pair<int, int>, std::vector<word>> leaves() const {
    std::map<std::pair<int, int>, std::vector<word>> r;
    for (int i = 0; i < g_.node_count; ++i) {
      const sw::node& n = g_.nodes[i];
      if (n.op == sw::op_code::param) r[{static_cast<int>(n.a.v[0]), -1}] = bits(i);
      if (n.op == sw::op_code::state && n.a.v[2] < 2) r[{static_cast<int>(n.a.v[1]), static_cast<int>(n.a.v[2])}] = bits(i);
    }
    return r;
  }

 private:
  void* data(int i) const { return arena_ + plan_.offset[i] + skipped_[static_cast<std::size_t>(i)]; }
  std::size_t bytes(int i) const {
    return static_cast<std::size_t>(layouts_[static_cast<std::size_t>(i)].numel()) * sizeof(T);
  }

  void fill(int i, int stream, int rank) {
    auto* const x = static_cast<T*>(data(i));
    const std::uint32_t who = g_.spec_of(i).place[0].is_whole() ? 0U : static_cast<std::uint32_t>(rank);
    for (std::int64_t e = 0; e < layouts_[static_cast<std::size_t>(i)].numel(); ++e) {
      const std::uint32_t w = sw::philox(43, static_cast<std::uint32_t>(e), static_cast<std::uint32_t>(stream), who, 0).w[0];
      x[e] = w % 7 == 0 ? -T(0) : static_cast<T>(w % 2001) / T(500) - T(2);
    }
  }
  std::vector<word> bits(int i) const {
    std::vector<word> r;
    const auto& l = layouts_[static_cast<std::size_t>(i)];
    std::int64_t at[sw::max_rank]{};
    for (std::int64_t e = 0; e < l.numel(); ++e) {
      std::int64_t offset = 0;
      for (int d = 0; d < l.rank; ++d) offset += at[d] * l.str[d];
      r.push_back(std::bit_cast<word>(static_cast<const T*>(data(i))[offset]));
      for (int d = l.rank - 1; d >= 0 && ++at[d] == l.ext[d]; --d) at[d] = 0;
    }
    return r;
  }

  // As runtime::lowered does, for a graph that is no constant.
  void lower() {
    layouts_.resize(static_cast<std::size_t>(g_.node_count));
    skipped_.assign(static_cast<std::size_t>(g_.node_count), 0);
    const int* const coordinate = rank_->coordinate().data();
    for (int i = 0; i < g_.node_count; ++i) {
      const sw::node& n = g_.nodes[i];
      const sw::spec& out = g_.spec_of(i);
      const auto at = static_cast<std::size_t>(i);
      if (n.inputs > 0 && sw::is_view(n, g_.spec_of(n.in[0]), out)) {
        std::int64_t elements = 0;
        layouts_[at] =
            sw::runtime::view_layout(n.op, n.a, layouts_[static_cast<std::size_t>(n.in[0])], out, coordinate, {}, elements);
        skipped_[at] = skipped_[static_cast<std::size_t>(n.in[0])] + elements * static_cast<std::int64_t>(sizeof(T));
        continue;
      }
      layouts_[at] = sw::runtime::local_layout(out, coordinate);
      if (!sw::runs_kernel(n.op)) continue;
      sw::runtime::call c;
      c.a = n.a;
      c.f = n.f;
      c.node = i;
      c.inputs = n.inputs;
      for (int k = 0; k < n.inputs; ++k) {
        c.l[k] = layouts_[static_cast<std::size_t>(n.in[k])];
        c.p[k] = data(n.in[k]);
        c.type[k] = g_.spec_of(n.in[k]).type;
      }
      c.type[sw::runtime::result] = out.type;
      c.l[sw::runtime::result] = layouts_[at];
      c.p[sw::runtime::result] = data(i);
      c.workspace = arena_;
      if (n.op == sw::op_code::redistribute)
        sw::runtime::lower_redistribute(c, static_cast<int>(n.a.v[0]), g_.spec_of(n.in[0]), out, coordinate);
      calls_.push_back(c);
    }
    sw::runtime::link_batches(calls_);
  }

  Rank* rank_;
  const Graph& g_;
  sw::passes::memory_plan<Graph::node_capacity> plan_;
  std::vector<std::byte> own_;
  std::byte* arena_ = nullptr;
  std::vector<sw::runtime::layout> layouts_;
  std::vector<std::int64_t> skipped_;
  std::vector<sw::runtime::call> calls_;
};

}  // namespace test
