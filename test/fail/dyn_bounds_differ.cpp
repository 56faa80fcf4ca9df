// SPDX-License-Identifier: Apache-2.0
// The batch of the inputs and that of the targets are one run-time size, and are declared with two bounds.
// expect: step: the program has dyn dims of one run-time size and different bounds
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 4>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};

#ifdef SHARDWISE_FAIL
inline constexpr std::int64_t other = sw::dyn<16>;
#else
inline constexpr std::int64_t other = sw::dyn<8>;
#endif

struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<sw::dyn<8>, 4>, sw::on<dp, sw::shard<0>>>,
                            sw::input_tensor<float, sw::shape<other, 4>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x, const auto& y) const { return sw::mean(m(x)) + sw::mean(m(y)); }
};

using step = sw::train_step<model, task, sw::plan<sw::data_parallel<dp>>, mesh>;
static_assert(step::peak_bytes > 0);
