// SPDX-License-Identifier: Apache-2.0
// Launches and losses of the example's fused step in double.
#include <fused_launches.hpp>

TEST_CASE("the example's step in double is as many kernels as its calls, for the same losses") {
  test::launches::check_launches<double>(1e-12);
}
