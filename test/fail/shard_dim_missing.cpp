// SPDX-License-Identifier: Apache-2.0
// shard without the dim that it splits.
// expect: placement: shard is given without the dim that it splits
// expect: as in shard<0>

#include <shardwise/vocabulary/operand.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using split = sw::shard<>;
#else
using split = sw::shard<0>;
#endif
constexpr auto s = sw::spec_of<float, sw::shape<4, 4>, sw::mesh<dp>, sw::on<dp, split>>::value;
