// SPDX-License-Identifier: Apache-2.0
// probed: a trace made functional, and which of its values a call log's tensors are: a tensor that is written in place is another
// value before the write than behind it.
#pragma once

#include <shardwise/graph/calls.hpp>
#include <shardwise/pass/functionalise/functionalise.hpp>

namespace shardwise::inline v0_1::passes {

// A log's marks in a functional graph: how many of its nodes come before each mark, and the node of each tensor, -1: nothing
// depends on it.
template <int Marks, int Tensors>
struct probed_marks {
  int place[Marks > 0 ? Marks : 1];
  int node[Tensors > 0 ? Tensors : 1];
};

// Beside the state of functionalise: what of the log is placed so far.
template <class Base, int Marks, int Tensors>
struct probed_state : Base {
  probed_marks<Marks, Tensors> at;
  int marked = 0;  // marks
};

// Log: `value`, the call_marks of Source. Law: values and outputs are those of functional_graph; what is only looked at is dead.
template <int Root, class Log>
struct probed_stages : functional_stages<Root> {
  using base = functional_stages<Root>;
  static constexpr int marks = Log::value.mark_count, tensors = Log::value.tensor_count;
  // a look at a tensor may make its views anew
  template <class Source>
  static constexpr int nodes = [] {
    aliasing<graph_type_of<Source>::node_capacity> a;
    a.find(Source::value);
    int n = a.sizes_after(Source::value).nodes;
    for (int k = 0; k < tensors; ++k) n += 2 * a.depth[Log::value.tensor[k]];
    return n;
  }();
  template <class Source>
  using state =
      probed_state<functional_state<resized<graph_type_of<Source>, nodes<Source>, base::template size<Source>.specs>,
                                    graph_type_of<Source>::node_capacity>,
                   marks, tensors>;
  template <class Source, class State>
  static constexpr void start(State& st) {
    base::template start<Source>(st);
    for (int& p : st.at.place) p = 0;
    for (int& n : st.at.node) n = -1;
  }
  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    functional::go(st, Source::value, base::per_stage(nodes), Root, [](auto& s, builder& b) {
      for (; s.marked < marks && Log::value.mark[s.marked].at <= s.cursor; ++s.marked) {
        const module_mark& m = Log::value.mark[s.marked];
        for (int k = m.first; k < m.first + m.count; ++k)
          s.at.node[k] = functional::read(s, Source::value, b, Log::value.tensor[k]);
        s.at.place[s.marked] = b.node_count;
      }
    });
  }
};

// `value`: the functional graph without what nothing reads; `root`: where node Root is in it; `at`: the log in it.
template <class Source, int Root, class Log>
struct probed {
 private:
  using staged_type = staged<probed_stages<Root, Log>, Source>;
  static constexpr int marks = Log::value.mark_count, tensors = Log::value.tensor_count;
  using from = std::remove_cvref_t<decltype(staged_type::value.g)>;

  static constexpr auto marked = [] {
    detail::live_mask<from::node_capacity> m;
    if (staged_type::value.result >= 0) m.live[staged_type::value.result] = 1;
    m.kept = mark_live(staged_type::value.g, m.live);
    return m;
  }();

 public:
  static constexpr auto value = [] {
    resized<graph_type_of<Source>, marked.kept, staged_type::value.g.spec_count> r;
    detail::keep(r, staged_type::value.g, marked.live);
    return r;
  }();
  static constexpr auto at = [] {
    int before[from::node_capacity + 1]{};  // nodes that are kept before each
    for (int i = 0; i < from::node_capacity; ++i) before[i + 1] = before[i] + marked.live[i];
    probed_marks<marks, tensors> r{};
    for (int m = 0; m < marks; ++m) r.place[m] = before[staged_type::value.at.place[m]];
    for (int k = 0; k < tensors; ++k) {
      const int n = staged_type::value.at.node[k];
      r.node[k] = n >= 0 && marked.live[n] ? before[n] : -1;
    }
    return r;
  }();
  static constexpr int root = staged_type::value.result < 0 ? -1 : [] {
    int n = 0;
    for (int i = 0; i < staged_type::value.result; ++i) n += marked.live[i];
    return n;
  }();
};

}  // namespace shardwise::inline v0_1::passes
