// SPDX-License-Identifier: Apache-2.0
// Values and gradients of every function where numbers are special, on a GPU: PyTorch's, or different on purpose, from the same
// table as the host's.
#define SHARDWISE_TEST_DEVICES 1
#include <place.hpp>
#include <special_values.hpp>

#include <shardwise/pass/fuse/fuse.hpp>

TEST_CASE("special values on a gpu are PyTorch's or differ on purpose") {
  using namespace test;
  if (!place::has(1)) return;
  special::check_tables();
  special::check_all<place, float, sw::pipeline<>>("plain");
  special::check_all<place, double, sw::pipeline<>>("plain");
  special::check_all<place, float, sw::pipeline<sw::fuse_kernels>>("fused");
}

namespace {

// A product and what is computed in its epilogue.
struct product_then_relu {
  constexpr auto operator()(const auto& x, const auto& w) const { return shardwise::relu(shardwise::matmul(x, w)); }
};
struct coin {
  constexpr auto operator()(const auto& p) const { return shardwise::bernoulli(p); }
};

}  // namespace

TEST_CASE("a NaN goes through a product fused with relu") {
  using namespace test;
  if (!place::has(1)) return;
  using x_type = sw::input_tensor<float, sw::shape<64, 32>>;
  using w_type = sw::input_tensor<float, sw::shape<32, 64>>;
  using program = sw::function_step<product_then_relu, special::mesh, sw::inputs<x_type, w_type>,
                                    sw::pipeline<sw::fuse_kernels>, sw::cuda_backend>;
  place::launch<special::mesh>([](auto& rank) {
    sw::executor<program, std::remove_reference_t<decltype(rank)>> run(rank);
    std::vector<float> x(64 * 32, -1.0F), w(32 * 64, 1.0F);
    x[5 * 32 + 3] = std::nanf("");
    run.set_input(0, x);
    run.set_input(1, w);
    run.run({});
    const auto y = run.template output<float>(0);
    for (std::size_t i = 0; i < 64 * 64; ++i)
      if (i / 64 == 5) CHECK(std::isnan(y[i]));
      else CHECK(y[i] == 0);
  });
}

TEST_CASE("bernoulli on a gpu refuses what is no probability") {
  using namespace test;
  if (!place::has(1)) return;
  using program = sw::function_step<coin, special::mesh, sw::inputs<sw::input_tensor<double, sw::shape<3>>>, sw::pipeline<>,
                                    sw::cuda_backend>;
  place::launch<special::mesh>([](auto& rank) {
    for (const double p : {1.5, -0.5, special::nan}) {
      sw::executor<program, std::remove_reference_t<decltype(rank)>> run(rank);
      run.set_input(0, std::vector<double>{0, p, 1});
      CHECK_THROWS_WITH(
          [&] {
            run.run({});
            run.synchronize();
          }(),
          doctest::Contains(" is no probability; the operand's elements must be from 0 to 1"));
    }
  });
}
