// SPDX-License-Identifier: Apache-2.0
// The example's training step without fusion, with pointwise regions, with regions that follow other kernels, and with
// products merged and the adjoints of norms joined as well: the four take turns in one process, on thread ranks, so that a
// busy machine slows all of them.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <shardwise/shardwise.hpp>

#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>

#include "../../examples/train_text/model.hpp"

namespace {

namespace sw = shardwise;
namespace tt = train_text;

#ifndef DP
#define DP 1
#endif
#ifndef TP
#define TP 1
#endif
struct dp : sw::axis<DP> {};
struct tp : sw::axis<TP> {};
using mesh = sw::mesh<dp, tp>;
using size = tt::config<16, 128, 128, 4, 4>;
template <class... Passes>
using step = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp>, tt::megatron_plan<size, dp, tp>, mesh,
                            sw::clip_norm<sw::adamw<true>>, sw::pipeline<Passes...>, float>;

constexpr int rounds = 15, steps = 2;

using clock = std::chrono::steady_clock;

// Wall time, and the processor time of rank 0's thread, which other programs disturb less.
struct timing {
  double wall = 0, cpu = 0;
};
double cpu_now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class Executor, class Rank>
timing seconds_of(Executor& ex, Rank& rank, int round) {
  sw::step_env env;
  env.lr = 1e-3;
  env.max_norm = 1;
  rank.barrier();
  const auto start = clock::now();
  const double cpu = cpu_now();
  for (int s = 0; s < steps; ++s) {
    env.step = round * steps + s + 1;
    ex.run(env);
  }
  const double used = cpu_now() - cpu;
  rank.barrier();
  return {std::chrono::duration<double>(clock::now() - start).count(), used};
}

template <class Executor>
void prepare(Executor& ex) {
  std::vector<std::int32_t> bytes(size::batch * size::time);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::int32_t>(i * 7919U % 256U);
  ex.initialise(1);
  ex.set_input(0, bytes);
  ex.set_input(1, bytes);
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

template <class Step>
void report(const char* what, const std::vector<timing>& all) {
  std::vector<double> wall, cpu;
  for (const timing& t : all) {
    wall.push_back(t.wall);
    cpu.push_back(t.cpu);
  }
  const double tokens = double{size::batch} * size::time * steps;
  constexpr sw::passes::kernel_counts k = sw::passes::kernel_calls(Step::program);
  std::printf(
      "{\"what\":\"%s\",\"dp\":%d,\"tp\":%d,\"tokens_per_second\":%.0f,\"tokens_per_cpu_second\":%.0f,"
      "\"kernels\":%d,\"launches\":%d,\"peak_bytes\":%lld}\n",
      what, DP, TP, tokens / median(wall), tokens / median(cpu), k.kernels, k.launches,
      static_cast<long long>(Step::peak_bytes));
}

}  // namespace

int main() {
  using plain = step<>;
  using pointwise = step<sw::fuse_pointwise>;
  using kernels = step<sw::fuse_kernels>;
  using merged = step<sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>;
  constexpr int programs = 4;
  std::vector<timing> seconds[programs];
  sw::launch<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<plain, rank_type> a(rank);
    sw::executor<pointwise, rank_type> b(rank);
    sw::executor<kernels, rank_type> c(rank);
    sw::executor<merged, rank_type> d(rank);
    prepare(a);
    prepare(b);
    prepare(c);
    prepare(d);
    for (int round = 0; round < rounds; ++round) {
      const timing t[programs] = {seconds_of(a, rank, round), seconds_of(b, rank, round), seconds_of(c, rank, round),
                                  seconds_of(d, rank, round)};
      if (rank.index() == 0 && round > 0)
        for (int k = 0; k < programs; ++k) seconds[k].push_back(t[k]);
    }
  });
  report<plain>("plain", seconds[0]);
  report<pointwise>("fuse_pointwise", seconds[1]);
  report<kernels>("fuse_kernels", seconds[2]);
  report<merged>("merge_products, fuse_kernels, join_norm_adjoints", seconds[3]);
}
