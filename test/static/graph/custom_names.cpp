// SPDX-License-Identifier: Apache-2.0
// Names that custom operations may have: words that are nobody else's in a graph.

#include <shardwise/graph/graph.hpp>

namespace {

namespace sw = shardwise;

constexpr const char* good[] = {"gate",  "Gate",         "swiglu2",   "conv_2d", "gate_a1",
                                "_gate", "relu_of_mine", "sumsquare", "nth_1a"};
constexpr const char* bad[] = {"",           "2gate",          "gate-up",    "gate up",   "gate.up", "gate_1",
                               "gate_",      "gate_0",         "relu",       "einsum",    "custom",  "input",
                               "all_reduce", "reduce_scatter", "all_gather", "all_to_all"};
static_assert([] {
  for (const char* n : good)
    if (!sw::is_custom_name(n)) return false;
  for (const char* n : bad)
    if (sw::is_custom_name(n)) return false;
  return !sw::is_custom_name(nullptr);
}());
static_assert(sw::is_same_name("gate", "gate") && sw::is_same_name("", "") && !sw::is_same_name("gate", "gate2") &&
              !sw::is_same_name("gate2", "gate") && !sw::is_same_name("", "g"));

}  // namespace
