// SPDX-License-Identifier: Apache-2.0
// A matrix is sharded along its third dim.
// expect: placement: shard<d> names a dim that the tensor does not have
// expect: shardwise::shape<4L?, 8L?>, (shardwise::mesh<.*?>|mesh), shardwise::on<tp, shardwise::shard<2(, 1L?)?> ?>
// expect(text): element: float; shape: shape<4, 8>; mesh: "tp" of 2; placement: on<tp, shard<2>>; axis: "tp" of 2; dim named: 2; rank: 2

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<2>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#endif
constexpr int rank = x::sp.rank;
