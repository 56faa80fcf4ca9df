// SPDX-License-Identifier: Apache-2.0
// watched: a traced task with what happens to its modules, forward and backward, as constants.
#pragma once

#include <shardwise/module/function.hpp>
#include <shardwise/module/tracker/tracker.hpp>
#include <shardwise/pass/functionalise/probes.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// What a trace tells of its calls.
template <class Trace>
struct told_calls {
  static constexpr auto counted = [] {
    call_log l;
    Trace::tell(l);
    return l;
  }();
  static constexpr auto value = [] {
    call_marks<counted.mark_count, counted.tensor_count> r;
    call_log l = r.log();
    Trace::tell(l);
    r.finish(l);
    return r;
  }();
};

template <class Trace, class Wrt>
struct wanting;
template <class Trace, int... W>
struct wanting<Trace, wrt<W...>> : Trace {
  static constexpr bool wants_input(std::int64_t i) { return ((i == W) || ... || false); }
};

// The forward graph that is differentiated, and where the calls of modules are in it.
template <class Trace, bool Writes>
struct watched_forward : Trace {
  using log = told_calls<Trace>;
  static constexpr passes::probed_marks<log::value.mark_count, log::value.tensor_count> at = [] {
    passes::probed_marks<log::value.mark_count, log::value.tensor_count> r{};
    for (int m = 0; m < log::value.mark_count; ++m) r.place[m] = log::value.mark[m].at;
    for (int k = 0; k < log::value.tensor_count; ++k) r.node[k] = log::value.tensor[k];
    return r;
  }();
};
template <class Trace>
struct watched_forward<Trace, true> : Trace {
  using log = told_calls<Trace>;
  static constexpr finding leaf_wrong = leaf_problem<Trace>(Trace::value);
  static constexpr finding buffer_wrong = buffer_problem<Trace>(Trace::value, result_of<Trace>(true));
  static constexpr finding wrong = leaf_wrong ? leaf_wrong : buffer_wrong;
#if !SHARDWISE_DEVICE_PASS
  static_assert(raise_at<wrong.what, Trace, wrong.operand, typename Trace::mesh_type>::ok);
#endif
  using made_functional = passes::probed<Trace, result_of<Trace>(true), log>;
  static constexpr const auto& value = made_functional::value;
  static constexpr int root = made_functional::root;
  static constexpr const auto& at = made_functional::at;
};

// Trace: a traced<...>. Wrt: inputs of which gradients are asked for, beside those of parameters.
template <class Trace, class Wrt>
struct watched {
  using raw = wanting<typename checked_loss<Trace>::type, Wrt>;
  using trace_type = watched_forward<raw, has_mutation(raw::value)>;
  using joint = staged<autodiff::followed_grad, trace_type>;
  using log = typename trace_type::log;
  static constexpr int forward_nodes = trace_type::value.node_count;

 private:
  template <class Events>
  static constexpr void write(Events& out) {
    event_writer<log, graph_type_of<trace_type>, std::remove_cvref_t<decltype(trace_type::at)>,
                 std::remove_cvref_t<decltype(joint::value)>>
        w{trace_type::value, trace_type::at, joint::value};
    w.forward(out);
    w.backward(out);
  }
  static constexpr int count = [] {
    module_events<0> none;
    write(none);
    return none.count;
  }();

 public:
  // In the joint graph's order.
  static constexpr module_events<count> events = [] {
    module_events<count> r;
    write(r);
    return r;
  }();
};

// The same events in a graph that has the joint graph's first nodes, without those that are not live, writes to leaves last (as
// sink_writes and eliminate_dead leave them).
template <class Events, class Graph>
constexpr Events placed_in(const Events& events, const Graph& g, const unsigned char* live, bool sunk) {
  constexpr int capacity = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
  bool late[capacity]{};
  int before[capacity + 1]{};
  for (int i = 0; i < g.node_count; ++i) {
    const node& x = g.nodes[i];
    late[i] = sunk && x.op == op_code::assign;
    for (int k = 0; k < x.inputs; ++k) late[i] = late[i] || late[x.in[k]];
    before[i + 1] = before[i] + (live[i] && !late[i] ? 1 : 0);
  }
  Events r = events;
  for (module_event& e : r.item) e.at = before[e.at];
  return r;
}

// Whether node i computes a part of a call of module `s` again.
template <class Graph>
constexpr bool repeats_call(const Graph& g, int i, int s) {
  if (replay_of(g, i) < 0) return false;
  const scope& wanted = g.scopes[s];
  for (int at = g.nodes[i].scope; at >= 0; at = g.scopes[at].parent) {
    if (is_same_module(g.scopes[at], wanted)) return true;
  }
  return false;
}

// And in a graph that `recompute` made of g: its nodes in their order, and among them those of replays. Events of a replay that is
// computed before the next other event are placed around its nodes; others stay together.
template <class Events, class Graph>
constexpr Events placed_beside_replays(const Events& events, const Graph& g) {
  constexpr int capacity = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
  int behind[capacity + 1]{};  // the first k nodes
  for (int i = 0, k = 0; i < g.node_count; ++i)
    if (replay_of(g, i) < 0) behind[++k] = i + 1;
  Events r = events;
  for (module_event& e : r.item) e.at = behind[e.at];
  for (int e = 0; e < r.count; ++e) {
    if (!r.item[e].again) continue;
    int next = e;
    while (next < r.count && r.item[next].again) ++next;
    const int end = next < r.count ? r.item[next].at : g.node_count;
    for (int at = r.item[e].at; e < next; ++e) {
      module_event& x = r.item[e];
      int first = -1, last = -1;
      for (int i = at; i < end && x.kind != module_event_kind::note; ++i)
        if (repeats_call(g, i, x.scope)) {
          last = i;
          if (first < 0) first = i;
        }
      if (first >= 0) at = x.kind == module_event_kind::pre_forward ? first : last + 1;
      x.at = at;
    }
    --e;
  }
  return r;
}

}  // namespace detail

// All events of a program at once, without running it: a tracker's log of it, in constants too.
// Watched: see module_events_of.
template <class Watched>
constexpr void replay(module_tracker& tracker) {
  const auto& g = Watched::trace_type::value;
  const int first = tracker.enter_program<typename Watched::trace_type::unbound_model>(g.scopes, g.scope_count);
  for (const module_event& e : Watched::events) tracker.happen(e, first);
}

// What happens to the modules of a model while a task is computed and differentiated: events, a constant. Wrt: the inputs of which
// a gradient is asked for; of the others modules' operands take none, so that no post_backward waits for them.
template <template <class> class Model, class Task, class Plan, class Mesh, class T = float, class Wrt = wrt<>>
using module_events_of = detail::watched<traced<Model, Task, Plan, Mesh, T, run_mode::train>, Wrt>;

}  // namespace shardwise::inline v0_1
