// SPDX-License-Identifier: Apache-2.0
// Pullbacks: from the cotangent of a node to the cotangents of its operands, one node for each. Reverse mode, as values.
#pragma once

#include <shardwise/graph/graph.hpp>
#include <shardwise/propagation/infer.hpp>

namespace shardwise::autodiff {

// What differentiation makes of an operation.
//   unlisted  nobody has said: does not compile, see below
//   leaf      no operands, so nothing to differentiate
//   constant  indices, decisions and statistics: their derivative is zero, or the pullback of the operation that uses them
//             differentiates through them
//   pulled    `pull` gives its operands cotangents
//   refused   a finding: nothing is known of it, or it is itself an adjoint, an update, or what passes write afterwards
enum class adjoint : std::uint8_t { unlisted, leaf, constant, pulled, refused };

// Without a default: an operation that is added must be entered here.
constexpr adjoint adjoint_of(op_code op) {
  switch (op) {
    case op_code::input:
    case op_code::param:
    case op_code::state:
    case op_code::fill:
    case op_code::arange:
    case op_code::rand:
    case op_code::randn:
    case op_code::buffer: return adjoint::leaf;
    case op_code::sign:
    case op_code::wins:
    case op_code::keeps:
    case op_code::eq:
    case op_code::ne:
    case op_code::lt:
    case op_code::le:
    case op_code::gt:
    case op_code::ge:
    case op_code::one_hot:
    case op_code::bernoulli:
    case op_code::topk:
    case op_code::norm_stats:
    case op_code::exp_sum: return adjoint::constant;
    case op_code::redistribute:
    case op_code::wait:
    case op_code::einsum:
    case op_code::add:
    case op_code::sub:
    case op_code::mul:
    case op_code::scale:
    case op_code::relu:
    case op_code::tanh:
    case op_code::gelu_tanh:
    case op_code::gelu_erf:
    case op_code::sum:
    case op_code::sumsq:
    case op_code::vector_norm:
    case op_code::softmax:
    case op_code::norm_apply:
    case op_code::embedding:
    case op_code::lse:
    case op_code::nll:
    case op_code::permute:
    case op_code::reshape:
    case op_code::slice:
    case op_code::pad:
    case op_code::contiguous:
    case op_code::broadcast:
    case op_code::cat:
    case op_code::gather:
    case op_code::scatter_add:
    case op_code::index_select:
    case op_code::index_add:
    case op_code::scatter:
    case op_code::constant_pad:
    case op_code::triangle:
    case op_code::dropout:
    case op_code::relabel:
    case op_code::abs:
    case op_code::exp:
    case op_code::log:
    case op_code::sqrt:
    case op_code::rsqrt:
    case op_code::reciprocal:
    case op_code::sigmoid:
    case op_code::sin:
    case op_code::cos:
    case op_code::pow:
    case op_code::clamp_min:
    case op_code::clamp_max:
    case op_code::div:
    case op_code::maximum:
    case op_code::minimum:
    case op_code::where:
    case op_code::mask_keep:
    case op_code::amax:
    case op_code::amin:
    case op_code::prod:
    case op_code::log_softmax:
    case op_code::take:
    case op_code::slice_scatter: return adjoint::pulled;
    case op_code::opaque:
    case op_code::expand:
    case op_code::clip_factor:
    case op_code::relu_bwd:
    case op_code::tanh_bwd:
    case op_code::gelu_tanh_bwd:
    case op_code::gelu_erf_bwd:
    case op_code::vector_norm_bwd:
    case op_code::softmax_bwd:
    case op_code::norm_dx:
    case op_code::norm_dw:
    case op_code::embedding_dw:
    case op_code::nll_dx:
    case op_code::scatter_dsrc:
    case op_code::prod_dx:
    case op_code::take_dx:
    case op_code::copy_:
    case op_code::fused:
    case op_code::norm:
    case op_code::norm_grads:
    case op_code::norm_bwd:
    case op_code::part:
    case op_code::sgd:
    case op_code::adam:
    case op_code::adam_term:
    case op_code::pack:
    case op_code::unpack:
    case op_code::assign:
    case op_code::in_place:
    case op_code::advance: return adjoint::refused;
    case op_code::count: break;
  }
  return adjoint::unlisted;
}

static_assert(
    [] {
      for (int i = 0; i < static_cast<int>(op_code::count); ++i)
        if (adjoint_of(static_cast<op_code>(i)) == adjoint::unlisted) return false;
      return true;
    }(),
    "shardwise: an operation has no entry in adjoint_of; say there what differentiation makes of it.");

// Operands that gradients flow into, by position; indices, statistics and nll's log-normaliser take none.
constexpr bool differentiable(op_code op, int operand) {
  switch (op) {
    case op_code::norm_apply: return operand == 0 || operand >= 2;
    case op_code::where: return operand > 0;
    case op_code::mask_keep:
    case op_code::take:
    case op_code::embedding:
    case op_code::nll:
    case op_code::gather:
    case op_code::scatter_add:
    case op_code::index_select:
    case op_code::index_add: return operand == 0;
    case op_code::scatter: return operand != 1;
    default: return adjoint_of(op) == adjoint::pulled || adjoint_of(op) == adjoint::refused;
  }
}

// Reverse sweep in the making: `b` appends to the joint graph, `cotangent[i]` is the node of i's cotangent so far.
struct tape {
  builder b;
  int* cotangent = nullptr;
  const unsigned char* needs = nullptr;
  int* dual_spec = nullptr;  // spec id -> id of its contiguous dual, -1 unknown
  int dual_capacity = 0;

  constexpr const spec& spec_at(int id) const { return b.specs[b.nodes[id].spec]; }

  // Law: the cotangent of a tensor has its extents and the dual of its placements.
  constexpr int dual_id(int spec_id) {
    if (spec_id < dual_capacity && dual_spec[spec_id] >= 0) return dual_spec[spec_id];
    const int id = b.intern(contiguous(dual(b.specs[spec_id])));
    if (spec_id < dual_capacity) dual_spec[spec_id] = id;
    return id;
  }

  constexpr int emit(op_code op, const op_attr& a, double f, int spec_id, int scope, int i0, int i1 = -1, int i2 = -1,
                     int i3 = -1) {
    node n = empty_node;
    n.op = op;
    n.a = a;
    n.f = f;
    n.spec = spec_id;
    n.scope = scope;
    n.in[0] = i0;
    n.in[1] = i1;
    n.in[2] = i2;
    n.in[3] = i3;
    n.inputs = (i0 >= 0 ? 1 : 0) + (i1 >= 0 ? 1 : 0) + (i2 >= 0 ? 1 : 0) + (i3 >= 0 ? 1 : 0);
    return b.append(n);
  }

  // Contributions are added in the order in which the reverse sweep meets them.
  constexpr void give(int operand, int node_id, int scope) {
    if (cotangent[operand] < 0) cotangent[operand] = node_id;
    else
      cotangent[operand] = emit(op_code::add, op_attr{}, 0, dual_id(b.nodes[operand].spec), scope, cotangent[operand], node_id);
  }
};

// Which dims of the result `out` an operand `x` was broadcast along: summed away, or kept with extent 1.
constexpr op_attr unbroadcast(const spec& x, const spec& out) {
  op_attr a{};
  for (int d = 0; d < out.rank; ++d) {
    const int own = d - (out.rank - x.rank);
    if (own < 0) a.v[0] |= std::int64_t{1} << d;
    else if (x.extent[own] == 1 && out.extent[d] != 1) {
      a.v[0] |= std::int64_t{1} << d;
      a.v[1] |= std::int64_t{1} << d;
    }
  }
  return a;
}

constexpr int contiguous_node(tape& t, int id, int scope) {
  const spec& s = t.spec_at(id);
  if (is_contiguous(s)) return id;
  const int c = t.b.intern(contiguous(s));
  return t.emit(op_code::contiguous, op_attr{}, 0, c, scope, id);
}

// What the derivative of a redistribution on `axis` multiplies a cotangent by. A mean's is its block's own: one part in
// `ranks` of the whole's, though placed as a sum's; and the whole that every rank's block of a mean was made of has all
// their derivatives together.
constexpr double redistribution_factor(const spec& x, const spec& out, int axis) {
  const placement mean = partial_value(reduction::avg);
  const bool from = x.place[axis] == mean, to = out.place[axis] == mean;
  const double ranks = x.axis_size[axis];
  return from == to ? 1 : from ? 1 / ranks : ranks;
}
constexpr bool rescales(const spec& x, const spec& out) {
  bool any = false;
  for (int a = 0; a < x.axes; ++a) any = any || redistribution_factor(x, out, a) != 1;
  return any;
}

// Elementwise functions, largest and smallest, rows: pullback_functions.hpp.
constexpr int most_pulled_of_function(op_code op, int operand);
constexpr void pull_function(tape& t, int id);

// What `pull` appends at most for one operand, beside the sum with an earlier contribution.
constexpr int most_pulled(op_code op, int operand, const spec& x, const spec& out) {
  switch (op) {
    case op_code::wait:
    case op_code::contiguous: return 0;
    case op_code::add:
    case op_code::sub:
    case op_code::mul:
      return (unbroadcast(x, out).v[0] != 0 ? 1 : 0) + (op == op_code::mul || (op == op_code::sub && operand == 1) ? 1 : 0);
    case op_code::reshape: return 2;
    case op_code::slice_scatter: return operand == 0 ? 2 : 1;
    case op_code::redistribute: return 2 + (rescales(x, out) ? 1 : 0);
    case op_code::relabel: return 2 + 2 * max_axes;
    case op_code::constant_pad: return x.rank;
    default: return most_pulled_of_function(op, operand);
  }
}

// The part of a cotangent that belongs to elements start.. of dim d: a view.
constexpr int sliced(tape& t, int from, int d, std::int64_t start, std::int64_t length, int scope) {
  const op_attr a{{d, start, length, 0, 0, 0}};
  const outcome o = rules::slice_spec(a, t.spec_at(from));
  if (o.error && !t.b.error) t.b.error = o.error;
  return t.emit(op_code::slice, a, 0, t.b.intern(o.out), scope, from);
}

constexpr void pull(tape& t, int id) {
  const node n = t.b.nodes[id];
  if (adjoint_of(n.op) == adjoint::leaf) return;
  const int dy = t.cotangent[id];
  const int sc = n.scope;
  auto wants = [&](int k) { return n.in[k] >= 0 && t.needs[n.in[k]] && differentiable(n.op, k); };
  auto cospec = [&](int k) { return t.dual_id(t.b.nodes[n.in[k]].spec); };
  switch (n.op) {
    case op_code::einsum:
      if (wants(0))
        t.give(n.in[0], t.emit(op_code::einsum, {{n.a.v[2], n.a.v[1], n.a.v[0], 0, 0, 0}}, n.f, cospec(0), sc, dy, n.in[1]), sc);
      if (wants(1))
        t.give(n.in[1], t.emit(op_code::einsum, {{n.a.v[2], n.a.v[0], n.a.v[1], 0, 0, 0}}, n.f, cospec(1), sc, dy, n.in[0]), sc);
      break;
    case op_code::add:
    case op_code::sub:
      for (int k = 0; k < 2; ++k) {
        if (!wants(k)) continue;
        int g = dy;
        const op_attr u = unbroadcast(t.spec_at(n.in[k]), t.spec_at(id));
        if (u.v[0] != 0) g = t.emit(op_code::sum, u, 0, cospec(k), sc, g);
        if (n.op == op_code::sub && k == 1) g = t.emit(op_code::scale, {}, -1, cospec(k), sc, g);
        t.give(n.in[k], g, sc);
      }
      break;
    case op_code::mul:
      for (int k = 0; k < 2; ++k) {
        if (!wants(k)) continue;
        const op_attr u = unbroadcast(t.spec_at(n.in[k]), t.spec_at(id));
        int product_spec = cospec(k);
        if (u.v[0] != 0) {
          const spec in[2] = {t.spec_at(dy), t.spec_at(n.in[1 - k])};
          const outcome o = infer(op_code::mul, op_attr{}, in, 2);
          if (o.error && !t.b.error) t.b.error = o.error;
          product_spec = t.b.intern(o.out);
        }
        int g = t.emit(op_code::mul, {}, 0, product_spec, sc, dy, n.in[1 - k]);
        if (u.v[0] != 0) g = t.emit(op_code::sum, u, 0, cospec(k), sc, g);
        t.give(n.in[k], g, sc);
      }
      break;
    case op_code::scale:
    case op_code::dropout: t.give(n.in[0], t.emit(n.op, n.a, n.f, cospec(0), sc, dy), sc); break;
    case op_code::relu: t.give(n.in[0], t.emit(op_code::relu_bwd, {}, 0, cospec(0), sc, dy, n.in[0]), sc); break;
    case op_code::tanh: t.give(n.in[0], t.emit(op_code::tanh_bwd, {}, 0, cospec(0), sc, dy, id), sc); break;
    case op_code::gelu_tanh: t.give(n.in[0], t.emit(op_code::gelu_tanh_bwd, {}, 0, cospec(0), sc, dy, n.in[0]), sc); break;
    case op_code::gelu_erf: t.give(n.in[0], t.emit(op_code::gelu_erf_bwd, {}, 0, cospec(0), sc, dy, n.in[0]), sc); break;
    case op_code::sum: t.give(n.in[0], t.emit(op_code::expand, n.a, 0, cospec(0), sc, dy), sc); break;
    case op_code::vector_norm:
      t.give(n.in[0], t.emit(op_code::vector_norm_bwd, n.a, 0, cospec(0), sc, dy, n.in[0], id), sc);
      break;
    case op_code::softmax: t.give(n.in[0], t.emit(op_code::softmax_bwd, n.a, 0, cospec(0), sc, dy, id), sc); break;
    case op_code::norm_apply:
      if (wants(0)) t.give(n.in[0], t.emit(op_code::norm_dx, n.a, n.f, cospec(0), sc, dy, n.in[0], n.in[1], n.in[2]), sc);
      if (wants(2)) t.give(n.in[2], t.emit(op_code::norm_dw, n.a, n.f, cospec(2), sc, dy, n.in[0], n.in[1]), sc);
      if (n.inputs > 3 && wants(3))
        t.give(n.in[3], t.emit(op_code::sum, unbroadcast(t.spec_at(n.in[3]), t.spec_at(id)), 0, cospec(3), sc, dy), sc);
      break;
    case op_code::embedding:
      if (wants(0))
        t.give(n.in[0], t.emit(op_code::embedding_dw, rules::embedding_dw_attr(t.spec_at(n.in[0])), 0, cospec(0), sc, dy, n.in[1]), sc);
      break;
    case op_code::nll:
      t.give(n.in[0], t.emit(op_code::nll_dx, n.a, 0, cospec(0), sc, dy, n.in[0], n.in[1], n.in[2]), sc);
      break;
    case op_code::permute: {
      op_attr inverse{};
      for (int d = 0; d < t.spec_at(id).rank; ++d) inverse.v[0] |= std::int64_t{d} << (4 * rules::packed_dim(n.a.v[0], d));
      const int s = t.b.intern(rules::permute_spec(inverse, t.spec_at(dy)).out);
      t.give(n.in[0], t.emit(op_code::permute, inverse, 0, s, sc, dy), sc);
      break;
    }
    case op_code::reshape: {
      const spec& x = t.spec_at(n.in[0]);
      op_attr a{};
      for (int d = 0; d < x.rank; ++d) a.v[d] = x.extent[d];
      a.v[5] = x.rank;
      const int source = contiguous_node(t, dy, sc);
      t.give(n.in[0], t.emit(op_code::reshape, a, 0, cospec(0), sc, source), sc);
      break;
    }
    case op_code::slice: {
      const int d = static_cast<int>(n.a.v[0]);
      t.give(n.in[0], t.emit(op_code::pad, {{d, n.a.v[1], t.spec_at(n.in[0]).extent[d], 0, 0, 0}}, 0, cospec(0), sc, dy), sc);
      break;
    }
    case op_code::pad: {
      const op_attr a{{n.a.v[0], n.a.v[1], t.spec_at(n.in[0]).extent[n.a.v[0]], 0, 0, 0}};
      const outcome o = rules::slice_spec(a, t.spec_at(dy));
      if (o.error && !t.b.error) t.b.error = o.error;
      t.give(n.in[0], t.emit(op_code::slice, a, 0, t.b.intern(o.out), sc, dy), sc);
      break;
    }
    case op_code::slice_scatter:
      if (wants(0)) {  // zeros where the slice was written over
        const int zeros = t.emit(op_code::fill, {}, 0, cospec(1), sc, -1);
        t.give(n.in[0], t.emit(op_code::slice_scatter, n.a, 0, cospec(0), sc, dy, zeros), sc);
      }
      if (wants(1)) t.give(n.in[1], sliced(t, dy, static_cast<int>(n.a.v[0]), n.a.v[1], n.a.v[2], sc), sc);
      break;
    case op_code::wait:
    case op_code::contiguous: t.give(n.in[0], dy, sc); break;
    case op_code::broadcast: {
      const op_attr u = unbroadcast(t.spec_at(n.in[0]), t.spec_at(id));
      t.give(n.in[0], u.v[0] == 0 ? dy : t.emit(op_code::sum, u, 0, cospec(0), sc, dy), sc);
      break;
    }
    case op_code::cat: {
      const int d = static_cast<int>(n.a.v[0]);
      std::int64_t start = 0;
      for (int k = 0; k < n.inputs; ++k) {
        const std::int64_t length = t.spec_at(n.in[k]).extent[d];
        if (wants(k)) t.give(n.in[k], sliced(t, dy, d, start, length, sc), sc);
        start += length;
      }
      break;
    }
    case op_code::gather:
    case op_code::index_select: {
      const std::int64_t places = t.spec_at(n.in[0]).extent[n.a.v[0]];
      const op_code back = n.op == op_code::gather ? op_code::scatter_add : op_code::index_add;
      if (wants(0)) t.give(n.in[0], t.emit(back, {{n.a.v[0], places, 0, 0, 0, 0}}, 0, cospec(0), sc, dy, n.in[1]), sc);
      break;
    }
    case op_code::scatter_add:
    case op_code::index_add: {
      const op_code back = n.op == op_code::scatter_add ? op_code::gather : op_code::index_select;
      if (wants(0)) t.give(n.in[0], t.emit(back, {{n.a.v[0], 0, 0, 0, 0, 0}}, 0, cospec(0), sc, dy, n.in[1]), sc);
      break;
    }
    case op_code::scatter:
      if (wants(0)) t.give(n.in[0], t.emit(op_code::scatter, {{n.a.v[0], 1, 0, 0, 0, 0}}, 0, cospec(0), sc, dy, n.in[1]), sc);
      if (n.inputs > 2 && wants(2))
        t.give(n.in[2], t.emit(op_code::scatter_dsrc, {{n.a.v[0], 0, 0, 0, 0, 0}}, 0, cospec(2), sc, dy, n.in[1]), sc);
      break;
    case op_code::constant_pad: {
      int g = dy;
      const spec& x = t.spec_at(n.in[0]);
      std::int64_t length[max_rank]{};
      for (int d = 0; d < x.rank; ++d) length[d] = x.extent[d];
      for (int d = 0; d < t.spec_at(id).rank; ++d)
        if (n.a.v[d] != 0) g = sliced(t, g, d, rules::pad_before(n.a, d), length[d], sc);
      t.give(n.in[0], g, sc);
      break;
    }
    case op_code::triangle: t.give(n.in[0], t.emit(n.op, n.a, 0, cospec(0), sc, dy), sc); break;
    case op_code::redistribute: {
      const int axis = static_cast<int>(n.a.v[0]);
      const placement given = t.spec_at(n.in[0]).place[axis], made = t.spec_at(id).place[axis], to = dual(given);
      for (const placement& p : {given, made})
        if (p.is_partial() && p == dual(p) && !t.b.error) t.b.error = {problem::redistribute_partial_op, id, -1, axis};
      const op_attr a{{axis, pack(to), 0, 0, 0, 0}};
      const spec& c = t.spec_at(dy);
      int source = dy;
      if (transition_of(c.place[axis], to, c.axis_size[axis]) != transition::none) source = contiguous_node(t, dy, sc);
      spec out = t.spec_at(source);
      out.place[axis] = to;
      const double factor = redistribution_factor(t.spec_at(n.in[0]), t.spec_at(id), axis);
      if (t.spec_at(source).place[axis] != to) source = t.emit(op_code::redistribute, a, 0, t.b.intern(out), sc, source);
      if (factor != 1) source = t.emit(op_code::scale, {}, factor, t.b.nodes[source].spec, sc, source);
      t.give(n.in[0], source, sc);
      break;
    }
    case op_code::relabel: {
      // the cotangent's blocks, under the operand's extents and the placements that the relabelling asks for
      const spec own = t.spec_at(n.in[0]);
      for (int a = 0; a < own.axes && !t.b.error; ++a)
        if ((n.a.v[unlabelled] >> a) & 1) t.b.error = {problem::to_local_gradient_missing, id, -1, a};
      spec claim = contiguous(own);
      double copies = 1;  // equal summands need no sum
      bool equal[max_axes]{};
      for (int a = 0; a < own.axes; ++a) {
        const placement g = unpack_placement(n.a.v[a]);
        equal[a] = own.place[a].is_replicate() && g == partial_value() && t.spec_at(dy).place[a].is_whole();
        if (equal[a]) {
          copies *= own.axis_size[a];
          continue;
        }
        claim.place[a] = own.place[a].is_shard() ? own.place[a] : g.is_shard() ? reduced_value() : g;
      }
      op_attr back{};
      for (int a = 0; a < own.axes; ++a) back.v[a] = pack(dual(claim.place[a]));
      const int source = contiguous_node(t, dy, sc);
      int c = t.emit(op_code::relabel, back, 0, t.b.intern(claim), sc, source);
      auto move = [&](int axis, placement to) {
        if (claim.place[axis] == to) return;
        claim.place[axis] = to;
        if (const finding f = check_placements(claim); f && !t.b.error) t.b.error = f;
        c = t.emit(op_code::redistribute, {{axis, pack(to), 0, 0, 0, 0}}, 0, t.b.intern(claim), sc, c);
      };
      for (int a = 0; a < own.axes; ++a)
        if (!own.place[a].is_shard() && !equal[a]) {
          move(a, unpack_placement(n.a.v[a]));
          move(a, dual(own.place[a]));
        }
      if (copies != 1) c = t.emit(op_code::scale, {}, copies, t.b.intern(claim), sc, c);
      t.give(n.in[0], c, sc);
      break;
    }
    case op_code::opaque:
      if (!t.b.error) t.b.error = {problem::opaque_gradient, id};
      break;
    default: pull_function(t, id); break;  // which refuses what it does not know
  }
}

}  // namespace shardwise::autodiff

#include <shardwise/autodiff/pullback_functions.hpp>
