// SPDX-License-Identifier: Apache-2.0
// wanted: data parallelism over the mesh
// mistake: the style is given the mesh instead of an axis
// names: mesh
// names: axis
// names: name|give|data_parallel<dp>
#include "mlp.hpp"

#ifdef SHARDWISE_FAIL
using whole = sw::plan<sw::data_parallel<mesh>>;
#else
using whole = sw::plan<sw::data_parallel<dp>>;
#endif
static_assert(sw::train_step<mlp, task, whole, mesh, sw::adam<>>::peak_bytes > 0);
