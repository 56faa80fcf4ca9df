// SPDX-License-Identifier: Apache-2.0
// wanted: the predictions of a trained model
// mistake: forward_step is given an optimizer, as train_step is
// names: adam
// names: pipeline|optimizer
// names: forward_step|leave|without|train_step
#include "mlp.hpp"

struct predict {
  using inputs = sw::inputs<batch>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
#ifdef SHARDWISE_FAIL
using answers = sw::forward_step<mlp, predict, plan, mesh, sw::adam<>>;
#else
using answers = sw::forward_step<mlp, predict, plan, mesh>;
#endif
static_assert(answers::peak_bytes > 0);
