// SPDX-License-Identifier: Apache-2.0
// Three linear layers as one group of two ranks, compiled by three pipelines: losses of the eager run, one gather and one scatter of
// 816 elements.
#include <fsdp_compile.hpp>

namespace {

using namespace test;
using namespace test::fsdp;

using mesh = sw::mesh<dp<2>>;
using plan = sw::plan<sw::fully_shard<dp<2>, sw::average_gradients>>;
using task = scaled_sum<float, 4, batch_axes<dp<2>>>;
template <class Pipeline>
using step = sw::train_step<three_linears, task, plan, mesh, sw::sgd<>, Pipeline>;
using alone = sw::forward_step<three_linears, scaled_sum<float, 4, batch_axes<dp<1>>>, sw::plan<sw::data_parallel<dp<1>>>,
                               sw::mesh<dp<1>>>;

// Rank r draws its two rows by its own seed.
std::vector<float> rows(int iteration) {
  std::vector<float> x;
  for (int r = 0; r < world; ++r) {
    std::uint32_t state = 7919U * static_cast<std::uint32_t>(r) + 31U * static_cast<std::uint32_t>(iteration);
    for (int i = 0; i < 2 * 16; ++i) {
      state = state * 1664525U + 1013904223U;
      x.push_back(static_cast<float>(state >> 8) / 8388608.0F - 1);
    }
  }
  return x;
}

template <class Pipeline>
void check() {
  using program = step<Pipeline>;
  // the group of the whole model keeps what it has gathered: 3 (16 16 + 16) elements, half of them a rank's, none padded
  CHECK(group_text<program>(sw::transition::all_gather) == "forward: model 6 of 408 to 816;");
  CHECK(group_text<program>(sw::transition::reduce_scatter) == "backward: model 6 of 816 to 408;");
  check_beside_eager<program, alone, plan, three_linears, task>(
      [](auto& ex, int s) { ex.set_input(0, rows(s)); },
      [](const auto& on, int s) {
        using input = sw::dtensor_of<float, sw::shape<4, 16>, mesh, sw::on<dp<2>, sw::shard<0>>>;
        return std::tuple(input::distribute(on, rows(s)));
      });
}

template <class A, class B>
bool differ() {
  return to_text(step<A>::program) != to_text(step<B>::program);
}

TEST_CASE("fsdp compile: test_simple_mlp_fullgraph_backend_aot_eager") {
  check<aot_eager>();
  CHECK(differ<aot_eager, decomp_partition>());
}
TEST_CASE("fsdp compile: test_simple_mlp_fullgraph_backend_aot_eager_decomp_partition") {
  check<decomp_partition>();
  CHECK(differ<decomp_partition, inductor>());
}
TEST_CASE("fsdp compile: test_simple_mlp_fullgraph_backend_inductor") {
  check<inductor>();
  CHECK(differ<inductor, aot_eager>());
}

}  // namespace
