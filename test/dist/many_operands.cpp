// SPDX-License-Identifier: Apache-2.0
// Operations of eight operands: results, gradients and passes are those of the same thing written with few operands.
#include <both_ways.hpp>

#include <eight_operands.hpp>

namespace {

namespace sw = shardwise;

template <int N>
struct line : sw::axis<N> {};

struct by_one {
  constexpr auto operator()(const auto& x, const auto& y, const auto& w) const {
    const auto z = sw::tanh(x);
    const auto all = sw::call<own::pairs>(x, y, z, w, y, z, x, w);
    return std::tuple{all, sw::cat<1>(x, y, z, all, x, y, z), sw::stack<0>(x, z, y, x, all, x, y, x, all, z, y, y)};
  }
};
struct by_two {
  constexpr auto operator()(const auto& x, const auto& y, const auto& w) const {
    const auto z = sw::tanh(x);
    const auto all = x * y + z * w + y * z + x * w;
    return std::tuple{all, sw::cat<1>(sw::cat<1>(x, y), sw::cat<1>(z, all), sw::cat<1>(x, y, z)),
                      sw::cat<0>(sw::stack<0>(x, z, y, x), sw::stack<0>(all, x, y, x), sw::stack<0>(all, z, y, y))};
  }
};

template <int N, class Placement>
void check() {
  CAPTURE(N);
  using mesh = sw::mesh<line<N>>;
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    using tensor = sw::dtensor_of<double, sw::shape<5, 3>, mesh, Placement>;
    std::vector<double> a(15), b(15), c(3);
    for (std::size_t i = 0; i < 15; ++i)
      a[i] = 0.25 * static_cast<double>(i) - 1.5, b[i] = 2 - 0.5 * static_cast<double>(i % 7);
    for (std::size_t i = 0; i < 3; ++i) c[i] = static_cast<double>(i) + 0.5;
    const auto x = tensor::distribute(on, a), y = tensor::distribute(on, b);
    const auto w = sw::dtensor_of<double, sw::shape<3>, mesh, sw::reduced>::distribute(on, c);
    const auto have = test::gradients_both_ways<by_one, 0, 1, 2>(rank, x, y, w);
    const auto want = test::gradients_both_ways<by_two, 0, 1, 2>(rank, x, y, w);
    static_assert(std::tuple_size_v<decltype(have)> == 6);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (
          [&] {
            const auto h = test::values_of(std::get<I>(have).to_local()), v = test::values_of(std::get<I>(want).to_local());
            REQUIRE(h.size() == v.size());
            for (std::size_t i = 0; i < h.size(); ++i) CHECK(h[i] == doctest::Approx(v[i]).epsilon(1e-12));
          }(),
          ...);
    }(std::make_index_sequence<6>{});
  });
}

}  // namespace

TEST_CASE("operations of eight operands, and joins of twelve tensors") {
  check<1, sw::reduced>();
  check<2, sw::shard<0>>();
  check<3, sw::shard<0>>();
}
