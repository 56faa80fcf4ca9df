// SPDX-License-Identifier: Apache-2.0
// executor_checks::finite: the first node whose result holds a NaN or an infinity, by name, module path and rank.
#include <doctest/doctest.h>

#include <thrown.hpp>

#include <gpt.hpp>
#include <shardwise/module/hana.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using test::thrown;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr auto finite = sw::executor_checks::finite;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using line = sw::mesh<dp<N>>;

// A linear and then a logarithm, which nothing keeps from 0 and below.
template <class Bound = sw::unbound>
struct logs : sw::module<logs<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(logs, (sw::linear<2, 2, sw::child<Bound, 0>>, weigh));
  constexpr auto forward(const auto& x) const { return sw::log(weigh(x)); }
};
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(net, (logs<sw::child<Bound, 0>>, first));
  constexpr auto forward(const auto& x) const { return first(x); }
};
template <int N>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<8, 2>, sw::on<dp<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(sw::relu(x) * model(x)); }
};
template <int N, class Pipeline = sw::pipeline<>>
using log_step = sw::train_step<net, task<N>, sw::plan<sw::data_parallel<dp<N>>>, line<N>, sw::sgd<>, Pipeline, double>;

sw::step_env numbers(double lr = 1e-3) {
  sw::step_env env;
  env.step = 1;
  env.lr = lr;
  return env;
}

// The identity as weights; x >= 1 but for what is put there.
template <class Step>
auto run_with(std::int64_t at, double value, double lr = 1e-3, double weight = 1) {
  return [=](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank, finite);
    ex.set_parameter(0, std::vector<double>{weight, 0, 0, 1});
    ex.set_parameter(1, std::vector<double>{0, 0});
    std::vector<double> x(16);
    for (std::size_t i = 0; i < 16; ++i) x[i] = 1 + static_cast<double>(i);
    if (at >= 0) x[static_cast<std::size_t>(at)] = value;
    ex.set_input(0, x);
    ex.run(numbers(lr));
  };
}
template <class Step>
std::string told(std::int64_t at, double value, double lr = 1e-3, double weight = 1) {
  return thrown([&] { sw::launch<typename Step::mesh_type>(run_with<Step>(at, value, lr, weight)); });
}

TEST_CASE("the node that makes an infinity or a NaN is named, with its module and rank") {
  CHECK(told<log_step<1>>(-1, 0) == "nothing was thrown");
  CHECK(told<log_step<4>>(-1, 0) == "nothing was thrown");
  CHECK(
      told<log_step<2>>(13, 0) ==
      "shardwise: the result of log holds 1 infinity among the 8 elements of this rank's block, the first at (6, 1) of (8, 2); "
      "what it reads holds none (in log, module first, rank 1)");
  CHECK(
      told<log_step<4>>(5, -2) ==
      "shardwise: the result of log holds 1 NaN among the 4 elements of this rank's block, the first at (2, 1) of (8, 2); what it "
      "reads holds none (in log, module first, rank 1)");
  CHECK(
      thrown([] { sw::launch_fake<line<4>>(3, run_with<log_step<4>>(15, 0)); }) ==
      "shardwise: the result of log holds 1 infinity among the 4 elements of this rank's block, the first at (7, 1) of (8, 2); "
      "what it reads holds none (in log, module first, rank 3)");
  // beside kernels, and in kernels that compute several nodes
  CHECK(told<log_step<2, sw::pipeline<sw::schedule_comm_wait>>>(13, 0).find("the result of log holds 1 infinity") !=
        std::string::npos);
  CHECK(told<log_step<2, sw::pipeline<sw::fuse_kernels>>>(13, 0).find("1 infinity among") != std::string::npos);
}

TEST_CASE("what stands in an input or a parameter is told as that") {
  CHECK(told<log_step<2>>(3, nan) ==
        "shardwise: input 0 holds 1 NaN among the 8 elements of this rank's block, the first at (1, 1) of "
        "(8, 2); relu reads it (in relu, module <task>, rank 0)");
  const std::string parameter = told<log_step<1>>(-1, 0, 1e-3, nan);
  CHECK(parameter.rfind(
            "shardwise: parameter 'first.weigh.weight' holds 1 NaN among the 4 elements of this rank's block, the first at "
            "(0, 0) of (2, 2); ",
            0) == 0);
  CHECK(parameter.find("(in einsum, module first.weigh, rank 0)") != std::string::npos);
  CHECK(told<log_step<1>>(-1, 0, 1e-3, inf).rfind("shardwise: parameter 'first.weigh.weight' holds 1 infinity", 0) == 0);
}

TEST_CASE("an update that overflows is told with the parameter") {
  const std::string what = told<log_step<2>>(-1, 0, 1.7e308);
  CHECK(what.rfind("shardwise: parameter 'first.weigh.weight' after sgd holds ", 0) == 0);
  CHECK(what.find("(in sgd, module first.weigh, rank ") != std::string::npos);
}

// A mask of -inf out of an input that another rank holds a part of, out of a number, and padding.
struct masks {
  constexpr auto operator()(const auto& x, const auto& mask, const auto& keep) const {
    const auto whole = sw::redistribute<dp<2>, sw::replicate>(mask);
    const auto a = sw::softmax(x + whole);
    const auto b = sw::softmax(sw::masked_fill(x, keep, -inf));
    const auto top = sw::amax<1>(sw::masked_fill(x, keep, -inf));
    return std::tuple{sw::sum(a * b), top};
  }
};

// Four rows on three ranks: the last one has none, and its share of an extreme is infinite.
struct extremes {
  constexpr auto operator()(const auto& x) const {
    const auto least = sw::redistribute<dp<3>, sw::replicate>(sw::amin<0>(x));
    return std::tuple{sw::redistribute<dp<3>, sw::replicate>(sw::amax<0>(x)) - least, sw::log(least)};
  }
};

TEST_CASE("the extreme of an empty shard passes, and what is infinite beside it does not") {
  const auto with = [](double value) {
    return thrown([&] {
      sw::launch<line<3>>([&](auto& rank) {
        using program =
            sw::function_step<extremes, line<3>,
                              sw::inputs<sw::input_tensor<double, sw::shape<4, 2>, sw::on<dp<3>, sw::shard<0>>>>>;
        sw::executor<program, std::remove_reference_t<decltype(rank)>> ex(rank, finite | sw::executor_checks::poison);
        ex.set_input(0, std::vector<double>{1, 2, 3, 4, 5, 6, value, 8});
        ex.run({});
        CHECK(ex.template output<double>(0).data[0] == 5 - value);
      });
    });
  };
  CHECK(with(0.5) == "nothing was thrown");
  CHECK(with(0).rfind("shardwise: the result of log holds 1 infinity among the 2 elements", 0) == 0);
}

TEST_CASE("masks of -inf pass") {
  using x_type = sw::input_tensor<double, sw::shape<4, 4>>;
  using mask_type = sw::input_tensor<double, sw::shape<4, 4>, sw::on<dp<2>, sw::shard<0>>>;
  using keep_type = sw::input_tensor<std::int32_t, sw::shape<4, 4>>;
  const auto with = [](bool fake) {
    return thrown([&] {
      const auto call = [](auto& rank) {
        using program = sw::function_step<masks, line<2>, sw::inputs<x_type, mask_type, keep_type>>;
        sw::executor<program, std::remove_reference_t<decltype(rank)>> ex(rank, finite | sw::executor_checks::poison);
        std::vector<double> x(16, 0.5), mask(16, 0);
        std::vector<std::int32_t> keep(16, 0);
        mask[1] = mask[2] = mask[14] = -inf;
        keep[0] = 1;
        for (std::size_t i = 4; i < 8; ++i) keep[i] = i > 4;
        ex.set_input(0, x);
        ex.set_input(1, mask);
        ex.set_input(2, keep);
        ex.run({});
      };
      if (fake) sw::launch_fake<line<2>>(1, call);
      else sw::launch<line<2>>(call);
    });
  };
  CHECK(with(false) == "nothing was thrown");
  CHECK(with(true) == "nothing was thrown");
}

struct overflows {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<dp<2>, sw::replicate>(x) * 1e-9; }
};

TEST_CASE("a sum over the ranks that overflows is its collective's") {
  using program = sw::function_step<overflows, line<2>,
                                    sw::inputs<sw::input_tensor<double, sw::shape<2>, sw::on<dp<2>, sw::partial<>>>>>;
  CHECK(
      thrown([] {
        sw::launch<line<2>>([](auto& rank) {
          sw::executor<program> ex(rank, finite);
          for (double& v : ex.template input<double>(0)) v = 1.7e308;
          ex.run({});
        });
      })
          .rfind(
              "shardwise: the result of all_reduce holds 2 infinities among the 2 elements of this rank's block, the first at (0) of "
              "(2); what it reads holds none (in all_reduce, module <task>, rank ",
              0) == 0);
}

// Kernels with further results, lists, overlap, iterations: nothing is seen that is not there, and nothing changes.
namespace gpt = test::gpt;

template <class Step>
void check_clean() {
  std::vector<float> watched, plain;
  const auto losses = [](std::vector<float>& all, sw::executor_checks checks) {
    sw::launch<typename Step::mesh_type>([&](auto& rank) {
      sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank, checks);
      ex.initialise(1);
      for (int s = 1; s <= 2; ++s) {
        gpt::feed(ex, s);
        ex.run(gpt::environment(s));
        if (rank.index() == 0) all.push_back(ex.loss());
      }
    });
  };
  losses(watched, finite | sw::executor_checks::poison);
  losses(plain, sw::executor_checks::none);
  CHECK(watched == plain);
  CHECK(std::isfinite(plain.at(1)));
}

TEST_CASE("a language model's step is watched through its passes, and comes out the same") {
  using all = sw::pipeline<sw::fused_optimizer, sw::comm_fusion_in_place<1>, sw::schedule_comm_wait, sw::fuse_kernels,
                           sw::join_norm_adjoints>;
  check_clean<gpt::step<float, 2, 1, gpt::tensor_parallel, gpt::sizes, test::place, all>>();
}

TEST_CASE("the programs of an iterated step are watched, too") {
  CHECK(thrown([] {
          sw::launch<line<2>>([](auto& rank) {
            sw::iterated_executor<sw::iterated<log_step<2>>> ex(rank, finite);
            ex.main().initialise(1);
            ex.main().set_input(0, std::vector<double>(16, 0));
            ex.run(numbers());
          });
        }).find("(in log, module first, rank ") != std::string::npos);
}

}  // namespace
