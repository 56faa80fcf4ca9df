// SPDX-License-Identifier: Apache-2.0
// redistribute with the placement before the axis.
// expect: placement: a mesh axis and a placement are named as a pair, the axis first
// expect: redistribute<axis, placement>
// expect(g++): replicate, (sw::|shardwise::)?tp|replicate, tp
// expect(clang): replicate, (sw::|shardwise::)?tp|replicate, tp

#include "typed.hpp"

struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4>, sw::mesh<tp>, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::redistribute<sw::replicate, tp>(x{}));
#else
using y = decltype(sw::redistribute<tp, sw::replicate>(x{}));
#endif
