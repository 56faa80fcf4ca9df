// SPDX-License-Identifier: Apache-2.0
// Random valid graphs, every node as its rule gives it, in constants and at run time; and an interpreter that runs graph
// values with the host's kernels.
#pragma once

#include <shardwise/shardwise.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace test {

namespace sw = shardwise;

struct dice {
  std::uint64_t seed = 0;
  std::uint32_t rolls = 0;

  constexpr int operator()(int n) {
    return static_cast<int>(sw::philox(seed, rolls++, 0, 0, 0).w[0] % static_cast<unsigned>(n));
  }
};

template <int Nodes>
using value_graph = sw::graph<Nodes, Nodes>;

// Three inputs and about Nodes - 3 operations on one mesh axis; many redistributions, many repetitions. Outputs are the
// last nodes and some in between.
template <int Nodes>
constexpr value_graph<Nodes> random_graph(std::uint64_t seed, int ranks) {
  using sw::op_code;
  dice roll{seed};
  value_graph<Nodes> g;
  sw::builder b = g.edit();
  const sw::placement places[] = {sw::replicate_value(), sw::reduced_value(), sw::shard_value(0), sw::shard_value(1),
                                  sw::partial_value()};
  const std::int64_t extents[][2] = {{4, 6}, {6, 4}, {4, 4}, {5, 6}};
  for (int i = 0; i < 3; ++i) {
    const std::int32_t sizes[] = {ranks};
    sw::spec s = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
    s.rank = 2;
    const int shape = roll(4);
    for (int d = 0; d < 2; ++d) s.extent[d] = extents[shape][d];
    sw::make_contiguous(s);
    s.place[0] = places[roll(5)];
    sw::node n = sw::empty_node;
    n.op = op_code::input;
    n.a.v[0] = i;
    n.spec = b.intern(s);
    b.append(n);
  }
  const op_code unary[] = {op_code::scale, op_code::relu, op_code::tanh, op_code::gelu_erf, op_code::contiguous};
  const op_code binary[] = {op_code::add, op_code::sub, op_code::mul};
  for (int attempt = 0; attempt < 8 * Nodes && b.node_count < Nodes; ++attempt) {
    sw::node n = sw::empty_node;
    n.in[0] = roll(b.node_count);
    n.inputs = 1;
    const int kind = roll(20);
    if (kind < 8) {
      n.op = op_code::redistribute;
      n.a.v[1] = sw::pack(places[roll(5)]);
      if (kind < 5) n.in[0] = b.node_count - 1;  // chains
    } else if (kind < 11) {
      n.op = unary[roll(5)];
      if (n.op == op_code::scale) n.f = roll(2) == 0 ? 0.5 : -0.0;
    } else if (kind < 14) {
      n.op = binary[roll(3)];
      n.in[1] = roll(b.node_count);
      n.inputs = 2;
    } else if (kind == 14) {
      n.op = op_code::einsum;
      n.in[1] = roll(b.node_count);
      n.inputs = 2;
      n.a.v[0] = 0x21;
      n.a.v[1] = 0x32;
      n.a.v[2] = 0x31;
    } else if (kind == 15) {
      n.op = roll(2) == 0 ? op_code::softmax : op_code::sum;
      if (n.op == op_code::sum) {
        n.a.v[0] = n.a.v[1] = 1 + roll(2);
        n.a.v[2] = roll(2);
      }
    } else if (kind == 16) {
      n.op = op_code::permute;
      n.a.v[0] = 1;
    } else if (b.node_count > 3) {  // once more
      const int old = 3 + roll(b.node_count - 3);
      n = b.nodes[old];
    } else {
      continue;
    }
    sw::spec in[sw::max_inputs]{};
    bool fits = true;
    for (int k = 0; k < n.inputs; ++k) {
      in[k] = b.specs[b.nodes[n.in[k]].spec];
      fits = fits && in[k].rank == 2;
    }
    if (!fits) continue;
    const sw::outcome o = sw::infer(n.op, n.a, in, n.inputs);
    if (o.error) continue;
    n.spec = b.intern(o.out);
    b.append(n);
  }
  g.finish(b);
  for (int k = 0; k < 4; ++k) g.outputs[g.output_count++] = k < 2 ? g.node_count - 1 - k : roll(g.node_count);
  return g;
}

// The host's kernel for each operation on T, chosen while running.
template <class Rank, class T = float, std::size_t... Op>
constexpr auto all_kernels(std::index_sequence<Op...>) {
  return std::array<sw::runtime::kernel_function<Rank>, sizeof...(Op)>{[] {
    constexpr sw::op_code op = static_cast<sw::op_code>(Op);
    if constexpr (sw::runs_kernel(op) && op != sw::op_code::fused && op != sw::op_code::custom)
      return sw::runtime::kernel_entry<sw::runtime::signature{op, sw::dtype_v<T>}, Rank>();
    else return sw::runtime::kernel_function<Rank>{nullptr};
  }()...};
}

// What this rank holds of input k: equal on all ranks where it is whole; with zeros of both signs.
template <class Rank>
void fill_input(sw::runtime::eager_value<Rank>& v, const sw::spec& s, int k, int rank) {
  float* const x = reinterpret_cast<float*>(v.data());
  const std::uint32_t stream = s.place[0].is_whole() ? 0U : static_cast<std::uint32_t>(rank);
  for (std::int64_t i = 0; i < v.layout->numel(); ++i) {
    const std::uint32_t w = sw::philox(41, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(k), stream, 0).w[0];
    x[i] = w % 7 == 0 ? -0.0F : w % 7 == 1 ? 0.0F : static_cast<float>(w % 2001) / 500.0F - 2.0F;
  }
}

template <class Rank>
std::vector<std::uint32_t> bits_of(const sw::runtime::eager_value<Rank>& v) {
  std::vector<std::uint32_t> bits;
  const auto& l = *v.layout;
  std::int64_t at[sw::max_rank]{};
  for (std::int64_t i = 0; i < l.numel(); ++i) {
    std::int64_t offset = 0;
    for (int d = 0; d < l.rank; ++d) offset += at[d] * l.str[d];
    bits.push_back(std::bit_cast<std::uint32_t>(reinterpret_cast<const float*>(v.data())[offset]));
    for (int d = l.rank - 1; d >= 0 && ++at[d] == l.ext[d]; --d) at[d] = 0;
  }
  return bits;
}

// Eager runs know operations by their addresses, which therefore are never used twice.
template <class Rank>
const sw::runtime::eager_operation<Rank>& kept(const sw::runtime::eager_operation<Rank>& o) {
  thread_local std::deque<sw::runtime::eager_operation<Rank>> all;
  all.push_back(o);
  return all.back();
}

struct no_custom_kernels {
  template <class Rank>
  static sw::runtime::kernel_function<Rank> of(const sw::custom_operation*) {
    return nullptr;
  }
};

// This rank's bits of each output. Collective where the graph is. The graph outlives the run. Custom: of operations of one's own the
// kernels.
template <class Custom = no_custom_kernels, class Rank, class Graph>
std::vector<std::vector<std::uint32_t>> run_graph(sw::eager<Rank>& e, const Graph& g) {
  using sw::op_code;
  static constexpr auto kernels =
      all_kernels<Rank>(std::make_index_sequence<static_cast<std::size_t>(sw::op_code::count)>{});
  std::vector<sw::runtime::eager_value<Rank>> value(static_cast<std::size_t>(g.node_count));
  for (int i = 0; i < g.node_count; ++i) {
    const sw::node& n = g.nodes[i];
    const sw::spec& out = g.specs[n.spec];
    auto& v = value[static_cast<std::size_t>(i)];
    if (n.op == sw::op_code::input) {
      v = sw::runtime::eager_value<Rank>(e.core(), out);
      fill_input(v, out, static_cast<int>(n.a.v[0]), e.rank().index());
      continue;
    }
    if (n.op == op_code::room) {
      v = sw::runtime::eager_value<Rank>(e.core(), out);
      continue;
    }
    if (n.op == op_code::part) {
      v = value[static_cast<std::size_t>(n.in[0])];
      continue;
    }
    const sw::expression then = n.expression < 0 ? sw::no_expression : g.expressions[n.expression];
    const int own = n.inputs - then.operands();
    const sw::spec& x = g.spec_of(n.in[0]);
    const sw::spec* in[sw::max_inputs]{};
    for (int k = 0; k < n.inputs; ++k) in[k] = &g.spec_of(n.in[k]);
    sw::runtime::eager_operation<Rank> o{};
    o.op = n.op;
    o.a = n.a;
    o.in = &x;
    o.out = &out;
    o.view = sw::is_view(n, x, out);
    o.workspace = o.view ? 0 : sw::runtime::eager_workspace(sw::record_of(g, n), n, in, out);
    o.kernel =
        sw::is_custom(g, n) ? Custom::template of<Rank>(sw::custom_of(g, n)) : kernels[static_cast<std::size_t>(n.op)];
    const sw::runtime::eager_value<Rank>* operands[sw::max_inputs]{};
    for (int k = 0; k < n.inputs; ++k) operands[k] = &value[static_cast<std::size_t>(n.in[k])];
    if (own > 0) v = sw::runtime::apply_eagerly<Rank>(kept(o), n.f, operands, own);
    if (then == sw::no_expression) continue;
    std::vector<sw::runtime::eager_value<Rank>> slot;
    if (then.follows()) slot.push_back(v);
    for (int k = own; static_cast<int>(slot.size()) < then.values(); ++k) slot.push_back(*operands[k]);
    for (int k = 0; k < then.steps(); ++k) {  // one operation after the other, by its own kernel
      const sw::expression_step s = then.at(k);
      o = {};
      o.op = s.op;
      o.in = o.out = &out;
      o.kernel = kernels[static_cast<std::size_t>(s.op)];
      const sw::runtime::eager_value<Rank>* of[2] = {&slot[static_cast<std::size_t>(s.x)],
                                                     s.y == sw::no_slot ? nullptr : &slot[static_cast<std::size_t>(s.y)]};
      const double f = s.constant == 0 ? 0 : std::bit_cast<double>(n.a.v[s.constant - 1]);
      slot.push_back(sw::runtime::apply_eagerly<Rank>(kept(o), f, of, s.y == sw::no_slot ? 1 : 2));
      if (s.store > 0) value[static_cast<std::size_t>(n.in[n.inputs - then.stores() + s.store - 1])] = slot.back();
    }
    v = slot.back();
  }
  std::vector<std::vector<std::uint32_t>> bits;
  for (int k = 0; k < g.output_count; ++k) bits.push_back(bits_of(value[static_cast<std::size_t>(g.outputs[k])]));
  return bits;
}

}  // namespace test
