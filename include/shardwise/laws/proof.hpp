// SPDX-License-Identifier: Apache-2.0
// The law of sharding rules: under every placement that a rule admits, ranks compute what one device computes, forward and
// adjoint. The library's own rules, adjoints, layouts and kernels run on simulated ranks over exact integers.
#pragma once

#include <shardwise/laws/ranks.hpp>

namespace shardwise::inline v0_1::laws {

constexpr spec leaf_spec(const leaf& l, const ranks_of& mesh) {
  spec s = empty_spec(l.below > 0 ? dtype::i32 : dtype::f32, mesh.axes, mesh.size, device_kind::host);
  s.rank = static_cast<std::uint8_t>(l.rank);
  for (int d = 0; d < l.rank; ++d) s.extent[d] = l.extent[d];
  make_contiguous(s);
  return s;
}

// Placements of the leaves, one for each axis.
struct placing {
  placement at[max_leaves][2]{};
  placement out[most_results]{};  // what the rule's row promises of each result on a mesh of one axis
  bool promises = false;
};

constexpr bool has_pullback(const step& s) { return s.rule().kind == autodiff::adjoint::pulled; }

// Whether the program's result is linear in these leaves (bit by bit), together, the others fixed: through every step their values
// come in at one operand in which it is linear alone, or at all that hold numbers, in which it is linear together.
constexpr bool is_linear_in(const program& p, unsigned leaves) {
  unsigned carries = leaves;
  for (int j = 0; j < p.step_count; ++j) {
    const step& s = p.steps[j];
    const operation& o = s.record();
    const linearity linear = o.linear.value(s.a, s.inputs);
    int carried = 0, first = -1;
    for (int k = 0; k < s.inputs; ++k)
      if ((carries >> s.in[k]) & 1U) {
        ++carried;
        if (first < 0) first = k;
      }
    if (carried == 0) continue;
    const bool all = carried == s.inputs - (o.indices >= 0 ? 1 : 0);
    const bool alone = carried == 1 && (linear == linearity::each || (linear == linearity::first && first == 0));
    if (!alone && !(all && linear == linearity::joint)) return false;
    carries |= 1U << (p.leaf_count + j);
  }
  return ((carries >> (p.leaf_count + p.step_count - 1)) & 1U) != 0;
}

constexpr modp inner(const modp* x, const modp* y, std::int64_t n) {
  modp s{};
  for (std::int64_t i = 0; i < n; ++i) s = s + x[i] * y[i];
  return s;
}

// `forward`: <dy, A x>, of all results.
constexpr failure check_transposes(const program& p, const reference& ref, modp forward) {
  auto size = [&](int k) {
    std::int64_t n = 1;
    for (int d = 0; d < p.leaves[k].rank; ++d) n *= p.leaves[k].extent[d];
    return n;
  };
  unsigned numbers = 0;
  for (int k = 0; k < p.leaf_count; ++k)
    if (p.leaves[k].below == 0) numbers |= 1U << k;
  if (is_linear_in(p, numbers)) {
    modp backward{};
    for (int k = 0; k < p.leaf_count; ++k) backward = backward + inner(ref.cotangent[k], ref.leaves[k], size(k));
    return backward == forward ? failure::none : failure::not_the_adjoint;
  }
  for (int k = 0; k < p.leaf_count; ++k)
    if (ref.has_cotangent[k] && is_linear_in(p, 1U << k) && !(inner(ref.cotangent[k], ref.leaves[k], size(k)) == forward))
      return failure::not_the_adjoint;
  return failure::none;
}

// Equal placements; splits are compared by their boundaries, since blocks of different size may draw the same.
constexpr bool same_blocks(const spec& x, const spec& y, const ranks_of& mesh) {
  bool exact = true;
  for (int a = 0; a < mesh.axes; ++a) {
    placement other = y.place[a];
    other.block = x.place[a].block;
    if (x.place[a] != other) return false;
    exact = exact && x.place[a] == y.place[a];
  }
  for (int r = 0; !exact && r < mesh.count(); ++r) {
    int c[max_axes]{};
    mesh.coordinate(r, c);
    for (int d = 0; d < x.rank; ++d) {
      const interval i = local_interval(x, d, c), j = local_interval(y, d, c);
      if (i.begin != j.begin || i.size != j.size) return false;
    }
  }
  return true;
}

// Runs the program and its adjoint on all ranks of a mesh; `ref` is compared with, or on one rank filled in. Of several results
// number `unread`, if it is one, is read by nobody and has no cotangent; without `adjoint` its kernel then runs without it.
template <bool Fill, class Customs, class Reference>
constexpr failure run_program(const program& p, const placing& at, const ranks_of& mesh, Reference& ref, int unread = -1,
                              bool adjoint = true) {
  graph<max_nodes, max_nodes> g;
  builder b = g.edit();
  unsigned char needs[max_nodes]{};
  int cotangent[max_nodes]{};
  for (int& c : cotangent) c = -1;
  int dual_spec[max_nodes]{};
  for (int& d : dual_spec) d = -1;

  // forward
  for (int k = 0; k < p.leaf_count; ++k) {
    spec s = leaf_spec(p.leaves[k], mesh);
    for (int a = 0; a < mesh.axes; ++a) s.place[a] = at.at[k][a];
    if (check_placements(s)) return failure::not_admitted;
    normalise(s);
    if (numel(s) > max_elements) return failure::too_large;
    node n = empty_node;
    n.op = p.leaves[k].below > 0 ? op_code::input : op_code::param;
    n.spec = b.intern(s);
    needs[b.append(n)] = n.op == op_code::param && has_adjoint(s);
  }
  for (int j = 0; j < p.step_count; ++j) {
    const step& st = p.steps[j];
    node n = empty_node;
    n.a = st.a;
    if (st.custom) b.set_operation(n, st.custom);
    else b.set_operation(n, st.op);
    n.f = st.f;
    n.inputs = st.inputs;
    spec in[max_inputs]{};
    bool need = false;
    for (int k = 0; k < st.inputs; ++k) {
      n.in[k] = st.in[k];
      in[k] = b.specs[b.nodes[st.in[k]].spec];
      need = need || (needs[st.in[k]] && autodiff::differentiable(st.rule(), k));
    }
    const outcome o = infer(st.record(), st.a, in, st.inputs);
    if (o.error) return failure::not_admitted;
    if (numel(o.out) > max_elements) return failure::too_large;
    n.spec = b.intern(o.out);
    bool through = has_adjoint(o.out);  // norms have none
    for (int k = 0; k < st.inputs; ++k) through = through && !holds_norms(in[k]);
    needs[b.append(n)] = need && has_pullback(st) && through;
    if (st.record().results > (j + 1 < p.step_count ? 1 : most_results)) return failure::too_large;
  }
  const int results = p.results(), last = b.node_count - 1;
  int out[most_results], dy[most_results];  // the node of each result, and of its cotangent; -1: unread
  for (int k = 0; k < most_results; ++k) out[k] = k == 0 ? last : -1, dy[k] = -1;
  for (int k = 0; results > 1 && k < results; ++k) {
    const node& of = b.nodes[last];
    spec in[max_inputs]{};
    for (int j = 0; j < of.inputs; ++j) in[j] = b.specs[b.nodes[of.in[j]].spec];
    const outcome o = infer(p.last().record(), of.a, in, of.inputs, k);
    if (o.error) return failure::not_admitted;
    if (numel(o.out) > max_elements) return failure::too_large;
    out[k] = k == unread ? -1 : b.append(item_node(last, k, b.intern(o.out), -1));
    if (out[k] >= 0) needs[out[k]] = needs[last] && has_adjoint(o.out);
  }
  const int end = b.node_count;  // of the forward nodes
  for (int k = 0; at.promises && k < results; ++k) {
    if (out[k] < 0) continue;
    spec promised = b.specs[b.nodes[out[k]].spec];
    promised.place[0] = at.out[k];
    normalise(promised);
    if (!(promised == b.specs[b.nodes[out[k]].spec])) return failure::row_and_infer_differ;
  }

  // adjoint
  bool pulled = false;
  {
    autodiff::tape t;
    t.b = b;
    t.cotangent = cotangent;
    t.forward = end;
    t.needs = needs;
    t.dual_spec = dual_spec;
    t.dual_capacity = max_nodes;
    for (int k = 0; adjoint && k < results; ++k) {
      if (out[k] < 0 || !needs[out[k]]) continue;
      node n = empty_node;
      n.op = op_code::input;
      n.spec = t.dual_id(t.b.nodes[out[k]].spec);
      cotangent[out[k]] = dy[k] = t.b.append(n);
      pulled = true;
    }
    for (int i = end - 1; pulled && i >= 0; --i)
      if (needs[i] && cotangent[i] >= 0) autodiff::pull(t, i);
    b = t.b;
  }
  if (b.error) return failure::pullback_error;
  if (b.overflowed()) return failure::too_large;
  g.finish(b);
  const auto result_of_dy = [&](int i) {
    int k = 0;
    while (k < most_results && dy[k] != i) ++k;
    return k < most_results ? k : -1;
  };
  for (int i = end; i < g.node_count; ++i) {
    if (result_of_dy(i) >= 0) continue;
    const bool item = g.nodes[i].op == op_code::getitem;
    const node& n = item ? g.nodes[g.nodes[i].in[0]] : g.nodes[i];
    spec in[max_inputs]{};
    for (int k = 0; k < n.inputs; ++k) in[k] = g.spec_of(n.in[k]);
    outcome o{};
    if (n.op == op_code::expand) {  // placed by its primal; as a shape it is sum's
      o = {{}, g.spec_of(i)};
      const outcome s = rules::infer_shape(op_code::sum, n.a, &o.out, 1);
      bool same = !s.error && s.out.rank == in[0].rank;
      for (int d = 0; same && d < s.out.rank; ++d) same = s.out.extent[d] == in[0].extent[d];
      if (!same) return failure::adjoint_not_admitted;
    } else if (n.op == op_code::fill && n.f == 0) {  // zeros may be placed anywhere
      o = {{}, g.spec_of(i)};
    } else {
      o = infer(record_of(g, n), n.a, in, n.inputs,
                item ? static_cast<int>(attributes_of<getitem_attributes>(g.nodes[i].a).result) : 0);
    }
    spec claimed = g.spec_of(i);
    normalise(claimed);
    bool same = !o.error && o.out.rank == claimed.rank;
    for (int d = 0; same && d < claimed.rank; ++d)
      same = o.out.extent[d] == claimed.extent[d] && o.out.stride[d] == claimed.stride[d];
    if (!same || !same_blocks(o.out, claimed, mesh)) return failure::adjoint_not_admitted;
    if constexpr (Fill) ref.used[static_cast<int>(n.op)] = true;
  }

  // run
  memory m;
  cell* const cells = new cell[static_cast<unsigned>(g.node_count * max_ranks)];
  struct release {
    cell* p;
    constexpr ~release() { delete[] p; }
  } released{cells};
  for (int i = 0; i < g.node_count; ++i) {
    const int of = result_of_dy(i);  // i is its cotangent
    if (i >= p.leaf_count && of < 0) {
      if (!execute<Customs>(g, i, mesh, cells, m)) return failure::kernel_unknown;
      continue;
    }
    const std::uint64_t salt = 100 + static_cast<std::uint64_t>(i);
    if constexpr (Fill) {
      const std::int64_t n = numel(g.spec_of(i));
      for (std::int64_t e = 0; e < n; ++e) {
        const std::uint32_t random = scramble(static_cast<std::uint64_t>(e), salt);
        if (of >= 0) ref.dy[of][e] = reduced_to(random);
        else if (p.leaves[i].below > 0)
          ref.indices[i][e] = static_cast<std::int32_t>(random % static_cast<std::uint32_t>(p.leaves[i].below));
        else
          ref.leaves[i][e] = reduced_to(p.leaves[i].few > 0 ? random % static_cast<std::uint32_t>(p.leaves[i].few) : random);
      }
    }
    for (int r = 0; r < mesh.count(); ++r) {
      int c[max_axes]{};
      mesh.coordinate(r, c);
      cell& x = cells[i * max_ranks + r];
      if (of < 0 && p.leaves[i].below > 0) distribute(ref.indices[i], g.spec_of(i), c, x, m);
      else distribute(of >= 0 ? ref.dy[of] : ref.leaves[i], g.spec_of(i), c, salt + 50, x, m);
    }
  }

  // compare
  if constexpr (Fill) {
    auto keep = [&](const cell& x, modp* to) {
      laws::each_element(x.l, [&](const std::int64_t* e, std::int64_t i) { to[i] = value_at(x, e); });
    };
    for (int k = 0; k < results; ++k)
      if (out[k] >= 0) keep(cells[out[k] * max_ranks], ref.out[k]);
    for (int k = 0; k < p.leaf_count; ++k) {
      ref.has_cotangent[k] = cotangent[k] >= 0;
      if (cotangent[k] >= 0) keep(cells[cotangent[k] * max_ranks], ref.cotangent[k]);
    }
  } else {
    for (int k = 0; k < results; ++k)
      if (out[k] >= 0)
        if (const failure f = compare(cells + out[k] * max_ranks, g.spec_of(out[k]), mesh, ref.out[k], failure::value);
            f != failure::none)
          return f;
  }
  if (!pulled) return failure::none;
  for (int k = 0; k < p.leaf_count; ++k) {
    bool wanted = false;
    for (int j = 0; j < p.step_count; ++j)
      for (int i = 0; i < p.steps[j].inputs; ++i)
        wanted = wanted || (p.steps[j].in[i] == k && needs[k] && needs[p.leaf_count + j] &&
                            autodiff::differentiable(p.steps[j].rule(), i));
    // an operand that the read results do not depend on has none
    if (unread >= 0 ? !Fill && ref.has_cotangent[k] != (cotangent[k] >= 0) : wanted != (cotangent[k] >= 0))
      return failure::cotangent_missing;
    if (cotangent[k] < 0) continue;
    spec s = g.spec_of(cotangent[k]), expected = dual(g.spec_of(k));
    for (int d = 0; d < expected.rank; ++d)
      if (s.rank != expected.rank || s.extent[d] != expected.extent[d]) return failure::cotangent_placement;
    for (int a = 0; a < mesh.axes; ++a)
      if (!(s.place[a] == expected.place[a])) return failure::cotangent_placement;
    if constexpr (!Fill)
      if (const failure f = compare(cells + cotangent[k] * max_ranks, s, mesh, ref.cotangent[k], failure::adjoint_value);
          f != failure::none)
        return f;
  }
  if constexpr (Fill) {
    modp forward{};
    for (int k = 0; k < results; ++k)
      if (dy[k] >= 0) forward = forward + inner(ref.dy[k], ref.out[k], numel(g.spec_of(out[k])));
    return check_transposes(p, ref, forward);
  }
  return failure::none;
}

template <class Customs = customs<>>
constexpr reference solve(const program& p, int unread = -1) {
  reference r;
  r.wrong = run_program<true, Customs>(p, placing{}, ranks_of{}, r, unread);
  return r;
}
// The kernel alone without one of its results, for which it is given no place.
template <class Customs>
constexpr failure run_without(const program& p, int unread) {
  reference r;
  return run_program<true, Customs>(p, placing{}, ranks_of{}, r, unread, false);
}

// The whole law for one placement of the leaves.
template <class Customs = customs<>>
constexpr failure prove(const program& p, const placing& at, const ranks_of& mesh, const reference& one_device,
                        int unread = -1) {
  return run_program<false, Customs>(p, at, mesh, one_device, unread);
}

}  // namespace shardwise::inline v0_1::laws
