// SPDX-License-Identifier: Apache-2.0
// A placement names an axis of another mesh.
// expect: placement: the mesh axis named here is not an axis of the tensor's mesh
// expect: shardwise::shape<4L?, 8L?>, (shardwise::mesh<.*?>|mesh), shardwise::on<dp,
// expect(text): element: float; shape: shape<4, 8>; mesh: "tp" of 2; placement: on<dp, shard<0>>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct dp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<dp, sw::shard<0>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#endif
constexpr int rank = x::sp.rank;
