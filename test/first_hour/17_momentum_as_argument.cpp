// SPDX-License-Identifier: Apache-2.0
// wanted: SGD with momentum 0.9
// mistake: the momentum is given as a template argument
// names: sgd
// names: momentum
// names: step_env|sgd<true>
#include "mlp.hpp"

#ifdef SHARDWISE_FAIL
using with_momentum = sw::train_step<mlp, task, plan, mesh, sw::sgd<0.9>>;
#else
using with_momentum = sw::train_step<mlp, task, plan, mesh, sw::sgd<true>>;
#endif
static_assert(with_momentum::peak_bytes > 0);
