// SPDX-License-Identifier: Apache-2.0
// grad: the joint graph of a scalar's forward and the cotangents of its parameters, built in stages.
#pragma once

#include <shardwise/autodiff/adjoints.hpp>
#include <shardwise/graph/verify/located.hpp>
#include <shardwise/graph/stage.hpp>

namespace shardwise::inline v0_1::autodiff {

// Forward nodes keep their ids; backward nodes follow. `cotangent[i]` is the gradient node of forward node i, or -1.
template <class Graph, int Forward>
struct grad_state {
  Graph g{typename Graph::unfilled{}};
  int cotangent[Forward];
  unsigned char needs[Forward];
  int dual_spec[Graph::spec_capacity];
  int cursor;  // next forward node to pull, downward
};

// What is differentiated with respect to what: by default output 0 and parameters that are not frozen. A source may name another scalar
// node (`root`), and say of each input whether it is wanted (`wants_input`).
template <class Source, class Graph>
constexpr int root_of(const Graph& g) {
  if constexpr (requires { Source::root; }) return Source::root;
  else return g.outputs[0];
}
template <class Source>
constexpr bool is_variable(const node& n) {
  if constexpr (requires { Source::wants_input(0); })
    if (n.op == op_code::input) return Source::wants_input(attributes_of<leaf_attributes>(n.a).index);
  return n.op == op_code::param && !is_frozen_parameter(n);
}

// Over how many ranks a source's gradients are averaged (average_gradients); 1: they are the loss's own.
template <class Source>
constexpr double averaged_over() {
  if constexpr (requires { Source::averaged_over; }) return static_cast<double>(Source::averaged_over);
  else return 1;
}

// By what a source's gradients are multiplied until an optimizer divides them (loss_scale).
template <class Source>
constexpr double scaled_by() {
  if constexpr (requires { Source::loss_scaled; }) return static_cast<double>(Source::loss_scaled);
  else return 1;
}

// Whether the scale is a state of the program (dynamic_loss_scale), and what it is at first.
template <class Source>
inline constexpr bool scales_by_state = requires { Source::scaler::shardwise_loss_scale; };

// The root of the forward graph is differentiated; its cotangent is 1, or one part of it where gradients are averaged, times what
// the loss is scaled by.
struct grad {
 private:
  // Which nodes depend on a variable through operands that gradients flow into.
  template <class Source, class Graph>
  static constexpr void mark_needs(const Graph& g, unsigned char* needs) {
    const int n = g.node_count;
    for (int i = 0; i < n; ++i) {
      const node x = g.nodes[i];
      bool any = is_variable<Source>(x);
      for (int k = 0; k < x.inputs && !any; ++k) any = needs[x.in[k]] && differentiable(rule_of(g, x), k);
      needs[i] = any;
    }
  }

  struct bounds {
    int nodes = 0, of_customs = 0;
  };
  // A bound close to what the sweep appends: a stage costs what its state is large. Of users' adjoints apart, which may give each of
  // their nodes a spec of its own; those of the library make few that the forward pass does not have.
  template <class Source, int Forward, class Graph>
  static constexpr bounds pulled_nodes(const Graph& g) {
    bool given[Forward]{};  // whether a contribution came before: the next one is added
    unsigned char needs[Forward]{};
    mark_needs<Source>(g, needs);
    bounds all;
    for (int i = 0; i < Forward; ++i) {
      if (!needs[i]) continue;
      const node x = g.nodes[i];
      const adjoint_rule& rule = rule_of(g, x);
      int total = 0;
      if (const int results = result_count(g, x); results > 1) total += 2 * results;  // each may be made, and zeros for it
      for (int k = 0; k < x.inputs; ++k) {
        const int operand = x.in[k];
        if (!needs[operand] || !differentiable(rule, k)) continue;
        // beside the sum with an earlier contribution, and what converts this one
        const dtype own = g.specs[g.nodes[operand].spec].type, made = g.specs[x.spec].type;
        const bool converts = cotangent_type(g.nodes[operand], own) != own || cotangent_type(x, made) != made;
        total += rule.most.value(k, g.specs[g.nodes[operand].spec], g.specs[x.spec]) + (given[operand] ? 1 : 0) +
                 (converts ? 1 : 0);
        given[operand] = true;
      }
      all.nodes += total;
      all.of_customs += is_custom(g, x) ? total : 0;
    }
    return all;
  }

 public:
  template <class Source>
  static constexpr int stages(int nodes) {
#if !SHARDWISE_DEVICE_PASS
    static_assert(shardwise::detail::no_mutation<Source, grad>::ok);
#endif
    return (Source::value.node_count + nodes - 1) / nodes;
  }

  template <class Source>
  static constexpr int forward = Source::value.node_count;
  // Beside the forward nodes: the pullbacks', the seed and its redistributions.
  template <class Source>
  static constexpr bounds pulled = pulled_nodes<Source, forward<Source>>(Source::value);
  template <class Source>
  static constexpr int joint =
      forward<Source> + pulled<Source>.nodes + 1 + max_axes + (scales_by_state<Source> ? 2 + max_axes : 0);
  template <class Source>
  using state = grad_state<
      resized<graph_type_of<Source>, joint<Source>, 3 * Source::value.spec_count + 16 + pulled<Source>.of_customs>,
      forward<Source>>;

  template <class Source, class State>
  static constexpr void start(State& st) {
    copy_into(st.g, Source::value);
    const int n = st.g.node_count;
    for (auto& c : st.cotangent) c = -1;
    for (auto& d : st.dual_spec) d = -1;
    mark_needs<Source>(st.g, st.needs);
    const int loss = root_of<Source>(st.g);
    auto t = open(st);
    const spec cotangent = contiguous(dual(st.g.spec_of(loss)));
    if constexpr (scales_by_state<Source>)
      st.cotangent[loss] =
          state_seed(t, cotangent, Source::stored_as, static_cast<double>(Source::scaler::shardwise_loss_scale),
                     1 / averaged_over<Source>());
    else st.cotangent[loss] = seed(t, cotangent, scaled_by<Source>() / averaged_over<Source>());
    st.g.finish(t.b);
    st.cursor = n - 1;
  }

  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    auto t = open(st);
    for (int k = 0; k < nodes && st.cursor >= 0; ++k, --st.cursor)
      if (st.needs[st.cursor] && st.cotangent[st.cursor] >= 0) {
        if constexpr (requires { st.began; }) st.began[st.cursor] = t.b.node_count;
        pull(t, st.cursor);
        if (t.b.error) shardwise::detail::place_error(t.b.error, t.b, st.cursor);
      }
    st.g.finish(t.b);
  }

 protected:
  // The root's cotangent: on every rank, or, where it is partial, on coordinate 0 alone, so that it is the sum.
  static constexpr int seed(tape& t, const spec& cotangent, double value) {
    spec s = cotangent;
    for (int a = 0; a < s.axes; ++a)
      if (s.place[a].is_partial()) s.place[a] = replicate_value();
    node one = empty_node;
    one.op = op_code::fill;
    one.f = value;
    one.spec = t.b.intern(s);
    int id = t.b.append(one);
    for (int a = 0; a < s.axes; ++a) {
      if (s.place[a] == cotangent.place[a]) continue;
      s.place[a] = cotangent.place[a];
      id = t.b.emit(op_code::redistribute, attributes<redistribute_attributes>(a, pack(s.place[a])), 0, t.b.intern(s), -1,
                    id);
    }
    return id;
  }

  // The same of a scale that is a state, number 0 of the program: as it is when the step begins.
  static constexpr int state_seed(tape& t, const spec& cotangent, dtype type, double first, double part) {
    spec s = cotangent;
    for (int a = 0; a < s.axes; ++a) s.place[a] = replicate_value();
    s.type = type;
    int id = t.b.emit(op_code::state, pack_attributes(leaf_attributes{.index = 0, .parameter = -1, .which = scale_state}),
                      first, t.b.intern(s), -1);
    if (part != 1) id = t.b.emit(op_code::scale, {}, part, t.b.nodes[id].spec, -1, id);
    if (s.type != cotangent.type) {
      s.type = cotangent.type;
      id = t.b.emit(op_code::cast, attributes<cast_attributes>(static_cast<std::int64_t>(s.type)), 0, t.b.intern(s), -1, id);
    }
    for (int a = 0; a < s.axes; ++a) {
      if (cotangent.place[a] == replicate_value()) continue;
      s.place[a] = cotangent.place[a];
      id = t.b.emit(op_code::redistribute, attributes<redistribute_attributes>(a, pack(s.place[a])), 0, t.b.intern(s), -1,
                    id);
    }
    return id;
  }

  template <class State>
  static constexpr tape open(State& st) {
    tape t;
    t.b = st.g.edit();
    t.b.bounded = true;
    t.cotangent = st.cotangent;
    t.forward = static_cast<int>(sizeof(st.cotangent) / sizeof(st.cotangent[0]));
    t.needs = st.needs;
    t.dual_spec = st.dual_spec;
    t.dual_capacity = decltype(st.g)::spec_capacity;
    return t;
  }
};

// grad, and where in the joint graph the sweep pulled each forward node: began[i] nodes came before its first one, -1: not pulled.
template <class Base, int Forward>
struct followed_state : Base {
  int began[Forward];
};
struct followed_grad : grad {
  template <class Source>
  using state = followed_state<grad::state<Source>, grad::forward<Source>>;
  template <class Source, class State>
  static constexpr void start(State& st) {
    grad::start<Source>(st);
    for (int& b : st.began) b = -1;
  }
};

}  // namespace shardwise::inline v0_1::autodiff
