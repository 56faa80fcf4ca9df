// SPDX-License-Identifier: Apache-2.0
// A program that nothing executes: the calls that a rank would make, without memory.
#pragma once

#include <shardwise/runtime/program/lowered.hpp>

namespace test {

template <class Step>
struct settled : shardwise::runtime::lowered<Step> {};

// Of one rank, until the next call for this program.
template <class Step>
const auto& calls_of(int rank) {
  static settled<Step> l;
  const auto at = Step::mesh_type::coordinate(rank);
  l.lower(nullptr, at.data(), {}, nullptr);
  return l.calls();
}

}  // namespace test
