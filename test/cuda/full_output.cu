// SPDX-License-Identifier: Apache-2.0
// full_output on GPUs: blocks come by the host's memory; uneven, empty and strided ones, of two element types, at any size of a run.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <full_output.hpp>

TEST_CASE("a whole output on a GPU is what is computed") {
  if (test::on_devices::has(1)) full_output::on_mesh<test::on_devices, 1, 1>();
}
TEST_CASE("a whole output on 2 GPUs is what is computed, whichever dim they share") {
  if (!test::on_devices::has(2)) return;
  full_output::on_mesh<test::on_devices, 2, 1>();
  full_output::on_mesh<test::on_devices, 1, 2>();
}
