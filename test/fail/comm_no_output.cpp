// SPDX-License-Identifier: Apache-2.0
// A reduction whose result nothing uses, in a program whose waits are scheduled.
// expect: schedule_comm_wait: Found a allreduce that has zero outputs/users
// expect: schedule_comm_wait

#include <shardwise/module/function.hpp>
#include <shardwise/pass/communication/waits.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x, const auto& y) const {
    const auto sum = sw::redistribute<tp, sw::replicate>(x);
#ifdef SHARDWISE_FAIL
    return y * 2.0;
#else
    return y * 2.0 + sum;
#endif
  }
};
using step = sw::function_step<f, mesh,
                               sw::inputs<sw::input_tensor<float, sw::shape<4, 4>, sw::on<tp, sw::partial<>>>,
                                          sw::input_tensor<float, sw::shape<4, 4>, sw::on<tp, sw::replicate>>>,
                               sw::pipeline<sw::schedule_comm_wait>>;
constexpr int nodes = step::program.node_count;
