// SPDX-License-Identifier: Apache-2.0
// Time of a whole train step on GPUs, replayed as one CUDA graph and launched call by call: one JSON line a figure.
// usage: bench_step_step_cuda [NAME...]   with names: tp, ddp, gpt (default: all); meshes that do not fit are left out
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <shardwise/operations/attention/device.cuh>

#include "measure.cuh"
#include "models.hpp"

namespace {

namespace sw = shardwise;
using backend = sw::cuda_backend;
using bench::floats;
using bench::measure;

template <int N>
void tensor_parallel() {
  measure<bench::tensor_parallel_step<N, backend>>("tp_two_mlps_sgd", 300, [](auto& ex) { floats(ex, 20 * 10); });
}

template <int Layers, int Width, int N>
void data_parallel(const char* what) {
  measure<bench::data_parallel_step<Layers, Width, 100, N, backend>>(what, 100,
                                                                     [](auto& ex) { floats(ex, 100 * N * Width); });
}

template <int D, int N>
void gpt() {
  using size = bench::gpt_size;
  measure<bench::gpt_step<D, N, backend>>("train_text_step", 100, [](auto& ex) {
    std::vector<std::int32_t> text(size::batch * size::time);
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int32_t>(i * 131 % 251);
    ex.set_input(0, text);
    ex.set_input(1, text);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto on = [&](const std::string& name) { return argc < 2 || std::find(argv + 1, argv + argc, name) != argv + argc; };
  try {
    if (sw::cuda::device_count() == 0) {
      std::printf("no GPU found: nothing is measured\n");
      return 0;
    }
    if (on("tp")) {
      tensor_parallel<1>();
      tensor_parallel<2>();
      tensor_parallel<4>();
    }
    if (on("ddp")) {
      data_parallel<10, 100, 1>("ddp_10x100_adam");
      data_parallel<10, 100, 2>("ddp_10x100_adam");
      data_parallel<5, 4096, 2>("ddp_5x4096_adam");
    }
    if (on("gpt")) {
      gpt<1, 1>();
      gpt<1, 2>();
      gpt<2, 1>();
      gpt<2, 2>();
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
