// SPDX-License-Identifier: Apache-2.0
// A write to an expanded tensor, whose elements are fewer than it shows.
// expect: in place: more than one element of the written-to tensor refers to a single memory location
// expect: where<shardwise::op::copy_,

#include <shardwise/graph/functions/mutating_functions.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<1, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::relu_(sw::expand<4, 8>(x{})));
#else
using y = decltype(sw::expand<4, 8>(sw::relu_(x{})));
#endif
