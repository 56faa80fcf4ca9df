// SPDX-License-Identifier: Apache-2.0
// finite: looks for the first node of a run whose result holds a NaN or an infinity: executor_checks::finite.
#pragma once

#include <bit>
#include <stdexcept>
#include <string>

#include <shardwise/runtime/program/lowered_program.hpp>

namespace shardwise::inline v0_1::runtime {

// What of a block is no number.
struct specials {
  std::int64_t nan = 0, infinite = 0;
  std::int64_t first = -1;  // row-major index in the whole tensor
};

template <class T>
specials specials_of(const T* data, const layout& l) {
  specials s;
  std::int64_t at[max_rank]{};
  const std::int64_t n = l.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t offset = 0;
    for (int d = 0; d < l.rank; ++d) offset += at[d] * l.str[d];
    if (const computed_in<T> v = data[offset]; !(v - v == 0)) {
      if (s.first < 0) s.first = global_index(l, at);
      ++(v == v ? s.infinite : s.nan);
    }
    for (int d = l.rank - 1; d >= 0 && ++at[d] == l.ext[d]; --d) at[d] = 0;
  }
  return s;
}

// Law: a NaN is reported at the node that made it, or, if it stood in an input, a parameter or a state, at the first node that
// reads it. An infinity is reported where it comes out of operands without one. It is passed on in silence where an operand
// holds it already (a mask of -inf in an input), where the node's own number is infinite (full, masked_fill, constant_pad
// with -inf), where this rank's operand has no elements (an extreme's share is then the neutral element), and where a
// collective only moves what another rank holds.
class finite_watch {
 public:
  // `fetch(from, id)` gives the block of node `id` of the program `at`, on the host; `from` is what it asks.
  using fetch_function = const void* (*)(void* from, int id);
  finite_watch(const lowered_program& at, void* from, fetch_function fetch) : at_(at), from_(from), fetch_(fetch) {}

  // Before a call. Whether an infinite result would be none of its making.
  bool before(const call& c) const {
    const graph_view& g = at_.tables().graph;
    const node& n = g.nodes[c.node];
    bool allowed = is_infinite(n.f) || moves_values(c);
    if (n.expression >= 0 || n.op == op_code::fused) {
      const auto of = attributes_of<fused_attributes>(n.a);
      for (const real& constant : of.constant) allowed = allowed || is_infinite(constant);
    }
    for (int k = 0; k < n.inputs; ++k)
      each_value(g, n.in[k], [&](int id) {
        if (g.nodes[id].op == op_code::room) return;  // where it writes
        const specials s = look(id);
        allowed = allowed || s.infinite > 0 || at_.layout_of(id).numel() == 0;
        const int leaf = leaf_of(g, id);
        const bool bad = leaf >= 0 && (s.nan > 0 || (s.infinite > 0 && g.nodes[leaf].op != op_code::input));
        if (bad)
          throw std::runtime_error("shardwise: " + leaf_name(leaf) + " holds " + counted(id, s) + "; " + name(c.node) +
                                   " reads it");
      });
    return allowed;
  }
  // After it.
  void after(const call& c, bool allowed) const {
    const graph_view& g = at_.tables().graph;
    const node& n = g.nodes[c.node];
    const auto check = [&](int id, const std::string& what) {
      const specials s = look(id);
      if (s.nan > 0 || (s.infinite > 0 && !allowed))
        throw std::runtime_error("shardwise: " + what + name(c.node) + " holds " + counted(id, s) +
                                 "; what it reads holds none");
    };
    if (is_update(n.op)) {
      for (int k = 0; k < n.inputs; ++k)
        each_value(g, n.in[k], [&](int id) {
          const int leaf = leaf_of(g, id);
          if (k == 0 || (leaf >= 0 && g.nodes[leaf].op == op_code::state))
            check(id, leaf >= 0 ? leaf_name(leaf) + " after " : "what is written by ");
        });
    } else if (c.results) {
      for (int j = c.node + 1; j < g.node_count; ++j)
        if (g.nodes[j].op == op_code::getitem && g.nodes[j].in[0] == c.node) check(j, "a result of ");
    } else if (is_list(g, c.node)) {  // its gaps hold anything
      for (int j = c.node + 1; j < g.node_count; ++j)
        if (g.nodes[j].op == op_code::unpack && g.nodes[j].in[0] == c.node) check(j, "the result of ");
    } else {
      check(c.node, "the result of ");
    }
    for (int k = 0; k < n.inputs; ++k)
      if (g.nodes[n.in[k]].op == op_code::room) check(n.in[k], "a further result of ");
  }

 private:
  static bool is_infinite(double v) { return v == v && !(v - v == 0); }
  static bool moves_values(const call& c) {
    if (c.kind == transition::all_gather || c.kind == transition::all_to_all || c.kind == transition::exchange_halo)
      return true;
    return communicates(c.kind) && (c.from.op == reduction::max || c.from.op == reduction::min);
  }
  // The values that a list is made of, or the one that a node is.
  template <class F>
  static void each_value(const graph_view& g, int id, F&& f) {
    if (g.nodes[id].op != op_code::pack) return f(id);
    for (int k = 0; k < g.nodes[id].inputs; ++k) each_value(g, g.nodes[id].in[k], f);
  }
  // Values side by side with room between them: a list, and what is computed of lists place by place. What nothing takes out of one, an
  // update writes, and is looked at there.
  static bool is_list(const graph_view& g, int id) {
    const node& n = g.nodes[id];
    if (n.op == op_code::pack) return true;
    if (n.inputs == 0 || n.op == op_code::unpack) return false;
    if (n.op == op_code::redistribute) return is_list(g, n.in[0]);
    const spec &own = g.spec_of(id), &first = g.spec_of(n.in[0]);
    return own.rank == first.rank && own.rank == 1 && own.extent[0] == first.extent[0] && is_list(g, n.in[0]);
  }
  // The parameter, buffer, state or input whose storage a node shows, -1: none.
  static int leaf_of(const graph_view& g, int id) {
    while (g.nodes[id].inputs > 0 && is_view(g.nodes[id], g.spec_of(g.nodes[id].in[0]), g.spec_of(id)))
      id = g.nodes[id].in[0];
    return is_leaf(g.nodes[id].op) ? id : -1;
  }
  specials look(int id) const {
    const auto fetch = [&](int i) { return fetch_(from_, i); };
    switch (at_.tables().graph.spec_of(id).type) {
      case dtype::f32: return specials_of(static_cast<const float*>(fetch(id)), at_.layout_of(id));
      case dtype::f64: return specials_of(static_cast<const double*>(fetch(id)), at_.layout_of(id));
      case dtype::bf16: return specials_of(static_cast<const bfloat16*>(fetch(id)), at_.layout_of(id));
      case dtype::f16: return specials_of(static_cast<const float16*>(fetch(id)), at_.layout_of(id));
      case dtype::i32:
      case dtype::i64:
      case dtype::boolean: break;
    }
    return {};
  }

  std::string name(int id) const { return node_names(at_.tables().graph)[static_cast<std::size_t>(id)]; }
  std::string leaf_name(int id) const {
    const program_tables& program = at_.tables();
    const node& n = program.graph.nodes[id];
    const auto of = attributes_of<leaf_attributes>(n.a);
    const auto index = static_cast<int>(of.index);
    if (n.op == op_code::param && program.flat.is_flat(index))
      return "flat parameter that begins with '" + program.parameter_name(index) + "'";
    if (n.op == op_code::param) return "parameter '" + program.parameter_name(index) + "'";
    if (n.op == op_code::module_buffer) return "buffer '" + program.buffer_name(index) + "'";
    if (keeps_gradient(n))
      return "sum of gradients of parameter '" + program.parameter_name(static_cast<int>(of.parameter)) + "'";
    if (n.op == op_code::state && of.parameter >= 0)
      return "state " + std::to_string(of.which) + " of parameter '" +
             program.parameter_name(static_cast<int>(of.parameter)) + "'";
    if (n.op == op_code::state && of.which == scale_state) return "the loss scale";
    if (n.op == op_code::state && of.which == gradient_norm) return "the norm of all gradients";
    return (n.op == op_code::state ? "kept value " : "input ") + std::to_string(index);
  }
  // "3 NaN and 1 infinity among 64 elements of this rank's block, the first at (1, 3) of (4, 16)"
  std::string counted(int id, const specials& s) const {
    const layout& l = at_.layout_of(id);
    std::string out;
    if (s.nan > 0) out += std::to_string(s.nan) + " NaN";
    if (s.infinite > 0)
      out += (s.nan > 0 ? " and " : "") + std::to_string(s.infinite) + (s.infinite == 1 ? " infinity" : " infinities");
    std::string place, whole;
    std::int64_t left = s.first;
    for (int d = l.rank - 1; d >= 0; --d) {
      place = std::to_string(left % l.global[d]) + (place.empty() ? "" : ", ") + place;
      whole = std::to_string(l.global[d]) + (whole.empty() ? "" : ", ") + whole;
      left /= l.global[d];
    }
    return out + " among the " + std::to_string(l.numel()) + (l.numel() == 1 ? " element" : " elements") +
           " of this rank's block" + (l.rank > 0 ? ", the first at (" + place + ") of (" + whole + ")" : "");
  }

  const lowered_program& at_;
  void* from_;
  fetch_function fetch_;
};

}  // namespace shardwise::inline v0_1::runtime
