// SPDX-License-Identifier: Apache-2.0
// wanted: a greeting from every rank
// mistake: the function that launch runs takes no rank
// names: launch
// names: rank
// names: auto& rank
#include "mlp.hpp"

void greet() {
#ifdef SHARDWISE_FAIL
  sw::launch<mesh>([] { std::printf("hello\n"); });
#else
  sw::launch<mesh>([](auto& rank) { std::printf("hello from %d\n", rank.index()); });
#endif
}
