// SPDX-License-Identifier: Apache-2.0
// A function of blocks claims to have the whole result where its operand is cut.
// expect: local_map: on a mesh axis where an operand is cut or partial the result is shard or partial
// expect(types): out_placements<shardwise::on<tp, shardwise::replicate> ?>

#include <shardwise/graph/functions/local_map.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
constexpr auto record =
    sw::local_map<mesh, sw::out_placements<sw::on<tp, sw::replicate>>, sw::in_placements<sw::on<tp, sw::shard<0>>>>::record;
#else
constexpr auto record =
    sw::local_map<mesh, sw::out_placements<sw::on<tp, sw::partial<>>>, sw::in_placements<sw::on<tp, sw::shard<0>>>>::record;
#endif
