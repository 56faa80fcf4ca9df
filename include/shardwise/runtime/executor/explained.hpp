// SPDX-License-Identifier: Apache-2.0
// The door between executors and what writes programs (the build option SHARDWISE_EXPLAIN): executors know the call and not the writer.
#pragma once

#include <shardwise/support/diagnose.hpp>

namespace shardwise::inline v0_1 {

namespace detail {
// A program whose executor is being made: the argument of explain_made, which io/explanation/programs.hpp defines.
template <class Step>
struct explained_program {};
}  // namespace detail

namespace runtime {

template <class Step, class Mesh>
void explain_program(int rank) {
  constexpr bool has = requires { explain_made(shardwise::detail::explained_program<Step>{}, 0); };
  static_assert(raise<(has ? problem::none : problem::explain_header), Mesh>::ok);
  if constexpr (has) explain_made(shardwise::detail::explained_program<Step>{}, rank);
}

}  // namespace runtime

}  // namespace shardwise::inline v0_1
