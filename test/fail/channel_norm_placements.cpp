// SPDX-License-Identifier: Apache-2.0
// A weight that is cut where the image's rows are.
// expect: batch_norm, group_norm: tensors are cut along channels, with weight and bias cut alike and no group cut through, or along any other dim

#include <shardwise/graph/functions/channel_norms.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class P, class W>
using normed = decltype(sw::group_norm<3>(typed<float, sw::shape<2, 6, 9, 8>, mesh, sw::on<tp, P>>{},
                                          typed<float, sw::shape<6>, mesh, sw::on<tp, W>>{},
                                          typed<float, sw::shape<6>, mesh, sw::on<tp, W>>{}));
#ifdef SHARDWISE_FAIL
using y = normed<sw::shard<2>, sw::shard<0>>;
#else
using y = normed<sw::shard<2>, sw::reduced>;
#endif
