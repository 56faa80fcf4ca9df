// SPDX-License-Identifier: Apache-2.0
// sym: a tensor whose type is its spec and whose value is the id of the node that produced it; applying records.
//
// A redistribution that has nothing to do (equal placements, or done before) is the node that has its value already. Two
// tensors are then one node, which nothing but a write tells apart: so a program that writes in place is recorded once
// more with builder::own_values, where such a redistribution is a node that redistributes to what its operand is. Programs
// without writes have none of them, and functionalise leaves none.
#pragma once

#include <shardwise/graph/graph.hpp>
#include <shardwise/graph/tensor.hpp>
#include <shardwise/graph/waits.hpp>

namespace shardwise::inline v0_1 {

template <spec S, class Mesh, class Report = detail::noted>
struct sym {
  static constexpr spec sp = S;
  static constexpr std::uint64_t hash = hash_of(S);
  using mesh_type = Mesh;
  using report = Report;

  builder* b = nullptr;
  int id = -1;

  // --- what only eager tensors have: each is a sentence -------------------------------------------------------------------

  template <class X = void>
  constexpr auto item() const {
    return without_value<X>();
  }
  template <class X = void>
  constexpr auto full_tensor() const {
    return without_value<X>();
  }
  template <class X = void>
  constexpr auto to_local() const {
    return without_value<X>();
  }
  template <std::integral I>
  constexpr auto operator[](I) const {
    return unavailable<problem::tensor_subscript, I>();
  }
  // `if`, `while`, `?:`, `!`, `&&`
  template <std::same_as<bool> B>
  explicit constexpr operator B() const {
    detail::refused<problem::tensor_condition, detail::no_node, operand_t<S>, B>(*this);
    return false;
  }
  // static_cast<double>(loss)
  template <class T>
    requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>)
  explicit constexpr operator T() const {
    return static_cast<T>(static_cast<double>(without_value<T>()));
  }

  template <auto Op, op_attr A, spec Out, class... X>
  static constexpr sym<Out, Mesh, Report> apply(double f, const sym& first, const X&... more) {
    builder* const at = recording(first, more...);
    if (!at) return {};
    builder& b = *at;
    node n = empty_node;
    constexpr op_code code = code_of(Op);
    n.a = A;
    b.set_operation(n, Op);
    n.f = f;
    n.inputs = 1 + static_cast<int>(sizeof...(X));
    n.in[0] = b.operand(first.id, n.op);
    int k = 1;
    ((n.in[k++] = b.operand(more.id, n.op)), ...);
    n.spec = b.intern(sym<Out, Mesh, Report>::sp, sym<Out, Mesh, Report>::hash);
    n.scope = b.current_scope;
    if constexpr (code == op_code::redistribute) {
      // one tensor redistributed twice in the same way is communicated once, forward and (summed first) backward
      const int from = n.in[0];
      int same = Out == S ? from : -1;
      for (int i = (from < b.last_write ? b.last_write : from) + 1; same < 0 && i < b.node_count && i < b.node_capacity; ++i)
        if (b.nodes[i].op == code && b.nodes[i].in[0] == from && b.nodes[i].spec == n.spec) same = i;
      if (same >= 0) {
        b.same_values = true;
        if (!b.own_values) return {at, same};
        n.in[0] = same;
      }
    }
    if constexpr (code == op_code::copy_) b.last_write = b.node_count;
    if constexpr (rules::is_random(code)) n.a = attributes<random_attributes>(b.sites++);
    return {at, b.append(n)};
  }

  // An operation with several results: its node, and one for each result.
  template <auto Op, op_attr A, spec First, spec... Out, class... X>
  static constexpr std::tuple<sym<First, Mesh, Report>, sym<Out, Mesh, Report>...> apply_results(double f, const sym& first,
                                                                                                 const X&... more) {
    const sym<First, Mesh, Report> all = apply<Op, A, First>(f, first, more...);
    if (!all.b) return {};
    int k = 0;
    const auto item = [&](std::uint64_t spec_hash, const spec& s) {
      const int at = k++;
      return all.b->append(item_node(all.id, at, all.b->intern(s, spec_hash), all.b->current_scope));
    };
    return {sym<First, Mesh, Report>{all.b, item(sym<First, Mesh, Report>::hash, First)},
            sym<Out, Mesh, Report>{all.b, item(sym<Out, Mesh, Report>::hash, Out)}...};
  }

  // The graph of the first operand that is in one. A parameter that the model does not register is in none (and the
  // node that reads it is refused, by builder::operand).
  template <class... X>
  static constexpr builder* recording(const X&... x) {
    builder* at = nullptr;
    ((at = at ? at : x.b), ...);
    return at;
  }

  // --- on the way: see graph/functions/pending.hpp ----------------------------------------------------------------------------------

  // A node that a pending tensor stands for; none: it has been taken.
  struct flight_type {
    builder* b = nullptr;
    int id = -1;
  };
  template <spec Out>
  using placed_like = sym<Out, Mesh, Report>;

  constexpr flight_type take_off() const { return {b, id}; }
  template <op_code Op, op_attr A, spec Out>
  static constexpr typename sym<Out, Mesh, Report>::flight_type depart(double f, const flight_type& x) {
    return apply<Op, A, Out>(f, sym{x.b, x.id}).take_off();
  }
  // One wait for one node.
  static constexpr sym arrive(flight_type f) {
    if (!f.b) return {};
    builder& b = *f.b;
    if (f.id < 0) {  // a number stands for what the first wait gave
      b.refuse_value({problem::pending_taken}, op_code::wait);
      node n = empty_node;
      n.op = op_code::fill;
      n.spec = b.intern(sp, hash);
      n.scope = b.current_scope;
      return {f.b, b.append(n)};
    }
    // where the last step is no collective, it has waited for the one before
    if (f.id < b.node_capacity && arrival_at(b, f.id) < 0) return {f.b, f.id};
    for (int i = f.id + 1; i < b.node_count && i < b.node_capacity; ++i)
      if (b.nodes[i].op == op_code::wait && b.nodes[i].in[0] == f.id) return {f.b, i};
    return apply<op_code::wait, op_attr{}, S>(0, sym{f.b, f.id});
  }
  static constexpr flight_type landed(const flight_type& f) { return {f.b, -1}; }
  static constexpr void cancel(const flight_type& f) {
    if (f.b && f.id >= 0) f.b->refuse_node(problem::pending_unwaited, f.id);
  }

  // A tensor without operands (a constant) in the graph that `like` is in.
  template <op_code Op, spec Out, op_attr A = op_attr{}>
  static constexpr sym<Out, Mesh, Report> apply_leaf(double f, const sym& like) {
    if (!like.b) return {};
    builder& b = *like.b;
    node n = empty_node;
    n.op = Op;
    n.a = A;
    n.f = f;
    if constexpr (rules::is_random(Op)) n.a = attributes<random_attributes>(b.sites++);
    n.spec = b.intern(sym<Out, Mesh, Report>::sp, sym<Out, Mesh, Report>::hash);
    n.scope = b.current_scope;
    return {like.b, b.append(n)};
  }

  // A call that is recorded and not looked into.
  template <const opaque_operation* Function, spec Out, class... X>
  static constexpr sym<Out, Mesh, Report> apply_opaque(const sym& first, const X&... more) {
    builder* const at = recording(first, more...);
    if (!at) return {};
    builder& b = *at;
    node n = empty_node;
    n.op = op_code::opaque;
    n.a = attributes<opaque_attributes>(b.function_count);
    n.inputs = 1 + static_cast<int>(sizeof...(X));
    n.in[0] = b.operand(first.id, n.op);
    int k = 1;
    ((n.in[k++] = b.operand(more.id, n.op)), ...);
    n.spec = b.intern(sym<Out, Mesh, Report>::sp, sym<Out, Mesh, Report>::hash);
    n.scope = b.current_scope;
    if (b.function_count < max_opaque) b.functions[b.function_count++] = Function;
    else b.refuse_value({problem::opaque_too_many, -1, -1, -1, max_opaque + 1, max_opaque}, op_code::opaque);
    return {at, b.append(n)};
  }

 private:
  template <problem P, class... Facts>
  constexpr auto unavailable() const {
    return detail::refused<P, detail::no_node, operand_t<S>, Facts...>(*this);
  }
  // Said at once, without module and node: who asks for a value prints it, compares it or branches on it, and that is no
  // constant, so that the trace would not come to its end and its own sentence.
  template <class... Facts>
  static constexpr detail::unresolved<Mesh> without_value() {
    static_assert(raise<problem::traced_value, operand_t<S>, Mesh, Facts...>::ok);
    return {};
  }
};

}  // namespace shardwise::inline v0_1
