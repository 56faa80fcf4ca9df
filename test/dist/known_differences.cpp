// SPDX-License-Identifier: Apache-2.0
// Rules that are odd or wrong elsewhere, each against the result of one device; and what others refuse that is right.
#include <doctest/doctest.h>

#include <algorithm>
#include <both_ways.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <set>
#include <shardwise/module/hana.hpp>
#include <shardwise/propagation/pytorch.hpp>
#include <test_data.hpp>

namespace {

using namespace test;
using sw::on;
using sw::reduction;

template <int D>
using S = sw::shard<D>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
using Max = sw::partial<reduction::max>;
using Avg = sw::partial<reduction::avg>;
using numbers = std::vector<double>;

template <int N>
struct ring : sw::axis<N> {};
struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct one : sw::axis<1> {};
template <int N>
using line = sw::mesh<ring<N>>;
template <class Shape, class Mesh, class... Placements>
using tensor = sw::dtensor_of<double, Shape, Mesh, Placements...>;

numbers counted(std::int64_t n, double from = 0) {
  numbers v(static_cast<std::size_t>(n));
  for (double& x : v) x = from++;
  return v;
}
template <class X>
numbers whole(const X& x) {
  return values_of(sw::contiguous(x).full_tensor().to_local());
}

// A rank's share of v: whatever, as long as all of them sum to it.
template <class X, class Rank>
X shares(const sw::eager<Rank>& on, const numbers& v, int rank, int ranks) {
  numbers mine(v.size());
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double other = static_cast<double>((i * 5 + 3) % 7) - 3;
    mine[i] = rank > 0 ? other * rank : v[i] - other * ranks * (ranks - 1) / 2;
  }
  return X::from_local(on, mine);
}

struct plus_ten {
  constexpr auto operator()(const auto& x) const { return x + 10; }
};
struct squared {
  constexpr auto operator()(const auto& x) const { return x * x; }
};
struct rectified {
  constexpr auto operator()(const auto& x) const { return sw::relu(x); }
};
struct summed {
  constexpr auto operator()(const auto& x) const { return sw::sum(x); }
};
struct tail {
  constexpr auto operator()(const auto& x) const { return sw::slice<0, 2, 3>(x); }
};
struct dropped {
  constexpr auto operator()(const auto& x) const { return sw::dropout(x, 0.5); }
};
struct mean_of {
  constexpr auto operator()(const auto& x) const { return sw::mean(x); }
};
struct own_blocks {
  constexpr auto operator()(const auto& x) const { return sw::to_local(x); }
};

// Written, without a redistribution, none of these compiles.
template <class Placement>
constexpr bool refuses(sw::op_code op, const sw::op_attr& a, int operands) {
  constexpr sw::spec s = sw::spec_of<double, sw::shape<6>, line<3>, Placement>::value;
  const sw::spec in[] = {s, s};
  return static_cast<bool>(sw::infer(op, a, in, operands).error);
}
static_assert(refuses<P>(sw::op_code::mul, {}, 2) && refuses<P>(sw::op_code::relu, {}, 1));
static_assert(refuses<Max>(sw::op_code::sum, {{1, 0, 0, 0, 0, 0}}, 1) &&
              refuses<Avg>(sw::op_code::sum, {{1, 0, 0, 0, 0, 0}}, 1) &&
              !refuses<P>(sw::op_code::sum, {{1, 0, 0, 0, 0, 0}}, 1));

// F of partial sums, in implicit mode: what one device gives.
template <int N, class F>
void check_partial(const numbers& given, const numbers& wanted) {
  using X = tensor<sw::shape<6>, line<N>, P>;
  sw::launch<line<N>>([&](auto& rank) {
    sw::eager on(rank);
    const X x = shares<X>(on, given, rank.index(), N);
    const auto [y] = both_ways<sw::implicitly<F>>(rank, x);
    CHECK(whole(y) == wanted);
  });
}
template <class F>
void check_partials(const numbers& given, const numbers& wanted) {
  check_partial<1, F>(given, wanted);
  check_partial<2, F>(given, wanted);
  check_partial<3, F>(given, wanted);
  check_partial<4, F>(given, wanted);
}

// --- one_rank_axes ----------------------------------------------------------------------------------------------------

template <class... P0>
constexpr sw::spec matrix = sw::spec_of<double, sw::shape<4, 4>, sw::mesh<one, tp>, P0...>::value;
constexpr sw::op_attr product{{0x21, 0x32, 0x31, 0, 0, 0}};
constexpr bool keeps_every_axis() {
  const sw::spec in[] = {matrix<S<1>, S<1>>, matrix<S<0>, R>};
  const sw::strategy s = sw::choose_strategy(sw::op_code::einsum, product, in, 2);
  const sw::outcome o = sw::infer(sw::op_code::einsum, product, s.target, 2);
  return s.found && s.target[0].axes == 2 && !o.error && o.out.axes == 2 && o.out.place[1] == sw::partial_value();
}
static_assert(keeps_every_axis());

// --- right_to_left_shards: eight rows, the second axis outermost ------------------------------------------------------

using reversed = sw::spec_of<double, sw::shape<8>, sw::mesh<tp, dp>, S<0>, S<0>>;
constexpr bool begins(int d, int t, std::int64_t row) {
  const int c[] = {t, d};
  const sw::interval v = sw::local_interval(reversed::value, 0, c);
  return v.begin == row && v.size == 2;
}
static_assert(begins(0, 0, 0) && begins(0, 1, 4) && begins(1, 0, 2) && begins(1, 1, 6));
// What the second axis' rank holds in all: a chunk of each of the first axis' pieces.
template <int N, int Pieces>
constexpr bool holds(int rank, std::initializer_list<std::int64_t> wanted) {
  constexpr sw::spec s = sw::spec_of<double, sw::shape<N>, sw::mesh<ring<Pieces>, dp>, S<0>, S<0>>::value;
  const auto* next = wanted.begin();
  for (int piece = 0; piece < Pieces; ++piece) {
    const int c[] = {piece, rank};
    const sw::interval v = sw::local_interval(s, 0, c);
    for (std::int64_t i = 0; i < v.size; ++i)
      if (next == wanted.end() || *next++ != v.begin + i) return false;
  }
  return next == wanted.end();
}
static_assert(holds<8, 2>(0, {0, 1, 4, 5}) && holds<8, 2>(1, {2, 3, 6, 7}));
static_assert(holds<7, 2>(0, {0, 1, 4, 5}) && holds<7, 2>(1, {2, 3, 6}));
static_assert(holds<16, 4>(0, {0, 1, 4, 5, 8, 9, 12, 13}) && holds<16, 4>(1, {2, 3, 6, 7, 10, 11, 14, 15}));
struct four : sw::axis<4> {};
struct three : sw::axis<3> {};
// axes of 4, 3, 2 ranks, which shard in the order third, first, second
constexpr bool third_first() {
  constexpr sw::spec s = sw::spec_of<double, sw::shape<48>, sw::mesh<tp, four, three>, S<0>, S<0>, S<0>>::value;
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 2; ++c) {
        const int at[] = {c, a, b};
        const sw::interval v = sw::local_interval(s, 0, at);
        if (v.size != 2 || v.begin != 24 * c + 6 * a + 2 * b) return false;
      }
  return true;
}
static_assert(third_first());

// --- path_atoms, tp_not_inner -------------------------------------------------------------------------------------------

template <class Bound = sw::unbound>
struct inner : sw::module<inner<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(inner, (sw::linear<4, 6, sw::child<Bound, 0>>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
template <class Bound = sw::unbound>
struct outer : sw::module<outer<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(outer, (inner<sw::child<Bound, 0>>, mlp), (sw::linear<6, 4, sw::child<Bound, 1>>, net));
  constexpr auto forward(const auto& x) const { return net(mlp(x)); }
};
// tensor parallelism on the outer axis, the batch on the inner one
using grid = sw::mesh<tp, dp>;
using one_path = sw::plan<sw::data_parallel<dp>, sw::at<"mlp.net", sw::colwise<tp, 1, sw::output<R>>>>;
template <class Plan>
constexpr sw::placement place_of_deep() {
  return std::remove_cvref_t<decltype(std::declval<sw::bind<outer, Plan, grid>>().mlp.net.weight)>::sp.place[0];
}
template <class Plan>
constexpr sw::placement place_of_shallow() {
  return std::remove_cvref_t<decltype(std::declval<sw::bind<outer, Plan, grid>>().net.weight)>::sp.place[0];
}
static_assert(place_of_deep<one_path>() == sw::shard_value(0));
static_assert(place_of_shallow<one_path>() == sw::replicate_value());

// --- negative_layouts: the last dim, declared from the end, and written

template <class From>
using declares = sw::bind<inner, sw::plan<sw::at<"net", sw::prepare_input<tp, R, From>>>, sw::mesh<tp>>;
using by_columns = sw::sym<sw::spec_of<float, sw::shape<8, 4>, sw::mesh<tp>, S<1>>::value, sw::mesh<tp>>;
static_assert(decltype(declares<S<-1>>{}(by_columns{}))::sp == decltype(declares<S<1>>{}(by_columns{}))::sp);
static_assert(decltype(declares<S<-1>>{}(by_columns{}))::sp.place[0] == sw::replicate_value());

template <class Placement>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<8, 4>, Placement>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::sum(m(x)); }
};
template <class Mesh, class Plan, class Placement>
double loss_after_steps() {
  using step = sw::train_step<outer, task<Placement>, Plan, Mesh, sw::sgd<>, sw::pipeline<>, double>;
  double loss = 0;
  sw::launch<Mesh>([&](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(3);
    run.set_input(0, counted(32, -7));
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 3; ++env.step) run.run(env);
    if (rank.index() == 0) loss = run.loss();
  });
  return loss;
}

}  // namespace

TEST_CASE("known differences: partial_plus_number") { check_partials<plus_ten>(counted(6, -2), counted(6, 8)); }

TEST_CASE("known differences: partial_times_partial, and an activation of partial sums") {
  check_partials<squared>({-2, -1, 0, 1, 2, 3}, {4, 1, 0, 1, 4, 9});
  check_partials<rectified>({-2, -1, 0, 1, 2, 3}, {0, 0, 0, 1, 2, 3});
}

TEST_CASE("known differences: sum_of_maximum") {
  const auto check = []<class Placement>(Placement*) {
    using X = tensor<sw::shape<4>, line<3>, Placement>;
    sw::launch<line<3>>([](auto& rank) {
      sw::eager on(rank);
      numbers mine(4);  // maxima 6, 9, 3, 4 and means 4, 5, 1, 2
      const double rows[3][4] = {{6, 1, -2, 4}, {2, 9, 2, 0}, {4, 5, 3, 2}};
      std::copy(rows[rank.index()], rows[rank.index()] + 4, mine.begin());
      const auto [y] = both_ways<sw::implicitly<summed>>(rank, X::from_local(on, mine));
      CHECK(whole(y) == numbers{std::is_same_v<Placement, Max> ? 22.0 : 12.0});
    });
  };
  check(static_cast<Max*>(nullptr));
  check(static_cast<Avg*>(nullptr));
}

// 7 rows over 2, 3 and 4 ranks: the mean of the ranks' means would be another number
TEST_CASE("known differences: nll_uneven") {
  const auto check = []<int N>(line<N>*) {
    sw::launch<line<N>>([](auto& rank) {
      sw::eager on(rank);
      const auto logits = tensor<sw::shape<7, 3>, line<N>, S<0>>::distribute(on, counted(21, -3));
      const auto target = sw::dtensor_of<std::int32_t, sw::shape<7>, line<N>, S<0>>::distribute(
          on, std::vector<std::int32_t>{2, 1, 0, 0, 1, 2, 2});
      // logits grow by one from class to class: log(1 + e + e^2) - class
      const double wanted = std::log(1 + std::exp(1.0) + std::exp(2.0)) - (2 + 1 + 0 + 0 + 1 + 2 + 2) / 7.0;
      CHECK(sw::cross_entropy(logits, target).item() == doctest::Approx(wanted).epsilon(1e-14));
      const auto x = tensor<sw::shape<7>, line<N>, S<0>>::distribute(on, counted(7));
      const auto [m] = both_ways<mean_of>(rank, x);
      CHECK(m.item() == doctest::Approx(3).epsilon(1e-15));
    });
  };
  check(static_cast<line<2>*>(nullptr));
  check(static_cast<line<3>*>(nullptr));
  check(static_cast<line<4>*>(nullptr));
}

TEST_CASE("known differences: split_partial") {
  using X = tensor<sw::shape<6>, line<4>, P>;
  sw::launch<line<4>>([](auto& rank) {
    sw::eager on(rank);
    const X x = shares<X>(on, counted(6, 1), rank.index(), 4);
    rank.reset_counts();
    const auto [y] = both_ways<tail>(rank, x);
    static_assert(decltype(y)::sp.place[0] == sw::partial_value());
    CHECK(whole(y) == numbers{3, 4, 5});
  });
}

TEST_CASE("known differences: random_partial, random_shards") {
  numbers mask;
  sw::launch<line<1>>([&](auto& rank) {
    sw::eager on(rank);
    on.start_step(11, 1);
    mask = whole(dropped{}(tensor<sw::shape<40>, line<1>, R>::ones(on)));
  });
  CHECK(std::count(mask.begin(), mask.end(), 0.0) > 5);
  CHECK(std::count(mask.begin(), mask.end(), 2.0) > 5);
  const numbers given = counted(40, 1);
  numbers wanted = given;
  for (std::size_t i = 0; i < 40; ++i) wanted[i] *= mask[i];
  sw::launch<line<4>>([&](auto& rank) {
    sw::eager on(rank);
    using X = tensor<sw::shape<40>, line<4>, P>;
    on.start_step(11, 1);
    const auto y = dropped{}(shares<X>(on, given, rank.index(), 4));
    static_assert(decltype(y)::sp.place[0] == sw::partial_value());
    CHECK(whole(y) == wanted);
    // two elements a rank: no two draw the same, as the parameters of a single rank do not
    using W = tensor<sw::shape<8>, line<4>, S<0>>;
    const numbers w = whole(W::initial(on, sw::init_kind::uniform, 1, 5, "w"));
    const numbers alone = whole(tensor<sw::shape<8>, line<4>, R>::initial(on, sw::init_kind::uniform, 1, 5, "w"));
    CHECK(w == alone);
    CHECK(std::set<double>(w.begin(), w.end()).size() == 8);
  });
}

// The blocks' sum counts each rank's share once, whole: its gradient is one everywhere, not one for each rank.
TEST_CASE("known differences: to_local_of_partial") {
  using X = tensor<sw::shape<6>, line<3>, P>;
  sw::launch<line<3>>([](auto& rank) {
    sw::eager on(rank);
    const X x = shares<X>(on, counted(6), rank.index(), 3);
    rank.reset_counts();
    const auto [y, dx] = gradients_both_ways<own_blocks, 0>(rank, x);
    static_assert(decltype(dx)::sp.place[0] == sw::reduced_value());
    CHECK(values_of(dx.to_local()) == numbers(6, 1));
    CHECK(values_of(y.to_local()) == values_of(x.to_local()));
  });
}

TEST_CASE("known differences: path_atoms, tp_not_inner") {
  const double grid_loss = loss_after_steps<grid, one_path, on<dp, S<0>>>();
  const double single = loss_after_steps<sw::mesh<one>, sw::plan<>, on<one, R>>();
  CHECK(single != 0);
  CHECK(grid_loss == doctest::Approx(single).epsilon(1e-12));
}

TEST_CASE("misuse elsewhere: distribute_bad_placement, double_shard_dim_map") {
  using mesh = sw::mesh<dp, tp>;
  const numbers v = counted(15, 1);
  const auto check = [&]<class... Placements>(sw::grad<Placements...>*) {
    sw::launch<mesh>([&](auto& rank) {
      sw::eager on(rank);
      CHECK(whole(tensor<sw::shape<5, 3>, mesh, Placements...>::distribute(on, v)) == v);
    });
  };
  check(static_cast<sw::grad<P, S<0>>*>(nullptr));
  check(static_cast<sw::grad<P, P>*>(nullptr));
  check(static_cast<sw::grad<Max, R>*>(nullptr));
  check(static_cast<sw::grad<Avg, S<1>>*>(nullptr));
  check(static_cast<sw::grad<sw::partial<reduction::product>, R>*>(nullptr));
  check(static_cast<sw::grad<S<0>, S<0>>*>(nullptr));
  check(static_cast<sw::grad<S<1>, S<1>>*>(nullptr));
}

TEST_CASE("known differences: every row of the table has its test") {
  std::set<std::string> names;
  for (const sw::known_difference& d : sw::known_differences) {
    CAPTURE(d.name);
    CHECK(names.insert(d.name).second);
    CHECK(std::strlen(d.pytorch) > 0);
    CHECK(std::strlen(d.here) > 0);
    std::ifstream file(std::string(SHARDWISE_TEST_DATA "/../") + d.test);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CHECK(text.size() > 0);
    if (std::string(d.test) == "dist/known_differences.cpp") CHECK(text.find(d.name) != std::string::npos);
  }
  CHECK(names.size() > 20);
}
