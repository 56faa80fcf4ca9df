// SPDX-License-Identifier: Apache-2.0
// Slices of a split dim: where every rank keeps the beginning of its block, and on an axis of one rank, any of them. And many
// parts of one tensor.
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

namespace {

// 20 parts of one type, and what is computed of them: joined again along another dim, each multiplied by the next one.
struct by_parts {
  constexpr auto operator()(const auto& x) const {
    const auto rows = sw::unbind<0>(x);
    static_assert(
        std::is_same_v<std::remove_cvref_t<decltype(std::get<0>(rows))>, std::remove_cvref_t<decltype(std::get<19>(rows))>>);
    const auto turned = std::apply([](const auto&... row) { return sw::stack<1>(row...); }, rows);
    const auto pairs = sw::chunk<0, 20>(sw::cat<0>(sw::slice<0, 1, 19>(x), sw::slice<0, 0, 1>(x)));
    const auto beside = sw::transpose<0, 1>(sw::cat<0>(pairs));
    return std::tuple{turned * beside, sw::stack<0>(rows), std::get<0>(rows) + std::get<7>(rows)};
  }
};
// 17 of four rows and one of two: a tuple, as the last part is of another type.
struct uneven_parts {
  constexpr auto operator()(const auto& x) const {
    const auto parts = sw::chunk<0, 18>(x);
    static_assert(std::tuple_size_v<std::remove_const_t<decltype(parts)>> == 18);
    return sw::cat<0>(parts) * std::get<17>(parts);
  }
};

template <int N>
void check_parts() {
  CAPTURE(N);
  using mesh = sw::mesh<ranks<N>>;
  sw::launch<mesh>([](auto& rank) {
    using tensor = sw::dtensor_of<double, sw::shape<20, 3>, mesh, sw::shard<1>>;
    sw::eager on(rank);
    std::vector<double> whole(60), values;
    for (std::size_t i = 0; i < 60; ++i) whole[i] = static_cast<double>(i % 7) - 2 + static_cast<double>(i) / 8;
    const auto x = tensor::distribute(on, whole);
    const auto [y, same, sum, g] = test::gradients_both_ways<by_parts, 0>(rank, x);
    const auto of = [&](std::size_t row, std::size_t column) { return whole[(row % 20) * 3 + column]; };
    values = test::values_of(y.full_tensor().to_local());
    const auto gradient = test::values_of(g.full_tensor().to_local());
    REQUIRE(values.size() == 60);
    for (std::size_t r = 0; r < 20; ++r)
      for (std::size_t c = 0; c < 3; ++c) {
        CHECK(values[c * 20 + r] == of(r, c) * of(r + 1, c));
        CHECK(gradient[r * 3 + c] == of(r + 1, c) + of(r + 19, c));
      }
    CHECK(test::values_of(same.full_tensor().to_local()) == whole);
    const auto sums = test::values_of(sum.full_tensor().to_local());
    for (std::size_t c = 0; c < 3; ++c) CHECK(sums[c] == of(0, c) + of(7, c));
  });
}
// 20 results, and with a gradient 21.
struct every_row {
  constexpr auto operator()(const auto& x) const {
    return std::apply([](const auto&... row) { return std::tuple{(row * row)...}; }, sw::unbind<0>(x));
  }
};
template <int N>
void check_many_results() {
  CAPTURE(N);
  using mesh = sw::mesh<ranks<N>>;
  sw::launch<mesh>([](auto& rank) {
    using tensor = sw::dtensor_of<double, sw::shape<20, 3>, mesh, sw::shard<1>>;
    sw::eager on(rank);
    std::vector<double> whole(60);
    for (std::size_t i = 0; i < 60; ++i) whole[i] = static_cast<double>(i) - 20;
    const auto all = test::gradients_both_ways<every_row, 0>(rank, tensor::distribute(on, whole));
    const auto gradient = test::values_of(std::get<20>(all).full_tensor().to_local());
    for (std::size_t c = 0; c < 60; ++c) CHECK(gradient[c] == (c < 3 ? 2 * whole[c] : 0));
    const auto last = test::values_of(std::get<19>(all).full_tensor().to_local());
    for (std::size_t c = 0; c < 3; ++c) CHECK(last[c] == whole[57 + c] * whole[57 + c]);
  });
}
template <int N>
void check_uneven_parts() {
  CAPTURE(N);
  using mesh = sw::mesh<ranks<N>>;
  sw::launch<mesh>([](auto& rank) {
    using tensor = sw::dtensor_of<double, sw::shape<69, 3>, mesh, sw::shard<1>>;
    sw::eager on(rank);
    std::vector<double> whole(69 * 3);
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<double>(i);
    const auto [y] = test::both_ways<uneven_parts>(rank, tensor::distribute(on, whole));
    const auto values = test::values_of(y.full_tensor().to_local());
    REQUIRE(values.size() == whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(values[i] == whole[i] * whole[68 * 3 + i % 3]);
  });
}

}  // namespace

TEST_CASE("many parts of a tensor are of one type, and each is the part that it should be") {
  check_parts<1>();
  check_parts<2>();
  check_parts<3>();
}
TEST_CASE("many parts of which the last is smaller") {
  check_uneven_parts<1>();
  check_uneven_parts<2>();
}
TEST_CASE("a function has as many results as it returns") {
  check_many_results<1>();
  check_many_results<2>();
  check_many_results<4>();
}
