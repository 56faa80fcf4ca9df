// SPDX-License-Identifier: Apache-2.0
// Typed redistribution of pairs of placement lists drawn from all that have a plan: four ranks, two axes.
#include <typed_pairs.hpp>

namespace {

namespace sw = shardwise;
struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};

}  // namespace

TEST_CASE("drawn pairs of placement lists: two axes of two") {
  test::drawn_pairs_keep<sw::mesh<dp, tp>, sw::shape<5, 3>, 100, 30>();
  test::drawn_pairs_keep<sw::mesh<dp, tp>, sw::shape<8>, 200, 15>();
  test::drawn_pairs_keep<sw::mesh<dp, tp>, sw::shape<3, 1, 5>, 300, 15>();
}
