// SPDX-License-Identifier: Apache-2.0
// A node is moved into the next iteration without its users.
// expect: move_to_next_iter_before: The target nodes must satisfy one of the following conditions

#include "fail_step.hpp"

using source = graph_in<bare_step>;
constexpr int sum = sw::find_node(source::value, "all_reduce");
constexpr auto found = [] {
  sw::iteration_moves<sw::graph_type_of<source>::node_capacity> m;
#ifdef SHARDWISE_FAIL
  const int roots[] = {sum};
  return sw::passes::add_move(source::value, m, roots, sw::find_node(source::value, "einsum"));
#else
  const int roots[] = {sum, sw::find_node(source::value, "advance")};
  return sw::passes::add_move(source::value, m, sw::find_all_descendants(source::value, roots, 2), sw::find_node(source::value, "einsum"));
#endif
}();
static_assert(sw::raise<found.what, source>::ok);
