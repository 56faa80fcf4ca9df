// SPDX-License-Identifier: Apache-2.0
// Kernel instantiations do not grow with a model's depth.
#include <doctest/doctest.h>

#include <gpt.hpp>
#include <shardwise/pass/fuse/fuse.hpp>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

template <int Layers>
using deep = step<float, 2, 2, tensor_parallel, deep_sizes<Layers>>;

// What executor::kernel_count returns, without instantiating the kernels of every depth here.
template <class Step>
struct program_of {
  static constexpr const auto& value = Step::program;
};
template <class Step>
constexpr int kernel_count = sw::runtime::kernels_of<program_of<Step>>::signatures.count;

static_assert(kernel_count<deep<2>> == kernel_count<deep<12>>);
static_assert(kernel_count<deep<2>> <= kernel_count<deep<1>>);
// the list has as many as there are, whatever room was guessed
static_assert(sw::runtime::kernels_of<program_of<deep<2>>, 2>::signatures.count == kernel_count<deep<2>>);
static_assert(sw::runtime::kernels_of<program_of<deep<2>>, 2>::signatures.item[kernel_count<deep<2>> - 1] ==
              sw::runtime::kernels_of<program_of<deep<2>>>::signatures.item[kernel_count<deep<2>> - 1]);

TEST_CASE("a gpt of 12 layers instantiates the kernels of one with 2, and of one with 1") {
  using rank = sw::thread_rank<deep<2>::mesh_type>;
  CHECK(sw::executor<deep<2>, rank>::kernel_count() == kernel_count<deep<2>>);
  CHECK(kernel_count<deep<12>> == kernel_count<deep<2>>);
  CHECK(kernel_count<deep<2>> == kernel_count<deep<1>>);
  CHECK(deep<12>::program.node_count > 5 * deep<2>::program.node_count);
}

// Fused regions are kernels too: equal layers have equal expressions.
template <int Layers>
using fused = step<float, 2, 2, tensor_parallel, deep_sizes<Layers>, test::place, sw::pipeline<sw::fuse_kernels>>;

TEST_CASE("a fused gpt of 12 layers instantiates the kernels of one with 2, and few more than without fusion") {
  static_assert(kernel_count<fused<2>> == kernel_count<fused<12>>);
  static_assert(fused<2>::program.expression_count == fused<12>::program.expression_count);
  static_assert(fused<12>::program.expression_count <= 10);
  CHECK(kernel_count<fused<12>> == kernel_count<fused<2>>);
  CHECK(kernel_count<fused<2>> <= kernel_count<deep<2>> + 10);
}

}  // namespace
