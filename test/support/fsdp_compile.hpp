// SPDX-License-Identifier: Apache-2.0
// Compiled training of shards beside the eager one: what the suite of FSDP under a compiler asks of each pipeline.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <fsdp.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <string>
#include <vector>

namespace test::fsdp {

// What stands for the suite's backends: nothing, values of the forward pass computed again, that and kernels fused.
using aot_eager = sw::pipeline<>;
using decomp_partition = sw::pipeline<sw::cancel_redistributions, sw::merge_common, sw::rematerialise<100>>;
using inductor = sw::pipeline<sw::cancel_redistributions, sw::merge_common, sw::rematerialise<100>, sw::fuse_kernels>;

inline constexpr int warm_up = 1, compiled_iterations = 10, world = 2;

inline sw::step_env compile_env(int step) {
  sw::step_env env;
  env.seed = 17;
  env.step = step;
  env.lr = 1e-4;
  return env;
}

// The parameters of a model that each of two ranks would draw by its own seed: of every one, a rank's rows are those that it drew.
template <class Alone>
std::vector<std::vector<float>> rows_of_both_seeds() {
  std::vector<std::vector<float>> drawn[world];
  sw::launch<typename Alone::mesh_type>([&](auto& rank) {
    sw::executor<Alone, std::remove_reference_t<decltype(rank)>> ex(rank);
    for (int r = 0; r < world; ++r) {
      ex.initialise(static_cast<std::uint64_t>(r));
      for (int i = 0; i < ex.parameter_count(); ++i) drawn[r].emplace_back(ex.parameter(i).begin(), ex.parameter(i).end());
    }
  });
  for (std::size_t i = 0; i < drawn[0].size(); ++i) {
    std::vector<float>& all = drawn[0][i];
    for (std::size_t k = all.size() / world; k < all.size(); ++k) all[k] = drawn[1][i][k];
  }
  return drawn[0];
}

// Losses of the compiled step and of the eager one, step by step, from the same parameters; Alone: a program of the same model on one
// rank. feed(executor, step), and operands(on, step): what the eager task is called with, as a tuple.
template <class Step, class Alone, class Plan, template <class> class Model, class Task>
void check_beside_eager(const auto& feed, const auto& operands) {
  using mesh = typename Step::mesh_type;
  const auto initial = rows_of_both_seeds<Alone>();
  sw::launch<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<Step, rank_type> compiled(rank);
    using bound = sw::bind_eager<Model, Plan, mesh, float, rank_type>;
    bound model{};
    sw::eager on(rank);
    for (int i = 0; i < compiled.parameter_count(); ++i) compiled.set_parameter(i, initial[static_cast<std::size_t>(i)]);
    sw::load_parameters(model, on, compiled);
    sw::eager_optimizer<sw::sgd<>, bound> optimizer;
    for (int s = 1; s <= warm_up + compiled_iterations; ++s) {
      const sw::step_env env = compile_env(s);
      feed(compiled, s);
      compiled.run(env);
      on.start_step(env.seed, env.step);
      const auto [loss, gradients] =
          std::apply([&](const auto&... x) { return sw::value_and_grad(Task{})(model, x...); }, operands(on, s));
      optimizer.step(model, gradients, env);
      if (s <= warm_up) continue;
      const double want = loss.item(), got = compiled.loss();
      CHECK(std::abs(got - want) <= 1e-8 + 1e-5 * std::abs(want));
      CHECK(std::isfinite(want));
    }
  });
}

}  // namespace test::fsdp
