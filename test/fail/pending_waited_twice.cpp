// SPDX-License-Identifier: Apache-2.0
// A second wait on one pending tensor.
// expect: pending: wait() is called on a pending tensor that was waited for already
// expect: keep the tensor that the first wait() gave

#include "small_step.hpp"

template <bool Again>
struct gathered {
  using inputs = mean_task::inputs;
  constexpr auto operator()(const auto& model, const auto& x) const {
    auto p = sw::redistribute_async<dp, sw::replicate>(model(x));
    auto y = std::move(p).wait();
    if constexpr (Again) y = std::move(p).wait();
    return sw::mean(y);
  }
};
using once = gathered<false>;
using twice = gathered<true>;

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, twice, plan, mesh, sw::adam<>>;
#else
using step = sw::train_step<one_linear, once, plan, mesh, sw::adam<>>;
#endif
constexpr int parameters = step::parameter_total;
