// SPDX-License-Identifier: Apache-2.0
// What a step that takes its batch in pieces does beside its gradients: which rows a piece has, metrics, random draws, buffers.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <running_norm.hpp>
#include <small_models.hpp>

namespace {

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct rep : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};

sw::step_env numbers(int s, double lr) {
  sw::step_env env;
  env.seed = 11;
  env.step = s;
  env.lr = lr;
  env.momentum = 0.9;
  return env;
}

// --- rows -------------------------------------------------------------------------------------------------------------

// The first column of what the task is given, and its sum.
template <int Rows, class... Placements>
struct shows_rows {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<Rows, 10>, Placements...>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    return sw::outputs(sw::named<"loss">(sw::mean(m(x))), sw::named<"first">(sw::select<1, 0>(x)),
                       sw::named<"total">(sw::sum(x)));
  }
};

// Rows numbered from 0, in pieces: [piece][row of the piece].
template <class Mesh, int Pieces, int Rows, class Plan, class... Placements>
std::vector<double> rows_of_pieces(std::vector<double>& totals) {
  using step = sw::train_step<two_linears, shows_rows<Rows, Placements...>, Plan, Mesh, sw::sgd<>, sw::pipeline<>, double>;
  std::vector<double> whole(Rows, -1), x(10 * Rows, 0);
  for (std::size_t i = 0; i < Rows; ++i) x[10 * i] = static_cast<double>(i);
  sw::launch<Mesh>([&](auto& rank) {
    sw::executor<step> ex(rank, sw::executor_checks::poison);
    ex.initialise(5);
    ex.set_input(0, x);
    ex.run(numbers(1, 0));
    const auto first = ex.template output<"first">();
    const auto& at = first.layout;
    for (std::int64_t k = 0; k < Pieces; ++k)
      for (std::int64_t i = 0; i < at.ext[1]; ++i)
        whole[static_cast<std::size_t>(k * (Rows / Pieces) + at.origin[1] + i)] =
            first.data[static_cast<std::size_t>(k * at.str[0] + i * at.str[1])];
    if (rank.index() != 0) return;
    const auto total = ex.template output<"total">();
    totals.assign(total.data.begin(), total.data.end());
  });
  return whole;
}
// Law: row j of rank r in piece k is row r (rows of a rank) + k (rows of a rank / pieces) + j of the batch.
template <class Mesh, int Pieces, int Rows, int Ranks, class Plan, class... Placements>
void check_rows() {
  constexpr int piece = Rows / (Ranks * Pieces);
  std::vector<double> totals, want, sums(Pieces);
  for (int k = 0; k < Pieces; ++k)
    for (int r = 0; r < Ranks; ++r)
      for (int j = 0; j < piece; ++j) {
        want.push_back(r * (Rows / Ranks) + k * piece + j);
        sums[static_cast<std::size_t>(k)] += want.back();
      }
  CHECK((rows_of_pieces<Mesh, Pieces, Rows, Plan, Placements...>(totals)) == want);
  CHECK(totals == sums);
}

TEST_CASE("piece k has the k-th rows of each rank, and outputs have one dim more") {
  using rows = sw::shard<0>;
  check_rows<sw::mesh<dp<1>>, 3, 6, 1, sw::plan<sw::accumulate<3>>, sw::replicate>();
  check_rows<sw::mesh<dp<1>>, 20, 20, 1, sw::plan<sw::accumulate<20>>, sw::replicate>();
  check_rows<sw::mesh<dp<2>>, 2, 12, 2, sw::plan<sw::data_parallel<dp<2>>, sw::accumulate<2>>, sw::on<dp<2>, rows>>();
  check_rows<sw::mesh<dp<3>>, 4, 24, 3, sw::plan<sw::data_parallel<dp<3>>, sw::accumulate<4>>, sw::on<dp<3>, rows>>();
  using both = sw::plan<sw::data_parallel<rep<2>>, sw::data_parallel<dp<2>>, sw::accumulate<2>>;
  check_rows<sw::mesh<rep<2>, dp<2>>, 2, 8, 4, both, sw::on<rep<2>, rows>, sw::on<dp<2>, rows>>();
}

// --- draws ------------------------------------------------------------------------------------------------------------

template <int Rows>
struct dropped_sum {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<Rows, 10>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = sw::dropout(m(x), 0.5);
    return sw::outputs(sw::named<"loss">(sw::mean(y * y)), sw::named<"sum">(sw::sum(y)));
  }
};

TEST_CASE("each piece draws numbers of its own") {
  using one = sw::mesh<dp<1>>;
  using step =
      sw::train_step<two_linears, dropped_sum<16>, sw::plan<sw::accumulate<4>>, one, sw::sgd<>, sw::pipeline<>, double>;
  std::vector<double> x(160);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i % 40));  // the same rows in all pieces
  sw::launch<one>([&](auto& rank) {
    sw::executor<step> ex(rank);
    ex.initialise(5);
    ex.set_input(0, x);
    ex.run(numbers(1, 0.1));
    const auto sum = ex.template output<"sum">();
    for (std::size_t a = 0; a < 4; ++a)
      for (std::size_t b = 0; b < a; ++b) CHECK(sum.data[a] != sum.data[b]);
  });
}

// --- buffers ----------------------------------------------------------------------------------------------------------

namespace running = test::running;

// Running statistics behind a step on all rows in Pieces, and behind as many steps on their rows one after the other that update no
// parameter.
template <int D, int N, int Rows>
void check_buffers() {
  constexpr int pieces = 2;
  using task = running::fit<double, D, Rows>;
  using part = running::fit<double, D, Rows / pieces>;
  using mesh = running::mesh<D, N>;
  using model = running::models<running::dp<D>>;
  using split = running::split_plan<D, N>;
  using accumulating = sw::plan<sw::data_parallel<running::dp<D>>, sw::at<"up", sw::colwise<running::tp<N>>>,
                                sw::at<"norm", running::split_features<running::tp<N>>>,
                                sw::at<"down", sw::rowwise<running::tp<N>>>, sw::accumulate<pieces>>;
  using step = sw::train_step<model::template net_of, task, accumulating, mesh, sw::sgd<>, sw::pipeline<>, double>;
  using alone = sw::train_step<model::template net_of, part, split, mesh, sw::sgd<>, sw::pipeline<>, double>;
  const std::vector<double> x = running::numbers<double>(Rows * 5, 3), t = running::numbers<double>(Rows * 3, 4);
  // the rows of piece k, rank by rank
  const auto piece_of = [](const std::vector<double>& all, int k, int width) {
    std::vector<double> v;
    const int of_rank = Rows / D, of_piece = of_rank / pieces;
    for (int r = 0; r < D; ++r)
      for (int i = 0; i < of_piece * width; ++i)
        v.push_back(all[static_cast<std::size_t>((r * of_rank + k * of_piece) * width + i)]);
    return v;
  };
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> together(rank, sw::executor_checks::poison);
    sw::executor<alone> apart(rank);
    together.initialise(5);
    apart.initialise(5);
    together.set_input(0, x);
    together.set_input(1, t);
    together.run(numbers(1, 0));
    for (int k = 0; k < pieces; ++k) {
      apart.set_input(0, piece_of(x, k, 5));
      apart.set_input(1, piece_of(t, k, 3));
      apart.run(numbers(1 + k, 0));
    }
    for (int i = 0; i < together.buffer_count(); ++i) {
      std::vector<double> a(6), b(6);
      together.gather_buffer(i, a);
      apart.gather_buffer(i, b);
      if (rank.index() != 0) continue;
      for (std::size_t k = 0; k < a.size(); ++k) CHECK(a[k] == doctest::Approx(b[k]).epsilon(1e-13));
      CHECK(std::abs(a[0] - (i == 0 ? 0 : 1)) > 1e-3);  // it was written
    }
  });
}

TEST_CASE("buffers are written once for each piece, in order") {
  check_buffers<1, 1, 8>();
  check_buffers<2, 1, 8>();
  check_buffers<2, 2, 12>();
}

}  // namespace
