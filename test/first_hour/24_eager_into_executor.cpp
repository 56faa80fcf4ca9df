// SPDX-License-Identifier: Apache-2.0
// wanted: a batch that is made eagerly, then trained on
// mistake: an eager tensor is given to the executor as an input's values
// names: set_input
// names: dtensor|eager
// names: full_tensor|values|to_local
#include "mlp.hpp"

void train() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    sw::eager on(rank);
    const auto x = sw::randn<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>(on, 7);
#ifdef SHARDWISE_FAIL
    run.set_input(0, x);
#else
    const auto whole = x.full_tensor();
    const auto block = whole.to_local();
    run.set_input(0, std::vector<float>(block.data.begin(), block.data.end()));
#endif
  });
}
