// SPDX-License-Identifier: Apache-2.0
// module_event: what happens to modules while a program runs, worked out of its trace, its calls and its reverse sweep, as a
// constant.
#pragma once

#include <shardwise/autodiff/grad.hpp>
#include <shardwise/graph/calls.hpp>

namespace shardwise::inline v0_1 {

// pre_forward, post_forward: a call of the module begins and ends. pre_backward: the gradients of its results are complete;
// post_backward: those of its operands are. gradient: that of a tensor with a hook is. begin_backward, end_backward: the reverse
// sweep's.
enum class module_event_kind : std::uint8_t {
  pre_forward,
  post_forward,
  note,
  begin_backward,
  pre_backward,
  post_backward,
  gradient,
  end_backward
};

// It happens before node `at` of the program; scope -1: of no module.
struct module_event {
  module_event_kind kind = module_event_kind::note;
  std::int32_t scope = -1;
  std::int32_t at = 0;
  const char* label = nullptr;
  bool again = false;  // of what a checkpoint makes run again
};

template <int Events>
struct module_events {
  module_event item[Events > 0 ? Events : 1];
  int count = 0;

  constexpr const module_event* begin() const { return item; }
  constexpr const module_event* end() const { return item + count; }
  constexpr void add(module_event_kind kind, int scope, int at, const char* label = nullptr, bool again = false) {
    if (count < Events) item[count] = {kind, scope, at, label, again};
    ++count;
  }
};

namespace detail {

// Laws. A tensor's gradient is complete when the reverse sweep comes to the node that made it, before it pulls that node; a leaf's,
// when the last of those that read it has been pulled. A call's operands are waited for (post_backward) from when the call begins,
// its results (pre_backward) from when it ends, and only those that the loss depends on through what takes a gradient; all of them
// together are one hook, which fires with the last. Hooks that one tensor's gradient fires fire in the order in which they were
// registered: so of two calls that share an operand the outer one's post_backward comes first.
// A call of a checkpointed module (module/checkpoint.hpp) runs again, with all calls and notes in it, before the first of its nodes
// is pulled whose adjoint reads a value of the forward pass, and registers no hooks then. So PyTorch has it, which computes the whole
// call again; the program computes what is read.
//
// `marks`: place[m], how many nodes of g come before mark m; node[k], which one tensor k is. Sweep: followed_grad's state. Price:
// time and memory proportional to nodes and tensors.
template <class Log, class Graph, class Marks, class Sweep>
struct event_writer {
  static constexpr int marks = Log::value.mark_count, tensors = Log::value.tensor_count;
  static constexpr int nodes = Graph::node_capacity > 0 ? Graph::node_capacity : 1;

  const Graph& g;
  const Marks& at;
  const Sweep& sweep;

  int first[nodes]{}, last[nodes]{};             // hooks of each node: places of the list, plus one
  int next[tensors > 0 ? tensors : 1]{};         // the same
  int owner[tensors > 0 ? tensors : 1]{};        // the mark that waits
  int waiting[marks > 0 ? marks : 1]{};          // tensors that each mark still waits for
  int end[marks > 0 ? marks : 1]{};              // of an `enter`: the mark at which the call ends
  unsigned char again[marks > 0 ? marks : 1]{};  // whether it has been computed again
  int readers[nodes]{};                          // of a leaf: operands through which contributions are still to come
  bool any_checkpointed = false;

  template <class Events>
  constexpr void forward(Events& out) {
    int open[marks > 0 ? marks : 1]{}, depth = 0;
    for (int m = 0; m < marks; ++m) {
      const module_mark& x = Log::value.mark[m];
      say(out, m, at.place[m]);
      if (x.kind == call_mark::enter) {
        open[depth++] = m;
        any_checkpointed = any_checkpointed || is_checkpointed(x);
      } else if (x.kind == call_mark::leave) {
        end[open[--depth]] = m;
      }
      if (x.kind != call_mark::note)
        for (int k = x.first; k < x.first + x.count; ++k) wait_for(m, k);
    }
  }

  template <class Events>
  constexpr void backward(Events& out) {
    const int count = g.node_count;
    out.add(module_event_kind::begin_backward, -1, count);
    for (int i = 0; i < count; ++i) each_contribution(i, [&](int leaf) { ++readers[leaf]; });
    for (int i = count - 1; i >= 0; --i) {
      if (sweep.began[i] < 0) continue;
      if (!is_leaf(g.nodes[i].op)) complete(out, i, sweep.began[i]);
      if (any_checkpointed && reads_forward(i)) compute_again(out, i);
      each_contribution(i, [&](int leaf) {
        if (--readers[leaf] == 0) complete(out, leaf, pulled_by(i));
      });
    }
    out.add(module_event_kind::end_backward, -1, sweep.g.node_count);
  }

 private:
  constexpr bool is_checkpointed(const module_mark& x) const {
    return x.scope >= 0 && g.scopes[x.scope].checkpoint != nullptr;
  }
  template <class Events>
  constexpr void say(Events& out, int m, int place, bool repeated = false) const {
    const module_mark& x = Log::value.mark[m];
    if (x.kind == call_mark::hook) return;
    out.add(x.kind == call_mark::enter   ? module_event_kind::pre_forward
            : x.kind == call_mark::leave ? module_event_kind::post_forward
                                         : module_event_kind::note,
            x.scope, place, x.label, repeated);
  }
  // Whether what the pull of node i appended reads a value of the forward pass.
  constexpr bool reads_forward(int i) const {
    const int end = pulled_by(i);
    for (int n = sweep.began[i]; n < end; ++n)
      for (int k = 0; k < sweep.g.nodes[n].inputs; ++k)
        if (sweep.g.nodes[n].in[k] < g.node_count) return true;
    return false;
  }
  constexpr void wait_for(int m, int k) {
    const int n = at.node[k];
    if (n < 0 || !sweep.needs[n] || sweep.cotangent[n] < 0) return;
    owner[k] = m;
    ++waiting[m];
    if (first[n] == 0) first[n] = k + 1;
    else next[last[n] - 1] = k + 1;
    last[n] = k + 1;
  }
  template <class Events>
  constexpr void complete(Events& out, int n, int place) {
    for (int k = first[n]; k > 0; k = next[k - 1]) {
      const int m = owner[k - 1];
      if (--waiting[m] > 0) continue;
      const module_mark& x = Log::value.mark[m];
      out.add(x.kind == call_mark::enter   ? module_event_kind::post_backward
              : x.kind == call_mark::leave ? module_event_kind::pre_backward
                                           : module_event_kind::gradient,
              x.scope, place, x.label);
    }
  }
  template <class F>
  constexpr void each_contribution(int i, F&& f) const {
    if (sweep.began[i] < 0) return;
    const node& x = g.nodes[i];
    const autodiff::adjoint_rule& rule = autodiff::rule_of(g, x);
    for (int k = 0; k < x.inputs; ++k)
      if (is_leaf(g.nodes[x.in[k]].op) && sweep.needs[x.in[k]] && autodiff::differentiable(rule, k)) f(x.in[k]);
  }
  // How many nodes of the joint graph come before what the sweep does behind forward node i.
  constexpr int pulled_by(int i) const {
    for (--i; i >= 0; --i)
      if (sweep.began[i] >= 0) return sweep.began[i];
    return sweep.g.node_count;
  }
  template <class Events>
  constexpr void compute_again(Events& out, int i) {
    for (int m = 0; m < marks; ++m) {
      const module_mark& x = Log::value.mark[m];
      if (x.kind != call_mark::enter || again[m] || !is_checkpointed(x) || i < at.place[m] || i >= at.place[end[m]])
        continue;
      for (int inner = m; inner <= end[m]; ++inner) {
        again[inner] = 1;
        say(out, inner, sweep.began[i], true);
      }
    }
  }
};

}  // namespace detail

}  // namespace shardwise::inline v0_1
