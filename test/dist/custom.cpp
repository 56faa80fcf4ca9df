// SPDX-License-Identifier: Apache-2.0
// Users' own operations: eager, traced, implicit, under passes and plans, they are what the same formula in the library's
// operations is; the checks of their adjoints find mistakes; errors and texts have their names.
#include <doctest/doctest.h>

#include <08_own_operation/operation.hpp>
#include <algorithm>
#include <cmath>
#include <custom_operations.hpp>
#include <figures.hpp>
#include <shardwise/graph/text/render.hpp>
#include <shardwise/laws/gradcheck.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/shardwise.hpp>
#include <string>
#include <vector>

// A pointwise function of two parameters, all of it: x in [low, high], beyond it a tenth of the slope.
namespace leaky {

namespace sw = shardwise;
struct bounds {
  sw::real low, high;
};
template <class T>
constexpr T bent(T x, T low, T high) {
  return x < low ? low + (x - low) / T(10) : x > high ? high + (x - high) / T(10) : x;
}
extern const sw::custom_operation slope;
inline constexpr sw::autodiff::adjoint_rule clamp_adjoint = sw::autodiff::pulled([](sw::autodiff::pullback& p) {
  if (p.has(0)) p.give(0, p.make(slope, p.n.a, 0, p.cotangent(0), p.n.in[0]));
});
inline constexpr sw::custom_operation clamp{.name = "leaky_clamp",
                                            .operands = 1,
                                            .record = sw::operations::pointwise(sw::linearity::none),
                                            .adjoint = &clamp_adjoint};
inline constexpr sw::custom_operation slope{.name = "leaky_slope",
                                            .operands = 2,
                                            .record = sw::operations::pointwise(sw::linearity::first),
                                            .adjoint = &sw::autodiff::unknown};

}  // namespace leaky
template <>
struct shardwise::formula<leaky::clamp> {
  using attributes = leaky::bounds;
  template <class m, class T>
  static constexpr T value(T x, const attributes& a) {
    return leaky::bent(x, m::from(a.low), m::from(a.high));
  }
};
template <>
struct shardwise::formula<leaky::slope> {
  using attributes = leaky::bounds;
  template <class m, class T>
  static constexpr T value(T dy, T x, const attributes& a) {
    return x < m::from(a.low) || x > m::from(a.high) ? dy / T(10) : dy;
  }
};

namespace {

namespace sw = shardwise;
using figures::apart;
using figures::some;
using figures::whole;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
template <int D, int T>
using mesh = sw::mesh<dp<D>, tp<T>>;

struct own {
  constexpr auto operator()(const auto& x, const auto& y) const { return sw::call<gated::swiglu>(x, y); }
};
struct written_out {
  constexpr auto operator()(const auto& x, const auto& y) const { return x * sw::sigmoid(x) * y; }
};
struct running {
  constexpr auto operator()(const auto& x) const { return sw::call<sums::running>(x); }
};
struct running_back {
  constexpr auto operator()(const auto& x) const { return sw::call<sums::running, 1>(sw::transpose<0, 1>(x)); }
};
struct wrong_end {
  constexpr auto operator()(const auto& x) const { return sw::call<sums::wrong_adjoint>(x); }
};

// Result and gradients of F of tensors of 7 x 5 and 5 elements, whole, in double.
template <class F, int N, class PX, class PY>
std::vector<double> eager_of() {
  std::vector<double> all;
  sw::launch<mesh<1, N>>([&](auto& rank) {
    sw::eager e(rank);
    using x_type = sw::dtensor_of<double, sw::shape<7, 5>, mesh<1, N>, sw::on<tp<N>, PX>>;
    using y_type = sw::dtensor_of<double, sw::shape<7, 5>, mesh<1, N>, sw::on<tp<N>, PY>>;
    const auto r = sw::value_and_grad<F, 0, 1>(x_type::distribute(e, some(35, 0)), y_type::distribute(e, some(35, 1)));
    std::vector<double> here;
    std::apply(
        [&](const auto&... t) {
          (
              [&] {
                const std::vector<double> all_of = whole(t);
                here.insert(here.end(), all_of.begin(), all_of.end());
              }(),
              ...);
        },
        r);
    if (rank.index() == 0) all = here;
  });
  return all;
}

template <class Step>
std::vector<double> train() {
  std::vector<double> after;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(1);
    sw::step_env env;
    env.lr = 0.01;
    std::vector<double> losses;
    for (env.step = 1; env.step <= 5; ++env.step) {
      run.set_input(0, some(16 * 12, 2));
      run.set_input(1, some(16 * 12, 3));
      run.run(env);
      losses.push_back(run.loss());
    }
    if (rank.index() == 0) after = losses;
  });
  return after;
}

// gated::block with the formula written out in the library's operations.
template <class Bound = sw::unbound>
struct plain_block : sw::module<plain_block<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<12, 32>, gate), (sw::linear<12, 32>, up), (sw::linear<32, 12>, down));
  constexpr auto forward(const auto& x) const { return down(written_out{}(gate(x), up(x))); }
};
template <template <class> class Block, int D, int T, class Pipeline = sw::pipeline<>>
using step =
    sw::train_step<Block, gated::task<double, dp<D>>, gated::plan<dp<D>, tp<T>>, mesh<D, T>, sw::adam<>, Pipeline, double>;

TEST_CASE("own operations: eager results and gradients are those of the formula written out, wherever the operands are") {
  const std::vector<double> want = eager_of<written_out, 1, sw::replicate, sw::replicate>();
  CHECK(want.size() == 3 * 35);
  CHECK(apart(want, eager_of<own, 1, sw::replicate, sw::replicate>()) < 1e-14);
  CHECK(apart(want, eager_of<own, 2, sw::shard<0>, sw::shard<0>>()) < 1e-14);
  CHECK(apart(want, eager_of<own, 3, sw::shard<1>, sw::shard<1>>()) < 1e-14);
  CHECK(apart(want, eager_of<own, 4, sw::replicate, sw::replicate>()) < 1e-14);
  CHECK(apart(want, eager_of<sw::implicitly<own>, 3, sw::shard<0>, sw::shard<1>>()) < 1e-14);
  CHECK(apart(want, eager_of<sw::implicitly<own>, 2, sw::partial<>, sw::shard<1>>()) < 1e-14);
}

TEST_CASE("own operations: a train step is the one with the formula written out, on every mesh and under passes") {
  const std::vector<double> want = train<step<plain_block, 1, 1>>();
  CHECK(want.front() > want.back());
  CHECK(apart(want, train<step<gated::block, 1, 1>>()) < 1e-13);
  CHECK(apart(want, train<step<gated::block, 2, 2>>()) < 1e-13);
  CHECK(apart(want, train<step<gated::block, 3, 1>>()) < 1e-13);
  CHECK(apart(want, train<step<gated::block, 1, 3>>()) < 1e-13);
  using everything = sw::pipeline<sw::cancel_redistributions, sw::merge_common, sw::rematerialise<>, sw::fuse_kernels>;
  CHECK(apart(want, train<step<gated::block, 2, 2, everything>>()) < 1e-13);
  static_assert(step<gated::block, 2, 2>::template comm_bytes<tp<2>> == step<plain_block, 2, 2>::template comm_bytes<tp<2>>);
}

TEST_CASE("own operations: they are nodes with names of their own") {
  const std::string text = sw::to_text(step<gated::block, 2, 2>::program);
  CHECK(text.find("%swiglu = swiglu(%") != std::string::npos);
  CHECK(text.find("%swiglu_gate = swiglu_gate(%") != std::string::npos);
  CHECK(text.find("%swiglu_up = swiglu_up(%") != std::string::npos);
  CHECK(sw::find_node(step<gated::block, 2, 2>::program, "swiglu_up") > 0);
  CHECK(sw::find_node(step<gated::block, 2, 2>::program, "swiglu_down") == -1);
}

TEST_CASE("own operations: gradients against differences, and a wrong one is named") {
  CHECK(sw::gradcheck<own, sw::shape<3, 4>, sw::shape<4>>() == 16);
  CHECK(sw::gradcheck<own, sw::shape<2, 1>, sw::shape<2, 3>>(7) == 8);
  CHECK(sw::gradcheck<running, sw::shape<3, 4>>() == 12);
  CHECK(sw::gradcheck<running_back, sw::shape<3, 4>>() == 12);  // a view is made dense for it
  CHECK_THROWS_WITH(static_cast<void>(sw::gradcheck<wrong_end, sw::shape<2, 3>>()),
                    doctest::Contains("the gradient of operand 0 at element 0 is"));
}

struct bent {
  constexpr auto operator()(const auto& x) const {
    return sw::call<leaky::clamp, sw::pack_attributes(leaky::bounds{-0.5, 1.25})>(x);
  }
};
struct scaled {
  constexpr auto operator()(const auto& x) const { return sw::call<sums::times>(2.5, x); }
};

TEST_CASE("own operations: attributes with names, and a number, reach the formula") {
  const std::vector<double> x = some(35, 0);
  std::vector<double> want, times;
  for (const double v : x) {
    want.push_back(leaky::bent(v, -0.5, 1.25));
    times.push_back(2.5 * v);
  }
  sw::launch<mesh<1, 3>>([&](auto& rank) {
    sw::eager e(rank);
    using type = sw::dtensor_of<double, sw::shape<7, 5>, mesh<1, 3>, sw::on<tp<3>, sw::shard<0>>>;
    const auto check = [](const auto& y, const std::vector<double>& all) {
      if (apart(all, whole(y)) > 1e-15) throw std::runtime_error("other values");
    };
    check(bent{}(type::distribute(e, x)), want);
    check(scaled{}(type::distribute(e, x)), times);
  });
  CHECK(sw::gradcheck<bent, sw::shape<3, 4>>() == 12);
}

TEST_CASE("own operations: one with a kernel of its own and an attribute runs on blocks of every shape") {
  std::vector<double> want(5 * 4);
  const std::vector<double> x = some(20, 0);
  for (int r = 0; r < 5; ++r)
    for (int i = 0; i < 4; ++i)
      want[static_cast<std::size_t>(4 * r + i)] =
          x[static_cast<std::size_t>(4 * r + i)] + (i > 0 ? want[static_cast<std::size_t>(4 * r + i - 1)] : 0);
  sw::launch<mesh<1, 4>>([&](auto& rank) {  // 2, 2, 1 and no rows
    sw::eager e(rank);
    using type = sw::dtensor_of<double, sw::shape<5, 4>, mesh<1, 4>, sw::on<tp<4>, sw::shard<0>>>;
    const auto y = sw::call<sums::running>(type::distribute(e, x)).full_tensor();
    const auto block = y.to_local();
    const double d = apart(want, std::vector<double>(block.data.begin(), block.data.end()));
    if (d > 1e-14) throw std::runtime_error("differs by " + std::to_string(d));
  });
}

// x (7, 10) over dp by rows and tp by columns, w (10) over tp: the product, and the gradients of its sum weighted by itself.
struct weigh {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::call<mapped::weigh>(x, w); }
};
struct weigh_by_mul {
  constexpr auto operator()(const auto& x, const auto& w) const { return x * w; }
};
template <class F>
std::vector<double> mapped_of() {
  std::vector<double> all;
  sw::launch<mapped::mesh>([&](auto& rank) {
    sw::eager e(rank);
    using x_type = sw::dtensor_of<double, sw::shape<7, 10>, mapped::mesh, sw::on<mapped::dp, sw::shard<0>>,
                                  sw::on<mapped::tp, sw::shard<1>>>;
    using w_type = sw::dtensor_of<double, sw::shape<10>, mapped::mesh, sw::on<mapped::dp, sw::reduced>,
                                  sw::on<mapped::tp, sw::shard<0>>>;
    const auto r = sw::value_and_grad<F, 0, 1>(x_type::distribute(e, some(70, 4)), w_type::distribute(e, some(10, 5)));
    std::vector<double> here;
    std::apply(
        [&](const auto&... t) {
          (
              [&] {
                const std::vector<double> all_of = whole(t);
                here.insert(here.end(), all_of.begin(), all_of.end());
              }(),
              ...);
        },
        r);
    if (rank.index() == 0) all = here;
  });
  return all;
}

TEST_CASE("own operations: a function of blocks, placed as local_map says, with uneven blocks") {
  const std::vector<double> want = mapped_of<weigh_by_mul>();
  CHECK(want.size() == 70 + 70 + 10);
  CHECK(apart(want, mapped_of<weigh>()) < 1e-14);
}

}  // namespace
