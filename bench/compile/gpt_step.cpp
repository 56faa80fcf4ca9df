// SPDX-License-Identifier: Apache-2.0
// What sweep.py compiles: the example's GPT of LAYERS blocks as a train step on a 2 x 2 mesh, with its executor: on host
// threads, or with DEVICE on GPUs, kernels included; with FUSED, its kernels fused.
#ifdef DEVICE
#include <shardwise/cuda.cuh>
#else
#include <shardwise/shardwise.hpp>
#endif
#include <shardwise/pass/fuse/fuse.hpp>

#include "../../examples/train_text/model.hpp"

#ifndef LAYERS
#define LAYERS 12
#endif

using namespace train_text;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
using sizes = config<16, 128, 128, 4, LAYERS>;
#ifdef DEVICE
using backend = sw::cuda_backend;
using rank_type = sw::cuda_rank<mesh>;
#else
using backend = sw::host_backend;
using rank_type = sw::thread_rank<mesh>;
#endif
#ifdef FUSED
using passes = sw::pipeline<sw::fuse_kernels>;
#else
using passes = sw::pipeline<>;
#endif
using step = sw::train_step<gpt_of<sizes>::gpt, next_byte<sizes, dp>, megatron_plan<sizes, dp, tp>, mesh,
                            sw::clip_norm<sw::adamw<true>>, passes, float, backend>;

#ifdef REPORT
struct graph {
  static constexpr const auto& value = step::program;
};
using kernels = sw::runtime::kernels_of<graph>;
// Compiled for its error, which prints the counts.
template <int Nodes, int Specs, int Kernels, int Calls>
struct counts;
constexpr int calls = [] {
  int n = 0;
  for (signed char k : kernels::list.of) n += k >= 0 ? 1 : 0;
  return n;
}();
counts<step::program.node_count, step::program.spec_count, kernels::signatures.count, calls> shown;
#else
void run(rank_type& rank) {
  sw::executor<step, rank_type> executor(rank);
  sw::step_env env;
  env.step = 1;
  env.lr = 1e-3;
  executor.run(env);
}
#endif
