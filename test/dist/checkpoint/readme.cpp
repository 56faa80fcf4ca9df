// SPDX-License-Identifier: Apache-2.0
// README's "Saving and resuming", as it stands there: resumed, it ends where a run ends that never stopped.
#include <shardwise/shardwise.hpp>

#include <shardwise/io/checkpoint/checkpoint.hpp>

#include <doctest/doctest.h>

#include <files.hpp>

#include <string>
#include <vector>

namespace {

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, net1), (sw::linear<16, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
struct task {
  using batch = sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
using step = sw::train_step<mlp, task, plan, mesh, sw::adam<>>;

void feed(auto& run, std::int64_t row) {
  std::vector<float> x(320), y(320);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>((static_cast<std::int64_t>(i) * 7 + row) % 11) / 11;
    y[i] = x[i] * x[i];
  }
  run.set_input(0, x);
  run.set_input(1, y);
}

// README, from here
using program = sw::executor<step, sw::thread_rank<mesh>>;

void train(program& run, const std::string& folder, bool resumes) {
  sw::checkpoint_position at{.seed = 7};    // step, seed, and numbers of your own
  if (resumes) at = sw::load(run, folder);  // the newest checkpoint, whatever plan and mesh saved it
  else run.initialise(at.seed);
  sw::step_env env;
  env.seed = at.seed;
  env.lr = 1e-3;
  for (env.step = at.step + 1; env.step <= 1000; ++env.step) {
    feed(run, at.integers["row"]++);  // set_input: the data's position is saved, too
    run.run(env);
    at.step = env.step;
    if (env.step % 100 == 0) sw::save(run, folder, at, {.keep_last = 3});
  }
}
// to here

}  // namespace

TEST_CASE("checkpoints: the README's loop") {
  const test::folder scratch;
  sw::launch<mesh>([&](auto& rank) {
    program run(rank), again(rank);
    train(run, scratch.path(), false);
    const auto end = run.full_parameter("net1.weight");
    sw::load(again, scratch.path(), {.step = 800});
    CHECK(again.full_parameter("net1.weight") != end);
    if (rank.index() == 0) {  // as if the run had ended behind step 800
      std::filesystem::remove_all(scratch / "step-00000900");
      std::filesystem::remove_all(scratch / "step-00001000");
      std::string record = test::read_text(scratch / "checkpoints.json");
      record.erase(record.find(",\n {\"name\":\"step-00000900"));
      test::write_text(scratch / "checkpoints.json", record + "]}");
    }
    rank.barrier();
    train(again, scratch.path(), true);
    CHECK(again.full_parameter("net1.weight") == end);
  });
}
