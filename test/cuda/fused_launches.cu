// SPDX-License-Identifier: Apache-2.0
// Launches and losses of the example's fused step in float.
#include <fused_launches.hpp>

TEST_CASE("the example's step in float is as many kernels as its calls, for the same losses") {
  test::launches::check_launches<float>(2e-5);
}
