// SPDX-License-Identifier: Apache-2.0
// The example's training step on one GPU without fusion, with pointwise regions, with regions that follow other kernels, and with
// merged products and joined adjoints besides: the kernels that one replay of each graph starts, and its time; the programs take
// turns. One JSON line each; the losses after as many steps are equal.
#include <shardwise/cuda.cuh>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <shardwise/operations/attention/device.cuh>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>

#include "../../examples/train_text/model.hpp"

namespace {

namespace sw = shardwise;
namespace tt = train_text;

struct dp : sw::axis<1> {};
struct tp : sw::axis<1> {};
using mesh = sw::mesh<dp, tp>;
using size = tt::config<16, 128, 128, 4, 4>;
template <class T, class... Passes>
using step = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp>, tt::megatron_plan<size, dp, tp>, mesh,
                            sw::clip_norm<sw::adamw<true>>, sw::pipeline<Passes...>, T, sw::cuda_backend>;

constexpr int rounds = 21, replays = 100;

template <class Executor>
void prepare(Executor& ex) {
  std::vector<std::int32_t> text(size::batch * size::time);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int32_t>(i * 131 % 251);
  ex.initialise(1);
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
void report(const char* what, Executor& ex, std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  constexpr sw::passes::kernel_counts k = sw::passes::kernel_calls(Step::program);
  const sw::cuda::graph_nodes& n = ex.nodes();
  std::printf(
      "{\"what\":\"%s\",\"type\":\"%s\",\"calls\":%d,\"launches\":%d,\"kernel_nodes\":%d,\"copy_nodes\":%d,\"fill_nodes\":%d,"
      "\"median_ms\":%.4f,\"best_ms\":%.4f,\"loss\":%.9g,\"peak_bytes\":%lld}\n",
      what, sizeof(typename Step::element) == 4 ? "float32" : "float64", k.kernels, k.launches, n.kernels, n.copies, n.fills,
      ms[ms.size() / 2], ms[0], static_cast<double>(ex.loss()), static_cast<long long>(Step::peak_bytes));
  std::fflush(stdout);
}

template <class T>
void measure() {
  using plain = step<T>;
  using pointwise = step<T, sw::fuse_pointwise>;
  using kernels = step<T, sw::fuse_kernels>;
  using merged = step<T, sw::merge_products, sw::fuse_kernels>;
  using all = step<T, sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>;
  sw::launch_cuda<mesh>([](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<plain, rank_type> a(rank);
    sw::executor<pointwise, rank_type> b(rank);
    sw::executor<kernels, rank_type> c(rank);
    sw::executor<merged, rank_type> d(rank);
    sw::executor<all, rank_type> e(rank);
    prepare(a);
    prepare(b);
    prepare(c);
    prepare(d);
    prepare(e);
    std::vector<double> ms[5];
    for (int round = 0; round < rounds; ++round) {
      ms[0].push_back(time_of(a));
      ms[1].push_back(time_of(b));
      ms[2].push_back(time_of(c));
      ms[3].push_back(time_of(d));
      ms[4].push_back(time_of(e));
    }
    report<plain>("plain", a, ms[0]);
    report<pointwise>("fuse_pointwise", b, ms[1]);
    report<kernels>("fuse_kernels", c, ms[2]);
    report<merged>("merge_products, fuse_kernels", d, ms[3]);
    report<all>("merge_products, fuse_kernels, join_norm_adjoints", e, ms[4]);
  });
}

}  // namespace

int main() {
  try {
    if (sw::cuda::device_count() == 0) {
      std::printf("no GPU found: nothing is measured\n");
      return 0;
    }
    measure<float>();
    measure<double>();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
