// SPDX-License-Identifier: Apache-2.0
// Features are split by heads of a size that does not divide them.
// expect: placement: shard<d, block> needs a block that divides the extent of dim d
// expect: shardwise::shape<4L?, 64L?>, (shardwise::mesh<.*?>|mesh), shardwise::on<tp, shardwise::shard<1, 24L?> ?>
// expect(text): element: float; shape: shape<4, 64>; mesh: "tp" of 2; placement: on<tp, shard<1, 24>>; dim: 1; axis: "tp" of 2; block: 24; extent: 64

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 64>, mesh, sw::on<tp, sw::shard<1, 24>>>;
#else
using x = typed<float, sw::shape<4, 64>, mesh, sw::on<tp, sw::shard<1, 16>>>;
#endif
constexpr int rank = x::sp.rank;
