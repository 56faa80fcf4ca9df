// SPDX-License-Identifier: Apache-2.0
// A redistribution names an axis of another mesh.
// expect: placement: the mesh axis named here is not an axis of the tensor's mesh
// expect: shardwise::on<dp, shardwise::shard<0(, 1L?)?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct dp : sw::axis<2> {};
using x = typed<float, sw::shape<4, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::redistribute<dp, sw::shard<0>>(x{}));
#else
using y = decltype(sw::redistribute<tp, sw::shard<0>>(x{}));
#endif
