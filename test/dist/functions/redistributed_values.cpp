// SPDX-License-Identifier: Apache-2.0
// A redistribution is a value: writes in place to it are not seen in its operand, nor the other way round, whatever it
// moves; and a pending one is what its source was when it was issued. At once, as a program, with gradients, on 1 to 4
// ranks and on a rank alone.
#include <shardwise/module/hana.hpp>

#include <redistributed.hpp>

namespace {

using namespace test;
using namespace test::redistributed;

TEST_CASE("values: a redistribution and its operand are two tensors, whatever is moved") {
  check<1, R, R>();
  check<2, R, R>();
  check<2, R, S<0>>();
}
TEST_CASE("values: under another name, of sums, and of shards") {
  check<2, P, R>();
  check<3, S<0>, R>();
  check<4, S<1>, S<0>>();
}
TEST_CASE("values: on a rank alone") {
  sw::launch_fake<mesh<2>>(1, [](auto& rank) {
    sw::eager<std::remove_reference_t<decltype(rank)>> on(rank);
    const auto x = tensor<2, R, 5, 3>::distribute(on, counted(15));
    const auto results = writes<2, R>{}(x);
    CHECK(values_of(std::get<0>(results).to_local()) == counted(15));
    CHECK(values_of(std::get<1>(results).to_local()) == times(counted(15), 2));
    CHECK(values_of(std::get<6>(results).to_local()) == counted(15));
  });
}

// --- a module whose style hands it a tensor of its own ---------------------------------------------------------------

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};

template <bool InPlace>
struct family {
  template <class Bound = sw::unbound>
  struct bent : sw::module<bent<Bound>, Bound> {
    BOOST_HANA_DEFINE_STRUCT(bent, (sw::linear<4, 4, sw::child<Bound, 0>>, inner));
    constexpr auto forward(const auto& x) const {
      if constexpr (InPlace) {
        sw::relu_(x);
        return inner(x);
      } else {
        return inner(sw::relu(x));
      }
    }
  };
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    BOOST_HANA_DEFINE_STRUCT(model, (bent<sw::child<Bound, 0>>, block));
    constexpr auto forward(const auto& x) const {
      const auto h = x * 1.0;
      return block(h) + h;
    }
  };
};
template <class D>
struct square_task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<6, 4>, sw::on<D, S<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x);
    return sw::mean(y * y);
  }
};
template <int D, int T, bool InPlace>
numbers losses() {
  using grid = sw::mesh<dp<D>, tp<T>>;
  using plan = sw::plan<sw::data_parallel<dp<D>>, sw::at<"block", sw::prepare_input<tp<T>, S<1>>>,
                        sw::at<"block.inner", sw::rowwise<tp<T>>>>;
  using step =
      sw::train_step<family<InPlace>::template model, square_task<dp<D>>, plan, grid, sw::sgd<>, sw::pipeline<>, double>;
  numbers all(4);
  sw::launch<grid>([&](auto& rank) {
    sw::executor<step> e(rank, sw::executor_checks::poison);
    e.initialise(3);
    numbers x(24);
    for (std::size_t i = 0; i < 24; ++i) x[i] = static_cast<double>(i * 7 % 11) / 4 - 1;
    for (int at = 1; at <= 4; ++at) {
      sw::step_env env;
      env.step = at;
      env.lr = 0.1;
      e.set_input(0, x);
      e.run(env);
      // the mean is still to be taken along dp
      for (int r = 0; r < D * T; ++r) {
        if (rank.index() == r && rank.coordinate(1) == 0) all[static_cast<std::size_t>(at) - 1] += e.loss() / D;
        rank.barrier();
      }
    }
  });
  return all;
}
TEST_CASE("values: a module that writes what its style hands it trains alike on every mesh") {
  const numbers want = losses<1, 1, false>();
  const auto check = [&](const numbers& have) {
    REQUIRE(have.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(have[i] == doctest::Approx(want[i]).epsilon(1e-12));
  };
  CHECK(want[3] < want[0]);
  check(losses<1, 1, true>());
  check(losses<2, 1, true>());
  check(losses<2, 2, true>());
}

}  // namespace
