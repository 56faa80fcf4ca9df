// SPDX-License-Identifier: Apache-2.0
// Two placements for one mesh axis.
// expect: placement: a mesh axis is given two placements
// expect: shardwise::on<tp, shardwise::shard<0(, 1L?)?> ?>, shardwise::on<tp, shardwise::shard<1(, 1L?)?> ?>
// expect(text): element: float; shape: shape<4, 8>; mesh: "dp" of 2, "tp" of 2; placements: on<tp, shard<0>>, on<tp, shard<1>>; axis: "tp" of 2

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>, sw::on<tp, sw::shard<1>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<dp, sw::shard<0>>, sw::on<tp, sw::shard<1>>>;
#endif
constexpr int rank = x::sp.rank;
