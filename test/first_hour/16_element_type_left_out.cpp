// SPDX-License-Identifier: Apache-2.0
// wanted: a step with its backend named
// mistake: the element type before the backend is left out
// names: backend
// names: element type|float
// names: float|before|write
#include "mlp.hpp"

#ifdef SHARDWISE_FAIL
using on_host = sw::train_step<mlp, task, plan, mesh, sw::adam<>, sw::pipeline<>, sw::host_backend>;
#else
using on_host = sw::train_step<mlp, task, plan, mesh, sw::adam<>, sw::pipeline<>, float, sw::host_backend>;
#endif
static_assert(on_host::peak_bytes > 0);
