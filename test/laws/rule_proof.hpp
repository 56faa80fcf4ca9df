// SPDX-License-Identifier: Apache-2.0
// The law of sharding rules for what is no operation on operands: fills, the seed of a gradient, updates of parameters.
#pragma once

#include <shardwise/laws/placings.hpp>
#include <shardwise/module/optimizer.hpp>

namespace shardwise::laws {

// --- fills: what has no operand is the same tensor under every placement ----------------------------------------------

constexpr failure prove_fill(op_code op, const leaf& shape, const op_attr& a, double f, placement p, int ranks) {
  const ranks_of alone{}, mesh{1, {ranks, 1, 1, 1}};
  modp whole[max_elements]{};
  for (const ranks_of& on : {alone, mesh}) {
    graph<1, 1> g;
    builder b = g.edit();
    spec s = leaf_spec(shape, on);
    if (on.count() > 1) s.place[0] = p;
    normalise(s);
    node n = empty_node;
    n.op = op;
    n.a = a;
    n.f = f;
    n.spec = b.intern(s);
    b.append(n);
    g.finish(b);
    memory m;
    cell cells[max_ranks];
    execute(g, 0, on, cells, m);
    if (on.count() > 1) return compare(cells, s, on, whole, failure::value);
    laws::each_element(cells[0].l,
                       [&](const std::int64_t* at, std::int64_t i) { whole[i] = cells[0].p[offset_of(cells[0], at)]; });
  }
  return failure::none;
}

struct fill_case {
  op_code op;
  leaf shape;
  op_attr a{};
  double f = 0;
};
inline constexpr fill_case fills[] = {
    {op_code::fill, tensor_of({5, 3}), {}, 7},
    {op_code::arange, tensor_of({5}), {{2, -3, 0, 0, 0, 0}}},
    {op_code::rand, tensor_of({5, 3}), {{1, 0, 0, 0, 0, 0}}},
    {op_code::randn, tensor_of({2, 4}), {}},
};

// Every placement but partial, which fills are not given; how many were tried.
constexpr int prove_fills(const fill_case& c, int ranks) {
  int n = 0;
  for (int d = -2; d < c.shape.rank; ++d) {
    const placement p = d == -2 ? replicate_value() : d == -1 ? reduced_value() : shard_value(d);
    if (prove_fill(c.op, c.shape, c.a, c.f, p, ranks) != failure::none) return 0;
    ++n;
  }
  return n;
}

// --- the seed: the cotangent of a loss is 1
// ------------------------------------------------------------------------------

// loss = 3 x for a scalar x placed as P.
template <class P, int Ranks>
struct scalar_loss {
  static constexpr ranks_of mesh{1, {Ranks, 1, 1, 1}};
  static constexpr auto value = [] {
    graph<4, 4> g;
    builder b = g.edit();
    spec s = leaf_spec(tensor_of({}), mesh);
    s.place[0] = placement_v<P>;
    node n = empty_node;
    n.op = op_code::param;
    n.spec = b.intern(s);
    n.in[0] = b.append(n);
    n.op = op_code::scale;
    n.inputs = 1;
    n.f = 3;
    g.outputs[g.output_count++] = b.append(n);
    g.finish(b);
    return g;
  }();
};

// autodiff::grad seeds every placement of the loss so that its cotangents are those of one device.
template <class P, int Ranks>
constexpr failure prove_seed() {
  using source = scalar_loss<P, Ranks>;
  constexpr const auto& joint = staged<autodiff::grad, source>::value;
  if (joint.g.error) return failure::pullback_error;
  memory m;
  cell cells[max_nodes * max_ranks];
  const modp x[1] = {modp(11)}, dx[1] = {host::math<modp>::from(3)};
  for (int i = 0; i < joint.g.node_count; ++i) {
    if (i > 0) execute(joint.g, i, source::mesh, cells, m);
    for (int r = 0; i == 0 && r < Ranks; ++r) distribute(x, joint.g.spec_of(0), &r, 9, cells[r], m);
  }
  const int c = joint.cotangent[0];
  if (!(joint.g.spec_of(c).place[0] == dual(placement_v<P>))) return failure::cotangent_placement;
  return compare(cells + c * max_ranks, joint.g.spec_of(c), source::mesh, dx, failure::adjoint_value);
}

// --- updates: a whole train step of one parameter
// -------------------------------------------------------------------------

// loss = sum(x * transpose(w)), so that the gradient of w arrives as a strided view, and sums over x's first dim.
template <class W, class X, int Ranks>
struct transposed_loss {
  static constexpr ranks_of mesh{1, {Ranks, 1, 1, 1}};
  static constexpr auto value = [] {
    graph<8, 8> g;
    builder b = g.edit();
    auto leaf_node = [&](op_code op, const leaf& l, placement p) {
      spec s = leaf_spec(l, mesh);
      s.place[0] = p;
      node n = empty_node;
      n.op = op;
      n.spec = b.intern(s);
      return b.append(n);
    };
    auto apply_node = [&](op_code op, const op_attr& a, int i0, int i1 = -1) {
      node n = empty_node;
      n.op = op;
      n.a = a;
      n.in[0] = i0;
      n.in[1] = i1;
      n.inputs = i1 < 0 ? 1 : 2;
      spec in[2]{};
      for (int k = 0; k < n.inputs; ++k) in[k] = b.specs[b.nodes[n.in[k]].spec];
      const outcome o = infer(op, a, in, n.inputs);
      if (o.error) b.error = o.error;
      n.spec = b.intern(o.out);
      return b.append(n);
    };
    const int w = leaf_node(op_code::param, tensor_of({2, 3}), placement_v<W>);
    const int x = leaf_node(op_code::input, tensor_of({4, 3, 2}), placement_v<X>);
    const int product = apply_node(op_code::mul, {}, x, apply_node(op_code::permute, {{0x01, 0, 0, 0, 0, 0}}, w));
    g.outputs[g.output_count++] = apply_node(op_code::sum, {{7, 0, 0, 0, 0, 0}}, product);
    g.finish(b);
    return g;
  }();
};

// The parameter and its states after one step.
struct updated {
  modp value[4][6]{};
  int count = 0;
};

template <bool Fill, class Graph, class Updated>
constexpr failure run_update(const Graph& g, const ranks_of& mesh, Updated& ref) {
  if (g.error) return failure::not_admitted;
  if (g.node_count * mesh.count() > memory::capacity) return failure::too_large;
  memory m;
  cell cells[32 * max_ranks];
  modp whole[4 + 1][24]{};
  for (int k = 0; k < 5; ++k)
    for (int e = 0; e < 24; ++e) whole[k][e] = reduced_to(scramble(static_cast<unsigned>(e), 70 + static_cast<unsigned>(k)));
  int update = -1;
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    if (is_update(n.op)) update = i;
    if (runs_kernel(n.op) || n.inputs > 0) {
      execute(g, i, mesh, cells, m);
      continue;
    }
    const modp* const values = whole[n.op == op_code::input   ? 0
                                     : n.op == op_code::param ? 1
                                                              : 2 + (n.a.v[2] == largest_second_moment ? 2 : n.a.v[2])];
    for (int r = 0; r < mesh.count(); ++r) {
      int c[max_axes]{};
      mesh.coordinate(r, c);
      distribute(values, g.spec_of(i), c, 90, cells[i * max_ranks + r], m);
    }
  }
  if (update < 0) return failure::cotangent_missing;
  const node& n = g.nodes[update];
  int k = 0;
  for (int j = 0; j < n.inputs; ++j) {
    const node& operand = g.nodes[n.in[j]];
    if (operand.op != op_code::param && operand.op != op_code::state) continue;
    const cell* const x = cells + n.in[j] * max_ranks;
    if constexpr (Fill) {
      laws::each_element(x->l, [&](const std::int64_t* e, std::int64_t i) { ref.value[k][i] = x->p[offset_of(*x, e)]; });
    } else {
      if (const failure f = compare(x, g.spec_of(n.in[j]), mesh, ref.value[k], failure::value); f != failure::none) return f;
    }
    ++k;
  }
  if constexpr (Fill) ref.count = k;
  return k == ref.count ? failure::none : failure::cotangent_missing;
}

template <class Optimizer, class W, class X, int Ranks>
constexpr const auto& update_graph() {
  using joint = staged<autodiff::grad, transposed_loss<W, X, Ranks>>;
  return staged<apply_optimizer<Optimizer, 1>, joint>::value.g;
}

// Gradient reduction, clipping and the optimizer's kernel leave every rank's block as one device has it.
template <class Optimizer, class W, class X, int Ranks>
constexpr failure prove_update() {
  updated one_device;
  if (const failure f = run_update<true>(update_graph<Optimizer, replicate, replicate, 1>(), ranks_of{}, one_device);
      f != failure::none)
    return f;
  return run_update<false>(update_graph<Optimizer, W, X, Ranks>(), ranks_of{1, {Ranks, 1, 1, 1}}, one_device);
}

}  // namespace shardwise::laws
