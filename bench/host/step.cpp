// SPDX-License-Identifier: Apache-2.0
// The example's training step on the host, for torch_rival.py beside this, which starts it in turns with PyTorch's: one JSON line.
//   bench_host_step DP TP THREADS STEPS    a mesh of 1x1, 2x1, 1x2 or 2x2 ranks, threads of each rank, steps behind three to warm up
#include <shardwise/shardwise.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include <train_text/model.hpp>

namespace {

namespace sw = shardwise;
namespace tt = train_text;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
using size = tt::config<16, 128, 128, 4, 4>;
constexpr int warm_up = 3;

template <int D, int T>
void run(int threads, int steps) {
  using step = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp<D>>, tt::megatron_plan<size, dp<D>, tp<T>>,
                              sw::mesh<dp<D>, tp<T>>, sw::clip_norm<sw::adamw<true>>>;
  std::vector<double> took;
  double loss = 0;
  sw::launch<sw::mesh<dp<D>, tp<T>>>([&](auto& rank) {
    rank.compute_threads(threads);
    sw::executor<step> ex(rank);
    ex.initialise(1);
    std::vector<std::int32_t> in(size::batch * size::time), next(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<std::int32_t>(i * 7919U % 251U);
      next[i] = static_cast<std::int32_t>((i + 1) * 7919U % 251U);
    }
    ex.set_input(0, in);
    ex.set_input(1, next);
    sw::step_env env;
    env.seed = 1;
    env.max_norm = 1;
    env.lr = 1e-3;
    for (env.step = 1; env.step <= steps + warm_up; ++env.step) {
      rank.barrier();
      const std::int64_t begin = sw::runtime::now();
      ex.run(env);
      rank.barrier();
      if (env.step > warm_up && rank.index() == 0) took.push_back(static_cast<double>(sw::runtime::now() - begin) * 1e-6);
    }
    if (rank.index() == 0) loss = static_cast<double>(ex.loss());
  });
  std::sort(took.begin(), took.end());
  const double median = took[took.size() / 2];
  std::printf("{\"mesh\": \"%dx%d\", \"threads\": %d, \"step_ms\": %.3f, \"tokens_per_s\": %.0f, \"loss\": %.6f}\n", D, T,
              threads, median, size::batch * size::time * 1000 / median, loss);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int d = argc > 1 ? std::atoi(argv[1]) : 0, t = argc > 2 ? std::atoi(argv[2]) : 0;
    const int threads = argc > 3 ? std::atoi(argv[3]) : 1, steps = argc > 4 ? std::atoi(argv[4]) : 10;
    if (threads < 1 || steps < 1) throw std::runtime_error("bench_host_step: threads and steps are at least 1");
    if (d == 1 && t == 1) run<1, 1>(threads, steps);
    else if (d == 2 && t == 1) run<2, 1>(threads, steps);
    else if (d == 1 && t == 2) run<1, 2>(threads, steps);
    else if (d == 2 && t == 2) run<2, 2>(threads, steps);
    else throw std::runtime_error("bench_host_step DP TP THREADS STEPS: built for 1 1, 2 1, 1 2 and 2 2");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
