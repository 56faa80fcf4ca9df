// SPDX-License-Identifier: Apache-2.0
// Values and gradients of every function where numbers are special are PyTorch's, or differ on purpose: in float and double, and
// in float fused; double fused is heavy.
#include <special_values.hpp>

#include <place.hpp>
#include <shardwise/pass/fuse/fuse.hpp>

TEST_CASE("special values are PyTorch's or differ on purpose") {
  using namespace test;
  special::check_tables();
  special::check_all<on_threads, float, sw::pipeline<>>("plain");
  special::check_all<on_threads, double, sw::pipeline<>>("plain");
  special::check_all<on_threads, float, sw::pipeline<sw::fuse_kernels>>("fused");
  special::check_differences();
}
