// SPDX-License-Identifier: Apache-2.0
// Parameters copied between programs of models that differ in a buffer's name.
// expect: copy_parameters: the two programs have the same parameters and not the same buffers
// expect(text): buffer number: 0; buffer: "average"
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
template <class Bound = sw::unbound>
struct trained : sw::module<trained<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, net), (sw::buffer<sw::shape<6>, sw::init::zeros>, mean));
  constexpr auto forward(const auto& x) const { return net(x) + mean; }
};
template <class Bound = sw::unbound>
struct judged : sw::module<judged<Bound>, Bound> {
#ifdef SHARDWISE_FAIL
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, net), (sw::buffer<sw::shape<6>, sw::init::zeros>, average));
  constexpr auto forward(const auto& x) const { return net(x) + average; }
#else
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, net), (sw::buffer<sw::shape<6>, sw::init::zeros>, mean));
  constexpr auto forward(const auto& x) const { return net(x) + mean; }
#endif
};
using train = sw::train_step<trained, task, sw::plan<>, mesh>;
using judge = sw::forward_step<judged, task, sw::plan<>, mesh>;

void copy(sw::executor<judge>& to, const sw::executor<train>& from) { to.copy_parameters(from); }
