// SPDX-License-Identifier: Apache-2.0
// Training steps on one GPU without fusion, with pointwise regions, with regions that follow other kernels, with merged products and
// joined adjoints besides, and tuned for the device: the kernels that one replay of each graph starts, and its time; a model's programs
// take turns. One JSON line each; the losses after as many steps are equal. Models: the example, two perceptrons, ten layers.
// usage: bench_step_fusion_cuda [example] [small]
#include <shardwise/cuda.cuh>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include <shardwise/operations/attention/device.cuh>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/tune/tuned.hpp>

#include "models.hpp"

namespace {

namespace sw = shardwise;
namespace tt = train_text;

using dp = bench::dp<1>;
using tp = bench::tp<1>;
using mesh = sw::mesh<dp, tp>;
using size = bench::gpt_size;
template <class T, class Pipeline>
using example = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp>, tt::megatron_plan<size, dp, tp>, mesh,
                               sw::clip_norm<sw::adamw<true>>, Pipeline, T, sw::cuda_backend>;
template <class Pipeline>
using example_float = example<float, Pipeline>;
template <class Pipeline>
using example_double = example<double, Pipeline>;
template <class Pipeline>
using perceptrons = bench::tensor_parallel_step<1, sw::cuda_backend, Pipeline>;
template <class Pipeline>
using ten_layers = bench::data_parallel_step<10, 100, 100, 1, sw::cuda_backend, Pipeline>;

constexpr int rounds = 21, replays = 100;

void floats(auto& ex, std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i * 37 % 101) / 101.0F;
  ex.set_input(0, x);
}
void feed_text(auto& ex) {
  std::vector<std::int32_t> text(size::batch * size::time);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int32_t>(i * 131 % 251);
  ex.set_input(0, text);
  ex.set_input(1, text);
}

// Milliseconds a replay when replays are queued back to back.
template <class Executor>
double time_of(Executor& ex) {
  using clock = std::chrono::steady_clock;
  sw::step_env env;
  env.step = 1;
  env.lr = 1e-6;
  env.max_norm = 1;
  ex.run(env);
  ex.synchronize();
  const auto begin = clock::now();
  for (int i = 0; i < replays; ++i) ex.run(env);
  ex.synchronize();
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count() / replays;
}

template <class Step, class Executor>
void report(const char* model, const char* what, Executor& ex, std::vector<double> ms, double plain) {
  std::sort(ms.begin(), ms.end());
  constexpr sw::passes::kernel_counts k = sw::passes::kernel_calls(Step::program);
  const sw::cuda::graph_nodes& n = ex.nodes();
  std::printf(
      "{\"model\":\"%s\",\"what\":\"%s\",\"type\":\"%s\",\"calls\":%d,\"launches\":%d,\"kernel_nodes\":%d,\"copy_nodes\":%d,"
      "\"fill_nodes\":%d,\"median_ms\":%.4f,\"best_ms\":%.4f,\"of_plain\":%.3f,\"loss\":%.9g,\"peak_bytes\":%lld}\n",
      model, what, sizeof(typename Step::element) == 4 ? "float32" : "float64", k.kernels, k.launches, n.kernels, n.copies,
      n.fills, ms[ms.size() / 2], ms[0], ms[ms.size() / 2] / plain, static_cast<double>(ex.loss()),
      static_cast<long long>(Step::peak_bytes));
  std::fflush(stdout);
}

template <template <class> class Step>
void measure(const char* model, auto&& feed) {
  using plain = Step<sw::pipeline<>>;
  using pointwise = Step<sw::pipeline<sw::fuse_pointwise>>;
  using kernels = Step<sw::pipeline<sw::fuse_kernels>>;
  using merged = Step<sw::pipeline<sw::merge_products, sw::fuse_kernels>>;
  using all = Step<sw::pipeline<sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>>;
  using tuned = Step<sw::tuned<sw::h200>>;
  sw::launch_cuda<typename plain::mesh_type>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<plain, rank_type> a(rank);
    sw::executor<pointwise, rank_type> b(rank);
    sw::executor<kernels, rank_type> c(rank);
    sw::executor<merged, rank_type> d(rank);
    sw::executor<all, rank_type> e(rank);
    sw::executor<tuned, rank_type> f(rank);
    const auto each = [&](auto&& with) { with(a, 0), with(b, 1), with(c, 2), with(d, 3), with(e, 4), with(f, 5); };
    each([&](auto& ex, int) {
      ex.initialise(1);
      feed(ex);
    });
    std::vector<double> ms[6];
    for (int round = 0; round < rounds; ++round) each([&](auto& ex, int k) { ms[k].push_back(time_of(ex)); });
    std::vector<double> first = ms[0];
    std::sort(first.begin(), first.end());
    const double of = first[first.size() / 2];
    report<plain>(model, "plain", a, ms[0], of);
    report<pointwise>(model, "fuse_pointwise", b, ms[1], of);
    report<kernels>(model, "fuse_kernels", c, ms[2], of);
    report<merged>(model, "merge_products, fuse_kernels", d, ms[3], of);
    report<all>(model, "merge_products, fuse_kernels, join_norm_adjoints", e, ms[4], of);
    report<tuned>(model, "tuned", f, ms[5], of);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto on = [&](const char* name) {
    return argc < 2 || std::any_of(argv + 1, argv + argc, [&](const char* a) { return !std::strcmp(a, name); });
  };
  try {
    if (sw::cuda::device_count() == 0) {
      std::printf("no GPU found: nothing is measured\n");
      return 0;
    }
    if (on("small")) {
      measure<perceptrons>("two perceptrons", [](auto& ex) { floats(ex, 20 * 10); });
      measure<ten_layers>("10 layers of 100", [](auto& ex) { floats(ex, 100 * 100); });
    }
    if (on("example")) {
      measure<example_float>("example", [](auto& ex) { feed_text(ex); });
      measure<example_double>("example", [](auto& ex) { feed_text(ex); });
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
