// SPDX-License-Identifier: Apache-2.0
// A rank without peers does what it does among peers that hold the same: blocks, bytes, the log of its collectives.
#include <both_ways.hpp>
#include <model_rank.hpp>
#include <models.hpp>

#include <algorithm>
#include <vector>

namespace {

using namespace test;

template <int N>
struct tp : sw::axis<N> {};
struct outer : sw::axis<2> {};
struct inner : sw::axis<3> {};
using R = sw::replicate;
using sw::reduction;
template <int D, std::int64_t Block = 1>
using S = sw::shard<D, Block>;
template <reduction Op = reduction::sum>
using P = sw::partial<Op>;

// The concept says what executors ask for; test/fail/rank_member.cpp is what is said of a member that is not there.
using two = sw::mesh<tp<2>>;
static_assert(sw::host_rank<sw::thread_rank<two>> && sw::host_rank<sw::fake_rank<two>>);
static_assert(!sw::backend_rank<two> && !sw::backend_rank<int>);
using device_rank = test::model_rank<two>;  // without collectives on the host
static_assert(sw::backend_rank<device_rank> && !sw::host_rank<device_rank> && sw::checked_rank<device_rank>::ok);

// Some values of a block.
std::vector<float> values(const sw::runtime::layout& l, int salt) {
  std::vector<float> v(static_cast<std::size_t>(l.numel()));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = 0.1F * static_cast<float>((i * 7 + static_cast<std::size_t>(salt) * 5) % 23) - 0.7F;
  return v;
}

// A block cut, or filled up with zeros, to other extents.
std::vector<float> fitted(const std::vector<float>& from, const sw::runtime::layout& lf, const sw::runtime::layout& lt) {
  std::vector<float> to(static_cast<std::size_t>(lt.numel()), 0);
  std::int64_t at[sw::max_rank]{};
  for (std::int64_t i = 0; i < lt.numel(); ++i) {
    std::int64_t offset = 0;
    bool both = true;
    for (int d = 0; d < lt.rank; ++d) {
      both = both && at[d] < lf.ext[d];
      offset += at[d] * lf.str[d];
    }
    if (both) to[static_cast<std::size_t>(i)] = from[static_cast<std::size_t>(offset)];
    for (int d = lt.rank - 1; d >= 0 && ++at[d] == lt.ext[d]; --d) at[d] = 0;
  }
  return to;
}

int checked = 0;

// The law of fake_rank, for the redistribution of X to the placement To on one axis, on every rank of the mesh.
template <class X, class Axis, class To>
void check_law() {
  using mesh = typename X::mesh_type;
  for (int q = 0; q < mesh::size; ++q) {
    const sw::runtime::layout mine = sw::runtime::local_layout(X::sp, mesh::coordinate(q).data());
    const std::vector<float> own = values(mine, q);
    std::vector<float> real, fake;
    sw::runtime::layout real_layout, fake_layout;
    std::int64_t real_bytes = -1;
    constexpr int axis = mesh::template index_of<Axis>;
    sw::launch<mesh>([&](auto& rank) {
      sw::eager on(rank);
      const auto theirs = sw::runtime::local_layout(X::sp, rank.coordinate().data());
      const auto y = sw::redistribute<Axis, To>(X::from_local(on, fitted(own, mine, theirs)));
      if (rank.index() != q) return;
      real = values_of(y.to_local());
      real_layout = y.to_local().layout;
      real_bytes = rank.bytes_written(axis);
    });
    sw::launch_fake<mesh>(q, [&](auto& rank) {
      sw::eager on(rank, sw::eager_checks::agree);
      rank.keep_log(true);
      const auto y = sw::redistribute<Axis, To>(X::from_local(on, own));
      fake = values_of(y.to_local());
      fake_layout = y.to_local().layout;
      CHECK(rank.bytes_written(axis) == real_bytes);
      const auto from = X::sp.place[axis], to = decltype(y)::sp.place[axis];
      const sw::transition t = sw::transition_of(from, to, Axis::size);
      if (sw::communicates(t)) CHECK(rank.log() == std::vector<sw::collective_record>{{t, axis, real_bytes}});
      else CHECK(rank.log().empty());
    });
    CHECK(fake.size() == real.size());
    if (const std::size_t n = std::min(fake.size(), real.size()); n > 0)
      CHECK(std::memcmp(fake.data(), real.data(), n * sizeof(float)) == 0);
    CHECK(sw::runtime::same_layout(fake_layout, real_layout));
    ++checked;
  }
}

template <int N, class Shape, class From>
using one_axis = sw::dtensor_of<float, Shape, sw::mesh<tp<N>>, From>;

template <int N, class Shape>
void check_pairs() {
  using axis = tp<N>;
  check_law<one_axis<N, Shape, P<>>, axis, R>();
  check_law<one_axis<N, Shape, P<>>, axis, S<0>>();
  check_law<one_axis<N, Shape, P<>>, axis, S<1>>();
  check_law<one_axis<N, Shape, S<0>>, axis, R>();
  check_law<one_axis<N, Shape, S<1>>, axis, R>();
  check_law<one_axis<N, Shape, S<0>>, axis, S<1>>();
  check_law<one_axis<N, Shape, S<1>>, axis, S<0>>();
  check_law<one_axis<N, Shape, R>, axis, S<0>>();
  check_law<one_axis<N, Shape, R>, axis, P<>>();
  check_law<one_axis<N, Shape, S<1>>, axis, P<>>();
}

template <int N>
void check_reductions() {
  using shape = sw::shape<5, 3>;
  check_law<one_axis<N, shape, P<reduction::avg>>, tp<N>, R>();
  check_law<one_axis<N, shape, P<reduction::avg>>, tp<N>, S<0>>();
  check_law<one_axis<N, shape, P<reduction::max>>, tp<N>, R>();
  check_law<one_axis<N, shape, P<reduction::min>>, tp<N>, S<1>>();
  check_law<one_axis<N, shape, P<reduction::product>>, tp<N>, R>();
}

}  // namespace

TEST_CASE("fake: a rank without peers gives what it gives among peers that hold the same") {
  checked = 0;
  check_pairs<1, sw::shape<4, 3>>();
  check_pairs<2, sw::shape<8, 6>>();
  check_pairs<2, sw::shape<5, 3>>();  // uneven
  check_pairs<3, sw::shape<7, 4>>();
  check_pairs<4, sw::shape<9, 5>>();  // the last block is empty: 3, 3, 3, 0 rows
  check_pairs<8, sw::shape<3, 8>>();
  check_reductions<2>();
  check_reductions<3>();
  check_reductions<8>();
  CHECK(checked == (1 + 2 + 2 + 3 + 4 + 8) * 10 + (2 + 3 + 8) * 5);
}

TEST_CASE("fake: other boundaries of one dim, and a dim that two axes cut") {
  using grid = sw::mesh<outer, inner>;
  using sw::on;
  check_law<one_axis<3, sw::shape<20, 2>, S<0, 4>>, tp<3>, S<0>>();
  check_law<one_axis<3, sw::shape<10, 2>, S<0>>, tp<3>, S<0, 5>>();
  check_law<sw::dtensor_of<float, sw::shape<13, 2>, grid, on<outer, S<0>>, on<inner, S<0>>>, inner, R>();
  check_law<sw::dtensor_of<float, sw::shape<13, 5>, grid, on<outer, S<0>>, on<inner, S<0>>>, inner, S<1>>();
  check_law<sw::dtensor_of<float, sw::shape<24, 2>, grid, on<outer, S<0>>, on<inner, S<0, 6>>>, inner, S<0>>();
  check_law<sw::dtensor_of<float, sw::shape<7, 5>, grid, on<outer, S<0>>, on<inner, P<>>>, inner, S<1>>();
  check_law<sw::dtensor_of<float, sw::shape<7, 5>, grid, on<outer, S<0>>, on<inner, P<>>>, outer, R>();
}

namespace {

template <class B>
using model = simple_model<B>;
template <class Axis>
using split_plan = sw::plan<sw::at<"*.net1", sw::colwise<Axis>>, sw::at<"*.net2", sw::rowwise<Axis>>>;
template <int N>
using step_on = sw::train_step<model, sum_task<double, 20, 10, sw::on<tp<N>, R>>, split_plan<tp<N>>, sw::mesh<tp<N>>,
                               sw::adam<>, sw::pipeline<>, double>;

// A training step of a plan on each rank alone: all of the program runs, and sends what its constants say.
template <int N>
void check_step() {
  using step = step_on<N>;
  using mesh = sw::mesh<tp<N>>;
  for (int q = 0; q < N; ++q)
    sw::launch_fake<mesh>(q, [&](auto& rank) {
      sw::executor<step, sw::fake_rank<mesh>> program(rank, sw::executor_checks::poison);
      program.initialise(5);
      std::vector<double> x(200);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 7) - 3;
      program.set_input(0, x);
      const std::vector<double> before(program.parameter(0).begin(), program.parameter(0).end());
      rank.keep_log(true);
      sw::step_env env;
      env.lr = 0.01;
      env.step = 1;
      program.run(env);
      CHECK(rank.bytes_written(0) == sw::passes::sent_bytes(step::program, step::traffic, 0, rank.coordinate().data()));
      constexpr collective_list wanted = collectives_of<step>();
      CHECK(static_cast<int>(rank.log().size()) == wanted.count);
      for (int k = 0; k < wanted.count; ++k) CHECK(rank.log()[static_cast<std::size_t>(k)].kind == wanted.kind[k]);
      CHECK(program.loss() == program.loss());  // no NaN
      CHECK(!std::equal(before.begin(), before.end(), program.parameter(0).begin()));
    });
}

}  // namespace

TEST_CASE("fake: a training step under a plan runs on each rank alone") {
  check_step<1>();
  check_step<2>();
  check_step<4>();
}

TEST_CASE("fake: a rank that the mesh does not have is refused") {
  CHECK_THROWS_WITH(sw::launch_fake<sw::mesh<tp<4>>>(4, [](auto&) {}),
                    doctest::Contains("rank 4 is asked for; the mesh has ranks 0..3"));
}
