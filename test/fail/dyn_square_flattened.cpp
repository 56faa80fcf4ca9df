// SPDX-License-Identifier: Apache-2.0
// The scores of a sequence against itself are laid in a row.
// expect: reshape: dims that scale with one run-time size (dyn) would be multiplied
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using x = sw::dtensor_of<float, sw::shape<2, sw::dyn<8>, sw::dyn<8>>, sw::mesh<tp>, sw::replicate>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::flatten<1, 2>(x{}));
#else
using y = decltype(sw::flatten<0, 1>(x{}));
static_assert(sw::spelled(y::sp, 0) == sw::dyn<16>);
#endif
