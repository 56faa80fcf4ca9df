// SPDX-License-Identifier: Apache-2.0
// Programs that were silently wrong elsewhere, named by their public threads: here they give the exact result. Those that
// do not compile here are test/fail/silent_*.cpp. Without a replica:
//   Megatron-LM#7452      a sum of other bugs; that an unreduced gradient cannot reach an optimizer is gradient_unreduced
//   pytorch#191926        an image that is cut along its width is refused (fail/convolution_placements.cpp)
//   oneflow#8194          there is no stack
//   Megatron-LM#2769, ROCm/Megatron-LM#63   there is no fused weight, and nothing is resharded while loading
#include <doctest/doctest.h>

#include <algorithm>
#include <both_ways.hpp>
#include <cmath>
#include <models.hpp>

namespace {

using namespace test;
using sw::on;

template <int D>
using S = sw::shard<D>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct ring : sw::axis<3> {};
using line = sw::mesh<tp>;
using three = sw::mesh<ring>;
using square = sw::mesh<dp, tp>;
template <class Shape, class Mesh, class... Placements>
using tensor = sw::dtensor_of<double, Shape, Mesh, Placements...>;

std::vector<double> counted(std::int64_t n, double from = 0) {
  std::vector<double> v(static_cast<std::size_t>(n));
  for (double& x : v) x = from++;
  return v;
}
template <class X>
bool is(const X& x, const std::vector<double>& values) {
  const auto whole = x.full_tensor();
  const auto have = whole.to_local().data;
  return std::equal(have.begin(), have.end(), values.begin(), values.end());
}

struct plus_ten {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<tp, R>(x) + 10; }
};

// Leaves the typed world and comes back as what it was.
struct there_and_back {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::from_local<P>(sw::to_local(x)) * w; }
};

// Every rank weighs the whole tensor by rows of its own; the gradient is the sum of what the ranks find.
struct own_rows {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::to_local<sw::grad<P>>(x) * w; }
};

struct from_copies {
  constexpr auto operator()(const auto& l, const auto& w) const { return sw::from_local<R>(l) * w; }
};

// A function of every rank's own rows, however many it has.
struct on_blocks {
  constexpr auto operator()(const auto& x) const {
    return sw::from_local<sw::shape<5, 3>, S<0>>(sw::relu(sw::to_local(x)) * 3.0);
  }
};

struct mean_of {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<ring, R>(sw::mean(x)); }
};

}  // namespace

TEST_CASE("silent bug: pytorch#163193, ten is added once") {
  sw::launch<line>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<sw::shape<1>, line, P>::from_local(on, std::vector<double>{rank.index() == 0 ? 20.0 : 25.0});
    both_ways<plus_ten>(rank, x);
    CHECK(plus_ten{}(x).item() == 55);
  });
}

TEST_CASE("silent bug: pytorch#172932, out of the typed world and back as partial keeps value and gradient") {
  sw::launch<line>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<sw::shape<6>, line, P>::from_local(on, counted(6, rank.index()));
    const auto w = tensor<sw::shape<6>, line, U>::distribute(on, counted(6, 2));
    const auto [y, dx] = gradients_both_ways<there_and_back, 0>(rank, x, w);
    CHECK(is(y, {2, 9, 20, 35, 54, 77}));
    CHECK(is(dx, counted(6, 2)));
    static_assert(decltype(dx)::sp.place[0] == sw::reduced_value());
  });
}

TEST_CASE("silent bug: pytorch/torchtitan#1805, the gradient of local computation is summed as its placement says") {
  sw::launch<line>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<sw::shape<4>, line, R>::distribute(on, counted(4, 1));
    const auto w = tensor<sw::shape<8>, line, S<0>>::distribute(on, counted(8));
    const auto [y, dx] = gradients_both_ways<own_rows, 0>(rank, x, w);
    CHECK(is(y, {0, 2, 6, 12, 4, 10, 18, 28}));
    CHECK(is(dx, {0 + 4, 1 + 5, 2 + 6, 3 + 7}));
  });
}

TEST_CASE("silent bug: pytorch#175867, equal copies declared whole cost no collective, forward or backward") {
  using L = tensor<sw::shape<8>, line, S<0>>;
  using W = tensor<sw::shape<4>, line, R>;
  static_assert(gradient_of<from_copies, sw::wrt<0>, L, W>::traffic.collectives == 0);
  sw::launch<line>([](auto& rank) {
    sw::eager on(rank);
    const auto l = L::from_local(on, counted(4));
    const auto w = W::distribute(on, counted(4, 5));
    const auto [y, dl] = gradients_both_ways<from_copies, 0>(rank, l, w);
    CHECK(is(y, {0, 6, 14, 24}));
    CHECK(values_of(dl.to_local()) == counted(4, 5));
  });
}

TEST_CASE("silent bug: pytorch#168058, tt-metal#55947, random values depend on no mesh and no placement") {
  std::vector<double> mask;
  using one = sw::mesh<sw::axis<1>>;
  sw::launch<one>([&](auto& rank) {
    sw::eager on(rank);
    on.start_step(7, 3);
    mask = values_of(sw::dropout(tensor<sw::shape<5, 6>, one>::ones(on), 0.5).to_local());
  });
  CHECK(std::count(mask.begin(), mask.end(), 0.0) > 5);
  const auto same = [&]<class Mesh, class... Placements>(Mesh*, sw::grad<Placements...>*) {
    sw::launch<Mesh>([&](auto& rank) {
      sw::eager on(rank);
      on.start_step(7, 3);
      CHECK(is(sw::dropout(tensor<sw::shape<5, 6>, Mesh, Placements...>::ones(on), 0.5), mask));
    });
  };
  same(static_cast<three*>(nullptr), static_cast<sw::grad<R>*>(nullptr));
  same(static_cast<three*>(nullptr), static_cast<sw::grad<S<0>>*>(nullptr));
  same(static_cast<three*>(nullptr), static_cast<sw::grad<S<1>>*>(nullptr));
  same(static_cast<square*>(nullptr), static_cast<sw::grad<S<0>, R>*>(nullptr));
  same(static_cast<square*>(nullptr), static_cast<sw::grad<S<0>, S<0>>*>(nullptr));
  same(static_cast<square*>(nullptr), static_cast<sw::grad<S<1>, S<0>>*>(nullptr));
}

TEST_CASE("silent bug: pytorch#194457, five rows nested on two axes lose none") {
  using X = tensor<sw::shape<5, 3>, square, S<0>, S<0>>;
  sw::launch<square>([](auto& rank) {
    sw::eager on(rank);
    const auto x = X::distribute(on, counted(15));
    const auto whole = sw::redistribute<sw::on<dp, R>, sw::on<tp, R>>(x);
    CHECK(values_of(whole.to_local()) == counted(15));
    CHECK(is(x, counted(15)));
    CHECK(is(sw::redistribute<sw::on<dp, R>>(x), counted(15)));
  });
}

TEST_CASE("silent bug: pytorch#172812, a local function on uneven blocks") {
  using X = tensor<sw::shape<5, 3>, line, S<0>>;
  sw::launch<line>([](auto& rank) {
    sw::eager on(rank);
    const auto x = X::distribute(on, counted(15, -4));
    const auto [y, dx] = gradients_both_ways<on_blocks, 0>(rank, x);
    CHECK(is(y, {0, 0, 0, 0, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30}));
    CHECK(is(dx, {0, 0, 0, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}));
  });
}

// rows (0, 2) (2, 1) (3, 1) (4, 1): offset and size on every rank
TEST_CASE("silent bug: pytorch#161368, offsets of uneven splits over two axes") {
  using X = tensor<sw::shape<5, 3>, square, S<0>, S<0>>;
  constexpr std::int64_t offset[] = {0, 2, 3, 4}, size[] = {2, 1, 1, 1};
  sw::launch<square>([&](auto& rank) {
    sw::eager on(rank);
    const auto r = static_cast<std::size_t>(rank.index());
    const auto x = X::distribute(on, counted(15));
    CHECK(x.to_local().layout.origin[0] == offset[r]);
    CHECK(x.to_local().layout.ext[0] == size[r]);
    CHECK(values_of(x.to_local()) == counted(3 * size[r], 3.0 * static_cast<double>(offset[r])));
  });
}

// 7 over 3 ranks are 3, 3, 1; 4 are 2, 2, 0
TEST_CASE("silent bug: pytorch#103306, #110762, #163241, size, whole and mean of uneven shards") {
  const auto check = []<std::int64_t N>(sw::shape<N>*) {
    using X = tensor<sw::shape<N>, three, S<0>>;
    static_assert(sw::numel(X::sp) == N);
    sw::launch<three>([](auto& rank) {
      sw::eager on(rank);
      const auto x = X::distribute(on, counted(N, 1));
      CHECK(is(x, counted(N, 1)));
      both_ways<mean_of>(rank, x);
      CHECK(mean_of{}(x).item() == doctest::Approx((N + 1) / 2.0).epsilon(1e-15));
    });
  };
  check(static_cast<sw::shape<7>*>(nullptr));
  check(static_cast<sw::shape<4>*>(nullptr));
}

// Parameters after one step of rate 1 from equal initial values, less those values.
template <class Step>
std::vector<double> changes(double max_norm) {
  constexpr std::size_t sizes[] = {160, 16, 160, 10};
  std::vector<double> before[4], after[4], all;
  for (std::size_t i = 0; i < 4; ++i) before[i] = after[i] = std::vector<double>(sizes[i]);
  sw::launch<square>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(3);
    run.set_input(0, counted(80, -20));
    for (int i = 0; i < 4; ++i) run.gather_parameter(i, before[i]);
    sw::step_env env;
    env.lr = 1;
    env.step = 1;
    env.max_norm = max_norm;
    run.run(env);
    for (int i = 0; i < 4; ++i) run.gather_parameter(i, after[i]);
  });
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t k = 0; k < sizes[i]; ++k) all.push_back(after[i][k] - before[i][k]);
  return all;
}
double norm_of(const std::vector<double>& v) {
  double squares = 0;
  for (const double x : v) squares += x * x;
  return std::sqrt(squares);
}

// Sharded, replicate and reduced parameters are scaled by one factor, and no gradient is gathered for it.
TEST_CASE("silent bug: huggingface/transformers#46113, clipping scales every gradient, in place") {
  using plan = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
  using task = sum_task<double, 8, 10, sw::on<dp, S<0>>>;
  using plain = sw::train_step<mlp_module, task, plan, square, sw::sgd<>, sw::pipeline<>, double>;
  using clipped = sw::train_step<mlp_module, task, plan, square, sw::clip_norm<sw::sgd<>>, sw::pipeline<>, double>;
  static_assert(clipped::peak_bytes - plain::peak_bytes <= 1024);  // sums and their workspace; net1's gradient has 1280
  static_assert(clipped::comm_bytes<tp> - plain::comm_bytes<tp> <= 32 && clipped::comm_bytes<dp> == plain::comm_bytes<dp>);
  const auto free = changes<plain>(0), held = changes<clipped>(0.5);
  const double norm = norm_of(free);
  CHECK(norm > 5);
  CHECK(norm_of(held) == doctest::Approx(0.5).epsilon(1e-6));  // the factor has an epsilon in its denominator
  REQUIRE(held.size() == free.size());
  for (std::size_t i = 0; i < free.size(); ++i) CHECK(held[i] == doctest::Approx(free[i] * 0.5 / norm).epsilon(1e-6));
}
