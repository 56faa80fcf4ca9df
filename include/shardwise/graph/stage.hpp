// SPDX-License-Identifier: Apache-2.0
// Passes run in stages of bounded size, one constant each, so that compilers' default limits hold at any depth.
#pragma once

#include <cstdint>
#include <type_traits>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

// Nodes handled by one constant; the result of a staged pass does not depend on this number.
inline constexpr int stage_nodes = SHARDWISE_STAGE_NODES;

// A staged pass has state<Source>, a type, start<Source>(state), which assigns all of it, and advance<Source>(state, nodes),
// which does a bounded part of the work and returns at once when nothing is left. How many stages that takes, either
// stages<Source>(nodes) says, or advance does: it returns whether work is left. States are filled in place and their arrays
// have no initialisers: see node.
//
// Every stage is a constant of the state's size, which compilers keep: so a state is best small and stages are best few.
// Passes whose nodes cost differently count their work, in statements evaluated, and stop when it is done.
#if defined(__clang__)
inline constexpr int work_per_node = 200;
#else
inline constexpr int work_per_node = 400;
#endif

// What is left of a stage's work.
struct stage_work {
  std::int64_t left, whole;

  constexpr explicit stage_work(int nodes) : left(static_cast<std::int64_t>(nodes) * work_per_node), whole(left) {}
  // As much as there is: of graphs made at run time.
  static constexpr stage_work all() {
    stage_work w(0);
    w.left = std::int64_t{1} << 62;
    return w;
  }
  constexpr bool take(std::int64_t statements) {
    const bool some = left > 0;
    left -= statements;
    return some;
  }
  // Whether so many statements at once are better done by the next stage, and then this one is over.
  constexpr bool defer(std::int64_t statements) {
    if (left >= statements || 2 * left >= whole) return false;
    left = 0;
    return whole > 0;
  }
};

namespace detail {
// A large constant copied into a state of this evaluation. By a function: a state that begins as a copy of the constant costs nvcc's
// front end twice the memory.
template <class State>
constexpr void assign_state(State& to, const State& from) {
  to = from;
}
template <class Pass, class Source, int Nodes, int K>
struct stage {
  static constexpr auto value = [] {
    std::remove_const_t<decltype(stage<Pass, Source, Nodes, K - 1>::value)> s;
    assign_state(s, stage<Pass, Source, Nodes, K - 1>::value);
    Pass::template advance<Source>(s, Nodes);
    return s;
  }();
};
template <class Pass, class Source, int Nodes>
struct stage<Pass, Source, Nodes, 0> {
  static constexpr auto value = [] {
    typename Pass::template state<Source> s;
    Pass::template start<Source>(s);
    return s;
  }();
};
// What one stage can do needs no copy of the state it starts from.
template <class Pass, class Source, int Nodes>
struct single_stage {
  static constexpr auto value = [] {
    typename Pass::template state<Source> s;
    Pass::template start<Source>(s);
    Pass::template advance<Source>(s, Nodes);
    return s;
  }();
};
template <class Pass, class Source, int Nodes, int Stages>
struct stages : stage<Pass, Source, Nodes, Stages> {};
template <class Pass, class Source, int Nodes>
struct stages<Pass, Source, Nodes, 1> : single_stage<Pass, Source, Nodes> {};

// Stages as long as work is left.
template <class State>
struct stage_result {
  State state;
  bool left;
};
// What a start may cost, forty statements a node, as nodes of work; the first stage does as much less.
template <class Source>
constexpr int start_nodes = std::remove_cvref_t<decltype(Source::value)>::node_capacity / (work_per_node / 40);

template <class Pass, class Source, int Nodes, int K>
struct stage_of_work {
  static constexpr auto value = [] {
    std::remove_const_t<decltype(stage_of_work<Pass, Source, Nodes, K - 1>::value)> s;
    assign_state(s, stage_of_work<Pass, Source, Nodes, K - 1>::value);
    s.left = Pass::template advance<Source>(s.state, Nodes);
    return s;
  }();
};
template <class Pass, class Source, int Nodes>
struct stage_of_work<Pass, Source, Nodes, 0> {
  static constexpr auto value = [] {
    stage_result<typename Pass::template state<Source>> s;
    Pass::template start<Source>(s.state);
    s.left = start_nodes<Source> < Nodes ? Pass::template advance<Source>(s.state, Nodes - start_nodes<Source>) : true;
    return s;
  }();
};
// The number of the last stage, of at most 2^Level from stage K on: looked for in halves, since compilers bound how deep
// templates may nest.
template <class Pass, class Source, int Nodes, int K, int Level>
struct last_stage {
  static constexpr int half = last_stage<Pass, Source, Nodes, K, Level - 1>::value;
  static constexpr int value = [] {
    if constexpr (stage_of_work<Pass, Source, Nodes, half>::value.left)
      return last_stage<Pass, Source, Nodes, half + 1, Level - 1>::value;
    else return half;
  }();
};
template <class Pass, class Source, int Nodes, int K>
struct last_stage<Pass, Source, Nodes, K, 0> {
  static constexpr bool left = stage_of_work<Pass, Source, Nodes, K>::value.left;  // stages are made in order
  static constexpr int value = K;
};
inline constexpr int stage_levels = 14;

template <class Pass, class Source>
concept counts_stages = requires { Pass::template stages<Source>(1); };

template <class Pass, class Source, int Nodes>
constexpr const auto& last_state() {
  if constexpr (counts_stages<Pass, Source>) return stages<Pass, Source, Nodes, Pass::template stages<Source>(Nodes)>::value;
  else return stage_of_work<Pass, Source, Nodes, last_stage<Pass, Source, Nodes, 0, stage_levels>::value>::value.state;
}
}  // namespace detail

// Source has a static constexpr `value`; the result too.
template <class Pass, class Source, int Nodes = stage_nodes>
struct staged {
  static constexpr const auto& value = detail::last_state<Pass, Source, Nodes>();
};

}  // namespace shardwise::inline v0_1
