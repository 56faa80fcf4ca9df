// SPDX-License-Identifier: Apache-2.0
// An exchange of halos, as functions of windows insert it, of rows that lie in no shards.
// expect: redistribute: halos are exchanged from equal shards of one dim alone

#include <shardwise/graph/functions/convolution.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class P>
using image = typed<float, sw::shape<2, 6, 9, 8>, mesh, sw::on<tp, P>>;
constexpr sw::op_attr windows = sw::attributes<sw::redistribute_attributes>(0, sw::pack(sw::sliding{1, 1, 1}.windows(2, 9)));
#ifdef SHARDWISE_FAIL
using y = decltype(sw::detail::apply<sw::op_code::redistribute, windows>(0, image<sw::replicate>{}));
#else
using y = decltype(sw::detail::apply<sw::op_code::redistribute, windows>(0, image<sw::shard<2>>{}));
#endif
