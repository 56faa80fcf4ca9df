// SPDX-License-Identifier: Apache-2.0
// One placement for a mesh of two axes.
// expect: placement: the number of placements differs from the number of mesh axes
// expect(text): element: float; shape: shape<4, 8>; mesh: "dp" of 2, "tp" of 2; placement: shard<0>; placements: 1; mesh axes: 2

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::shard<0>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::shard<0>, sw::replicate>;
#endif
constexpr int rank = x::sp.rank;
