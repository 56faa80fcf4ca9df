// SPDX-License-Identifier: Apache-2.0
// Attention of two-byte elements on host ranks: computed in float and rounded once; gradients as those of float.
#include <doctest/doctest.h>

#include <cmath>
#include <figures.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/shardwise.hpp>
#include <vector>

namespace {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using alone = sw::mesh<one>;
using shape = sw::shape<2, 3, 40, 16>;
constexpr std::size_t elements = 2 * 3 * 40 * 16;

struct attend {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v) const {
    return sw::scaled_dot_product_attention<sw::attention_options{}>(q, k, v);
  }
};
template <class T>
using program =
    sw::gradient_step<attend, alone,
                      sw::inputs<sw::input_tensor<T, shape>, sw::input_tensor<T, shape>, sw::input_tensor<T, shape>>,
                      sw::wrt<0, 1, 2>>;

// The result and the three gradients of its sum, from numbers that both types hold.
template <class T>
std::vector<std::vector<float>> run() {
  std::vector<std::vector<float>> all(4);
  sw::launch<alone>([&](auto& rank) {
    sw::executor<program<T>, std::remove_reference_t<decltype(rank)>> ex(rank);
    for (int k = 0; k < 3; ++k) {
      std::vector<T> values(elements);
      for (std::size_t i = 0; i < elements; ++i)
        values[i] = T(static_cast<float>(sw::bfloat16(static_cast<float>(2 * std::sin(1.7 * double(i) + k)))));
      ex.set_input(k, values);
    }
    ex.run(sw::step_env{});
    for (int k = 0; k < 4; ++k) {
      const auto block = ex.template output<T>(k);
      for (std::size_t i = 0; i < block.size(); ++i)
        all[static_cast<std::size_t>(k)].push_back(static_cast<float>(block[i]));
    }
  });
  return all;
}

TEST_CASE("attention of bfloat16 is that of float, rounded once; its gradients are to bfloat16's digits") {
  const auto low = run<sw::bfloat16>(), exact = run<float>();
  REQUIRE(low[0].size() == elements);
  for (std::size_t i = 0; i < elements; ++i) CHECK(low[0][i] == static_cast<float>(sw::bfloat16(exact[0][i])));
  for (std::size_t k = 1; k < 4; ++k) {
    double squares = 0, worst = 0;
    for (const float x : exact[k]) squares += static_cast<double>(x) * x;
    const double rms = std::sqrt(squares / elements);
    for (std::size_t i = 0; i < elements; ++i)
      worst = std::max(worst, std::abs(static_cast<double>(low[k][i]) - exact[k][i]) / (std::abs(exact[k][i]) + rms));
    CHECK(rms > 0);
    CHECK(worst < 0.1);  // delta is of the rounded result, and what it is taken from is about as large
  }
}

}  // namespace
