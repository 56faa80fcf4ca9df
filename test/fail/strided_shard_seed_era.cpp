// SPDX-License-Identifier: Apache-2.0
// A strided shard under the policy of a time that had none.
// expect: redistribute: under the policy seed_era there are no strided shards

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
using x = typed<float, sw::shape<16>, mesh, sw::strided_shard<0, 2>, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
constexpr auto policy = sw::redistribution_policy::seed_era;
#else
constexpr auto policy = sw::redistribution_policy::late;
#endif
using y = decltype(sw::redistribute<policy, sw::on<dp, sw::replicate>, sw::on<tp, sw::replicate>>(x{}));
