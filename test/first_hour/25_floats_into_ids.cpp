// SPDX-License-Identifier: Apache-2.0
// wanted: a batch of token ids
// mistake: the ids are computed as floats between 0 and 1
// names: float
// names: int32|integers
// names: convert|std::int32_t
// run
#include "mlp.hpp"

struct classify {
  using labels = sw::input_tensor<std::int32_t, sw::shape<32>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, labels>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const { return sw::cross_entropy(model(x), y); }
};
int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<sw::train_step<mlp, classify, plan, mesh, sw::adam<>>> run(rank);
#ifdef SHARDWISE_FAIL
    run.set_input(1, std::vector<float>(32, 0.5F));
#else
    run.set_input(1, std::vector<std::int32_t>(32, 5));
#endif
  });
}
