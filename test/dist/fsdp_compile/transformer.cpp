// SPDX-License-Identifier: Apache-2.0
// The tied transformer with dropout, a group for each block and one of the rest, on two ranks, compiled by three pipelines: losses
// of the eager run, three gathers forward, two backward, three scatters.
#include <fsdp_compile.hpp>

namespace {

using namespace test;
using namespace test::fsdp;

struct dropping : transformer_sizes {
  static constexpr double dropout = 0.1;
};
template <class B>
using model = transformer<dropping>::model<B>;

using mesh = sw::mesh<dp<2>>;
template <class... Options>
using group = sw::fully_shard<dp<2>, sw::average_gradients, Options...>;
using plan = sw::plan<group<>, sw::at<"layers.*", group<>>>;

template <int Ranks>
struct sum_of_logits {
  using inputs = sw::inputs<split_rows_t<std::int32_t, sw::shape<4, dropping::time>, batch_axes<dp<Ranks>>>,
                            sw::input_tensor<std::int32_t, sw::shape<dropping::time>>>;
  constexpr auto operator()(const auto& m, const auto& tokens, const auto& positions) const {
    return sw::sum(m(tokens, positions));
  }
};
template <class Pipeline>
using step = sw::train_step<model, sum_of_logits<2>, plan, mesh, sw::sgd<>, Pipeline>;
using alone = sw::forward_step<model, sum_of_logits<1>, sw::plan<sw::data_parallel<dp<1>>>, sw::mesh<dp<1>>>;

// Rank r draws its two rows by its own seed.
std::vector<std::int32_t> tokens(int iteration) {
  std::vector<std::int32_t> x;
  for (int r = 0; r < world; ++r) {
    std::uint32_t state = 7919U * static_cast<std::uint32_t>(r) + 31U * static_cast<std::uint32_t>(iteration);
    for (int i = 0; i < 2 * dropping::time; ++i) {
      state = state * 1664525U + 1013904223U;
      x.push_back(static_cast<std::int32_t>((state >> 16) % dropping::vocabulary));
    }
  }
  return x;
}
std::vector<std::int32_t> positions() {
  std::vector<std::int32_t> x;
  for (int i = 0; i < dropping::time; ++i) x.push_back(i);
  return x;
}

// `again`: what the backward pass gathers of a block, members and a rank's elements; `order`: of the blocks. The whole model's
// group, 128 + 256 + 32 elements, stays as it is gathered; the tied table counts once.
template <class Pipeline>
void check(const char* backward) {
  using program = step<Pipeline>;
  CHECK(group_text<program>(sw::transition::all_gather) ==
        std::string("forward: model 4 of 208 to 416; layers.0 12 of 1608 to 3216; layers.1 12 of 1608 to 3216;\n") +
            backward);
  CHECK(group_text<program>(sw::transition::reduce_scatter) ==
        "backward: layers.1 12 of 3216 to 1608; layers.0 12 of 3216 to 1608; model 4 of 416 to 208;");
  check_beside_eager<program, alone, plan, model, sum_of_logits<2>>(
      [](auto& ex, int s) {
        ex.set_input(0, tokens(s));
        ex.set_input(1, positions());
      },
      [](const auto& on, int s) {
        using rows = sw::dtensor_of<std::int32_t, sw::shape<4, dropping::time>, mesh, sw::on<dp<2>, sw::shard<0>>>;
        using places = sw::dtensor_of<std::int32_t, sw::shape<dropping::time>, mesh>;
        return std::tuple(rows::distribute(on, tokens(s)), places::distribute(on, positions()));
      });
}

template <class A, class B>
bool differ() {
  return to_text(step<A>::program) != to_text(step<B>::program);
}

// The backward pass reads no biases, so it does not gather them: 3216 - 16 - 64 - 2 * 16; but those of norms that are applied again.
TEST_CASE("fsdp compile: test_transformer_fullgraph_backend_aot_eager") {
  check<aot_eager>("backward: layers.1 8 of 1552 to 3104; layers.0 8 of 1552 to 3104;");
  CHECK(differ<aot_eager, decomp_partition>());
}
TEST_CASE("fsdp compile: test_transformer_fullgraph_backend_aot_eager_decomp_partition") {
  check<decomp_partition>("backward: layers.1 10 of 1568 to 3136; layers.0 10 of 1568 to 3136;");
  CHECK(differ<decomp_partition, inductor>());
}
TEST_CASE("fsdp compile: test_transformer_fullgraph_backend_inductor") {
  check<inductor>("backward: layers.1 10 of 1568 to 3136; layers.0 10 of 1568 to 3136;");
  CHECK(differ<inductor, aot_eager>());
}

}  // namespace
