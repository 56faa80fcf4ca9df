// SPDX-License-Identifier: Apache-2.0
// Typed redistribution of pairs of placement lists drawn from all that have a plan: eight ranks, three axes, of which all may split one dim.
#include <typed_pairs.hpp>

namespace {

namespace sw = shardwise;
struct pp : sw::axis<2> {};
struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};

}  // namespace

TEST_CASE("drawn pairs of placement lists: three axes of two") {
  test::drawn_pairs_keep<sw::mesh<pp, dp, tp>, sw::shape<5, 3>, 1100, 25>();
  test::drawn_pairs_keep<sw::mesh<pp, dp, tp>, sw::shape<13>, 1200, 20>();
}
