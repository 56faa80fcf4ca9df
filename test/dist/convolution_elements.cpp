// SPDX-License-Identifier: Apache-2.0
// conv2d of elements of two bytes, and of a batch that is known at run time alone, with a rank's threads.
#include <doctest/doctest.h>

#include <cmath>
#include <shardwise/shardwise.hpp>
#include <type_traits>
#include <vector>

namespace {

namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using batch = sw::on<dp, sw::shard<0>>;
using whole = sw::on<dp, sw::reduced>;

struct convolved {
  constexpr auto operator()(const auto& x, const auto& first, const auto& second) const {
    constexpr sw::convolution_options halved{.stride = 2, .padding = 1}, depthwise{.padding = "same", .groups = 12};
    return sw::conv2d<depthwise>(sw::conv2d<halved>(x, first), second);
  }
};
// Numbers that two bytes hold.
template <class T>
std::vector<T> some(std::size_t n, int salt) {
  std::vector<T> x;
  for (std::size_t i = 0; i < n; ++i)
    x.push_back(T(static_cast<float>((i * 37 + static_cast<std::size_t>(salt) * 11) % 33) / 16.0F - 1.0F));
  return x;
}

template <class T, std::int64_t N>
using step = sw::gradient_step<
    convolved, mesh,
    sw::inputs<sw::input_tensor<T, sw::shape<N, 6, 17, 15>, batch>, sw::input_tensor<T, sw::shape<12, 6, 3, 3>, whole>,
               sw::input_tensor<T, sw::shape<12, 1, 3, 3>, whole>>,
    sw::wrt<0, 1, 2>>;

// Results and gradients, each rank's own, in turn.
template <class T, std::int64_t N>
std::vector<double> run(std::size_t images, int threads) {
  std::vector<double> all[2];
  sw::launch<mesh>([&](auto& rank) {
    if (threads > 1) rank.compute_threads(threads);
    sw::executor<step<T, N>, std::remove_reference_t<decltype(rank)>> ex(rank);
    if constexpr (N < 0) ex.resize(static_cast<std::int64_t>(images));
    ex.set_input(0, some<T>(images * 6 * 17 * 15, 0));
    ex.set_input(1, some<T>(12 * 6 * 9, 1));
    ex.set_input(2, some<T>(12 * 9, 2));
    ex.run(sw::step_env{});
    for (int k = 0; k < 4; ++k) {
      const auto block = ex.template output<T>(k);
      for (std::size_t i = 0; i < block.size(); ++i)
        all[rank.index()].push_back(static_cast<double>(static_cast<float>(block[i])));
    }
  });
  all[0].insert(all[0].end(), all[1].begin(), all[1].end());
  return all[0];
}

TEST_CASE("conv2d: elements of two bytes are computed as floats and rounded once an operation") {
  const auto exact = run<float, 3>(3, 1), low = run<sw::bf16, 3>(3, 1);
  REQUIRE(exact.size() == low.size());
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    largest = std::max(largest, std::abs(exact[i]));
    worst = std::max(worst, std::abs(exact[i] - low[i]));
  }
  CHECK(worst > 0);
  CHECK(worst < largest / 64);
}
TEST_CASE("conv2d: a batch of run-time size gives the bits of one that is known") {
  CHECK(run<float, sw::dyn<7>>(3, 1) == run<float, 3>(3, 1));
  CHECK(run<float, sw::dyn<7>>(7, 1) == run<float, 7>(7, 1));
}
TEST_CASE("conv2d: threads of a rank keep its bits") {
  const auto alone = run<float, 5>(5, 1);
  CHECK(alone == run<float, 5>(5, 2));
  CHECK(alone == run<float, 5>(5, 3));
}

}  // namespace
