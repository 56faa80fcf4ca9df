// SPDX-License-Identifier: Apache-2.0
// A NaN or an infinity on any rank is the largest or smallest of all ranks, made whole and scattered.
#include <both_ways.hpp>

#include <cmath>
#include <limits>

namespace {

using namespace test;

struct line : sw::axis<3> {};
using mesh = sw::mesh<line>;
using rows = sw::dtensor_of<double, sw::shape<3, 4>, mesh, sw::on<line, sw::shard<0>>>;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

TEST_CASE("extremes over ranks keep a NaN, whichever rank has it") {
  for (std::size_t where = 0; where < 3; ++where)
    sw::launch<mesh>([&](auto& rank) {
      sw::eager on(rank);
      std::vector<double> v{1, -2, inf, 0, 5, -6, -inf, 0, -3, 4, 7, 0};
      v[4 * where] = not_a_number;  // column 0
      const auto x = rows::distribute(on, v);
      const auto check = [&](const std::vector<double>& got, double second, double third) {
        REQUIRE(got.size() == 4);
        CHECK(std::isnan(got[0]));
        CHECK(got[1] == second);
        CHECK(got[2] == third);
        CHECK(got[3] == 0);
      };
      check(values_of(sw::amax<0>(x).full_tensor().to_local()), 4, inf);
      check(values_of(sw::amin<0>(x).full_tensor().to_local()), -6, -inf);
      check(values_of(sw::redistribute<line, sw::shard<0>>(sw::amax<0>(x)).full_tensor().to_local()), 4, inf);
      check(values_of(sw::redistribute<line, sw::shard<0>>(sw::amin<0>(x)).full_tensor().to_local()), -6, -inf);
    });
}

}  // namespace
