// SPDX-License-Identifier: Apache-2.0
// finite: looks for the first node of a run whose result holds a NaN or an infinity: executor_checks::finite.
#pragma once

#include <bit>
#include <stdexcept>
#include <string>

#include <shardwise/runtime/program/lowered.hpp>

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
// collective only moves what another rank holds. `fetch(id)` gives the block of node `id`, on the host.
template <class Step>
class finite_watch {
  using lowered_type = lowered<Step>;

 public:
  // Before a call. Whether an infinite result would be none of its making.
  template <class Fetch>
  static bool before(const lowered_type& at, const call& c, Fetch&& fetch) {
    const auto& g = at.image();
    const node& n = g.nodes[c.node];
    bool allowed = is_infinite(n.f) || moves_values(c);
    if (n.expression >= 0 || n.op == op_code::fused) {
      const auto of = attributes_of<fused_attributes>(n.a);
      for (const real& constant : of.constant) allowed = allowed || is_infinite(constant);
    }
    for (int k = 0; k < n.inputs; ++k)
      each_value(g, n.in[k], [&](int id) {
        if (g.nodes[id].op == op_code::room) return;  // where it writes
        const specials s = look(at, id, fetch);
        allowed = allowed || s.infinite > 0 || at.layout_of(id).numel() == 0;
        const int leaf = leaf_of(g, id);
        const bool bad = leaf >= 0 && (s.nan > 0 || (s.infinite > 0 && g.nodes[leaf].op != op_code::input));
        if (bad)
          throw std::runtime_error("shardwise: " + leaf_name(leaf) + " holds " + counted(at, id, s) + "; " + name(c.node) +
                                   " reads it");
      });
    return allowed;
  }
  // After it.
  template <class Fetch>
  static void after(const lowered_type& at, const call& c, bool allowed, Fetch&& fetch) {
    const auto& g = at.image();
    const node& n = g.nodes[c.node];
    const auto check = [&](int id, const std::string& what) {
      const specials s = look(at, id, fetch);
      if (s.nan > 0 || (s.infinite > 0 && !allowed))
        throw std::runtime_error("shardwise: " + what + name(c.node) + " holds " + counted(at, id, s) +
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
  template <class Graph, class F>
  static void each_value(const Graph& g, int id, F&& f) {
    if (g.nodes[id].op != op_code::pack) return f(id);
    for (int k = 0; k < g.nodes[id].inputs; ++k) each_value(g, g.nodes[id].in[k], f);
  }
  // Values side by side with room between them: a list, and what is computed of lists place by place. What nothing takes out of one, an
  // update writes, and is looked at there.
  template <class Graph>
  static bool is_list(const Graph& g, int id) {
    const node& n = g.nodes[id];
    if (n.op == op_code::pack) return true;
    if (n.inputs == 0 || n.op == op_code::unpack) return false;
    if (n.op == op_code::redistribute) return is_list(g, n.in[0]);
    const spec &own = g.spec_of(id), &first = g.spec_of(n.in[0]);
    return own.rank == first.rank && own.rank == 1 && own.extent[0] == first.extent[0] && is_list(g, n.in[0]);
  }
  // The parameter, buffer, state or input whose storage a node shows, -1: none.
  template <class Graph>
  static int leaf_of(const Graph& g, int id) {
    while (g.nodes[id].inputs > 0 && is_view(g.nodes[id], g.spec_of(g.nodes[id].in[0]), g.spec_of(id)))
      id = g.nodes[id].in[0];
    return is_leaf(g.nodes[id].op) ? id : -1;
  }
  template <class Fetch>
  static specials look(const lowered_type& at, int id, Fetch&& fetch) {
    switch (at.image().spec_of(id).type) {
      case dtype::f32: return specials_of(static_cast<const float*>(fetch(id)), at.layout_of(id));
      case dtype::f64: return specials_of(static_cast<const double*>(fetch(id)), at.layout_of(id));
      case dtype::bf16: return specials_of(static_cast<const bfloat16*>(fetch(id)), at.layout_of(id));
      case dtype::f16: return specials_of(static_cast<const float16*>(fetch(id)), at.layout_of(id));
      case dtype::i32:
      case dtype::i64:
      case dtype::boolean: break;
    }
    return {};
  }

  static std::string name(int id) { return node_names(lowered_type::image())[static_cast<std::size_t>(id)]; }
  static std::string leaf_name(int id) {
    const node& n = lowered_type::image().nodes[id];
    const auto of = attributes_of<leaf_attributes>(n.a);
    const auto index = static_cast<int>(of.index);
    if (n.op == op_code::param && lowered_type::flat::is_flat(index))
      return "flat parameter that begins with '" + lowered_type::parameter_name(index) + "'";
    if (n.op == op_code::param) return "parameter '" + lowered_type::parameter_name(index) + "'";
    if (n.op == op_code::module_buffer) return "buffer '" + lowered_type::buffer_name(index) + "'";
    if (keeps_gradient(n))
      return "sum of gradients of parameter '" + lowered_type::parameter_name(static_cast<int>(of.parameter)) + "'";
    if (n.op == op_code::state && of.parameter >= 0)
      return "state " + std::to_string(of.which) + " of parameter '" +
             lowered_type::parameter_name(static_cast<int>(of.parameter)) + "'";
    if (n.op == op_code::state && of.which == scale_state) return "the loss scale";
    return (n.op == op_code::state ? "kept value " : "input ") + std::to_string(index);
  }
  // "3 NaN and 1 infinity among 64 elements of this rank's block, the first at (1, 3) of (4, 16)"
  static std::string counted(const lowered_type& at, int id, const specials& s) {
    const layout& l = at.layout_of(id);
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
};

}  // namespace shardwise::inline v0_1::runtime
