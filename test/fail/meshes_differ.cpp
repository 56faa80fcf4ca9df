// SPDX-License-Identifier: Apache-2.0
// The operands of an addition live on two meshes.
// expect: operands live on different meshes
// expect: (shardwise::mesh<tp ?>|mesh), (shardwise::mesh<dp, tp ?>|other_mesh)

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct dp : sw::axis<2> {};
using other_mesh = sw::mesh<dp, tp>;
using x = typed<float, sw::shape<4>, mesh>;
#ifdef SHARDWISE_FAIL
using y = typed<float, sw::shape<4>, other_mesh>;
#else
using y = typed<float, sw::shape<4>, mesh>;
#endif
using z = decltype(x{} + y{});
