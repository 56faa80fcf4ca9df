// SPDX-License-Identifier: Apache-2.0
// A move that names seventeen nodes.
// expect: move_to_next_iter_before: more than 8 groups are moved, or a move names more than 16 nodes
// expect: shardwise::have<17L*>, shardwise::want<16L*>
// expect(text): moved: 17; at most: 16

#include <shardwise/graph/verify/refused.hpp>

#include "fail_step.hpp"

using source = graph_in<bare_step>;
#ifdef SHARDWISE_FAIL
using move = sw::move_descendants<"einsum", "all_reduce", "advance", "all_reduce", "advance", "all_reduce", "advance",
                                  "all_reduce", "advance", "all_reduce", "advance", "all_reduce", "advance", "all_reduce",
                                  "advance", "all_reduce", "advance", "all_reduce">;
#else
using move = sw::move_descendants<"einsum", "all_reduce", "advance">;
#endif
constexpr sw::finding found = move::request(source::value).error;
static_assert(sw::detail::refused_program<found.what, found.have, found.want, source>::ok);
