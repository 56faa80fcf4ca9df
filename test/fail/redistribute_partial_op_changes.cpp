// SPDX-License-Identifier: Apache-2.0
// A partial sum is called a partial maximum.
// expect: redistribute: a partial tensor would change its reduction
// expect: shardwise::on<tp, shardwise::partial<
// expect(text): operand: float[4, 8] (dp: replicate, tp: partial<>); placement: on<tp, partial<reduction::max>>

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::replicate, sw::partial<>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::redistribute<sw::on<tp, sw::partial<sw::reduction::max>>>(x{}));
#else
using y = decltype(sw::redistribute<sw::on<tp, sw::partial<sw::reduction::max>>>(sw::redistribute<tp, sw::replicate>(x{})));
#endif
