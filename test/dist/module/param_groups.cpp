// SPDX-License-Identifier: Apache-2.0
// Groups of parameters on 1 to 4 ranks: what a group's numbers make of a parameter is, bit by bit, what the same numbers of a whole
// run make of it, under every optimizer and over lists; what is not set is the run's own. And frozen parameters: the step is the
// one in which a group with rate 0 has them, without their gradients, states and sums.
#include <doctest/doctest.h>

#include <place.hpp>

#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/optimizer/optimizer_blocks.hpp>
#include <shardwise/pass/optimizer/split_optimizer.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace test;
namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
template <int D, int N>
using mesh = sw::mesh<dp<D>, tp<N>>;

// Side by side, so that no gradient depends on a parameter, and updates of three steps are those of any others that start alike.
template <class Bound = sw::unbound>
using layer = sw::linear<6, 5, Bound>;
template <class Bound = sw::unbound>
struct beside : sw::module<beside<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<6, 5>, fast), (sw::repeat<2, layer>, slow));
  constexpr auto forward(const auto& x) const { return fast(x) + std::get<0>(slow.items)(x) + std::get<1>(slow.items)(x); }
};
template <class Bound = sw::unbound>
struct behind : sw::module<behind<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<6, 5>, fast), (sw::linear<5, 6>, last));
  constexpr auto forward(const auto& x) const { return last(sw::tanh(fast(x))); }
};

template <int D>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<7, 6>, sw::on<dp<D>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::sum(m(x)); }
};

template <int D, int N, template <class> class Model, class Optimizer, class Pipeline, class... E>
using step = sw::train_step<
    Model, task<D>,
    sw::plan<sw::data_parallel<dp<D>>, sw::at<"fast", sw::colwise<tp<N>, 1, sw::output<sw::replicate>>>, E...>, mesh<D, N>,
    Optimizer, Pipeline, double>;

using all = std::vector<std::vector<double>>;

// The losses of three steps, and the parameters then.
template <class Step, class Set>
all trained(Set&& set) {
  all seen;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank, sw::executor_checks::poison);
    ex.initialise(5);
    std::vector<double> x;
    for (int i = 0; i < 42; ++i) x.push_back(std::sin(0.7 * i) + 0.1);
    ex.set_input(0, x);
    sw::env_of<Step> env;
    env.lr = 0.125;
    env.beta1 = 0.8;
    env.weight_decay = 0.25;
    env.momentum = 0.5;
    env.max_norm = 3;
    set(env);
    std::vector<double> losses;
    for (env.step = 1; env.step <= 3; ++env.step) {
      ex.run(env);
      losses.push_back(ex.loss());
    }
    if (rank.index() == 0) seen.push_back(losses);
    for (int k = 0; k < ex.parameter_count(); ++k) {
      std::size_t n = 1;
      for (int d = 0; d < ex.parameter_layout(k).rank; ++d) n *= static_cast<std::size_t>(ex.parameter_layout(k).global[d]);
      std::vector<double> whole(n);
      static std::vector<double>* shared = nullptr;
      rank.barrier();
      if (rank.index() == 0) shared = &whole;
      rank.barrier();
      ex.gather_parameter(k, *shared);
      if (rank.index() == 0) seen.push_back(whole);
      rank.barrier();
    }
  });
  return seen;
}

using no_decay = sw::param_group<"no_decay", "b*s">;  // by pattern
using slow = sw::at<"slow.*", sw::param_group<"slow", "weight">>;
using fast_bias = sw::at<"fast", sw::param_group<"fast_bias", "bias">>;  // two of three biases stay in no_decay

constexpr auto each_its_own = [](auto& env) {
  env.template group<"no_decay">().weight_decay = 0;
  env.template group<"slow">().lr = 0.03125;
  env.template group<"slow">().beta1 = 0.5;
  env.template group<"slow">().beta2 = 0.75;
  env.template group<"slow">().eps = 0.5;
  env.template group<"slow">().momentum = 0.25;
  env.template group<"fast_bias">().lr = 0;
};

// Order of the parameters: fast.weight, fast.bias, slow.0.weight, slow.0.bias, slow.1.weight, slow.1.bias.
template <int D, int N, class Optimizer, class Pipeline = sw::pipeline<>>
void check_groups() {
  using groups = step<D, N, beside, Optimizer, Pipeline, no_decay, slow, fast_bias>;
  using plain = step<D, N, beside, Optimizer, Pipeline>;
  const auto no_numbers = [](auto&) {};
  const all as_main = trained<plain>(no_numbers);
  CHECK(trained<groups>(no_numbers) == as_main);  // nothing set: the run's own

  const all mixed = trained<groups>(each_its_own);
  const all as_no_decay = trained<plain>([](auto& env) { env.weight_decay = 0; });
  const all as_slow = trained<plain>([](auto& env) {
    env.lr = 0.03125;
    env.beta1 = 0.5;
    env.beta2 = 0.75;
    env.eps = 0.5;
    env.momentum = 0.25;
  });
  const all as_still = trained<plain>([](auto& env) { env.lr = 0; });
  REQUIRE(mixed.size() == 7);
  CHECK(mixed[1] == as_main[1]);
  CHECK(mixed[2] == as_still[2]);
  CHECK(mixed[3] == as_slow[3]);
  CHECK(mixed[4] == as_no_decay[4]);
  CHECK(mixed[5] == as_slow[5]);
  CHECK(mixed[6] == as_no_decay[6]);
  // the numbers tell: none of these is another one by chance
  CHECK(as_main[3] != as_slow[3]);
  CHECK(as_main[2] != as_still[2]);
  if constexpr (!Optimizer::matrices_only) CHECK(as_main[4] != as_no_decay[4]);
}

// --- frozen ----------------------------------------------------------------------------------------------------------------

template <class Step>
constexpr int count_of(sw::op_code op) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op ? 1 : 0;
  return n;
}

template <int D, int N, class Optimizer, class Pipeline = sw::pipeline<>>
void check_frozen() {
  using trains = step<D, N, behind, Optimizer, Pipeline, sw::at<"last", sw::param_group<"still">>>;
  using freezes = step<D, N, behind, Optimizer, Pipeline, sw::at<"last", sw::frozen>>;
  // two of four parameters: no gradient, no state, no sum over dp, no update
  static_assert(count_of<freezes>(sw::op_code::state) * 2 == count_of<trains>(sw::op_code::state));
  static_assert(D == 1 || freezes::template comm_bytes<dp<D>> < trains::template comm_bytes<dp<D>>);
  static_assert(freezes::peak_bytes < trains::peak_bytes);
  static_assert(count_of<freezes>(sw::op_code::param) == 4);
  if constexpr (Optimizer::clips) {  // the norm is that of what is trained: as if nothing else were in the model
    const all f = trained<freezes>([](auto&) {}),
              t = trained<trains>([](auto& env) { env.template group<"still">().lr = 0; });
    CHECK(f[3] == t[3]);
    CHECK(f[4] == t[4]);
    CHECK(f[1] != t[1]);
    static_assert(count_of<freezes>(sw::op_code::sumsq) * 2 == count_of<trains>(sw::op_code::sumsq));
  } else {
    CHECK(trained<freezes>([](auto&) {}) == trained<trains>([](auto& env) {
            env.template group<"still">().lr = 0;
            env.template group<"still">().weight_decay = 0;
          }));
  }
}

// The paths of what a step freezes.
template <class Step>
std::string frozen_paths() {
  std::string paths;
  for (int k = 0; k < Step::parameter_total; ++k) {
    const auto& p = Step::parameters.item[k];
    if (!is_frozen_parameter(Step::program.nodes[p.node])) continue;
    std::string path = p.name;
    for (int s = p.scope; s > 0; s = Step::program.scopes[s].parent) {
      const sw::scope& at = Step::program.scopes[s];
      path = (at.name ? std::string(at.name) : std::to_string(at.index)) + "." + path;
    }
    paths += path + " ";
  }
  return paths;
}
template <template <class> class Model, class... E>
using with = step<1, 1, Model, sw::adam<>, sw::pipeline<>, E...>;

// The step in which a group with rate 0 has them, of two parameters of different modules.
template <int D, int N, class Optimizer, class Pipeline = sw::pipeline<>>
void check_frozen_parameters() {
  using trains = step<D, N, behind, Optimizer, Pipeline, sw::at<"last", sw::param_group<"still", "weight">>,
                      sw::at<"fast", sw::param_group<"still", "bias">>>;
  using freezes = step<D, N, behind, Optimizer, Pipeline, sw::at<"last.weight", sw::frozen>, sw::at<"fast.b*", sw::frozen>>;
  static_assert(count_of<freezes>(sw::op_code::state) * 2 == count_of<trains>(sw::op_code::state));
  static_assert(D == 1 || freezes::template comm_bytes<dp<D>> < trains::template comm_bytes<dp<D>>);
  static_assert(freezes::peak_bytes < trains::peak_bytes);
  CHECK(trained<freezes>([](auto&) {}) == trained<trains>([](auto& env) {
          env.template group<"still">().lr = 0;
          env.template group<"still">().weight_decay = 0;
        }));
}

template <int D>
using judge =
    sw::forward_step<behind, task<D>, sw::plan<sw::data_parallel<dp<D>>, sw::frozen>, mesh<D, 1>, sw::pipeline<>, double>;
template <int D>
using judge_plain =
    sw::forward_step<behind, task<D>, sw::plan<sw::data_parallel<dp<D>>>, mesh<D, 1>, sw::pipeline<>, double>;
static_assert(judge<2>::peak_bytes == judge_plain<2>::peak_bytes &&
              judge<2>::program.node_count == judge_plain<2>::program.node_count);

// A frozen layer in front costs no backward pass at all: its input takes no gradient.
using front = step<2, 1, behind, sw::sgd<>, sw::pipeline<>, sw::at<"fast", sw::frozen>>;
static_assert(count_of<front>(sw::op_code::tanh_dx) == 0 && count_of<front>(sw::op_code::sgd) == 2);

// --- eager -----------------------------------------------------------------------------------------------------------------

struct eager_task {
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::sum(m(x)); }
};
template <int D, class Optimizer, class... E>
void check_eager() {
  using compiled = sw::train_step<behind, task<D>, sw::plan<sw::data_parallel<dp<D>>, E...>, mesh<D, 1>, Optimizer,
                                  sw::pipeline<>, double>;
  using model_type = sw::bind_eager<behind, sw::plan<sw::data_parallel<dp<D>>, E...>, mesh<D, 1>, double>;
  sw::launch<mesh<D, 1>>([](auto& rank) {
    sw::eager on(rank);
    model_type model;
    sw::initialise(model, on, 5);
    sw::executor<compiled> ex(rank);
    ex.initialise(5);
    std::vector<double> x;
    for (int i = 0; i < 42; ++i) x.push_back(std::sin(0.7 * i) + 0.1);
    ex.set_input(0, x);
    const auto input = sw::dtensor_of<double, sw::shape<7, 6>, mesh<D, 1>, sw::on<dp<D>, sw::shard<0>>>::distribute(on, x);
    sw::eager_optimizer<Optimizer, model_type> optimizer;
    sw::env_of<sw::eager_optimizer<Optimizer, model_type>> env;
    sw::env_of<compiled> same;
    env.lr = same.lr = 0.125;
    env.momentum = same.momentum = 0.5;
    env.max_norm = same.max_norm = 3;
    if constexpr (sizeof...(E) > 1) env.template group<"own">().lr = same.template group<"own">().lr = 0.5;
    for (env.step = same.step = 1; env.step <= 3; ++env.step, ++same.step) {
      const auto [loss, gradients] = sw::value_and_grad(eager_task{})(model, input);
      CHECK(!gradients.fast.weight.has_value());
      CHECK(gradients.last.weight.has_value());
      optimizer.step(model, gradients, env);
      ex.run(same);
    }
    int k = 0;
    sw::for_each_parameter(model, [&](const std::string&, const auto& p) {
      const auto own = p.to_local();
      const auto block = std::as_const(ex).parameter(k++);
      REQUIRE(own.size() == block.size());
      for (std::size_t i = 0; i < block.size(); ++i) CHECK(own[i] == block[i]);
    });
  });
}

}  // namespace

TEST_CASE("parameter groups: a group's numbers are a run's, every optimizer, 1, 2 and 4 ranks") {
  check_groups<1, 1, sw::sgd<>>();
  check_groups<2, 1, sw::clip_norm<sw::sgd<true>>>();
  check_groups<2, 2, sw::adam<>>();
  check_groups<1, 2, sw::clip_norm<sw::adamw<true>>>();
}
TEST_CASE("parameter groups: over lists, on 1 and 3 ranks") {
  check_groups<1, 1, sw::adam<>, sw::pipeline<sw::fused_optimizer>>();
  check_groups<3, 1, sw::adamw<true>,
               sw::pipeline<sw::comm_fusion_in_place<1>, sw::fused_optimizer, sw::remove_copy_from_optimizer>>();
  check_groups<3, 1, sw::adam<>, sw::pipeline<sw::foreach_optimizer>>();
  // a list for each group; one of two weights in two
  using lists = step<1, 1, beside, sw::adam<>, sw::pipeline<sw::fused_optimizer>, no_decay, slow, fast_bias>;
  using parts = step<1, 1, beside, sw::adam<>, sw::pipeline<sw::fused_optimizer, sw::split_fused_optimizer<2, 0>>, no_decay,
                     slow, fast_bias>;
  static_assert(sw::get_all_fused_optimizer_blocks(lists::program).count == 4);
  static_assert(sw::get_all_fused_optimizer_blocks(parts::program).count == 5);
  CHECK(trained<lists>(each_its_own) == trained<parts>(each_its_own));
}
TEST_CASE("parameter groups: a number that no optimizer works with is refused with the group's name") {
  using groups = step<1, 1, beside, sw::adam<>, sw::pipeline<>, no_decay, slow>;
  CHECK_THROWS_WITH(trained<groups>([](auto& env) { env.template group<"slow">().lr = -1; }),
                    doctest::Contains("env.group<\"slow\">().lr is -1"));
  CHECK_THROWS_WITH(trained<groups>([](auto& env) { env.template group<"no_decay">().beta2 = 1; }),
                    doctest::Contains("env.group<\"no_decay\">().beta2 is 1"));
  CHECK_THROWS_WITH(trained<groups>([&](auto& env) { env.template group<"slow">().lr = std::nan("1"); }),
                    doctest::Contains("env.group<\"slow\">().lr is not a number"));
}
TEST_CASE("frozen: as a group with rate 0, without gradients, states and sums, 1, 2 and 4 ranks") {
  check_frozen<1, 1, sw::adam<>>();
  check_frozen<2, 1, sw::sgd<true>>();
  check_frozen<2, 2, sw::clip_norm<sw::adamw<>>>();
  check_frozen<3, 1, sw::adam<>, sw::pipeline<sw::comm_fusion_in_place<1>, sw::fused_optimizer>>();
}
TEST_CASE("frozen: parameters by their own paths, with patterns and in lists") {
  CHECK(frozen_paths<with<behind, sw::at<"last.weight", sw::frozen>>>() == "last.weight ");
  CHECK(frozen_paths<with<behind, sw::at<"*.weight", sw::frozen>>>() == "fast.weight last.weight ");
  CHECK(frozen_paths<with<behind, sw::at<"last.*", sw::frozen>>>() ==
        frozen_paths<with<behind, sw::at<"last", sw::frozen>>>());
  CHECK(frozen_paths<with<beside, sw::at<"slow.1.bias", sw::frozen>>>() == "slow.1.bias ");
  CHECK(frozen_paths<with<beside, sw::at<"slow.*.bias", sw::frozen>, sw::at<"slow.0", sw::frozen>>>() ==
        "slow.0.weight slow.0.bias slow.1.bias ");
  // beside what is frozen, groups are as they were
  CHECK(frozen_paths<with<beside, sw::at<"slow.1.bias", sw::frozen>, slow>>() == "slow.1.bias ");
}
TEST_CASE("frozen: parameters as a group with rate 0, 1, 2, 3 and 4 ranks") {
  check_frozen_parameters<1, 1, sw::adam<>>();
  check_frozen_parameters<2, 2, sw::sgd<true>>();
  check_frozen_parameters<3, 1, sw::adam<>, sw::pipeline<sw::comm_fusion_in_place<1>, sw::fused_optimizer>>();
}
TEST_CASE("frozen and grouped: eager training is the compiled step's, bit by bit") {
  check_eager<2, sw::adam<>, sw::at<"fast", sw::frozen>>();
  check_eager<2, sw::adam<>, sw::at<"fast.weight", sw::frozen>>();
  check_eager<3, sw::clip_norm<sw::sgd<true>>, sw::at<"fast", sw::frozen>, sw::at<"last", sw::param_group<"own", "bias">>>();
}
