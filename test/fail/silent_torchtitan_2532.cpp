// SPDX-License-Identifier: Apache-2.0
// pytorch/torchtitan#2532: the gradient of an RMS norm's weight is not summed over ranks that hold other rows.
// expect: norm: the input is sharded on a mesh axis while weight or bias is not reduced there, so their gradient would silently miss a sum

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using weight = typed<float, sw::shape<8>, mesh>;
#else
using weight = typed<float, sw::shape<8>, mesh, sw::reduced>;
#endif
using y = decltype(sw::rms_norm(x{}, weight{}));
