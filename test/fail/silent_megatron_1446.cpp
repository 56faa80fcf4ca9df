// SPDX-License-Identifier: Apache-2.0
// NVIDIA/Megatron-LM#1446: the final layer norm under sequence parallelism, its gradients different on every rank.
// expect: norm: the input is sharded on a mesh axis while weight or bias is not reduced there, so their gradient would silently miss a sum

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<2, 6, 8>, mesh, sw::shard<1>>;
#ifdef SHARDWISE_FAIL
using weight = typed<float, sw::shape<8>, mesh>;
#else
using weight = typed<float, sw::shape<8>, mesh, sw::reduced>;
#endif
using y = decltype(sw::layer_norm(x{}, weight{}, weight{}));
