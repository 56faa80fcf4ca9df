// SPDX-License-Identifier: Apache-2.0
// Random operations on 1 to 4 ranks: by element the same on every mesh; by offset in one stream, as PyTorch's DTensor,
// eager and traced, and drawn again by the gradient.
#include <doctest/doctest.h>

#include <both_ways.hpp>

#include <set>

namespace {

using namespace test;

template <int N>
struct line : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<line<N>>;
using R = sw::replicate;
template <int D>
using S = sw::shard<D>;
using numbers = std::vector<double>;

template <int N, class Placement, std::int64_t... E>
using tensor = sw::dtensor_of<double, sw::shape<E...>, mesh<N>, Placement>;

struct draws {
  constexpr auto operator()(const auto& x) const {
    return std::tuple{sw::rand_like(x), sw::dropout(x, 0.4) * x, sw::randn_like(x), sw::bernoulli(sw::rand_like(x))};
  }
};

// All four as whole tensors; by_element.
template <int N, class Placement>
std::vector<numbers> whole() {
  std::vector<numbers> r;
  sw::launch<mesh<N>>([&](auto& rank) {
    sw::eager on(rank);
    on.start_step(0, 0);  // what a program runs with
    const auto x = tensor<N, Placement, 5, 6>::full(on, 1);
    const auto all = both_ways<draws>(rank, x);
    std::apply(
        [&](const auto&... t) {
          const std::vector<numbers> mine{values_of(t.full_tensor().to_local())...};
          if (rank.index() == 0) r = mine;
        },
        all);
  });
  return r;
}

constexpr std::uint64_t seed = 11;
constexpr std::int64_t step = 3;
double stream(std::int64_t at) {
  const auto index = static_cast<std::uint64_t>(at);
  return sw::unit_24(
      sw::philox(seed, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, step).w[0]);
}

struct two_draws {
  constexpr auto operator()(const auto& x) const { return std::tuple{sw::rand_like(x), sw::rand_like(x)}; }
};
struct dropped {
  constexpr auto operator()(const auto& x) const { return sw::dropout(x, 0.5) + sw::dropout(x, 0.5); }
};

// Both draws of two_draws, on each rank, eagerly and as a program, are the stream's from where they are to begin.
template <int N, class Placement, std::int64_t... E>
std::vector<numbers> from_stream(const std::vector<std::int64_t>& begins, std::int64_t next) {
  using X = tensor<N, Placement, E...>;
  using program = function_of<two_draws, X>;
  std::vector<numbers> blocks(N);
  sw::launch<mesh<N>>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = X::full(on, 0);
    on.start_step(seed, step, sw::random_policy::by_offset);
    const auto [first, second] = two_draws{}(x);
    numbers want[2];
    const std::int64_t begin = begins[static_cast<std::size_t>(rank.index())];
    for (std::int64_t i = 0; i < x.to_local().layout.numel(); ++i) {
      want[0].push_back(stream(begin + i));
      want[1].push_back(stream(next + begin + i));
    }
    CHECK(values_of(first.to_local()) == want[0]);
    CHECK(values_of(second.to_local()) == want[1]);
    sw::executor<program, std::remove_reference_t<decltype(rank)>> run(rank);
    sw::step_env env;
    env.seed = seed;
    env.step = step;
    env.random = sw::random_policy::by_offset;
    run.run(env);
    CHECK(values_of(run.template output<double>(0)) == want[0]);
    CHECK(values_of(run.template output<double>(1)) == want[1]);
    blocks[static_cast<std::size_t>(rank.index())] = want[0];
  });
  return blocks;
}

}  // namespace

TEST_CASE("random, by element: the same tensor on every mesh and placement") {
  const auto one = whole<1, R>();
  REQUIRE(one.size() == 4);
  CHECK(whole<2, R>() == one);
  CHECK(whole<2, S<1>>() == one);
  CHECK(whole<3, S<0>>() == one);
  CHECK(whole<4, S<0>>() == one);  // rows 2, 2, 1, 0
  CHECK(std::set<double>(one[0].begin(), one[0].end()).size() == 30);
  CHECK(one[0] != one[3]);
}

TEST_CASE("random, by offset: equal where replicate, others in every shard, PyTorch's offsets") {
  const auto alike = from_stream<4, R, 4, 4>({0, 0, 0, 0}, 16);
  CHECK(alike[0] == alike[3]);
  const auto shards = from_stream<4, S<0>, 4, 4>({0, 4, 8, 12}, 16);
  std::set<double> all;
  for (const auto& block : shards) all.insert(block.begin(), block.end());
  CHECK(all.size() == 16);
  CHECK(shards[0] == numbers(alike[0].begin(), alike[0].begin() + 4));  // the stream itself is the same
  from_stream<3, S<1>, 2, 5>({0, 4, 8}, 12);                            // columns 2, 2, 1
  // shards of fewer than 4 elements meet their neighbours' numbers, as in PyTorch
  const auto small = from_stream<4, S<0>, 8>({0, 4, 4, 8}, 8);
  CHECK(small[1] == small[2]);
  CHECK(small[0] != small[1]);
}

TEST_CASE("random, by offset: a gradient draws its forward's masks again") {
  sw::launch<mesh<3>>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<3, S<0>, 5, 8>::full(on, 1);
    on.start_step(seed, step, sw::random_policy::by_offset);
    sw::rand_like(x);  // so that the program's sites are not the first ones
    const auto [y, dx] = sw::value_and_grad<dropped, 0>(x);
    // of x = 1 the result is the masks' sum, which is also the gradient
    CHECK(values_of(y.to_local()) == values_of(dx.to_local()));
    const auto again = dropped{}(x);
    CHECK(values_of(again.to_local()) != values_of(y.to_local()));
    on.rewind(1);
    CHECK(values_of(dropped{}(x).to_local()) == values_of(y.to_local()));
  });
}
