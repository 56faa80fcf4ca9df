// SPDX-License-Identifier: Apache-2.0
// Eager training of a model whose parameters are stored in shards over two axes, and in hybrid shards: value_and_grad and optimizer
// steps are the compiled train_step, bit for bit, and parameters and states move to data parallelism and back.
#include <uneven_net.hpp>

#include <shardwise/module/eager_gradient.hpp>

#include <doctest/doctest.h>

namespace {

namespace sw = shardwise;
using namespace test::fsdp;
using namespace test::uneven;

template <class A, class B, class Plan>
void check_steps() {
  using mesh = sw::mesh<A, B>;
  using axes = batch_axes<A, B>;
  using step = sw::train_step<net, fit<axes>, Plan, mesh, sw::adam<>, sw::pipeline<>, double>;
  using whole = sw::train_step<net, fit<axes>, sw::plan<sw::data_parallel<A>, sw::data_parallel<B>>, mesh, sw::adam<>,
                               sw::pipeline<>, double>;
  sw::launch<mesh>([](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<step, rank_type> program(rank), again(rank);
    sw::executor<whole, rank_type> other(rank);
    program.initialise(5);
    sw::eager on(rank);
    sw::bind_eager<net, Plan, mesh, double, rank_type> model{};
    sw::initialise(model, on, 5);
    sw::eager_optimizer<sw::adam<>, decltype(model)> optimizer;
    using input = sw::dtensor_of<double, sw::shape<7, 5>, mesh, sw::on<A, sw::shard<0>>, sw::on<B, sw::shard<0>>>;
    using target = sw::dtensor_of<double, sw::shape<7, 3>, mesh, sw::on<A, sw::shard<0>>, sw::on<B, sw::shard<0>>>;
    for (int s = 1; s <= 3; ++s) {
      const sw::step_env env = test::running::step_numbers(s);
      const auto xs = test::running::numbers<double>(35, s), ts = test::running::numbers<double>(21, s + 20);
      program.set_input(0, xs);
      program.set_input(1, ts);
      program.run(env);
      on.start_step(env.seed, env.step);
      const auto [loss, gradients] =
          sw::value_and_grad(fit<axes>{})(model, input::distribute(on, xs), target::distribute(on, ts));
      CHECK(std::abs(loss.item() - program.loss()) <= 1e-14 * program.loss());  // added up over the axes in another order
      optimizer.step(model, gradients, env);
      sw::for_each_parameter(model, [&](const std::string& path, auto& p) {
        const auto theirs = program.parameter(program.parameter_index(path));
        const auto ours = p.to_local().data;
        CHECK_MESSAGE(std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end()), path, " differs in step ", s);
      });
    }
    // to data parallelism and back: the same bits on every rank
    other.copy_parameters(program);
    other.copy_state(program);
    again.copy_parameters(other);
    again.copy_state(other);
    for (int i = 0; i < program.parameter_count(); ++i) {
      const auto a = program.parameter(i), b = again.parameter(i);
      CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    }
  });
}

TEST_CASE("eager training of shards over two axes is the compiled step") {
  using sharded = sw::fully_shard<node<2>, sw::shard_over<local<3>>, sw::reshard_after_forward<3>>;
  check_steps<node<2>, local<3>, sw::plan<sharded, sw::at<"up", sharded>>>();
}
TEST_CASE("eager training of hybrid shards is the compiled step") {
  using sharded = sw::fully_shard<dp<2>, sw::replicate_over<rep<2>>>;
  check_steps<rep<2>, dp<2>, sw::plan<sharded, sw::at<"up", sharded>>>();
}

}  // namespace
