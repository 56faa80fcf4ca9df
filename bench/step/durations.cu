// SPDX-License-Identifier: Apache-2.0
// Steps of small programs on one GPU, each replayed as one CUDA graph, beside the sum of their kernels' own times as CUPTI records them while
// the graph is replayed: what lies between is starting kernels. One JSON line a program, then its longest kernels. Programs: two perceptrons,
// ten layers of 100, five of 4096, and the seed Transformer in shards on a mesh of one; plain and tuned.
// Tuned by the table of SHARDWISE_BENCH_DEVICE (h200); products as SHARDWISE_BENCH_BACKEND (cuda_backend) says. Built without CUPTI (SHARDWISE_BENCH_CUPTI) it measures nothing.
// usage: bench_step_durations_cuda [ROWS]   how many kernels of each program are printed (default 8)
#if !SHARDWISE_BENCH_CUPTI
#include <cstdio>
int main() { std::puts("built without CUPTI: nothing is measured"); }
#else
#include <cupti.h>

#include <shardwise/operations/attention/device.cuh>

#include <cstdlib>
#include <map>

#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/tune/tuned.hpp>

#include "../../test/support/models.hpp"
#include "measure.cuh"
#include "models.hpp"

#ifndef SHARDWISE_BENCH_DEVICE
#define SHARDWISE_BENCH_DEVICE h200
#endif
#ifndef SHARDWISE_BENCH_BACKEND
#define SHARDWISE_BENCH_BACKEND cuda_backend
#endif

namespace {

namespace sw = shardwise;

struct kernel_time {
  double us = 0;
  int calls = 0;
};
std::map<std::string, kernel_time> kernels;

void cupti(CUptiResult status, const char* what) {
  if (status == CUPTI_SUCCESS) return;
  const char* text = "";
  cuptiGetResultString(status, &text);
  throw std::runtime_error(std::string(what) + " failed: " + text);
}
void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *bytes = std::size_t{8} << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, *bytes));
  *most_records = 0;
}
void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto* k = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    kernel_time& of = kernels[k->name];
    of.us += static_cast<double>(k->end - k->start) * 1e-3;
    ++of.calls;
  }
  std::free(buffer);
}

template <class Step>
void report(const char* program, const char* passes, int rows, auto&& feed) {
  constexpr int replays = 20;
  sw::launch_cuda<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank);
    ex.initialise(1);
    feed(ex);
    sw::step_env env;
    env.step = 1;
    env.lr = 1e-6;
    const bench::figure f = bench::time_steps(ex, rank, env, 15, 200);
    kernels.clear();
    cupti(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
    for (int i = 0; i < replays; ++i) ex.run(env);
    ex.synchronize();
    cupti(cuptiActivityFlushAll(1), "cuptiActivityFlushAll");
    cupti(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityDisable");
    double sum = 0;
    int calls = 0;
    std::vector<std::pair<double, std::string>> longest;
    for (const auto& [name, k] : kernels) {
      sum += k.us / replays;
      calls += k.calls / replays;
      longest.push_back({k.us / replays, name});
    }
    std::sort(longest.rbegin(), longest.rend());
    std::printf(
        "{\"what\":\"%s\",\"passes\":\"%s\",\"step_us\":%.1f,\"best_us\":%.1f,\"kernels\":%d,\"kernels_us\":%.1f,"
        "\"of_kernels\":%.2f}\n",
        program, passes, f.median_us, f.best_us, calls, sum, f.median_us / sum);
    for (int i = 0; i < rows && i < static_cast<int>(longest.size()); ++i) {
      const auto& [us, name] = longest[static_cast<std::size_t>(i)];
      std::printf("  %8.2f us %4d calls  %.110s\n", us, kernels[name].calls / replays, name.c_str());
    }
    std::fflush(stdout);
  });
}

// The seed test's sizes, in shards over an axis of one rank.
using sizes = test::transformer_sizes;
template <class B>
using transformer = test::transformer<sizes>::model<B>;
using axis = bench::dp<1>;
template <class Pipeline>
using sharded_transformer = sw::train_step<transformer, test::language_task<sizes, 4, axis>, sw::plan<sw::fully_shard<axis>>,
                                           sw::mesh<axis>, sw::adam<>, Pipeline, float, sw::SHARDWISE_BENCH_BACKEND>;
template <class Pipeline>
using perceptrons = bench::tensor_parallel_step<1, sw::SHARDWISE_BENCH_BACKEND, Pipeline>;
template <class Pipeline>
using ten_layers = bench::data_parallel_step<10, 100, 100, 1, sw::SHARDWISE_BENCH_BACKEND, Pipeline>;

template <class Pipeline>
using five_wide = bench::data_parallel_step<5, 4096, 100, 1, sw::SHARDWISE_BENCH_BACKEND, Pipeline>;

template <template <class> class Step>
void both(const char* program, int rows, auto&& feed) {
  report<Step<sw::pipeline<>>>(program, "none", rows, feed);
  report<Step<sw::tuned<sw::SHARDWISE_BENCH_DEVICE>>>(program, "tuned", rows, feed);
}

}  // namespace

int main(int argc, char** argv) {
  const int rows = argc > 1 ? std::atoi(argv[1]) : 8;
  try {
    if (sw::cuda::device_count() == 0) return std::puts("no GPU found: nothing is measured"), 0;
    cupti(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
    both<perceptrons>("two perceptrons", rows, [](auto& ex) { bench::floats(ex, 20 * 10); });
    both<ten_layers>("10 layers of 100", rows, [](auto& ex) { bench::floats(ex, 100 * 100); });
    both<five_wide>("5 layers of 4096", rows, [](auto& ex) { bench::floats(ex, 100 * 4096); });
    both<sharded_transformer>("seed Transformer in shards", rows, [](auto& ex) {
      std::vector<std::int32_t> tokens(4 * sizes::time), positions(sizes::time);
      for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 5 % sizes::vocabulary);
      for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int32_t>(i);
      ex.set_input(0, tokens);
      ex.set_input(1, tokens);
      ex.set_input(2, positions);
    });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
#endif
