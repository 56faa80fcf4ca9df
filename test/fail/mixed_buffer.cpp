// SPDX-License-Identifier: Apache-2.0
// A buffer is to be used in bf16.
// expect: mixed: the path names a buffer
// expect(text): running

#include <shardwise/graph/functions/pointwise_functions.hpp>
#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
template <class Bound = sw::unbound>
struct with_buffer : sw::module<with_buffer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<8>, sw::init::ones>, gain),
                    (sw::buffer<sw::shape<8>, sw::init::zeros>, running));
  constexpr auto forward(const auto& x) const { return sw::cast<float>(x * gain) + running; }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
#ifdef SHARDWISE_FAIL
using types = sw::plan<sw::data_parallel<dp>, sw::mixed<sw::bf16>, sw::at<"running", sw::mixed<sw::bf16>>>;
#else
using types = sw::plan<sw::data_parallel<dp>, sw::mixed<sw::bf16>, sw::at<"gain", sw::mixed<sw::bf16>>>;
#endif
constexpr auto bytes = sw::train_step<with_buffer, task, types, sw::mesh<dp>>::peak_bytes;
