// SPDX-License-Identifier: Apache-2.0
// Corners on corners of the nearest pixels.
// expect: interpolate: sizes, and a factor's numerator and denominator, are from 1 to 1073741823

#include <shardwise/graph/functions/interpolate.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<2, 6, 9, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::interpolate<18, 16, sw::interpolate_options{.align_corners = true}>(x{}));
#else
using y = decltype(sw::interpolate<18, 16, sw::interpolate_options{sw::interpolation::bilinear, true}>(x{}));
#endif
