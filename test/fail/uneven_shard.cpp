// SPDX-License-Identifier: Apache-2.0
// Ten rows over four ranks where an even split is asked for.
// expect: placement: even<shard<d>> needs an extent that the mesh axis divides
// expect: shardwise::shape<10L?, 8L?>, (shardwise::mesh<.*?>|mesh), shardwise::on<tp, shardwise::even<shardwise::shard<0(, 1L?)?> ?> ?>
// expect(text): element: float; shape: shape<10, 8>; mesh: "tp" of 4; placement: on<tp, even<shard<0>>>; dim: 0; axis: "tp" of 4; extent: 10; ranks: 4

#include "typed.hpp"

struct tp : sw::axis<4> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<10, 8>, mesh, sw::on<tp, sw::even<sw::shard<0>>>>;
#else
using x = typed<float, sw::shape<10, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#endif
constexpr int rank = x::sp.rank;
