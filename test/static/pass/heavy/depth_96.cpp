// SPDX-License-Identifier: Apache-2.0
// Ninety-six layers through all passes, on the compiler's default limits.
#include <deep_passes.hpp>

static_assert(test::deep::simplified_and_joined<96>() && test::deep::moved<96>());
static_assert(test::deep::reordered<96>());
static_assert(test::deep::fused<96>());
static_assert(test::deep::recomputed<96>());
