// SPDX-License-Identifier: Apache-2.0
// Parameters copied on a rank without peers between programs whose plans place a buffer differently, and all parameters alike.
// expect: copy_parameters: a buffer is placed differently in the two programs
// expect(text): buffer number: 0; buffer: "held.mean"; mesh: "tp" of 2; operands: float[6] (tp: replicate), float[6] (tp: shard<0>)
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
template <class Axis>
struct split : sw::detail::style_base {
  using axis = Axis;
  static constexpr bool accepts(sw::module_kind) { return true; }
  static constexpr sw::detail::maybe_placement parameter(sw::module_kind, std::string_view, int) {
    return {true, sw::shard_value(0)};
  }
};
template <class Bound = sw::unbound>
struct averaged : sw::module<averaged<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::buffer<sw::shape<6>, sw::init::zeros>, mean));
  constexpr auto forward(const auto& x) const { return x + sw::redistribute<tp, sw::replicate>(mean); }
};
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, net), (averaged<>, held));
  constexpr auto forward(const auto& x) const { return held(net(x)); }
};
using plan = sw::plan<sw::at<"held", split<tp>>>;
#ifdef SHARDWISE_FAIL
using other = sw::plan<>;
#else
using other = plan;
#endif
using train = sw::train_step<model, task, plan, mesh>;
using judge = sw::forward_step<model, task, other, mesh>;

using rank = sw::fake_rank<mesh>;
void copy(sw::executor<judge, rank>& to, const sw::executor<train, rank>& from) { to.copy_parameters(from); }
