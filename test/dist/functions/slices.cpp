// SPDX-License-Identifier: Apache-2.0
// Slices of a split dim: where every rank keeps the beginning of its block, and on an axis of one rank, any of them.
#include <both_ways.hpp>

#include <vector>

namespace {

namespace sw = shardwise;

template <int N>
struct ranks : sw::axis<N> {};

template <std::int64_t Start, std::int64_t Length>
struct cut {
  constexpr auto operator()(const auto& x) const { return sw::slice<0, Start, Length>(x) * sw::slice<0, Start, Length>(x); }
};

// Rows Start to Start + Length of 5 x 2, squared, and their gradient.
template <int N, std::int64_t Start, std::int64_t Length>
void check_cut() {
  CAPTURE(N);
  using mesh = sw::mesh<ranks<N>>;
  sw::launch<mesh>([](auto& rank) {
    using tensor = sw::dtensor_of<double, sw::shape<5, 2>, mesh, sw::shard<0>>;
    sw::eager on(rank);
    std::vector<double> whole(10);
    for (int i = 0; i < 10; ++i) whole[static_cast<std::size_t>(i)] = i + 1;
    const auto x = tensor::distribute(on, whole);
    const auto [y, g] = test::gradients_both_ways<cut<Start, Length>, 0>(rank, x);
    const auto values = test::values_of(y.full_tensor().to_local()), gradient = test::values_of(g.full_tensor().to_local());
    REQUIRE(values.size() == 2 * Length);
    for (int i = 0; i < 10; ++i) {
      const std::int64_t at = i - 2 * Start;
      const bool inside = at >= 0 && at < 2 * Length;
      if (inside) CHECK(values[static_cast<std::size_t>(at)] == (i + 1.) * (i + 1.));
      CHECK(gradient[static_cast<std::size_t>(i)] == (inside ? 2 * (i + 1.) : 0));
    }
  });
}

}  // namespace

TEST_CASE("a slice of a split dim that several ranks allow is the same on an axis of one") {
  check_cut<1, 0, 4>();
  check_cut<3, 0, 4>();
}
TEST_CASE("on an axis of one rank any slice of a split dim is right") {
  check_cut<1, 1, 3>();
  check_cut<1, 2, 0>();
}
