// SPDX-License-Identifier: Apache-2.0
// wanted: what rank 3 of 4 does, without the others
// mistake: ranks are counted from 1
// names: \b4\b
// names: 0 ?\.\. ?3|0 to 3
// names: rank
// run
#include "mlp.hpp"

int main() {
#ifdef SHARDWISE_FAIL
  sw::launch_fake<mesh>(4, [](auto& rank) {
#else
  sw::launch_fake<mesh>(3, [](auto& rank) {
#endif
    std::printf("%d\n", rank.index());
  });
}
