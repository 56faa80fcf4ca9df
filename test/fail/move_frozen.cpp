// SPDX-License-Identifier: Apache-2.0
// Nodes are moved after the iteration is finalized.
// expect: move_to_next_iter_before: The cross-iteration movement has been frozen

#include "fail_step.hpp"

using source = graph_in<bare_step>;
template <class Source>
constexpr sw::finding moved() {
  sw::iteration_module<sw::graph_type_of<Source>> m{Source::value};
#ifdef SHARDWISE_FAIL
  m.finalize();
#endif
  const int roots[] = {sw::find_node(m.g, "all_reduce"), sw::find_node(m.g, "advance")};
  return m.move_to_next_iter_before(sw::find_all_descendants(m.g, roots, 2), sw::find_node(m.g, "einsum"));
}
constexpr sw::problem found = moved<source>().what;
static_assert(sw::raise<found, source>::ok);
