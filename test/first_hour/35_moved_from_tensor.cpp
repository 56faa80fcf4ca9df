// SPDX-License-Identifier: Apache-2.0
// wanted: two layers of an eager network
// mistake: a tensor that was moved from is used again
// names: no value|without a value
// names: moved
// names: give|assign
// run
#include "mlp.hpp"

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    auto x = sw::randn<float, sw::shape<8, 8>>(on, 1);
#ifdef SHARDWISE_FAIL
    const auto y = std::move(x);
#else
    const auto y = x;
#endif
    const auto z = sw::relu(x) + y;
    (void)z;
  });
}
