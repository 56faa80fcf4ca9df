// SPDX-License-Identifier: Apache-2.0
// Times a train step on GPUs, replayed as one CUDA graph and launched call by call: one JSON line a figure.
#pragma once

#include <shardwise/cuda.cuh>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace bench {

namespace sw = shardwise;

struct figure {
  double median_us, best_us, host_us;
};

// Microseconds a step when steps are queued back to back; the median of `blocks` blocks of `steps`. host_us is what the
// thread that queues them spends.
template <class Executor>
figure time_steps(Executor& ex, auto& rank, const sw::step_env& env, int blocks, int steps) {
  using clock = std::chrono::steady_clock;
  const auto micro = [](auto d) { return std::chrono::duration<double, std::micro>(d).count(); };
  for (int i = 0; i < steps; ++i) ex.run(env);
  ex.synchronize();
  std::vector<double> all, host;
  for (int b = 0; b < blocks; ++b) {
    rank.barrier();
    const auto begin = clock::now();
    for (int i = 0; i < steps; ++i) ex.run(env);
    const auto queued = clock::now();
    ex.synchronize();
    all.push_back(micro(clock::now() - begin) / steps);
    host.push_back(micro(queued - begin) / steps);
  }
  std::sort(all.begin(), all.end());
  std::sort(host.begin(), host.end());
  return {all[all.size() / 2], all[0], host[host.size() / 2]};
}

template <class Step>
void measure(const char* what, int steps, auto&& feed) {
  using mesh = typename Step::mesh_type;
  if (sw::cuda::device_count() < mesh::size) return;
  sw::launch_cuda<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    for (const sw::device_execution how : {sw::device_execution::graph, sw::device_execution::stream}) {
      sw::executor<Step, rank_type> ex(rank, how);
      ex.initialise(1);
      feed(ex);
      sw::step_env env;
      env.step = 1;
      env.lr = 1e-6;
      env.max_norm = 1;
      const figure f = time_steps(ex, rank, env, 15, steps);
      if (rank.index() != 0) continue;
      std::printf(
          "{\"what\":\"%s\",\"gpus\":%d,\"mode\":\"%s\",\"step_us\":%.1f,\"best_us\":%.1f,\"host_us\":%.1f,\"calls\":%zu,"
          "\"peak_bytes\":%lld}\n",
          what, mesh::size, how == sw::device_execution::graph ? "graph" : "stream", f.median_us, f.best_us, f.host_us,
          ex.call_count(), static_cast<long long>(Step::peak_bytes));
      std::fflush(stdout);
    }
  });
}

void floats(auto& ex, std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i * 37 % 101) / 101.0F;
  ex.set_input(0, x);
}

}  // namespace bench
