// SPDX-License-Identifier: Apache-2.0
// Where a step's time goes, as a trace for ui.perfetto.dev, and its memory, as a sum.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <shardwise/io/trace_export.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, up), (sw::linear<16, 10>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(x))); }
};
struct task {
  using batch = sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
using step = sw::train_step<perceptron, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>>;

int main() {
  const std::string path = "shardwise_task_27.json";
  std::vector<sw::timeline> lines(mesh::size, sw::timeline(/*steps*/ 3));
  std::size_t calls = 0;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    run.set_input(0, std::vector<float>(32 * 10, 1));
    run.set_input(1, std::vector<float>(32 * 10, 1));
    run.record(&lines[rank.index()]);
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 3; ++env.step) run.run(env);
    if (rank.index() == 0) calls = run.call_count();
  });
  sw::write_chrome_trace(path, lines);

  std::stringstream file;
  file << std::ifstream(path).rdbuf();
  const std::string trace = file.str();
  std::size_t events = 0;
  for (std::size_t at = trace.find("\"call\":"); at != std::string::npos; at = trace.find("\"call\":", at + 1)) ++events;
  check(events == 3 * mesh::size * calls, "there is an event for each call of each step on each rank");
  for (const char* module : {"up", "down"})
    check(trace.find("\"module\":\"" + std::string(module) + "\"") != std::string::npos, "under its module's name");

  std::int64_t sum = 0;
  for (const std::int64_t bytes : step::memory_use::value.kind)
    sum += bytes;  // parameters, gradients, states, activations, ...
  check(sum <= step::peak_bytes && sum > 0.9 * step::peak_bytes,
        "the kinds add up to the peak, but for what is free between them");
  std::filesystem::remove(path);
}
