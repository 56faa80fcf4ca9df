// SPDX-License-Identifier: Apache-2.0
// Twelve layers through all passes. Ninety-six stand in heavy/.
#include <deep_passes.hpp>

static_assert(test::deep::simplified_and_joined<12>() && test::deep::moved<12>());
static_assert(test::deep::reordered<12>());
static_assert(test::deep::fused<12>());
static_assert(test::deep::recomputed<12>());
