// SPDX-License-Identifier: Apache-2.0
// redistributed_values.cpp's law for further transitions.
#include <redistributed.hpp>

namespace {

using namespace test;
using namespace test::redistributed;

TEST_CASE("values: a redistribution is a value where nothing moves between ranks") {
  check<1, R, S<0>>();
  check<1, P, R>();
  check<2, R, sw::reduced>();
}

}  // namespace
