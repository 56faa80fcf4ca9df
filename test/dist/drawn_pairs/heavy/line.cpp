// SPDX-License-Identifier: Apache-2.0
// Typed redistribution of pairs of placement lists drawn from all that have a plan: one axis, of two and of three ranks.
#include <typed_pairs.hpp>

namespace {

namespace sw = shardwise;
struct pair : sw::axis<2> {};
struct ring : sw::axis<3> {};

}  // namespace

TEST_CASE("drawn pairs of placement lists: one axis of two") {
  test::drawn_pairs_keep<sw::mesh<pair>, sw::shape<5, 3>, 700, 15>();
  test::drawn_pairs_keep<sw::mesh<pair>, sw::shape<1, 8, 3, 2>, 800, 10>();
}
TEST_CASE("drawn pairs of placement lists: one axis of three") {
  test::drawn_pairs_keep<sw::mesh<ring>, sw::shape<5, 3>, 900, 15>();
  test::drawn_pairs_keep<sw::mesh<ring>, sw::shape<8, 0>, 1000, 5>();
}
