// SPDX-License-Identifier: Apache-2.0
// A replicate operand beside one that is cut: its gradient would not be equal on all ranks.
// expect: local_map: an operand is replicate on an axis that cuts another one
// expect(types): in_placements<shardwise::on<tp, shardwise::replicate> ?>

#include <shardwise/graph/functions/local_map.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
constexpr auto record =
    sw::local_map<mesh, sw::out_placements<sw::on<tp, sw::shard<0>>>, sw::in_placements<sw::on<tp, sw::shard<0>>>,
                  sw::in_placements<sw::on<tp, sw::replicate>>>::record;
#else
constexpr auto record =
    sw::local_map<mesh, sw::out_placements<sw::on<tp, sw::shard<0>>>, sw::in_placements<sw::on<tp, sw::shard<0>>>,
                  sw::in_placements<sw::on<tp, sw::reduced>>>::record;
#endif
