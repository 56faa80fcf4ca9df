// SPDX-License-Identifier: Apache-2.0
// Numbers that are no probabilities are refused at once; at the ends of the range they are not.
#include <doctest/doctest.h>

#include <both_ways.hpp>

#include <cmath>
#include <limits>

namespace {

using namespace test;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;
using type = sw::dtensor_of<double, sw::shape<3>, mesh>;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

struct coin {
  constexpr auto operator()(const auto& p) const { return sw::bernoulli(p); }
};

TEST_CASE("dropout and bernoulli refuse what is no probability") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = type::distribute(on, std::vector<double>{1, inf, not_a_number});
    for (const double p : {1.5, -0.5, -1e-300, not_a_number, inf}) {
      CHECK_THROWS_WITH(sw::dropout(x, p), doctest::Contains("; a probability is from 0 to 1"));
      CHECK_THROWS_WITH(sw::dropout_(x, p), doctest::Contains("; a probability is from 0 to 1"));
    }
    CHECK(values_of(sw::dropout(x, 0).to_local())[1] == inf);
    const auto none = values_of(sw::dropout(x, 1).to_local());
    CHECK(none[0] == 0);
    CHECK(std::isnan(none[1]));
    CHECK(std::isnan(none[2]));

    const auto refused = doctest::Contains(" is no probability; the operand's elements must be from 0 to 1");
    for (const double p : {1.5, -0.5, not_a_number, -inf, 1 + 1e-15}) {
      const std::vector<double> given{0, p, 1};
      CHECK_THROWS_WITH(sw::bernoulli(type::distribute(on, given)), refused);
      sw::executor<sw::function_step<coin, mesh, sw::inputs<sw::input_tensor<double, sw::shape<3>>>>,
                   std::remove_reference_t<decltype(rank)>>
          run(rank);
      run.set_input(0, given);
      CHECK_THROWS_WITH(run.run({}), refused);
    }
    CHECK(values_of(sw::bernoulli(type::distribute(on, std::vector<double>{0, 1, 1})).to_local()) ==
          std::vector<double>{0, 1, 1});
  });
}

}  // namespace
