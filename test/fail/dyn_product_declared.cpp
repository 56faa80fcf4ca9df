// SPDX-License-Identifier: Apache-2.0
// An input is declared as rows of a run-time batch and length at once.
// expect: tensor: a declared extent is a product of several run-time sizes (dyn), whose bounds it does not tell
// expect(text): dim: 0
#include <shardwise/core.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using rows = sw::shape<sw::extent_product(sw::dyn<8>, sw::dyn<64, 1>), 4>;
#else
using rows = sw::shape<sw::dyn<8>, sw::dyn<64, 1>, 4>;
#endif
static_assert(sw::spec_of<float, rows, sw::mesh<dp>, sw::on<dp, sw::shard<0>>>::value.axes == 1);
