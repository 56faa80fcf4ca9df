// SPDX-License-Identifier: Apache-2.0
// A language model whose subgraphs between collectives are lowered to units trains as it does without.
#include <shardwise/io/lowered_subgraphs.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <gpt.hpp>
#include <units.hpp>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

template <int D, int N, template <class, class> class Plan>
double worst_difference() {
  using plain = step<double, D, N, Plan>;
  using lowered = step<double, D, N, Plan, sizes, test::place, sw::pipeline<sw::partial_lower<>>>;
  const auto& units = sw::lowered_subgraphs<lowered>();
  CHECK(units.count > 2 * sizes::layers);  // two blocks a layer, forward and backward
  CHECK(test::runs_of_calls(lowered::program) == std::vector<int>(static_cast<std::size_t>(units.count), 1));
  for (const sw::lowered_subgraph& u : units) {
    CHECK(u.kernels_before >= 10);
    CHECK(u.kernels_after < u.kernels_before);
  }
  const history<double> want = train<plain>(3), got = train<lowered>(3, sw::executor_checks::poison);
  double most = 0;
  const auto compare = [&most](const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]) / (1 + std::abs(a[i])));
  };
  for (std::size_t r = 0; r < want.losses.size(); ++r) compare(want.losses[r], got.losses[r]);
  for (std::size_t p = 0; p < want.parameters.size(); ++p) compare(want.parameters[p], got.parameters[p]);
  CHECK(want.losses[0].front() > want.losses[0].back());
  return most;
}

TEST_CASE("partial lowering: training is the same on two and four ranks") {
  CHECK(worst_difference<2, 2, tensor_parallel>() < 1e-12);
  CHECK(worst_difference<1, 2, sequence_parallel>() < 1e-12);
}

}  // namespace
