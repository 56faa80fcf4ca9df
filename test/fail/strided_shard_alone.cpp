// SPDX-License-Identifier: Apache-2.0
// The axis that a strided shard comes after is made whole first, which would leave pieces that are no interval.
// expect: redistribute: another mesh axis splits what this one leaves of the dim \(a later one, or an earlier one whose shard is strided\)
// expect: shardwise::strided_shard<0, 2>, shardwise::shard<0(, 1L?)?>

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
using x = typed<float, sw::shape<16>, mesh, sw::strided_shard<0, 2>, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::redistribute<tp, sw::replicate>(x{}));
#else
using y = decltype(sw::redistribute<tp, sw::replicate>(sw::redistribute<dp, sw::replicate>(x{})));
#endif
