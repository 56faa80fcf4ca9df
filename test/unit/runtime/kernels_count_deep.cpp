// SPDX-License-Identifier: Apache-2.0
// Kernel instantiations do not grow with a model's depth: 48 layers.
#include <doctest/doctest.h>

#include <gpt.hpp>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

template <int Layers>
struct program_of {
  static constexpr const auto& value = step<float, 2, 2, tensor_parallel, deep_sizes<Layers>>::program;
};
template <int Layers>
constexpr int kernel_count = sw::runtime::kernels_of<program_of<Layers>>::signatures.count;

TEST_CASE("a gpt of 48 layers instantiates the kernels of one with 2") {
  static_assert(kernel_count<48> == kernel_count<2>);
  CHECK(kernel_count<48> == kernel_count<2>);
  CHECK(program_of<48>::value.node_count > 20 * program_of<2>::value.node_count);
}

}  // namespace
