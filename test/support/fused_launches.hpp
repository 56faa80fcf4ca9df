// SPDX-License-Identifier: Apache-2.0
// The example's train step as a device runs it: fused calls are as many kernels as the program's constants say, and give the
// losses of one kernel for each operation.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <shardwise/cuda.cuh>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <train_text/model.hpp>

namespace test::launches {

namespace sw = shardwise;

struct dp : sw::axis<1> {};
struct tp : sw::axis<1> {};
using mesh = sw::mesh<dp, tp>;
using size = train_text::config<4, 16, 32, 2, 2>;
template <class T, class... Passes>
using step =
    sw::train_step<train_text::gpt_of<size>::gpt, train_text::next_byte<size, dp>, train_text::megatron_plan<size, dp, tp>,
                   mesh, sw::clip_norm<sw::adamw<true>>, sw::pipeline<Passes...>, T, sw::cuda_backend>;

constexpr int steps = 5;

struct run {
  sw::cuda::graph_nodes nodes;
  std::vector<double> losses;
};

template <class Step>
run train() {
  run r;
  sw::launch_cuda<mesh>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank);
    ex.initialise(3);
    for (int s = 1; s <= steps; ++s) {
      std::vector<std::int32_t> text(size::batch * size::time);
      for (std::size_t i = 0; i < text.size(); ++i)
        text[i] = static_cast<std::int32_t>((i * 131 + static_cast<std::size_t>(s) * 7) % 251);
      ex.set_input(0, text);
      ex.set_input(1, text);
      sw::step_env env;
      env.step = s;
      env.lr = 1e-3;
      env.weight_decay = 0.1;
      env.max_norm = 1;
      ex.run(env);
      r.losses.push_back(static_cast<double>(ex.loss()));
    }
    r.nodes = ex.nodes();
    CHECK(ex.kernel_nodes() == r.nodes.kernels);
  });
  return r;
}

template <class T>
void check_launches(double tolerance) {
  if (sw::cuda::device_count() < 1) {
    std::printf("skipped: 0 GPUs found, 1 needed\n");
    return;
  }
  using plain = step<T>;
  using fused = step<T, sw::fuse_kernels>;
  constexpr sw::passes::kernel_counts one_by_one = sw::passes::kernel_calls(plain::program),
                                      together = sw::passes::kernel_calls(fused::program);
  const run a = train<plain>(), b = train<fused>();
  const int products = together.of[static_cast<int>(sw::op_code::einsum)];
  std::printf(
      "%s: kernels %d one by one (%d calls), %d fused (%d calls, %d of them products); copies %d and %d, fills %d and %d\n",
      sizeof(T) == 4 ? "float" : "double", a.nodes.kernels, one_by_one.launches, b.nodes.kernels, together.launches,
      products, a.nodes.copies, b.nodes.copies, a.nodes.fills, b.nodes.fills);
  CHECK(a.nodes.kernels >= one_by_one.launches);
  CHECK(b.nodes.kernels >= together.launches);
  // cuBLASLt may cut a product along its depth, which takes one kernel more
  CHECK(b.nodes.kernels <= together.launches + products);
  CHECK(a.nodes.kernels >= 2.1 * b.nodes.kernels);
  for (std::size_t s = 0; s < steps; ++s) {
    INFO("step " << s << ": " << a.losses[s] << " and " << b.losses[s]);
    CHECK(std::abs(a.losses[s] - b.losses[s]) <= tolerance * std::abs(a.losses[s]));
  }
}

}  // namespace test::launches
