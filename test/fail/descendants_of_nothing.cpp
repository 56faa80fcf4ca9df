// SPDX-License-Identifier: Apache-2.0
// The descendants of no node are asked for.
// expect: find_all_descendants: No parent nodes are given
// expect(types): <one_node ?>

#include <shardwise/pass/analysis/descendants.hpp>

#include "typed.hpp"

struct one_node {
  static constexpr auto value = [] {
    sw::graph<1, 1> g;
    sw::builder b = g.edit();
    sw::node n = sw::empty_node;
    n.spec = b.intern(sw::spec{});
    b.append(n);
    g.finish(b);
    return g;
  }();
};
#ifdef SHARDWISE_FAIL
using found = sw::all_descendants<one_node>;
#else
using found = sw::all_descendants<one_node, 0>;
#endif
constexpr int count = found::value.count;
