// SPDX-License-Identifier: Apache-2.0
// An image whose rows are cut.
// expect: batch_norm, group_norm: tensors are cut along the batch, with weight and bias reduced there

#include <shardwise/graph/functions/channel_norms.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class P, class W>
using normed = decltype(sw::group_norm<3>(typed<float, sw::shape<2, 6, 9, 8>, mesh, sw::on<tp, P>>{},
                                          typed<float, sw::shape<6>, mesh, sw::on<tp, W>>{},
                                          typed<float, sw::shape<6>, mesh, sw::on<tp, W>>{}));
#ifdef SHARDWISE_FAIL
using y = normed<sw::shard<2>, sw::reduced>;
#else
using y = normed<sw::shard<0>, sw::reduced>;
#endif
