// SPDX-License-Identifier: Apache-2.0
// A pass is applied to something that is no graph.
// expect: the first argument of the pass must be a graph
// expect(types): <keep, ?int ?>

#include <shardwise/pass/framework/pipeline.hpp>

#include "typed.hpp"

struct keep {
  using shardwise_pass = void;
  template <class Source>
  struct run {
    static constexpr const auto& value = Source::value;
  };
};
struct empty_graph {
  static constexpr sw::graph<1, 1> value{};
};
#ifdef SHARDWISE_FAIL
using result = sw::apply_pass<keep, int>;
#else
using result = sw::apply_pass<keep, empty_graph>;
#endif
constexpr int nodes = result::value.node_count;
