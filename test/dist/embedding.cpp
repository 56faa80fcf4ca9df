// SPDX-License-Identifier: Apache-2.0
// A table sharded by rows: ranks look up what they own and zeros add up to the rows; forward and gradient are those of one
// device to the bit, for tables that the ranks do not divide, in every split order, and as a module's row-wise style.
#include <doctest/doctest.h>

#include <both_ways.hpp>
#include <shardwise/module/layers.hpp>

namespace {

using namespace test;
using sw::transition;

using R = sw::replicate;
using U = sw::reduced;
template <int D, int B = 1>
using S = sw::shard<D, B>;

template <int N>
struct tp : sw::axis<N> {};
struct dp : sw::axis<2> {};
template <int N>
using line = sw::mesh<tp<N>>;
using grid = sw::mesh<dp, tp<3>>;
using square = sw::mesh<dp, tp<2>>;

constexpr std::int64_t width = 3;
// Small integers, exact in any order of sums.
double table_at(std::int64_t i) { return static_cast<double>(i * 7 % 11 - 5); }
double weight_at(std::int64_t i) { return static_cast<double>(i * 5 % 7 - 2); }
template <int Rows>
std::int32_t index_at(std::int64_t i) {
  return static_cast<std::int32_t>((i * i + 3 * i + 1) % Rows);
}

template <class X, class F>
X filled(const auto& on, F&& f) {
  std::vector<typename X::element> whole;
  for (std::int64_t i = 0; i < sw::numel(X::sp); ++i) whole.push_back(static_cast<typename X::element>(f(i)));
  return X::distribute(on, whole);
}

// Summed over the axes that share the rows, and weighed, so that every row has a gradient of its own.
template <class Mesh, class... To>
struct looked_up;
template <class... Axis, class... To>
struct looked_up<sw::mesh<Axis...>, To...> {
  constexpr auto operator()(const auto& table, const auto& index, const auto& w) const {
    return sw::redistribute<sw::on<Axis, To>...>(sw::embedding(table, index)) * w;
  }
};

template <class... P>
struct list {};

template <int Rows, class Mesh, class Table, class Index, class Result>
struct rows;
template <int Rows, class Mesh, class... T, class... I, class... Y>
struct rows<Rows, Mesh, list<T...>, list<I...>, list<Y...>> {
  static constexpr std::int64_t count = 7;
  using table_type = sw::dtensor_of<double, sw::shape<Rows, width>, Mesh, T...>;
  using index_type = sw::dtensor_of<std::int32_t, sw::shape<count>, Mesh, I...>;
  using weight_type = sw::dtensor_of<double, sw::shape<count, width>, Mesh, Y...>;

  static void check() {
    double expected[Rows * width]{};
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t k = 0; k < width; ++k) expected[index_at<Rows>(i) * width + k] += weight_at(i * width + k);
    sw::launch<Mesh>([&](auto& rank) {
      sw::eager on(rank);
      const auto table = filled<table_type>(on, table_at);
      const auto index = filled<index_type>(on, index_at<Rows>);
      const auto w = filled<weight_type>(on, weight_at);
      const auto [y, dtable] = gradients_both_ways<looked_up<Mesh, Y...>, 0>(rank, table, index, w);
      const auto all = y.full_tensor();
      std::int64_t i = 0;
      for (const double v : all.to_local().data) {
        const std::int64_t at = index_at<Rows>(i / width) * width + i % width;
        CHECK(v == table_at(at) * weight_at(i));
        ++i;
      }
      static_assert(std::remove_cvref_t<decltype(dtable)>::sp == sw::contiguous(sw::dual(table_type::sp)));
      const auto gradient = dtable.full_tensor();
      i = 0;
      for (const double v : gradient.to_local().data) CHECK(v == expected[i++]);
      CHECK(i == Rows * width);
    });
  }
};
template <int Rows, int N>
void on_line() {
  rows<Rows, line<N>, list<S<0>>, list<R>, list<R>>::check();
}

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::embedding_table<7, width>, table));
  constexpr auto forward(const auto& index) const { return table(index); }
};
template <class Axis, class Placement>
struct task {
  using inputs = sw::inputs<sw::input_tensor<std::int32_t, sw::shape<6>, sw::on<Axis, Placement>>,
                            sw::input_tensor<double, sw::shape<6, width>>>;
  constexpr auto operator()(const auto& m, const auto& index, const auto& w) const {
    return sw::sum(sw::redistribute<Axis, R>(m(index)) * w);
  }
};

// The table after one step of SGD with rate 1.
template <class Mesh, class Plan, class Placement>
std::vector<double> stepped(int layout_rows) {
  using axis = tp<Mesh::size>;
  using step = sw::train_step<model, task<axis, Placement>, Plan, Mesh, sw::sgd<>, sw::pipeline<>, double>;
  static_assert(!sw::verify(step::program));
  std::vector<double> whole(7 * width);
  sw::launch<Mesh>([&](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> run(rank, sw::executor_checks::poison);
    std::vector<double> table, w;
    std::vector<std::int32_t> index;
    for (std::int64_t i = 0; i < 7 * width; ++i) table.push_back(table_at(i));
    for (std::int64_t i = 0; i < 6 * width; ++i) w.push_back(weight_at(i));
    for (std::int64_t i = 0; i < 6; ++i) index.push_back(index_at<7>(i));
    run.set_parameter(0, table);
    run.set_input(0, index);
    run.set_input(1, w);
    if (rank.index() == 0) CHECK(run.parameter_layout(0).ext[0] == layout_rows);
    sw::step_env env;
    env.lr = 1;
    env.step = 1;
    run.run(env);
    run.gather_parameter(0, whole);
  });
  return whole;
}

}  // namespace

// vocab 5 on two ranks (3 + 2 rows), indices 0 2 3 4: each rank's rows, and zeros for the other's
TEST_CASE("row-wise embedding: what each rank holds") {
  using mesh = line<2>;
  using table_type = sw::dtensor_of<double, sw::shape<5, 1>, mesh, S<0>>;
  using index_type = sw::dtensor_of<std::int32_t, sw::shape<4>, mesh, R>;
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto table = filled<table_type>(on, [](std::int64_t i) { return 10 + i; });
    const auto index = filled<index_type>(on, [](std::int64_t i) { return i == 0 ? 0 : i + 1; });
    const auto y = sw::embedding(table, index);
    static_assert(sw::placement_on<decltype(y), tp<2>> == sw::partial_value());
    const double held[2][4] = {{10, 12, 0, 0}, {0, 0, 13, 14}};
    for (std::int64_t i = 0; i < 4; ++i) CHECK(y.to_local()(i, 0) == held[rank.index()][i]);
    const double whole[4] = {10, 12, 13, 14};
    const auto all = sw::redistribute<tp<2>, R>(y);
    for (std::int64_t i = 0; i < 4; ++i) CHECK(all.to_local()(i, 0) == whole[i]);
  });
}

TEST_CASE("row-wise embedding: tables that the ranks do not divide") {
  on_line<7, 3>();
  on_line<7, 4>();
  on_line<5, 4>();  // 2, 2, 1, 0
  on_line<2, 3>();
  on_line<1, 4>();
}

TEST_CASE("row-wise embedding: blocks, two axes, split orders, sharded indices and results") {
  rows<12, line<2>, list<S<0, 4>>, list<R>, list<S<0>>>::check();  // 8 and 4 rows
  rows<7, grid, list<U, S<0>>, list<S<0>, R>, list<S<0>, R>>::check();
  rows<7, grid, list<S<0>, S<0>>, list<R, R>, list<R, S<1>>>::check();
  rows<7, square, list<sw::strided_shard<0, 2>, S<0>>, list<R, R>, list<S<0>, R>>::check();
  rows<7, square, list<S<1>, S<0>>, list<R, R>, list<S<1>, R>>::check();
}

TEST_CASE("row-wise embedding: as a module's style") {
  using P = sw::at<"table", sw::rowwise<tp<3>>>;
  const auto one = stepped<line<1>, sw::plan<>, R>(7);
  CHECK(stepped<line<3>, sw::plan<P>, R>(3) == one);
  CHECK(stepped<line<4>, sw::plan<sw::at<"table", sw::rowwise<tp<4>>>>, R>(2) == one);
  // gathered indices, a scattered result, blocks of rows
  CHECK(stepped<line<3>, sw::plan<sw::at<"table", sw::rowwise<tp<3>, 1, sw::input<S<0>>, sw::output<S<-1>>>>>, S<0>>(3) ==
        one);
  CHECK(stepped<line<2>, sw::plan<sw::at<"table", sw::rowwise<tp<2>, 7>>>, R>(7) == one);
  using step = sw::forward_step<model, task<tp<3>, R>, sw::plan<P>, line<3>, sw::pipeline<>, double>;
  static_assert(collectives_of<step>() == in_order(transition::all_reduce));
}

TEST_CASE("row-wise embedding: an index outside the whole table is refused by every rank") {
  using mesh = line<2>;
  for (const int wrong : {-1, 5})
    CHECK_THROWS_WITH(sw::launch<mesh>([&](auto& rank) {
                        sw::eager on(rank);
                        const auto table = filled<sw::dtensor_of<double, sw::shape<5, 1>, mesh, S<0>>>(on, table_at);
                        const auto index = filled<sw::dtensor_of<std::int32_t, sw::shape<2>, mesh, R>>(
                            on, [&](std::int64_t i) { return i == 0 ? 4 : wrong; });
                        sw::embedding(table, index);
                      }),
                      doctest::Contains("is outside 0..4"));
}
