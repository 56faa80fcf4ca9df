// SPDX-License-Identifier: Apache-2.0
// special_values.cpp's law for fused kernels of doubles.
#include <special_values.hpp>

#include <place.hpp>
#include <shardwise/pass/fuse/fuse.hpp>

TEST_CASE("special values of fused doubles are PyTorch's or differ on purpose") {
  using namespace test;
  special::check_all<on_threads, double, sw::pipeline<sw::fuse_kernels>>("fused");
}
