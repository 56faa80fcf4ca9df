// SPDX-License-Identifier: Apache-2.0
// A tensor whose mesh is left out.
// expect: tensor: what is given where the mesh belongs is no mesh<...>
// expect: dtensor_of<float, shape<32, 10>, mesh<dp, tp>

#include <shardwise/vocabulary/operand.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using split = sw::on<dp, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
constexpr auto s = sw::spec_of<float, sw::shape<4, 4>, split>::value;
#else
constexpr auto s = sw::spec_of<float, sw::shape<4, 4>, sw::mesh<dp>, split>::value;
#endif
