// SPDX-License-Identifier: Apache-2.0
// A node is moved into the next iteration without its users.
// expect: move_to_next_iter_before: The target nodes must satisfy one of the following conditions

#include "fail_step.hpp"

template <class Source>
constexpr sw::graph_finding moved() {
  sw::iteration_moves<sw::graph_type_of<Source>::node_capacity> m;
  const int sum = sw::find_node(Source::value, "all_reduce"), to = sw::find_node(Source::value, "einsum");
#ifdef SHARDWISE_FAIL
  const int roots[] = {sum};
  return sw::passes::add_move(Source::value, m, roots, to);
#else
  const int roots[] = {sum, sw::find_node(Source::value, "advance")};
  return sw::passes::add_move(Source::value, m, sw::find_all_descendants(Source::value, roots, 2), to);
#endif
}
using source = graph_in<bare_step>;
static_assert(sw::raise<moved<source>().what, source>::ok);
