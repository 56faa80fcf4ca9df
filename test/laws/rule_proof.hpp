// SPDX-License-Identifier: Apache-2.0
// The law of sharding rules: under every placement that a rule admits, ranks compute what one device computes, forward
// and adjoint. The library's own rules, pullbacks, layouts and kernels run on simulated ranks over exact integers.
#pragma once

#include <initializer_list>

#include <laws/modular.hpp>
#include <shardwise/module/optimizer.hpp>
#include <shardwise/runtime/host/einsum.hpp>

namespace shardwise::laws {

inline constexpr int max_leaves = 5;
inline constexpr int max_elements = 72;  // of any tensor of a program
inline constexpr int max_nodes = 20;
inline constexpr int max_ranks = 6;

// --- programs: one operation, or the few that only occur together ---------------------------------------------------

struct leaf {
  int rank = 0;
  std::int64_t extent[max_rank]{};
  int below = 0;  // > 0: indices less than this
  int few = 0;    // > 0: values less than this, so that many are equal
};

constexpr leaf tensor_of(std::initializer_list<int> extents) {
  leaf l;
  for (int e : extents) l.extent[l.rank++] = e;
  return l;
}
constexpr leaf indices(std::initializer_list<int> extents, int below) {
  leaf l = tensor_of(extents);
  l.below = below;
  return l;
}

constexpr leaf few_values(std::initializer_list<int> extents, int below) {
  leaf l = tensor_of(extents);
  l.few = below;
  return l;
}

// Operand k is leaf k; operand leaves + j is the result of step j.
struct step {
  op_code op = op_code::input;
  op_attr a{};
  double f = 0;
  int inputs = 0;
  int in[max_inputs]{};
};

struct program {
  leaf leaves[max_leaves]{};
  int leaf_count = 0;
  step steps[4]{};
  int step_count = 0;
  std::int32_t block = 1;  // shards are also tried with this block

  bool partly = false;     // rows of the last step that an earlier one refuses are left to other cases

  constexpr program where_admitted() const {
    program p = *this;
    p.partly = true;
    return p;
  }
  constexpr program blocks(std::int32_t b) const {
    program p = *this;
    p.block = b;
    return p;
  }
  constexpr program then(op_code op, std::initializer_list<int> in, op_attr a = {}, double f = 0) const {
    program p = *this;
    step& s = p.steps[p.step_count++];
    s.op = op;
    s.a = a;
    s.f = f;
    for (int i : in) s.in[s.inputs++] = i;
    return p;
  }
  constexpr const step& last() const { return steps[step_count - 1]; }
};

constexpr program on_leaves(std::initializer_list<leaf> leaves) {
  program p;
  for (const leaf& l : leaves) p.leaves[p.leaf_count++] = l;
  return p;
}
// One operation on all leaves in order.
constexpr program apply(op_code op, std::initializer_list<leaf> leaves, op_attr a = {}, double f = 0) {
  program p = on_leaves(leaves);
  step& s = p.steps[p.step_count++];
  s.op = op;
  s.a = a;
  s.f = f;
  for (int k = 0; k < p.leaf_count; ++k) s.in[s.inputs++] = k;
  return p;
}

struct ranks_of {
  int axes = 1;
  std::int32_t size[max_axes] = {1, 1, 1, 1};

  constexpr int count() const {
    int n = 1;
    for (int a = 0; a < axes; ++a) n *= size[a];
    return n;
  }
  // Row-major, as mesh<...>.
  constexpr void coordinate(int rank, int* c) const {
    for (int a = max_axes - 1; a >= 0; --a) {
      c[a] = rank % size[a];
      rank /= size[a];
    }
  }
  constexpr int rank_of(const int* c) const {
    int r = 0;
    for (int a = 0; a < axes; ++a) r = r * size[a] + c[a];
    return r;
  }
};

enum class failure {
  none,
  not_admitted,          // infer refuses the placement
  row_and_infer_differ,  // infer's result placement is not the row's
  pullback_error,        // a rule used inside the pullback refuses
  cotangent_missing,
  cotangent_placement,   // not the dual of the operand's
  adjoint_not_admitted,  // a backward node's operands do not give the placement or extents that it claims
  block_layout,          // a local block is not where its spec says
  split,                 // blocks do not cover the tensor exactly once
  value,                 // forward values differ
  adjoint_value,         // cotangents differ
  not_the_adjoint,       // <dy, A x> != <A* dy, x> for a linear operation
  too_large,
};

// --- one device: what every placement is compared with --------------------------------------------------------------

struct reference {
  modp leaves[max_leaves][max_elements]{};
  std::int32_t indices[max_leaves][max_elements]{};
  modp out[max_elements]{};
  modp dy[max_elements]{};
  modp cotangent[max_leaves][max_elements]{};
  bool has_cotangent[max_leaves]{};
  bool used[static_cast<int>(op_code::count)]{};  // operations of the adjoint
  failure wrong = failure::none;
};

// --- ranks ----------------------------------------------------------------------------------------------------------

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
  constexpr modp* values(std::int64_t n) {
    return value_[values_++] = new modp[static_cast<unsigned long>(n > 0 ? n : 1)];
  }
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
  each_element(x.l, [&](const std::int64_t*, std::int64_t g) {
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
  each_element(x.l, [&](const std::int64_t*, std::int64_t g) { x.index[i++] = whole[g]; });
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
    each_element(l, [&](const std::int64_t* at, std::int64_t g) {
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
constexpr void communicate(const cell* x, const spec& from, const spec& to, int axis, const ranks_of& mesh,
                           const int* c, cell& out, memory& m) {
  out.l = runtime::local_layout(to, c);
  out.p = m.values(out.l.numel());
  std::int64_t i = 0;
  each_element(out.l, [&](const std::int64_t* at, std::int64_t) {
    modp v{};
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
      const modp part = from.place[axis].is_norm() ? host::norm_math<modp>::power(y.p[offset_of(y, there)], 1) : y.p[offset_of(y, there)];
      v = first ? part : combine(op, v, part);
      first = false;
    }
    if (from.place[axis].is_norm()) v = host::norm_math<modp>::root(v, 1);
    if (op == reduction::avg) v = v / modp(static_cast<std::uint32_t>(from.axis_size[axis]));
    out.p[i++] = v;
  });
}

template <op_code Op>
constexpr void run_kernel(const runtime::call& k, const host::operands<modp>& q, const runtime::step_env& env) {
  if constexpr (runs_kernel(Op) && Op != op_code::fused) host::kernel<Op>::template run<modp>(k, q, env);
}

constexpr void dispatch(op_code op, const runtime::call& k, const host::operands<modp>& q) {
  runtime::step_env env;
  env.seed = 2;
  env.step = 3;
  env.max_norm = 5;
  env.lr = 0.1;
  env.momentum = 0.75;
  env.weight_decay = 0.01;
  switch (op) {
#define SHARDWISE_X(name, kernel)         \
  case op_code::name:                     \
    run_kernel<op_code::name>(k, q, env); \
    break;
    SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
    default:
      break;
  }
}

// Node i on every rank, as the executor lowers it.
template <class Graph>
constexpr void execute(const Graph& g, int i, const ranks_of& mesh, cell* cells, memory& m) {
  const node& n = g.nodes[i];
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
      to.l = runtime::view_layout(n.op, n.a, first[r].l, out, c, 0, to.offset);
      continue;
    }
    runtime::call k;
    k.a = n.a;
    k.f = n.f;
    k.inputs = n.inputs;
    if (n.op == op_code::redistribute) {
      k.axis = static_cast<std::int32_t>(n.a.v[0]);
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
    } else {
      to.l = runtime::local_layout(out, c);
      if (is_floating(out.type)) to.p = m.values(to.l.numel());
      else to.index = m.indices(to.l.numel());
    }
    host::operands<modp> q;
    for (int j = 0; j < n.inputs; ++j) {
      const cell& x = cells[n.in[j] * max_ranks + r];
      k.l[j] = x.l;
      if (x.index)
        q.index = x.index + x.offset;
      else
        q.p[j] = x.p + x.offset;
    }
    k.l[runtime::result] = to.l;
    q.p[runtime::result] = to.p;
    q.index_out = to.index;
    dispatch(n.op, k, q);
  }
}

// --- proofs ---------------------------------------------------------------------------------------------------------

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
  placement out{};  // what the rule's row promises on a mesh of one axis
  bool promises = false;
};

constexpr bool has_pullback(op_code op) { return autodiff::adjoint_of(op) == autodiff::adjoint::pulled; }

// Linear in operand k alone (the others fixed), so that its pullback must be the transpose: exact over integers.
constexpr bool linear_alone(op_code op, int k) {
  switch (op) {
    case op_code::einsum:
    case op_code::mul:
    case op_code::scale:
    case op_code::sum:
    case op_code::permute:
    case op_code::reshape:
    case op_code::slice:
    case op_code::pad:
    case op_code::wait:
    case op_code::contiguous:
    case op_code::dropout:
    case op_code::redistribute:
      return true;
    case op_code::broadcast:
    case op_code::triangle:
      return true;
    case op_code::embedding:
    case op_code::mask_keep:
    case op_code::take:
    case op_code::gather:
    case op_code::scatter_add:
    case op_code::index_select:
    case op_code::index_add:
      return k == 0;
    default:
      return false;
  }
}

// Linear in all floating-point operands together: the transpose is checked for their sum.
constexpr bool linear_together(const step& s) {
  return s.op == op_code::add || s.op == op_code::sub || s.op == op_code::where || s.op == op_code::cat ||
         s.op == op_code::slice_scatter ||
         (s.op == op_code::constant_pad && s.a.v[5] != 0) || (s.op == op_code::scatter && (s.inputs > 2 || s.a.v[1] != 0));
}

constexpr modp inner(const modp* x, const modp* y, std::int64_t n) {
  modp s{};
  for (std::int64_t i = 0; i < n; ++i) s = s + x[i] * y[i];
  return s;
}

constexpr failure check_transposes(const program& p, const reference& ref, std::int64_t out_size) {
  auto size = [&](int k) {
    std::int64_t n = 1;
    for (int d = 0; d < p.leaves[k].rank; ++d) n *= p.leaves[k].extent[d];
    return n;
  };
  const modp forward = inner(ref.dy, ref.out, out_size);
  bool joint = true, alone = true;
  for (int j = 0; j < p.step_count; ++j) {
    const op_code op = p.steps[j].op;
    joint = joint && (linear_together(p.steps[j]) || (linear_alone(op, 0) && p.steps[j].inputs == 1));
    alone = alone && linear_alone(op, 0);
    for (int k = 1; k < p.steps[j].inputs; ++k) alone = alone && p.steps[j].in[k] != p.steps[j].in[0];
  }
  if (joint) {
    modp backward{};
    for (int k = 0; k < p.leaf_count; ++k) backward = backward + inner(ref.cotangent[k], ref.leaves[k], size(k));
    return backward == forward ? failure::none : failure::not_the_adjoint;
  }
  for (int k = 0; alone && k < p.leaf_count; ++k)
    if (ref.has_cotangent[k] && !(inner(ref.cotangent[k], ref.leaves[k], size(k)) == forward))
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

// Runs the program and its adjoint on all ranks of a mesh; `ref` is compared with, or on one rank filled in.
template <bool Fill, class Reference>
constexpr failure run_program(const program& p, const placing& at, const ranks_of& mesh, Reference& ref) {
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
    n.op = st.op;
    n.a = st.a;
    n.f = st.f;
    n.inputs = st.inputs;
    spec in[max_inputs]{};
    bool need = false;
    for (int k = 0; k < st.inputs; ++k) {
      n.in[k] = st.in[k];
      in[k] = b.specs[b.nodes[st.in[k]].spec];
      need = need || (needs[st.in[k]] && autodiff::differentiable(st.op, k));
    }
    const outcome o = infer(st.op, st.a, in, st.inputs);
    if (o.error) return failure::not_admitted;
    if (numel(o.out) > max_elements) return failure::too_large;
    n.spec = b.intern(o.out);
    bool through = has_adjoint(o.out);  // norms have none
    for (int k = 0; k < st.inputs; ++k) through = through && !holds_norms(in[k]);
    needs[b.append(n)] = need && has_pullback(st.op) && through;
  }
  const int out = b.node_count - 1;
  if (at.promises) {
    spec promised = b.specs[b.nodes[out].spec];
    promised.place[0] = at.out;
    normalise(promised);
    if (!(promised == b.specs[b.nodes[out].spec])) return failure::row_and_infer_differ;
  }

  // adjoint
  int dy = -1;
  if (needs[out]) {
    autodiff::tape t;
    t.b = b;
    t.cotangent = cotangent;
    t.needs = needs;
    t.dual_spec = dual_spec;
    t.dual_capacity = max_nodes;
    node n = empty_node;
    n.op = op_code::input;
    n.spec = t.dual_id(t.b.nodes[out].spec);
    dy = t.b.append(n);
    cotangent[out] = dy;
    for (int i = out; i >= 0; --i)
      if (needs[i] && cotangent[i] >= 0) autodiff::pull(t, i);
    b = t.b;
  }
  if (b.error) return failure::pullback_error;
  if (b.overflowed()) return failure::too_large;
  g.finish(b);
  for (int i = out + 2; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
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
      o = infer(n.op, n.a, in, n.inputs);
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
    if (i >= p.leaf_count && i != dy) {
      execute(g, i, mesh, cells, m);
      continue;
    }
    const std::uint64_t salt = 100 + static_cast<std::uint64_t>(i);
    if constexpr (Fill) {
      const std::int64_t n = numel(g.spec_of(i));
      for (std::int64_t e = 0; e < n; ++e) {
        const std::uint32_t random = scramble(static_cast<std::uint64_t>(e), salt);
        if (i == dy)
          ref.dy[e] = reduced_to(random);
        else if (p.leaves[i].below > 0)
          ref.indices[i][e] = static_cast<std::int32_t>(random % static_cast<std::uint32_t>(p.leaves[i].below));
        else
          ref.leaves[i][e] =
              reduced_to(p.leaves[i].few > 0 ? random % static_cast<std::uint32_t>(p.leaves[i].few) : random);
      }
    }
    for (int r = 0; r < mesh.count(); ++r) {
      int c[max_axes]{};
      mesh.coordinate(r, c);
      cell& x = cells[i * max_ranks + r];
      if (i != dy && p.leaves[i].below > 0)
        distribute(ref.indices[i], g.spec_of(i), c, x, m);
      else
        distribute(i == dy ? ref.dy : ref.leaves[i], g.spec_of(i), c, salt + 50, x, m);
    }
  }

  // compare
  if constexpr (Fill) {
    auto keep = [&](const cell& x, modp* to) {
      each_element(x.l, [&](const std::int64_t* e, std::int64_t i) { to[i] = value_at(x, e); });
    };
    keep(cells[out * max_ranks], ref.out);
    for (int k = 0; k < p.leaf_count; ++k) {
      ref.has_cotangent[k] = cotangent[k] >= 0;
      if (cotangent[k] >= 0) keep(cells[cotangent[k] * max_ranks], ref.cotangent[k]);
    }
  } else {
    if (const failure f = compare(cells + out * max_ranks, g.spec_of(out), mesh, ref.out, failure::value);
        f != failure::none)
      return f;
  }
  if (dy < 0) return failure::none;
  for (int k = 0; k < p.leaf_count; ++k) {
    bool wanted = false;
    for (int j = 0; j < p.step_count; ++j)
      for (int i = 0; i < p.steps[j].inputs; ++i)
        wanted = wanted || (p.steps[j].in[i] == k && needs[k] && needs[p.leaf_count + j] &&
                            autodiff::differentiable(p.steps[j].op, i));
    if (wanted != (cotangent[k] >= 0)) return failure::cotangent_missing;
    if (!wanted) continue;
    spec s = g.spec_of(cotangent[k]), expected = dual(g.spec_of(k));
    for (int d = 0; d < expected.rank; ++d)
      if (s.rank != expected.rank || s.extent[d] != expected.extent[d]) return failure::cotangent_placement;
    for (int a = 0; a < mesh.axes; ++a)
      if (!(s.place[a] == expected.place[a])) return failure::cotangent_placement;
    if constexpr (!Fill)
      if (const failure f =
              compare(cells + cotangent[k] * max_ranks, s, mesh, ref.cotangent[k], failure::adjoint_value);
          f != failure::none)
        return f;
  }
  if constexpr (Fill) return check_transposes(p, ref, numel(g.spec_of(out)));
  return failure::none;
}

constexpr reference solve(const program& p) {
  reference r;
  r.wrong = run_program<true>(p, placing{}, ranks_of{}, r);
  return r;
}

// The whole law for one placement of the leaves.
constexpr failure prove(const program& p, const placing& at, const ranks_of& mesh, const reference& one_device) {
  return run_program<false>(p, at, mesh, one_device);
}

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
    each_element(cells[0].l, [&](const std::int64_t* at, std::int64_t i) { whole[i] = cells[0].p[offset_of(cells[0], at)]; });
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
    {op_code::fill, tensor_of({5, 3}), {}, 7},          {op_code::arange, tensor_of({5}), {{2, -3, 0, 0, 0, 0}}},
    {op_code::rand, tensor_of({5, 3}), {{1, 0, 0, 0, 0, 0}}},  {op_code::randn, tensor_of({2, 4}), {}},
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
  modp value[3][6]{};
  int count = 0;
};

template <bool Fill, class Graph, class Updated>
constexpr failure run_update(const Graph& g, const ranks_of& mesh, Updated& ref) {
  if (g.error) return failure::not_admitted;
  if (g.node_count * mesh.count() > memory::capacity) return failure::too_large;
  memory m;
  cell cells[32 * max_ranks];
  modp whole[3 + 1][24]{};
  for (int k = 0; k < 4; ++k)
    for (int e = 0; e < 24; ++e)
      whole[k][e] = reduced_to(scramble(static_cast<unsigned>(e), 70 + static_cast<unsigned>(k)));
  int update = -1;
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    if (is_update(n.op)) update = i;
    if (runs_kernel(n.op) || n.inputs > 0) {
      execute(g, i, mesh, cells, m);
      continue;
    }
    const modp* const values = whole[n.op == op_code::input ? 0 : n.op == op_code::param ? 1 : 2 + n.a.v[2]];
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
      each_element(x->l, [&](const std::int64_t* e, std::int64_t i) { ref.value[k][i] = x->p[offset_of(*x, e)]; });
    } else {
      if (const failure f = compare(x, g.spec_of(n.in[j]), mesh, ref.value[k], failure::value); f != failure::none)
        return f;
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

// --- which placements -----------------------------------------------------------------------------------------------

using placings = static_vector<placing, 40>;

constexpr bool is_placement_function(op_code op) {
  return op == op_code::permute || op == op_code::reshape || op == op_code::slice || op == op_code::pad ||
         op == op_code::slice_scatter || op == op_code::redistribute || op == op_code::wait;
}

// Specs of all nodes with the leaves placed on one axis; false where a placement or a step is refused.
constexpr bool place(const program& p, const placing& at, const ranks_of& mesh, spec* s) {
  for (int k = 0; k < p.leaf_count; ++k) {
    s[k] = leaf_spec(p.leaves[k], mesh);
    for (int a = 0; a < mesh.axes; ++a) s[k].place[a] = at.at[k][a];
    if (check_placements(s[k])) return false;
    normalise(s[k]);
  }
  for (int j = 0; j < p.step_count; ++j) {
    spec in[max_inputs]{};
    for (int k = 0; k < p.steps[j].inputs; ++k) in[k] = s[p.steps[j].in[k]];
    const outcome o = infer(p.steps[j].op, p.steps[j].a, in, p.steps[j].inputs);
    if (o.error) return false;
    s[p.leaf_count + j] = o.out;
  }
  return true;
}

constexpr bool admits(const program& p, const placing& at, const ranks_of& mesh) {
  spec s[max_leaves + 4]{};
  return place(p, at, mesh, s);
}

// All that the last step's rule admits on one axis: its rows with and without a block, or, where the rule is a function
// of one operand or wants all alike, every placement that it accepts. A row that nothing reaches comes back all the same, and fails.
constexpr placings placings_of(const program& p, int ranks) {
  placings all;
  ranks_of mesh;
  mesh.size[0] = ranks;
  spec s[max_leaves + 4]{};
  place(p, placing{}, mesh, s);
  const step& last = p.last();
  bool rows = !is_placement_function(last.op);
  for (int k = 0; k < last.inputs; ++k) rows = rows && last.in[k] < p.leaf_count + p.step_count - 1;
  bool covered[max_leaves]{};
  for (int k = 0; k < last.inputs; ++k)
    if (last.in[k] < p.leaf_count) covered[last.in[k]] = true;
  for (int k = 0; k < p.leaf_count; ++k) rows = rows && covered[k];

  if (!rows) {  // one leaf, or several that are placed alike
    for (int d = -3; d < s[0].rank; ++d)
      for (int blocked = 0; blocked < (d >= 0 && p.block > 1 ? 2 : 1); ++blocked) {
        placing at;
        at.at[0][0] = d == -3   ? replicate_value()
                      : d == -2 ? reduced_value()
                      : d == -1 ? partial_value()
                                : shard_value(d, blocked ? p.block : 1);
        for (int k = 1; k < p.leaf_count; ++k) at.at[k][0] = at.at[0][0];
        spec t[max_leaves + 4]{};
        if (place(p, at, mesh, t) && !(blocked && t[0].place[0].block == 1)) all.push_back(at);
      }
    return all;
  }

  spec in[max_inputs]{};
  for (int k = 0; k < last.inputs; ++k) in[k] = s[last.in[k]];
  const spec out = rules::infer_shape(last.op, last.a, in, last.inputs).out;
  const rule_rows table = rules::infer_rows(last.op, last.a, in, last.inputs, out);
  for (int r = 0; r < table.count; ++r)
    for (int variant = 0; variant < 3; ++variant) {  // plain, with a block, with indices that are reduced
      const rule_row& row = table.item[r];
      if (variant == 1 && p.block == 1) continue;
      placing at;
      at.promises = true;
      at.out = row.out;
      bool differs = variant == 0, valid = true;
      for (int k = 0; k < last.inputs; ++k) {
        if (last.in[k] >= p.leaf_count) continue;
        placement q = row.in[k];
        if (variant == 1 && q.is_shard()) {
          q.block = p.block;
          spec split = in[k];
          split.place[0] = q;
          valid = valid && !check_placements(split);
          normalise(split);
          differs = differs || split.place[0].block != 1;
          if (at.out.is_shard()) at.out.block = p.block;
        }
        if (variant == 2 && in[k].type == dtype::i32 && q.is_replicate()) {
          q = reduced_value();
          differs = true;
        }
        for (int i = 0; i < k; ++i) valid = valid && (last.in[i] != last.in[k] || at.at[last.in[k]][0] == q);
        at.at[last.in[k]][0] = q;
      }
      spec t[max_leaves + 4]{};
      if (p.partly) valid = valid && place(p, at, mesh, t);
      if (differs && valid) all.push_back(at);
    }
  return all;
}

// The combination of a placement on the first axis and one on the second.
constexpr placing both_axes(const placing& first, const placing& second) {
  placing r = first;
  r.promises = false;
  for (int k = 0; k < max_leaves; ++k) r.at[k][1] = second.at[k][0];
  return r;
}

}  // namespace shardwise::laws
