// SPDX-License-Identifier: Apache-2.0
// wanted: cross-entropy of ten classes
// mistake: labels are counted from 1 to 10
// names: \b10\b
// names: 0 ?\.\. ?9|0 to 9
// names: class|label|logits
// run
#include "mlp.hpp"

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto logits = sw::randn<float, sw::shape<4, 10>>(on, 1);
#ifdef SHARDWISE_FAIL
    const std::vector<std::int32_t> labels{1, 5, 10, 2};
#else
    const std::vector<std::int32_t> labels{0, 4, 9, 1};
#endif
    using target = sw::dtensor_of<std::int32_t, sw::shape<4>, mesh>;
    const auto loss = sw::cross_entropy(logits, target::distribute(on, labels));
    (void)loss.item();
  });
}
