// SPDX-License-Identifier: Apache-2.0
// Passes run in stages of bounded size, one constant each, so that compilers' default limits hold at any depth.
#pragma once

#include <shardwise/support/config.hpp>

namespace shardwise {

// Nodes handled by one constant; the result of a staged pass does not depend on this number.
inline constexpr int stage_nodes = SHARDWISE_STAGE_NODES;

// A staged pass has state<Source>, a type, start<Source>(state), which assigns all of it, stages<Source>(nodes), and
// advance<Source>(state, nodes), which does a bounded part of the work and returns at once when nothing is left.
// States are filled in place and their arrays have no initialisers: see node.
namespace detail {
template <class Pass, class Source, int Nodes, int K>
struct stage {
  static constexpr auto value = [] {
    auto s = stage<Pass, Source, Nodes, K - 1>::value;
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
}  // namespace detail

// Source has a static constexpr `value`; the result too.
template <class Pass, class Source, int Nodes = stage_nodes>
struct staged {
  static constexpr const auto& value = detail::stages<Pass, Source, Nodes, Pass::template stages<Source>(Nodes)>::value;
};

}  // namespace shardwise
