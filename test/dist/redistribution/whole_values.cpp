// SPDX-License-Identifier: Apache-2.0
// Whole values loaded into tensors of every placement, eager tensors and programs alike: what comes out is what went in.
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;

template <int N>
struct rows : sw::axis<N> {};
template <int N>
struct cols : sw::axis<N> {};
template <int M, int N>
using grid = sw::mesh<rows<M>, cols<N>>;

using R = sw::replicate;
using U = sw::reduced;
using S0 = sw::shard<0>;
using S1 = sw::shard<1>;
template <sw::reduction Op>
using P = sw::partial<Op>;
using sum = P<sw::reduction::sum>;
using avg = P<sw::reduction::avg>;
using product = P<sw::reduction::product>;
using max = P<sw::reduction::max>;
using min = P<sw::reduction::min>;
using norm = sw::partial_norm<2>;

// Made whole along `First` and then along `Second`.
template <class First, class Second>
struct whole_by {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<Second, R>(sw::redistribute<First, R>(x)); }
};

struct first_whole {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<rows<2>, R>(x); }
};

using values = std::vector<double>;
const values given{5, 7, 0.5, 3, 2, 11};

void check(const values& got, const values& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-14));
}

template <class Order, class Mesh, class In, class Rank>
void check_program(Rank& rank, const values& whole) {
  using step = sw::function_step<Order, Mesh, sw::inputs<In>>;
  sw::executor<step, Rank> program(rank);
  program.set_input(0, whole);
  program.run({});
  const auto got = program.template output<double>(0);
  check({got.data.begin(), got.data.end()}, whole);
}

template <int M, int N, class PR, class PC>
void check_placement() {
  using mesh = grid<M, N>;
  using sw::on;
  sw::launch<mesh>([](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    using in = sw::input_tensor<double, sw::shape<2, 3>, on<rows<M>, PR>, on<cols<N>, PC>>;
    check_program<whole_by<rows<M>, cols<N>>, mesh, in, rank_type>(rank, given);
    check_program<whole_by<cols<N>, rows<M>>, mesh, in, rank_type>(rank, given);
    sw::eager run(rank);
    using tensor = sw::dtensor_of<double, sw::shape<2, 3>, mesh, on<rows<M>, PR>, on<cols<N>, PC>>;
    const auto x = tensor::distribute(run, given);
    const auto full = x.full_tensor();
    const auto other = sw::redistribute<cols<N>, R>(sw::redistribute<rows<M>, R>(x));
    check({full.to_local().data.begin(), full.to_local().data.end()}, given);
    check({other.to_local().data.begin(), other.to_local().data.end()}, given);
    const auto first = tensor::distribute_from_first(run, rank.index() == 0 ? given : values{}).full_tensor();
    check({first.to_local().data.begin(), first.to_local().data.end()}, given);
  });
}

template <int M, int N, class PR, class... PC>
void check_row() {
  (check_placement<M, N, PR, PC>(), ...);
}

TEST_CASE("a whole value set as an input of any placement is that value") {
  check_row<2, 1, sum, R>();
  check_row<3, 1, avg, R>();
  check_row<2, 1, product, R>();
  check_row<3, 1, product, U>();
  check_row<2, 1, max, R>();
  check_row<2, 1, min, R>();
  check_row<2, 1, norm, R>();
  check_row<3, 1, sum, R>();
}

TEST_CASE("a whole value set as an input that is partial on two axes is that value, whichever axis is reduced first") {
  check_row<2, 2, sum, sum, avg, product, max, min, norm, S0, S1, U>();
  check_row<2, 2, product, sum, product, avg, max, norm, S1>();
  check_row<2, 2, avg, sum, product, max>();
  check_row<2, 2, norm, sum, product, norm, S0>();
  check_row<2, 2, max, product, min>();
}

TEST_CASE("integers, a negative zero and other ranks' numbers are what was given") {
  using mesh = grid<2, 2>;
  using sw::on;
  sw::launch<mesh>([](auto& rank) {
    using in = sw::input_tensor<std::int32_t, sw::shape<3>, on<rows<2>, sum>, on<cols<2>, product>>;
    using step = sw::function_step<whole_by<rows<2>, cols<2>>, mesh, sw::inputs<in>>;
    sw::executor<step> program(rank);
    program.set_input(0, std::vector<std::int32_t>{-4, 0, 9});
    program.run({});
    const auto got = program.template output<std::int32_t>(0);
    CHECK(std::vector<std::int32_t>(got.data.begin(), got.data.end()) == std::vector<std::int32_t>{-4, 0, 9});
    sw::eager run(rank);
    using tensor = sw::dtensor_of<double, sw::shape<1>, mesh, on<rows<2>, sum>, on<cols<2>, sum>>;
    CHECK(std::signbit(tensor::distribute(run, values{-0.0}).item()));
  });
}

TEST_CASE("a negative number is no norm") {
  using mesh = grid<2, 1>;
  const auto told = [](const auto& f) -> std::string {
    try {
      sw::launch<mesh>(f);
    } catch (const std::exception& e) {
      return e.what();
    }
    return "nothing was thrown";
  };
  using in = sw::input_tensor<double, sw::shape<2>, sw::on<rows<2>, norm>>;
  using tensor = sw::dtensor_of<double, sw::shape<2>, mesh, sw::on<rows<2>, norm>>;
  const std::string why =
      "; a tensor that is partial_norm holds norms, which are not negative: give their absolute values, or "
      "place the tensor partial or replicate";
  CHECK(told([](auto& rank) {
          sw::executor<sw::function_step<whole_by<rows<2>, cols<1>>, mesh, sw::inputs<in>>> program(rank);
          program.set_input(0, values{1, -2});
        }) == "shardwise: set_input: element 1 is -2.000000" + why);
  CHECK(told([](auto& rank) {
          sw::eager run(rank);
          tensor::distribute(run, values{-3, 1});
        }) == "shardwise: distribute: element 0 is -3.000000" + why);
}

// What one rank without peers holds: a collective takes every peer for itself.
TEST_CASE("a rank without peers holds its own share") {
  using mesh = grid<2, 2>;
  using in = sw::input_tensor<double, sw::shape<2>, sw::on<rows<2>, product>, sw::on<cols<2>, avg>>;
  const values held[] = {{5, 7}, {5, 7}, {1, 1}, {1, 1}};
  for (int r = 0; r < 4; ++r)
    sw::launch_fake<mesh>(r, [&](auto& rank) {
      sw::executor<sw::function_step<first_whole, mesh, sw::inputs<in>>, sw::fake_rank<mesh>> program(rank);
      program.set_input(0, values{5, 7});
      const auto block = program.template input<double>(0);
      CHECK(values(block.begin(), block.end()) == held[r]);
    });
}

}  // namespace
