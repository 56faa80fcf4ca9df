// SPDX-License-Identifier: Apache-2.0
// Parameters over eight ranks, to be kept over three of them.
// expect: it should be a factor of the axis' size: 1 keeps them whole, the size itself frees them all
// expect: shardwise::reshard_over<rows, 3>
// expect(text): axis: "rows" of 8; given: reshard_over<rows, 3>; ranks asked for: 3; ranks in all: 8

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/flat_group.hpp>

namespace sw = shardwise;
struct rows : sw::axis<8> {};
#ifdef SHARDWISE_FAIL
constexpr auto setting = sw::reshard_over<rows, 3>::value;
#else
constexpr auto setting = sw::reshard_over<rows, 2>::value;
#endif
static_assert(setting.group > 0);
