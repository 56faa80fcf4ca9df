// SPDX-License-Identifier: Apache-2.0
// The axis of a placement stands behind it.
// expect: placement: a mesh axis and a placement are named as a pair, the axis first
// expect: write on<axis, placement>
// expect(g++): shard<0
// expect(clang): shard<0
// expect(text): placement: shard<0>; axis: "dp" of 2

#include <shardwise/vocabulary/operand.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using placed = sw::on<sw::shard<0>, dp>;
#else
using placed = sw::on<dp, sw::shard<0>>;
#endif
constexpr auto s = sw::spec_of<float, sw::shape<4, 4>, mesh, placed>::value;
