// SPDX-License-Identifier: Apache-2.0
// Gradients of an eager model that are added up over pieces of a batch and reduced once are those of the compiled step that takes the
// batch in pieces.
#include <shardwise/module/add_gradients.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<6, 10>, up), (sw::linear<10, 4>, down), (sw::linear<4, 4>, unused));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(x))); }
};

template <int D, int Rows, int Over>
struct fit {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<Rows, 6>, sw::on<dp<D>, sw::shard<0>>>,
                            sw::input_tensor<double, sw::shape<Rows, 4>, sw::on<dp<D>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x, const auto& t) const {
    const auto apart = m(x) - t;
    return sw::scale(sw::mean(apart * apart), 1.0 / Over);
  }
};

std::vector<double> some(std::size_t n, double from) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = std::sin(from + 0.37 * static_cast<double>(i));
  return v;
}
sw::step_env numbers(int s) {
  sw::step_env env;
  env.seed = 5;
  env.step = s;
  env.lr = 0.05;
  env.momentum = 0.9;
  env.max_norm = 0.5;
  return env;
}

// Rows of piece k of every rank, of `width` numbers.
std::vector<double> piece(const std::vector<double>& all, int ranks, int pieces, int k, std::size_t width) {
  const std::size_t of_rank = all.size() / width / static_cast<std::size_t>(ranks),
                    rows = of_rank / static_cast<std::size_t>(pieces);
  std::vector<double> v;
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r)
    for (std::size_t i = 0; i < rows * width; ++i)
      v.push_back(all[(r * of_rank + static_cast<std::size_t>(k) * rows) * width + i]);
  return v;
}

template <int D>
void check() {
  constexpr int pieces = 3, rows = 6 * D;
  using mesh = sw::mesh<dp<D>>;
  using plan = sw::plan<sw::data_parallel<dp<D>>>;
  using step = sw::train_step<net, fit<D, rows, 1>, sw::plan<sw::data_parallel<dp<D>>, sw::accumulate<pieces>>, mesh,
                              sw::clip_norm<sw::sgd<true>>, sw::pipeline<>, double>;
  sw::launch<mesh>([](auto& rank) {
    using split = sw::on<dp<D>, sw::shard<0>>;
    sw::executor<step> program(rank);
    program.initialise(5);
    sw::eager on(rank);
    sw::bind_eager<net, plan, mesh, double> model{};
    sw::initialise(model, on, 5);
    sw::eager_optimizer<sw::clip_norm<sw::sgd<true>>, decltype(model)> optimizer;
    for (int s = 1; s <= 3; ++s) {
      const auto x = some(6 * rows, s), t = some(4 * rows, 10.5 * s);
      program.set_input(0, x);
      program.set_input(1, t);
      program.run(numbers(s));
      sw::gradients_of<decltype(model)> sum{};
      double loss = 0;
      for (int k = 0; k < pieces; ++k) {
        const auto xk =
            sw::dtensor_of<double, sw::shape<rows / pieces, 6>, mesh, split>::distribute(on, piece(x, D, pieces, k, 6));
        const auto tk =
            sw::dtensor_of<double, sw::shape<rows / pieces, 4>, mesh, split>::distribute(on, piece(t, D, pieces, k, 4));
        const auto one = sw::value_and_grad(fit<D, rows / pieces, pieces>{})(model, xk, tk);
        static_assert(D == 1 || std::remove_cvref_t<decltype(one.gradients.up.weight)>::sp.place[0].is_partial());
        sw::add_gradients_(sum, one.gradients);
        loss += one.loss.item();
      }
      CHECK(!sum.unused.weight.has_value());
      CHECK(std::abs(loss - program.loss()) <= 1e-13);
      optimizer.step(model, sum, numbers(s));
    }
    sw::for_each_parameter(model, [&](const std::string& path, auto& p) {
      const auto theirs = program.parameter(program.parameter_index(path));
      const auto block = p.to_local();
      REQUIRE(block.data.size() == theirs.size());
      for (std::size_t i = 0; i < theirs.size(); ++i) CHECK(std::abs(block.data[i] - theirs[i]) <= 1e-13);
    });
  });
}

TEST_CASE("eager gradients of pieces, added up, are reduced once by the optimizer") {
  check<1>();
  check<2>();
  check<4>();
}

}  // namespace
