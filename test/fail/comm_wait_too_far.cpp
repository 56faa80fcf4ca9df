// SPDX-License-Identifier: Apache-2.0
// A wait for something that is no collective's result, in a program whose waits are scheduled.
// expect: The wait nodes are too far away from the comm node
// expect: schedule_comm_wait

#include <shardwise/graph/functions/pending.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/pass/communication/waits.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x) const {
    const auto sum = sw::redistribute<tp, sw::replicate>(x);
#ifdef SHARDWISE_FAIL
    return sw::wait(sw::relu(sum));
#else
    return sw::relu(sw::wait(sum));
#endif
  }
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4, 4>, sw::on<tp, sw::partial<>>>>,
                               sw::pipeline<sw::schedule_comm_wait>>;
constexpr int nodes = step::program.node_count;
