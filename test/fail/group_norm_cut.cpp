// SPDX-License-Identifier: Apache-2.0
// Three groups over two ranks.
// expect: batch_norm, group_norm: tensors are cut along channels, with weight and bias cut alike and no group cut through

#include <shardwise/graph/functions/channel_norms.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <int Groups>
using normed = decltype(sw::group_norm<Groups>(typed<float, sw::shape<2, 6, 9, 8>, mesh, sw::on<tp, sw::shard<1>>>{}));
#ifdef SHARDWISE_FAIL
using y = normed<3>;
#else
using y = normed<2>;
#endif
