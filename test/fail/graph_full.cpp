// SPDX-License-Identifier: Apache-2.0
// A pass for graphs made at run time runs on a graph without room for its result.
// expect: graph: a pass's result does not fit the capacity of a graph made at run time

#include "fail_step.hpp"

template <bool Wide>
struct lists {
  using shardwise_pass = void;
  template <class Source>
  struct run {
    static constexpr auto value = [] {
      constexpr int room = Source::value.node_count + (Wide ? 64 : 0);
      sw::graph<room, Source::value.spec_count + 32, sw::graph_type_of<Source>::scope_capacity> g;
      sw::copy_into(g, Source::value);
      g.error = sw::fused_optimizer::apply(g);
      return g;
    }();
  };
};
#ifdef SHARDWISE_FAIL
using listed = lists<false>;
#else
using listed = lists<true>;
#endif
constexpr int nodes = step<listed>::program.node_count;
