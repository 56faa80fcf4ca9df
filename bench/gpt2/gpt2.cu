// SPDX-License-Identifier: Apache-2.0
// Trains GPT-2 124M (model.hpp) on made-up tokens, and says where the time of one GPU goes: a step replayed as one graph, then by
// kind of operation from runs that are launched call by call between events, each beside the least time that the kind can take
// (kinds.hpp). A table, then the same as JSON lines.
// usage: bench_gpt2_..._cuda [--unordered] [FLOORS]
//   --unordered   a library's attention adjoint may add in any order (order_attention_adjoints): faster, and no two runs alike
//   FLOORS        a file with the kinds' times alone, as torch_rival.py --floor prints them
#include <shardwise/cuda.cuh>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <shardwise/operations/attention/device_elements.cuh>
#include <shardwise/pass/analysis/run_time.hpp>
#include <shardwise/runtime/cuda/attention_library.hpp>

#include "../step/measure.cuh"
#include "kinds.hpp"

namespace {

namespace sw = shardwise;
using step = gpt2::step<sw::GPT2_BACKEND>;
SHARDWISE_DEVICE_ATTENTION(gpt2::activation)
constexpr int blocks = 7, steps_in_block = 10, warm_up = 2, recorded = 3;

// Seconds since this process was started, loading included; the clock's grain is 10 ms.
double since_start() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string word;
  for (int k = 3; k <= 22; ++k) fields >> word;  // field 22: when it was started
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
         std::atof(word.c_str()) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Seconds of f, which queues work, by the median of seven.
template <class F>
double seconds_of(cudaStream_t stream, int times, F&& f) {
  std::vector<double> all;
  for (int turn = 0; turn < 8; ++turn) {
    sw::cuda::timing_event begin, end;
    begin.record(stream);
    for (int k = 0; k < times; ++k) f();
    end.record(stream);
    sw::cuda::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (turn > 0) all.push_back(static_cast<double>(end.since(begin)) * 1e-9 / times);
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// A copy of a gibibyte, and one product of 8192 x 8192 with 4096 between, in the program's element type and by the plan that the
// library would take for it. Its factors are noise: a device that multiplies zeros draws less power and runs faster.
gpt2::rates measured_rates(int multiprocessors) {
  sw::cuda::step_state state(multiprocessors);
  sw::cuda::context& ctx = state.of_stream(0);
  ctx.plans->set_precision(sw::GPT2_BACKEND::precision);
  constexpr bool is_float = std::is_same_v<gpt2::activation, float>;
  gpt2::rates r;
  const std::size_t bytes = std::size_t{1} << 30;
  const sw::cuda::device_memory from(bytes), to(bytes), scratch(static_cast<std::size_t>(sw::device_scratch::product_bytes));
  r.bytes = 2.0 * static_cast<double>(bytes) / seconds_of(ctx.stream, 10, [&] {
              sw::cuda::check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, ctx.stream),
                              "cudaMemcpyAsync");
            });
  std::vector<gpt2::activation> noise(std::size_t{1} << 20);
  std::uint32_t seed = 1;
  for (gpt2::activation& x : noise)
    x = static_cast<gpt2::activation>(static_cast<float>((seed = seed * 1664525U + 1013904223U) >> 8) / 8388608.0F - 1.0F);
  const std::size_t part = noise.size() * sizeof(gpt2::activation);
  for (std::size_t at = 0; at + part <= bytes; at += part)
    sw::cuda::check(cudaMemcpy(from.data() + at, noise.data(), part, cudaMemcpyHostToDevice), "cudaMemcpy");
  sw::cuda::matmul_shape s;
  s.rows = s.columns = s.ld_a = s.ld_d = 8192;
  s.depth = s.ld_b = 4096;
  s.type = sw::cuda::data_type<gpt2::activation>;
  const sw::cuda::product_scalar<gpt2::activation> one = 1, zero = 0;
  const auto product = [&] {
    ctx.plans->run(s, &one, from.data(), from.data() + (bytes >> 1), &zero, to.data(), scratch.data(), ctx,
                   is_float ? &sw::cuda::split_product::candidate : nullptr);
  };
  r.operations = 2.0 * 8192 * 8192 * 4096 / seconds_of(ctx.stream, 4, product);
  return r;
}

struct row {
  double ms = 0, calls_floor = 0;  // calls_floor: of the calls as they stand, by their own bytes and operations
  int calls = 0;
};

template <class Step>
std::map<std::string, row> by_kind(const sw::timeline& line, const gpt2::rates& r) {
  const auto& g = sw::runtime::program_source<Step>::program;
  sw::passes::phase_marks<std::remove_cvref_t<decltype(g)>::node_capacity> phases;
  sw::passes::mark_phases(phases, g);
  std::map<std::string, row> rows;
  for (const sw::timeline_run& run : line.runs())
    for (const sw::timeline_event& e : line.events(run)) {
      if (e.kind != sw::event_kind::call) continue;
      const auto& calls = line.program_of(run).calls;
      const sw::timeline_call& c = calls[static_cast<std::size_t>(e.call)];
      row& x = rows[gpt2::kind_of(c, phases.of(c.node), g.spec_of(c.node))];
      x.ms += static_cast<double>(e.time.end - e.time.begin) * 1e-6 / recorded;
      for (int k = 0; k < e.calls; ++k) {
        const int node = calls[static_cast<std::size_t>(e.call + k)].node;
        const double moving = sw::bytes_of(g, node) / r.bytes, computing = sw::flops_of(g, node) / r.operations;
        x.calls_floor += (moving > computing ? moving : computing) * 1e3 / recorded;
      }
      x.calls += e.calls;
    }
  return rows;
}

void print(const std::map<std::string, row>& rows, const std::map<std::string, double>& floors) {
  std::map<std::string, row> all = rows;
  for (const auto& [kind, ms] : floors) all[kind];  // also what is part of another kind's kernels
  row total;
  double least = 0;
  std::printf("%-32s %6s %9s %9s %6s %12s\n", "kind", "calls", "ms", "floor ms", "ratio", "calls' own");
  const auto line = [](const char* kind, int calls, const row& x, double floor) {
    std::printf("%-32s %6d %9.3f %9.3f %6.2f %12.3f\n", kind, calls, x.ms, floor, floor > 0 ? x.ms / floor : 0.0,
                x.calls_floor);
  };
  const auto floor_of = [&](const std::string& kind) { return floors.count(kind) ? floors.at(kind) : 0.0; };
  for (const auto& [kind, x] : all) {
    line(kind.c_str(), x.calls / recorded, x, floor_of(kind));
    total.ms += x.ms;
    total.calls += x.calls / recorded;
    total.calls_floor += x.calls_floor;
    least += floor_of(kind);
  }
  line("all", total.calls, total, least);
  for (const auto& [kind, x] : all)
    std::printf(
        "{\"what\": \"gpt2_kind\", \"name\": \"" GPT2_NAME
        "\", \"batch\": %d, \"kind\": \"%s\", \"calls\": %d, \"ms\": %.4f, \"floor_ms\": %.4f, \"calls_floor_ms\": %.4f}\n",
        gpt2::size::batch, kind.c_str(), x.calls / recorded, x.ms, floor_of(kind), x.calls_floor);
}

template <class Executor>
double checked_loss(Executor& ex) {
  const double loss = static_cast<double>(ex.loss());
  if (!std::isfinite(loss)) throw std::runtime_error("gpt2: the loss is not finite");
  return loss;
}

void run(auto& rank, const char* floors_file, double main_s, double context_s) {
  const double rank_s = since_start();
  std::size_t free_before = 0, all = 0;
  sw::cuda::check(cudaMemGetInfo(&free_before, &all), "cudaMemGetInfo");
  std::vector<std::int32_t> ids(static_cast<std::size_t>(gpt2::size::batch) * gpt2::size::time + 1);
  std::uint32_t seed = 12345;
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>((seed = seed * 1664525U + 1013904223U) >> 8) % 50257;
  const std::vector<std::int32_t> next(ids.begin() + 1, ids.end());
  ids.pop_back();

  sw::executor<step, std::remove_reference_t<decltype(rank)>> ex(rank);
  const bool speaks = rank.index() == 0;
  const double made_s = since_start();
  ex.initialise(1);
  const double initialised_s = since_start();
  ex.set_input(0, ids);
  ex.set_input(1, next);
  sw::step_env env;
  env.step = 1;
  env.lr = 6e-4;
  env.beta2 = 0.95;
  env.weight_decay = 0.1;
  env.max_norm = 1;
  ex.run(env);
  const double first_loss = checked_loss(ex), first_s = since_start();

  if (speaks)
    std::printf(
        "{\"what\": \"gpt2_start\", \"name\": \"" GPT2_NAME
        "\", \"main_s\": %.2f, \"context_s\": %.2f, \"rank_s\": %.2f, \"executor_s\": %.2f, \"initialised_s\": %.2f, "
        "\"first_step_s\": %.2f}\n",
        main_s, context_s, rank_s, made_s, initialised_s, first_s);

  const bench::figure f = bench::time_steps(ex, rank, env, blocks, steps_in_block);
  std::size_t free_after = 0;
  sw::cuda::check(cudaMemGetInfo(&free_after, &all), "cudaMemGetInfo");
  const double last_loss = checked_loss(ex), tokens = gpt2::rows * gpt2::copies / f.median_us * 1e6;
  const int steps = 1 + (blocks + 1) * steps_in_block;
  if (!(last_loss < first_loss)) throw std::runtime_error("gpt2: the loss has not fallen over steps on one batch");
  if (speaks)
    std::printf(
        "{\"what\": \"gpt2_124m\", \"name\": \"" GPT2_NAME
        "\", \"gpus\": %d, \"batch\": %d, \"step_ms\": %.3f, \"best_ms\": %.3f, \"tok_per_s\": %.0f, \"arena_MiB\": %.1f, \"device_MiB\": "
        "%.1f, \"first_s\": %.2f, \"kernel_nodes\": %d, \"calls\": %zu, \"first_loss\": %.6f, \"loss_after_%d\": %.6f}\n",
        gpt2::gpus, gpt2::size::batch, f.median_us * 1e-3, f.best_us * 1e-3, tokens,
        static_cast<double>(step::peak_bytes) / 1048576, static_cast<double>(free_before - free_after) / 1048576, first_s,
        ex.kernel_nodes(), ex.call_count(), first_loss, steps, last_loss);
  const sw::product_report& p = ex.products();
  if (speaks)
    std::printf("{\"what\": \"gpt2_products\", \"name\": \"" GPT2_NAME
                "\", \"shapes\": %d, \"measured\": %d, \"remembered\": %d, \"candidates\": %d, \"seconds\": %.2f}\n",
                p.shapes, p.measured, p.remembered, p.candidates, p.seconds);
  std::fflush(stdout);

  const gpt2::rates r = measured_rates(rank.multiprocessors());
  if (speaks)
    std::printf("{\"what\": \"gpt2_rates\", \"name\": \"" GPT2_NAME "\", \"copy_TBps\": %.3f, \"product_TFLOPs\": %.1f}\n",
                r.bytes * 1e-12, r.operations * 1e-12);
  std::map<std::string, double> floors = gpt2::floors(r);
  if (floors_file) gpt2::read_floors(floors_file, floors);
  sw::timeline line(warm_up + recorded);
  ex.record(&line);
  for (int k = 0; k < warm_up; ++k) ex.run(env);
  line.clear();
  for (int k = 0; k < recorded; ++k) ex.run(env);
  ex.synchronize();
  if (!speaks) return;
  print(by_kind<step>(line, r), floors);
  std::printf("attention:\n%s", sw::cuda::attention_report().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const double main_s = since_start();
    const char* floors = nullptr;
    for (int k = 1; k < argc; ++k)
      if (std::strcmp(argv[k], "--unordered") == 0) sw::cuda::order_attention_adjoints(false);
      else floors = argv[k];
    if (sw::cuda::device_count() < gpt2::gpus) {
      std::printf("%d GPUs found, %d needed: nothing is measured\n", sw::cuda::device_count(), gpt2::gpus);
      return 0;
    }
    sw::cuda::check(cudaFree(nullptr), "cudaFree");
    const double context_s = since_start();
    sw::launch_cuda<gpt2::mesh>([&](auto& rank) { run(rank, floors, main_s, context_s); });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
