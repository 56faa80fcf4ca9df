// SPDX-License-Identifier: Apache-2.0
// An axis of 4 ranks is replaced by two axes that have 6.
// expect: unflattened: the new axes have not as many ranks together as the axis that they replace
// expect: three
// expect(text): mesh: "dp" of 4; axes: "dp" of 4, "two" of 2, "three" of 3

#include <shardwise/vocabulary/submesh.hpp>

#include "typed.hpp"

struct dp : sw::axis<4> {};
struct two : sw::axis<2> {};
struct three : sw::axis<3> {};
struct other : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using fine = sw::unflattened<sw::mesh<dp>, dp, two, three>;
#else
using fine = sw::unflattened<sw::mesh<dp>, dp, two, other>;
#endif
constexpr int size = fine::size;
