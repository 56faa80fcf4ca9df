// SPDX-License-Identifier: Apache-2.0
// Simulated ranks: their blocks of a tensor, what a collective leaves on each, and the library's own kernels over exact
// integers.
#pragma once

#include <shardwise/laws/program.hpp>
#include <shardwise/pass/memory/scratch.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/runtime/host/kernels.hpp>

namespace shardwise::inline v0_1::laws {

// What one rank holds of one node. Views point into their operand's storage.
struct cell {
  runtime::layout l;
  std::int64_t offset = 0;
  modp* p = nullptr;
  std::int32_t* index = nullptr;
};

// Allocations of exactly the local size, so that a kernel that leaves its block is no constant expression.
class memory {
 public:
  static constexpr int capacity = 32 * max_ranks;

  memory() = default;
  memory(const memory&) = delete;
  constexpr ~memory() {
    for (int i = 0; i < values_; ++i) delete[] value_[i];
    for (int i = 0; i < indices_; ++i) delete[] index_[i];
  }
  constexpr modp* values(std::int64_t n) { return value_[values_++] = new modp[static_cast<unsigned long>(n > 0 ? n : 1)]; }
  constexpr std::int32_t* indices(std::int64_t n) {
    return index_[indices_++] = new std::int32_t[static_cast<unsigned long>(n > 0 ? n : 1)];
  }

 private:
  modp* value_[capacity]{};
  std::int32_t* index_[capacity]{};
  int values_ = 0, indices_ = 0;
};

// f(position in the block, global index) for each element.
template <class F>
constexpr void each_element(const runtime::layout& l, F&& f) {
  std::int64_t at[max_rank]{};
  const std::int64_t n = l.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    f(at, host::detail::global_index(l, at));
    for (int d = l.rank - 1; d >= 0 && ++at[d] == l.ext[d]; --d) at[d] = 0;
  }
}

constexpr std::int64_t offset_of(const cell& x, const std::int64_t* at) {
  std::int64_t o = x.offset;
  for (int d = 0; d < x.l.rank; ++d) o += at[d] * x.l.str[d];
  return o;
}

constexpr modp value_at(const cell& x, const std::int64_t* at) {
  const std::int64_t o = offset_of(x, at);
  return x.index ? reduced_to(static_cast<std::uint64_t>(x.index[o])) : x.p[o];
}

// What two parts of a partial value make together; a mean is their sum until it is divided.
constexpr modp combine(reduction op, modp a, modp b) {
  using m = host::math<modp>;
  switch (op) {
    case reduction::product: return a * b;
    case reduction::max: return m::less(a, b) ? b : a;
    case reduction::min: return m::less(b, a) ? b : a;
    default: return a + b;
  }
}
// The one reduction of a spec: rules do not mix them.
constexpr reduction reduction_of(const spec& s) {
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_partial()) return s.place[a].op;
  return reduction::sum;
}
constexpr bool has_adjoint(const spec& s) {
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_partial() && s.place[a].op != reduction::sum && s.place[a].op != reduction::avg) return false;
  return is_floating(s.type);
}

// Number of this rank among those whose partial values make up a sum: 0 for the first, and for all where none is
// partial.
constexpr int part_of(const spec& s, const int* c) {
  int k = 0;
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_partial()) k = k * s.axis_size[a] + c[a];
  return k;
}
constexpr int part_count(const spec& s) {
  int n = 1;
  for (int a = 0; a < s.axes; ++a) n *= s.place[a].is_partial() ? s.axis_size[a] : 1;
  return n;
}

// The block at coordinate c of the tensor with the given elements: a chunk, a copy, or a part of a random sum.
constexpr void distribute(const modp* whole, const spec& s, const int* c, std::uint64_t salt, cell& x, memory& m) {
  x.l = runtime::local_layout(s, c);
  x.p = m.values(x.l.numel());
  const int part = part_of(s, c), parts = part_count(s);
  std::int64_t i = 0;
  laws::each_element(x.l, [&](const std::int64_t*, std::int64_t g) {
    auto random = [&](int k) {
      return reduced_to(scramble(static_cast<std::uint64_t>(g) * 8 + static_cast<unsigned>(k), salt));
    };
    modp v = whole[g];
    switch (const reduction op = reduction_of(s)) {
      case reduction::max:
      case reduction::min: {  // one of them has it, the others what it beats
        const bool holds = part == static_cast<int>(number(random(0)) % static_cast<unsigned>(parts));
        if (!holds && combine(op, v, random(part)) == v) v = random(part);
        break;
      }
      case reduction::product:
        if (part > 0) v = random(part);
        else
          for (int k = 1; k < parts; ++k) v = v / random(k);
        break;
      default:
        if (op == reduction::avg) v = v * modp(static_cast<std::uint32_t>(parts));
        if (part > 0) v = random(part);
        else
          for (int k = 1; k < parts; ++k) v = v - random(k);
    }
    x.p[i++] = v;
  });
}

constexpr void distribute(const std::int32_t* whole, const spec& s, const int* c, cell& x, memory& m) {
  x.l = runtime::local_layout(s, c);
  x.index = m.indices(x.l.numel());
  std::int64_t i = 0;
  laws::each_element(x.l, [&](const std::int64_t*, std::int64_t g) { x.index[i++] = whole[g]; });
}

constexpr bool holds_norms(const spec& s) {
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_norm()) return true;
  return false;
}

// Blocks under placement s make up exactly the tensor `want`; every copy of every part is looked at.
constexpr failure compare(const cell* x, const spec& s, const ranks_of& mesh, const modp* want, failure differs) {
  unsigned char seen[max_elements]{};
  int copies = 1;
  for (int a = 0; a < s.axes; ++a) copies *= s.place[a].is_whole() ? s.axis_size[a] : 1;
  const int parts = part_count(s);
  const bool norms = holds_norms(s);
  for (int r = 0; r < mesh.count(); ++r) {
    int c[max_axes]{};
    mesh.coordinate(r, c);
    const runtime::layout l = runtime::local_layout(s, c);
    for (int d = 0; d < s.rank; ++d)
      if (x[r].l.rank != s.rank || x[r].l.ext[d] != l.ext[d] || x[r].l.global[d] != s.extent[d] ||
          (l.ext[d] > 0 && x[r].l.origin[d] != l.origin[d]))
        return failure::block_layout;
    if (part_of(s, c) != 0) continue;
    bool equal = true;
    laws::each_element(l, [&](const std::int64_t* at, std::int64_t g) {
      modp sum{};
      for (int k = 0; k < parts; ++k) {
        int member[max_axes]{}, left = k;
        for (int a = s.axes - 1; a >= 0; --a) {
          member[a] = c[a];
          if (!s.place[a].is_partial()) continue;
          member[a] = left % s.axis_size[a];
          left /= s.axis_size[a];
        }
        const cell& y = x[mesh.rank_of(member)];
        const modp v = norms ? host::norm_math<modp>::power(value_at(y, at), 1) : value_at(y, at);
        sum = k == 0 ? v : combine(reduction_of(s), sum, v);
      }
      if (norms) sum = host::norm_math<modp>::root(sum, 1);
      if (reduction_of(s) == reduction::avg) sum = sum / modp(static_cast<std::uint32_t>(parts));
      equal = equal && sum == want[g];
      ++seen[g];
    });
    if (!equal) return differs;
  }
  const std::int64_t n = numel(s);
  for (std::int64_t g = 0; g < n; ++g)
    if (seen[g] != copies) return failure::split;
  return failure::none;
}

// What a collective along `axis` leaves on the rank at coordinate c: element by element, from whoever holds it.
constexpr void communicate(const cell* x, const spec& from, const spec& to, int axis, const ranks_of& mesh, const int* c,
                           cell& out, memory& m) {
  out.l = runtime::local_layout(to, c);
  const bool indices = !is_floating(to.type);
  if (indices) out.index = m.indices(out.l.numel());
  else out.p = m.values(out.l.numel());
  std::int64_t i = 0;
  laws::each_element(out.l, [&](const std::int64_t* at, std::int64_t) {
    modp v{};
    std::int32_t number = 0;
    bool first = true;
    const reduction op = from.place[axis].is_partial() ? from.place[axis].op : reduction::sum;
    for (int k = 0; k < from.axis_size[axis]; ++k) {
      int member[max_axes]{};
      for (int a = 0; a < max_axes; ++a) member[a] = c[a];
      member[axis] = k;
      const cell& y = x[mesh.rank_of(member)];
      std::int64_t there[max_rank]{};
      bool holds = true;
      for (int d = 0; d < out.l.rank; ++d) {
        there[d] = out.l.origin[d] + at[d] - y.l.origin[d];
        holds = holds && there[d] >= 0 && there[d] < y.l.ext[d];
      }
      if (!holds) continue;
      if (indices) {  // moved: no sum of positions is one
        number = y.index[offset_of(y, there)];
        continue;
      }
      const modp part =
          from.place[axis].is_norm() ? host::norm_math<modp>::power(y.p[offset_of(y, there)], 1) : y.p[offset_of(y, there)];
      v = first ? part : combine(op, v, part);
      first = false;
    }
    if (from.place[axis].is_norm()) v = host::norm_math<modp>::root(v, 1);
    if (op == reduction::avg) v = v / modp(static_cast<std::uint32_t>(from.axis_size[axis]));
    if (indices) out.index[i++] = number;
    else out.p[i++] = v;
  });
}

// The custom operations that a program and its adjoint call; their kernels are found among these.
template <const custom_operation&... Op>
struct customs {
  static constexpr bool run([[maybe_unused]] const custom_operation* o, const runtime::call& k,
                            const host::operands<modp>& q, const runtime::step_env& env,
                            [[maybe_unused]] const host::result_pointers<modp>* several) {
    return ((is_same_operation(o, &Op) && (host::custom_kernel<Op>::template run<modp>(k, q, env, several), true)) || ...);
  }
};

template <op_code Op>
constexpr void run_kernel(const runtime::call& k, const host::operands<modp>& q, const runtime::step_env& env) {
  if constexpr (runs_kernel(Op) && Op != op_code::fused && Op != op_code::custom)
    host::kernel<Op>::template run<modp>(k, q, env);
}

// False for a custom operation that is not among Customs.
template <class Customs>
constexpr bool dispatch(op_code op, const custom_operation* own, const runtime::call& k, const host::operands<modp>& q,
                        const host::result_pointers<modp>* several) {
  runtime::step_env env;
  env.seed = 2;
  env.step = 3;
  env.max_norm = 5;
  env.clip_value = 7;
  env.dampening = 0.25;
  env.lr = 0.1;
  env.momentum = 0.75;
  env.weight_decay = 0.01;
  if (op == op_code::custom) return Customs::run(own, k, q, env, several);
  switch (op) {
#define SHARDWISE_X(name, kernel) \
  case op_code::name: run_kernel<op_code::name>(k, q, env); break;
    SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
    default: break;
  }
  return true;
}

// Node i on every rank, as the executor lowers it; false if its kernel is not among Customs.
template <class Customs = customs<>, class Graph>
constexpr bool execute(const Graph& g, int i, const ranks_of& mesh, cell* cells, memory& m) {
  const node& n = g.nodes[i];
  if (n.op == op_code::getitem) return true;  // its operand has computed it
  const bool several = has_results(g, i);
  const spec& out = g.specs[n.spec];
  const int from = n.inputs > 0 ? n.in[0] : i;
  const spec& in = g.specs[g.nodes[from].spec];
  const cell* const first = cells + from * max_ranks;
  for (int r = 0; r < mesh.count(); ++r) {
    int c[max_axes]{};
    mesh.coordinate(r, c);
    cell& to = cells[i * max_ranks + r];
    if (is_view(n, in, out)) {
      to = first[r];
      to.l = runtime::view_layout(n.op, n.a, first[r].l, out, c, {}, to.offset);
      continue;
    }
    runtime::call k;
    k.a = n.a;
    k.f = n.f;
    k.inputs = n.inputs;
    if (n.op == op_code::redistribute) {
      k.axis = static_cast<std::int32_t>(attributes_of<redistribute_attributes>(n.a).axis);
      k.ranks = in.axis_size[k.axis];
      k.coordinate = c[k.axis];
      k.from = in.place[k.axis];
      k.to = out.place[k.axis];
      k.kind = transition_of(k.from, k.to, k.ranks);
      if (communicates(k.kind)) {
        communicate(first, in, out, k.axis, mesh, c, to, m);
        continue;
      }
    }
    if (is_update(n.op)) {
      to = first[r];
    } else if (!several) {
      to.l = runtime::local_layout(out, c);
      if (is_floating(out.type)) to.p = m.values(to.l.numel());
      else to.index = m.indices(to.l.numel());
    }
    host::operands<modp> q;
    for (int j = 0; j < n.inputs; ++j) {
      const cell& x = cells[n.in[j] * max_ranks + r];
      k.l[j] = x.l;
      if (x.index) q.index = x.index + x.offset;
      else q.p[j] = x.p + x.offset;
    }
    k.l[runtime::result] = to.l;
    q.p[runtime::result] = to.p;
    q.index_out = to.index;
    if (n.op == op_code::custom) {  // as many elements here as there
      const std::int64_t size = static_cast<std::int64_t>(size_of(out.type));
      const std::int64_t bytes = passes::kernel_scratch_of<passes::kernel_place::host>(g, i);
      q.has_scratch = static_cast<bool>(record_of(g, n).host_scratch.value);
      if (bytes > 0) q.scratch = m.values((bytes + size - 1) / size);
    }
    runtime::layout layouts[max_results];
    host::result_pointers<modp> pointers;
    if (several) {
      pointers.l = layouts;
      for (int j = i + 1; j < g.node_count; ++j) {
        if (g.nodes[j].op != op_code::getitem || g.nodes[j].in[0] != i) continue;
        const int which = static_cast<int>(attributes_of<getitem_attributes>(g.nodes[j].a).result);
        cell& item = cells[j * max_ranks + r];
        item.l = layouts[which] = runtime::local_layout(g.spec_of(j), c);
        if (is_floating(g.spec_of(j).type)) item.p = pointers.p[which] = m.values(item.l.numel());
        else item.index = pointers.index[which] = m.indices(item.l.numel());
      }
    }
    if (!dispatch<Customs>(n.op, custom_of(g, n), k, q, several ? &pointers : nullptr)) return false;
  }
  return true;
}

}  // namespace shardwise::inline v0_1::laws
