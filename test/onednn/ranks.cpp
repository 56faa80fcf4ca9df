// SPDX-License-Identifier: Apache-2.0
// Networks of convolutions by oneDNN on one, two and three ranks, split along the batch and along channels, at once and as programs, in
// both formats: within what rounding allows of the same networks in double.
#include <doctest/doctest.h>

#include <both_ways.hpp>
#include <cmath>
#include <figures.hpp>
#include <limits>
#include <mutex>
#include <shardwise/runtime/host/convolution_library.hpp>
#include <string>

namespace {

using namespace test;
using options = sw::convolution_options;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using line = sw::mesh<dp<N>>;

template <bool Last>
constexpr auto stored(const auto& x) {
  if constexpr (Last) return sw::contiguous<sw::memory_format::channels_last>(x);
  else return x;
}

// Stride 7, then depthwise, then 1 x 1. `sums`: products that are added on the way to an element: those of each layer forward, of its
// image's gradient and of its weight's.
template <bool Last>
struct three {
  static constexpr int sums = (3 * 49 + 49 + 64) + (64 + 49 + 64) + 3 * (5 * 2 * 2);
  constexpr auto operator()(const auto& x, const auto& a, const auto& b, const auto& c) const {
    const auto y = sw::conv2d<options{.stride = 7}>(stored<Last>(x), stored<Last>(a));
    const auto z = sw::conv2d<options{.padding = "same", .groups = 64}>(y, stored<Last>(b));
    const auto r = sw::conv2d(z, stored<Last>(c));
    return std::tuple{sw::sum(r), r};
  }
};
template <bool Last>
struct two {
  static constexpr int sums = (7 * 9 + 5 * 9) + (4 * 9 + 5 * 9) + 2 * (2 * 8 * 8);
  constexpr auto operator()(const auto& x, const auto& a, const auto& b) const {
    const auto y = sw::conv2d<options{.padding = 1}>(stored<Last>(x), stored<Last>(a));
    const auto r = sw::conv2d<options{.padding = 1}>(y, stored<Last>(b));
    return std::tuple{sw::sum(r), r};
  }
};

template <class... S>
struct shapes {};
template <class... P>
struct placements {};

template <class T, class F, class Mesh, class... Shape, class... P>
std::vector<std::vector<double>> computed(shapes<Shape...>, placements<P...>, bool magnitudes) {
  std::vector<std::vector<double>> all;
  std::mutex gate;
  sw::launch<Mesh>([&](auto& rank) {
    sw::eager on(rank);
    int salt = 0;
    const auto operand = [&]<class S, class Placement>(std::type_identity<S>, std::type_identity<Placement>) {
      using type = sw::dtensor_of<T, S, Mesh, Placement>;
      std::vector<T> v;
      for (const double x : figures::some(static_cast<std::size_t>(sw::numel(type::sp)), ++salt)) {
        const float rounded = static_cast<float>(x);
        v.push_back(static_cast<T>(magnitudes ? std::abs(rounded) : rounded));
      }
      return type::distribute(on, v);
    };
    const std::tuple x{operand(std::type_identity<Shape>{}, std::type_identity<P>{})...};
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto results = gradients_both_ways<F, static_cast<int>(I)...>(rank, std::get<I>(x)...);
      std::apply(
          [&](const auto&... r) {
            const auto values = [](const auto& y) {
              const auto v = values_of(sw::contiguous(y).full_tensor().to_local());
              return std::vector<double>(v.begin(), v.end());
            };
            std::vector<std::vector<double>> mine{values(r)...};
            const std::lock_guard lock(gate);
            if (all.empty()) all = mine;
            CHECK(all == mine);
          },
          results);
    }(std::index_sequence_for<Shape...>{});
  });
  return all;
}

// Law: what is computed by products and sums alone is, in any order of the sums, within gamma of the exact result in units of the same
// computation of magnitudes; gamma = n u / (1 - n u), n products and sums on the way to an element.
template <class F, class Mesh, class Shapes, class Placements>
void check() {
  sw::runtime::clear_convolution_report();
  const auto got = computed<float, F, Mesh>(Shapes{}, Placements{}, false);
  const std::string report = sw::runtime::convolution_report();
  CHECK(report.find("oneDNN ") != std::string::npos);
  CHECK(report.find("built-in kernel") == std::string::npos);
  CHECK(got == computed<float, F, Mesh>(Shapes{}, Placements{}, false));  // from run to run
  const auto want = computed<double, F, Mesh>(Shapes{}, Placements{}, false);
  const auto magnitude = computed<double, F, Mesh>(Shapes{}, Placements{}, true);
  REQUIRE(got.size() == want.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    CAPTURE(k);
    // the loss, and what ones are multiplied with, add all elements of a result, and of all ranks
    const double n = F::sums + (k == 0 ? static_cast<double>(want[1].size()) : 0);
    const double nu = n * static_cast<double>(std::numeric_limits<float>::epsilon()) / 2;
    REQUIRE(got[k].size() == want[k].size());
    int outside = 0;
    for (std::size_t i = 0; i < got[k].size(); ++i)
      outside += !(std::abs(got[k][i] - want[k][i]) <= nu / (1 - nu) * magnitude[k][i]);
    CHECK(outside == 0);
  }
}

template <bool Last>
void everywhere() {
  using network = shapes<sw::shape<5, 3, 16, 16>, sw::shape<64, 3, 7, 7>, sw::shape<64, 1, 7, 7>, sw::shape<64, 64, 1, 1>>;
  using whole = placements<sw::replicate, sw::replicate, sw::replicate, sw::replicate>;
  using batch = placements<sw::shard<0>, sw::reduced, sw::reduced, sw::reduced>;
  check<three<Last>, line<1>, network, whole>();
  check<three<Last>, line<2>, network, batch>();
  check<three<Last>, line<3>, network, batch>();
  // outputs of the first are channels of the second, whose result is a sum over ranks
  using channels = shapes<sw::shape<2, 7, 8, 8>, sw::shape<5, 7, 3, 3>, sw::shape<4, 5, 3, 3>>;
  using cut = placements<sw::reduced, sw::shard<0>, sw::shard<1>>;
  check<two<Last>, line<2>, channels, cut>();
  check<two<Last>, line<3>, channels, cut>();
}
TEST_CASE("networks by oneDNN on one, two and three ranks, contiguous") { everywhere<false>(); }
TEST_CASE("networks by oneDNN on one, two and three ranks, channels-last") { everywhere<true>(); }

}  // namespace
