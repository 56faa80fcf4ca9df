// SPDX-License-Identifier: Apache-2.0
// tape: a graph whose reverse sweep is in the making; and what the rules of differentiation say in terms of it.
#pragma once

#include <shardwise/graph/graph.hpp>
#include <shardwise/operations/infer.hpp>

namespace shardwise::inline v0_1::autodiff {

// Reverse sweep in the making: `b` appends to the joint graph, `cotangent[i]` is the node of i's cotangent so far.
struct tape {
  builder b;
  int* cotangent = nullptr;
  int forward = 0;  // nodes that have an entry there
  const unsigned char* needs = nullptr;
  int* dual_spec = nullptr;  // spec id -> id of its contiguous dual, -1 unknown
  int dual_capacity = 0;

  // What a custom operation gives for operands of these specs: layers repeat, and a rule with many rows and results is dear.
  struct application {
    const custom_operation* operation = nullptr;
    op_attr a{};
    std::int32_t inputs = -1;  // nothing is known yet; to g++'s sanitizers a pointer compared with null is no constant
    std::int32_t in[max_inputs]{};
    std::int32_t result[max_results]{};  // spec ids, -1 unknown
  };
  application known[4]{};
  int oldest = 0;

  constexpr application& application_of(const custom_operation& o, const op_attr& a, const std::int32_t* in, int count) {
    for (application& k : known) {
      if (k.inputs != count || !is_same_operation(k.operation, &o) || !(k.a == a)) continue;
      bool same = true;
      for (int j = 0; j < count && same; ++j) same = k.in[j] == b.nodes[in[j]].spec;
      if (same) return k;
    }
    application& k = known[oldest];
    oldest = (oldest + 1) % 4;
    k.operation = &o;
    k.a = a;
    k.inputs = count;
    for (int j = 0; j < count; ++j) k.in[j] = b.nodes[in[j]].spec;
    for (std::int32_t& r : k.result) r = -1;
    return k;
  }

  constexpr const spec& spec_at(int id) const { return b.specs[b.nodes[id].spec]; }

  // The first finding is kept.
  constexpr void refuse(const finding& f) {
    if (f && !b.error) b.error = f;
  }
  // Whether there is no such node: of an operation with several results an adjoint must say whose cotangent it means.
  constexpr bool lacks(int id) {
    if (id < 0) refuse({problem::adjoint_dy});
    return id < 0;
  }
  // The id of a rule's result; what the rule finds is refused.
  constexpr int intern(const outcome& o) {
    refuse(o.error);
    return b.intern(o.out);
  }

  // Law: the cotangent of a tensor has its extents and the dual of its placements.
  constexpr int dual_id(int spec_id) {
    if (spec_id < dual_capacity && dual_spec[spec_id] >= 0) return dual_spec[spec_id];
    const int id = b.intern(contiguous(dual(b.specs[spec_id])));
    if (spec_id < dual_capacity) dual_spec[spec_id] = id;
    return id;
  }

  // Contributions are added in the order in which the reverse sweep meets them, in the type of the operand's cotangent.
  constexpr void give(int operand, int node_id, int scope) {
    if (lacks(node_id)) return;
    const int own = b.nodes[operand].spec;
    const dtype type = cotangent_type(b.nodes[operand], b.specs[own].type);
    if (spec_at(node_id).type != type) node_id = converted(node_id, type, scope);
    if (cotangent[operand] < 0) {
      cotangent[operand] = node_id;
      return;
    }
    int sum = dual_id(own);
    if (type != b.specs[own].type) {
      spec s = b.specs[sum];
      s.type = type;
      sum = b.intern(s);
    }
    cotangent[operand] = b.emit(op_code::add, op_attr{}, 0, sum, scope, cotangent[operand], node_id);
  }
  // A cotangent as elements of another type.
  constexpr int converted(int id, dtype type, int scope) {
    spec s = contiguous(spec_at(id));
    s.type = type;
    return b.emit(op_code::cast, attributes<cast_attributes>(static_cast<std::int64_t>(type)), 0, b.intern(s), scope, id);
  }
};

// Which dims of the result `out` an operand `x` was broadcast along: summed away, or kept with extent 1.
constexpr op_attr unbroadcast(const spec& x, const spec& out) {
  std::int64_t summed = 0, kept = 0;
  for (int d = 0; d < out.rank; ++d) {
    const int own = d - (out.rank - x.rank);
    if (own < 0) summed |= std::int64_t{1} << d;
    else if (x.extent[own] == 1 && out.extent[d] != 1) {
      summed |= std::int64_t{1} << d;
      kept |= std::int64_t{1} << d;
    }
  }
  return attributes<sum_attributes>(summed, kept);
}

constexpr bool sums(const op_attr& unbroadcast) { return attributes_of<sum_attributes>(unbroadcast).dims != 0; }

// Whether a custom operation's kernel can read such an operand: any where it is pointwise, else what is stored densely, in one of the
// formats where it goes by strides.
constexpr bool reads(const operation& o, const spec& x) {
  return o.kind == operation_kind::pointwise || is_contiguous(x) || (o.strided && is_channels_last(x));
}

constexpr int contiguous_node(tape& t, int id, int scope) {
  if (t.lacks(id)) return id;
  const spec& s = t.spec_at(id);
  if (is_contiguous(s)) return id;
  const int c = t.b.intern(contiguous(s));
  return t.b.emit(op_code::contiguous, op_attr{}, 0, c, scope, id);
}

// The part of a cotangent that belongs to elements start.. of dim d: a view.
constexpr int sliced(tape& t, int from, int d, std::int64_t start, std::int64_t length, int scope) {
  if (t.lacks(from)) return from;
  const op_attr a = attributes<slice_attributes>(d, start, length);
  return t.b.emit(op_code::slice, a, 0, t.intern(rules::slice_spec(a, t.spec_at(from))), scope, from);
}

// A node whose extents and placement are its rule's.
constexpr int derive(tape& t, op_code op, const op_attr& a, double f, int scope, int i0, int i1 = -1) {
  if (t.lacks(i0)) return i0;
  const spec in[2] = {t.spec_at(i0), i1 < 0 ? spec{} : t.spec_at(i1)};
  return t.b.emit(op, a, f, t.intern(infer(op, a, in, i1 < 0 ? 1 : 2)), scope, i0, i1);
}

// One node of the sweep: the node, its cotangent, and the words in which its adjoint is written.
struct pullback {
  tape& t;
  int id;
  node n;
  int dy;         // the node of its cotangent; -1 of an operation with several results, each of which has one: see cotangent
  unsigned into;  // operands that gradients flow into, bit by bit

  constexpr pullback(tape& given, int node_id, unsigned to)
      : t(given),
        id(node_id),
        n(given.b.nodes[node_id]),
        dy(has_results(given.b, node_id) ? -1 : given.cotangent[node_id]),
        into(to) {}

  // --- by the numbers of its results ---
  // Whether the gradient depends on result k. If it does not, its cotangent is zero.
  constexpr bool has(int k) {
    if (k < 0 || k >= result_count(t.b, n)) refuse({problem::result_number, id, -1, -1, k, result_count(t.b, n)});
    if (!has_results(t.b, id)) return true;
    const int item = item_of(t.b, id, k, t.forward);
    return item >= 0 && t.cotangent[item] >= 0;
  }
  // The node of its cotangent: zeros are made where there is none.
  constexpr int cotangent(int k) {
    if (has(k)) return has_results(t.b, id) ? t.cotangent[item_of(t.b, id, k, t.forward)] : dy;
    const int known = item_of(t.b, id, k, t.b.node_count);
    const int spec_id = known >= 0 ? t.b.nodes[known].spec : t.intern(inferred(t.b.nodes[id], k));
    return t.b.emit(op_code::fill, op_attr{}, 0, t.dual_id(spec_id), n.scope, -1);
  }
  // The node of result k, made if the trace has not read it.
  constexpr int result(int k) { return result_of(id, k); }
  // The same of any node that `make` gave.
  constexpr int result_of(int of, int k) {
    const int known = item_of(t.b, of, k, t.b.node_count);
    return known >= 0 ? known : t.b.append(item_node(of, k, result_spec(t.b.nodes[of], k), n.scope));
  }

  constexpr const spec& operand(int k) const { return t.spec_at(n.in[k]); }
  constexpr const spec& result() const { return t.spec_at(id); }
  // The id of the spec that operand k's cotangent has.
  constexpr int cospec(int k) { return t.dual_id(t.b.nodes[n.in[k]].spec); }
  // Whether operand k takes a gradient, and somebody asks for it.
  constexpr bool wants(int k) const { return (into >> k & 1U) != 0 && n.in[k] >= 0 && t.needs[n.in[k]]; }

  // A node placed as its rule says. `dims`: of a sum or another reduction, which stay with extent 1; or an operation's only
  // attribute.
  constexpr int make(op_code op, int i0, int i1 = -1, double f = 0, std::int64_t dims = 0) {
    return derive(t, op, {{dims, dims, 0, 0, 0, 0}}, f, n.scope, i0, i1);
  }
  // A node placed as operand k's cotangent is.
  constexpr int emit(op_code op, const op_attr& a, double f, int k, int i0, int i1 = -1, int i2 = -1, int i3 = -1) {
    if (t.lacks(i0)) return i0;
    return t.b.emit(op, a, f, cospec(k), n.scope, i0, i1, i2, i3);
  }
  constexpr void refuse(const finding& f) { t.refuse(f); }
  // A custom operation on these nodes; what its kernel cannot read as it is stored it gets as a copy. Of several results: see result_of.
  template <class... Node>
  constexpr int make(const custom_operation& o, const op_attr& a, double f, Node... operand) {
    int in[] = {operand...};
    spec s[sizeof...(Node)];
    constexpr int count = static_cast<int>(sizeof...(Node));
    static_assert(count <= max_inputs, "shardwise: make: an operation has at most 8 operands.");
    if (o.operands != count) {
      refuse({problem::custom_operands, id, -1, -1, count, o.operands});
      return in[0];
    }
    for (int k = 0; k < count; ++k) {
      if (t.lacks(in[k])) return in[k];
      if (!reads(o.record, t.spec_at(in[k]))) in[k] = contiguous_node(t, in[k], n.scope);
      s[k] = t.spec_at(in[k]);
    }
    node made = empty_node;
    made.a = a;
    t.b.set_operation(made, &o);
    made.f = f;
    tape::application& known = t.application_of(o, made.a, in, count);
    if (known.result[0] < 0) {
      const outcome result = infer(o.record, a, s, count);
      if (!result.error && !is_of_one_type(o.record, s, count, result.out))
        refuse({o.record.results == 1 ? problem::custom_record : problem::result_type, id});
      known.result[0] = t.intern(result);
    }
    made.spec = known.result[0];
    made.scope = n.scope;
    made.inputs = count;
    for (int k = 0; k < count; ++k) made.in[k] = in[k];
    return t.b.append(made);
  }

  // Operand k gets g.
  constexpr void give(int k, int g) { t.give(n.in[k], g, n.scope); }
  // Operand k gets g, summed over what it was broadcast along.
  constexpr void give_summed(int k, int g) {
    const op_attr u = unbroadcast(operand(k), result());
    give(k, sums(u) ? emit(op_code::sum, u, 0, k, g) : g);
  }
  // Operand 0 gets the cotangent times a factor.
  constexpr void times(int factor) { give(0, make(op_code::mul, dy, factor)); }

 private:
  constexpr int result_spec(const node& of, int k) {
    if (!is_custom(t.b, of)) return t.intern(inferred(of, k));
    tape::application& known = t.application_of(*custom_of(t.b, of), of.a, of.in, of.inputs);
    if (known.result[k] < 0) known.result[k] = t.intern(inferred(of, k));
    return known.result[k];
  }
  constexpr outcome inferred(const node& of, int k) const {
    spec in[max_inputs]{};
    for (int j = 0; j < of.inputs; ++j) in[j] = t.spec_at(of.in[j]);
    return infer(record_of(t.b, of), of.a, in, of.inputs, k);
  }
};

// What differentiation makes of an operation.
//   leaf      no operands, so nothing to differentiate
//   constant  indices, decisions and statistics: their derivative is zero, or the pullback of the operation that uses them
//             differentiates through them
//   pulled    `pull` gives its operands cotangents
//   refused   a finding: nothing is known of it, or it is itself an adjoint, an update, or what passes write afterwards
enum class adjoint : std::uint8_t { leaf, constant, pulled, refused };

// What differentiation makes of one operation, as one constant: operations/<family>/adjoint.hpp.
struct adjoint_rule {
  stated<adjoint> kind;
  stated<unsigned> into;                                              // operands that gradients flow into, bit by bit
  stated<int (*)(int operand, const spec& x, const spec& out)> most;  // nodes that `pull` appends at most for one operand,
                                                                      // beside the sum with an earlier contribution
  stated<void (*)(pullback&)> pull;
};

inline constexpr unsigned every_operand = ~0U;
template <int N>
constexpr int at_most(int, const spec&, const spec&) {
  return N;
}
template <int N = 1>
constexpr adjoint_rule pulled(void (*pull)(pullback&), unsigned into = every_operand) {
  return {.kind = adjoint::pulled, .into = into, .most = &at_most<N>, .pull = pull};
}
constexpr adjoint_rule pulled(int (*most)(int, const spec&, const spec&), void (*pull)(pullback&),
                              unsigned into = every_operand) {
  return {.kind = adjoint::pulled, .into = into, .most = most, .pull = pull};
}

constexpr void pull_nothing(pullback&) {}
constexpr void refuse_gradient(pullback& p) {
  p.refuse({problem::gradient_missing, p.id, -1, -1, static_cast<long long>(p.n.op), 0});
}
inline constexpr adjoint_rule no_operands{.kind = adjoint::leaf, .into = 0U, .most = &at_most<0>, .pull = &pull_nothing};
inline constexpr adjoint_rule no_derivative{
    .kind = adjoint::constant, .into = 0U, .most = &at_most<0>, .pull = &refuse_gradient};
// Gradients lead there, and are refused.
inline constexpr adjoint_rule unknown{
    .kind = adjoint::refused, .into = every_operand, .most = &at_most<1>, .pull = &refuse_gradient};

}  // namespace shardwise::inline v0_1::autodiff
