// SPDX-License-Identifier: Apache-2.0
// Buffers of an executor: set and read by name, drawn from seed and path alone, asked for before a run, named where a check finds
// them, on rank threads and on a rank without peers; exchanged with eager models.
#include <shardwise/io/explain.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <thrown.hpp>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using test::thrown;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;

template <class Bound = sw::unbound>
struct averaged : sw::module<averaged<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<3>, sw::init::ones>, factor),
                    (sw::buffer<sw::shape<5, 3>, sw::init::normal<1, 2>>, noise),
                    (sw::buffer<sw::shape<>, sw::init::zeros>, calls));
  constexpr auto forward(const auto& x) const {
    sw::add_(calls, 1);
    return x * factor + sw::sum<0>(noise);
  }
};
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<2, 3>, up), (averaged<>, tail));
  constexpr auto forward(const auto& x) const { return tail(up(x)); }
};
template <class Axis>
struct rows : sw::detail::style_base {
  using axis = Axis;
  static constexpr bool accepts(sw::module_kind) { return true; }
  static constexpr sw::detail::maybe_placement parameter(sw::module_kind, std::string_view, int rank) {
    return {rank == 2, sw::shard_value(0)};
  }
};
template <int N>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<4, 2>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
template <class Bound = sw::unbound>
struct plain : sw::module<plain<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<2, 3>, up), (sw::buffer<sw::shape<5, 3>, sw::init::normal<1, 2>>, noise));
  constexpr auto forward(const auto& x) const { return up(x) + sw::redistribute<dp<2>, sw::replicate>(sw::sum<0>(noise)); }
};
template <int N>
using step = sw::train_step<net, task<N>, sw::plan<>, mesh<N>, sw::sgd<>, sw::pipeline<>, double>;
using split = sw::train_step<plain, task<2>, sw::plan<sw::at<"", rows<dp<2>>>>, mesh<2>, sw::sgd<>, sw::pipeline<>, double>;

const std::vector<double> batch{1, 2, 3, 4, 5, 6, 7, 8};
sw::step_env numbers(int s) {
  sw::step_env env;
  env.lr = 0.1;
  env.step = s;
  return env;
}

}  // namespace

TEST_CASE("buffers have names and numbers of their own") {
  using ex = sw::executor<step<1>>;
  CHECK(ex::buffer_count() == 2);
  CHECK(ex::parameter_count() == 3);
  CHECK(ex::buffer_name(0) == "tail.noise");
  CHECK(ex::buffer_name(1) == "tail.calls");
  CHECK(ex::parameter_name(2) == "tail.factor");
  CHECK(ex::buffer_index("tail.calls") == 1);
  CHECK(thrown([] { ex::buffer_index("tail.factor"); }) ==
        "shardwise: the model has no buffer named 'tail.factor'; the nearest names are 'tail.calls', 'tail.noise'");
  CHECK(
      thrown([] { ex::parameter_index("tail.noise"); }) ==
      "shardwise: the model has no parameter named 'tail.noise'; the nearest names are 'tail.factor', 'up.bias', 'up.weight'");
  sw::launch<mesh<1>>([](auto& rank) {
    ex e(rank);
    CHECK(thrown([&] { e.buffer(2); }) ==
          "shardwise: buffer number 2 is asked for; the program has 2 buffers, counted from 0: give 0..1");
    CHECK(thrown([&] { e.parameter(3); }) ==
          "shardwise: parameter number 3 is asked for; the program has 3 parameters, counted from 0: give 0..2");
    CHECK(thrown([&] { e.set_buffer(0, batch); }) == "shardwise: set_buffer: 8 elements are given; the whole tensor has 15");
  });
  CHECK(sw::describe_plan<step<1>>({"dp"}).find("buffers: 16, on rank 0: 16") != std::string::npos);
  CHECK(sw::explain_memory<step<1>>().find("buffers") != std::string::npos);
}

TEST_CASE("a run asks for buffers that nobody has set") {
  sw::launch<mesh<1>>([](auto& rank) {
    sw::executor<step<1>> e(rank);
    e.set_input(0, batch);
    e.set_parameter(0, std::vector<double>(6, 1));
    e.set_parameter(1, std::vector<double>(3, 0));
    e.set_parameter(2, std::vector<double>(3, 1));
    CHECK(
        thrown([&] { e.run(numbers(1)); }) ==
        "shardwise: run: buffer 'tail.noise' has no value; give all of them one with initialise(seed), copy_parameters or set_buffer");
    CHECK(thrown([&] { (void)std::as_const(e).buffer(1); }).find("buffer 'tail.calls' has no value") != std::string::npos);
    e.set_buffer(0, std::vector<double>(15, 0));
    e.buffer(1)[0] = 4;
    e.run(numbers(1));
    CHECK(e.buffer(1)[0] == 5);
    CHECK(e.loss() == doctest::Approx((3 + 7 + 11 + 15) / 4.0));
  });
}

TEST_CASE("buffers are drawn from seed and path, and gathered whole") {
  std::vector<double> one(15), two(15), again(15);
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::executor<step<1>> e(rank);
    e.initialise(7);
    e.gather_buffer(0, one);
  });
  sw::launch<mesh<2>>([&](auto& rank) {
    sw::executor<split> e(rank);
    e.initialise(7);
    e.gather_buffer(0, two);
    CHECK(e.buffer(0).size() == (rank.index() == 0 ? 9U : 6U));
    e.set_buffer(0, two);
    e.gather_buffer(0, again);
  });
  CHECK(again == two);
  CHECK(one != two);  // other paths
  double most = 0;
  for (const double v : two) most = std::max(most, std::abs(v));
  CHECK(most > 0.1);
  std::vector<double> want(15);
  for (std::size_t i = 0; i < 15; ++i)
    want[i] = sw::host::initial_value(sw::init_kind::normal, 0.5, 7, sw::runtime::stream_of("noise"),
                                      static_cast<std::int64_t>(i));
  CHECK(two == want);
}

TEST_CASE("a rank without peers has its part of a buffer") {
  for (int q = 0; q < 2; ++q)
    sw::launch_fake<mesh<2>>(q, [&](auto& rank) {
      using Rank = std::remove_reference_t<decltype(rank)>;
      sw::executor<split, Rank> e(rank);
      e.initialise(7);
      CHECK(std::as_const(e).buffer(0).size() == (q == 0 ? 9U : 6U));
      CHECK(e.buffer(0)[0] ==
            sw::host::initial_value(sw::init_kind::normal, 0.5, 7, sw::runtime::stream_of("noise"), q * 9));
    });
}

TEST_CASE("the check for NaN and infinity names a buffer") {
  sw::launch<mesh<1>>([](auto& rank) {
    sw::executor<step<1>> e(rank, sw::executor_checks::finite);
    e.initialise(1);
    e.set_input(0, batch);
    std::vector<double> noise(15, 0);
    noise[4] = NAN;
    e.set_buffer(0, noise);
    CHECK(thrown([&] { e.run(numbers(1)); }).find("buffer 'tail.noise' holds 1 NaN among the 15 elements") !=
          std::string::npos);
    e.set_buffer(0, std::vector<double>(15, 0));
    e.run(numbers(1));
    e.set_buffer(1, std::vector<double>{INFINITY});
    CHECK(thrown([&] { e.run(numbers(2)); }).find("buffer 'tail.calls' holds 1 infinity") != std::string::npos);
  });
}

TEST_CASE("an eager model takes and gives buffers, and says where its plan differs") {
  sw::launch<mesh<2>>([](auto& rank) {
    sw::eager on(rank);
    sw::executor<split> e(rank);
    e.initialise(3);
    sw::bind_eager<plain, sw::plan<sw::at<"", rows<dp<2>>>>, mesh<2>, double> model{};
    sw::load_parameters(model, on, e);
    CHECK(model.noise.to_local().data[0] == e.buffer(0)[0]);
    sw::mul_(model.noise, 2);
    sw::store_parameters(model, e);
    CHECK(model.noise.to_local().data[0] == e.buffer(0)[0]);
    sw::bind_eager<plain, sw::plan<sw::at<"up", rows<dp<2>>>>, mesh<2>, double> other{};
    CHECK(thrown([&] { sw::load_parameters(other, on, e); }).find("parameter 'up.weight' has other extents") !=
          std::string::npos);
    sw::bind_eager<plain, sw::plan<>, mesh<2>, double> whole{};
    CHECK(thrown([&] { sw::load_parameters(whole, on, e); }).find("buffer 'noise' has other extents, placements") !=
          std::string::npos);
  });
}
