// SPDX-License-Identifier: Apache-2.0
// A double input into a model of floats.
// expect: operands have different element types, and nothing is converted that is not written; write sw::cast<float>
// expect(g++): operand<double
// expect(clang): operand<double

#include "small_step.hpp"

template <class T>
struct fed {
  using inputs = sw::inputs<sw::input_tensor<T, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, fed<double>, plan, mesh, sw::adam<>>;
#else
using step = sw::train_step<one_linear, fed<float>, plan, mesh, sw::adam<>>;
#endif
constexpr int parameters = step::parameter_total;
