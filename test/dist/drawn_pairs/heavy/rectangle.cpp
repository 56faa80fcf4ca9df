// SPDX-License-Identifier: Apache-2.0
// Typed redistribution of pairs of placement lists drawn from all that have a plan: six ranks, two axes of different size.
#include <typed_pairs.hpp>

namespace {

namespace sw = shardwise;
struct dp : sw::axis<2> {};
struct tp : sw::axis<3> {};

}  // namespace

TEST_CASE("drawn pairs of placement lists: two axes, two and three") {
  test::drawn_pairs_keep<sw::mesh<dp, tp>, sw::shape<5, 3>, 400, 25>();
  test::drawn_pairs_keep<sw::mesh<dp, tp>, sw::shape<13>, 500, 15>();
  test::drawn_pairs_keep<sw::mesh<dp, tp>, sw::shape<3, 8>, 600, 10>();
}
