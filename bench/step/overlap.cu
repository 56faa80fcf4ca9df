// SPDX-License-Identifier: Apache-2.0
// Data-parallel steps on two GPUs as written and with the passes that let collectives run beside kernels and fuse kernels, and two
// perceptrons under tensor parallelism as written and fused: one JSON line a figure.
#include <shardwise/operations/attention/device.cuh>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/waits.hpp>

#include <cstdio>
#include <string>

#include "measure.cuh"
#include "models.hpp"

// By what products of float are computed.
#ifndef SHARDWISE_BENCH_BACKEND
#define SHARDWISE_BENCH_BACKEND cuda_backend
#endif

namespace {

namespace sw = shardwise;

constexpr int gpus = 2, rows = 100;

// An H200 without TF32: 60 teraflops, 4.8 terabytes a second; all-reduces at 300 gigabytes a second behind 20 microseconds.
struct h200 {
  template <class Graph>
  static constexpr double microseconds(const Graph& g, int i) {
    if (sw::is_collective(g, i)) return 20 + sw::bytes_of(g, i) / 2 / 300e3;
    return sw::run_time<60'000, 4'800>::compute(g, i);
  }
};

template <int Layers, int Width, class... Passes>
void row(const char* what) {
  using step = bench::data_parallel_step<Layers, Width, rows, gpus, sw::SHARDWISE_BENCH_BACKEND, sw::pipeline<Passes...>>;
  const std::string name = "ddp_" + std::to_string(Layers) + "x" + std::to_string(Width) + "_adam, " + what;
  bench::measure<step>(name.c_str(), Width > 1000 ? 20 : 100,
                       [](auto& ex) { bench::floats(ex, static_cast<std::size_t>(rows) * gpus * Width); });
}

template <int Layers, int Width, int MiB>
void rows_of() {
  using reorder = sw::reorder_compute_for_overlap<h200>;
  row<Layers, Width>("as written");
  row<Layers, Width, sw::comm_fusion_in_place<MiB>>("buckets");
  row<Layers, Width, sw::expedite_comms, sw::schedule_comm_wait>("expedited");
  row<Layers, Width, sw::expedite_comms, reorder, sw::sink_waits, sw::raise_comms>("reordered");
  row<Layers, Width, sw::comm_fusion_in_place<MiB>, sw::expedite_comms, reorder, sw::sink_waits, sw::raise_comms>(
      "buckets, reordered");
  row<Layers, Width, sw::comm_fusion_in_place<MiB>, sw::fuse_kernels>("buckets, fused");
  row<Layers, Width, sw::comm_fusion_in_place<MiB>, sw::fuse_kernels, sw::expedite_comms, sw::schedule_comm_wait>(
      "buckets, fused, expedited");
}

template <class... Passes>
void perceptrons(const char* what) {
  using step = bench::tensor_parallel_step<gpus, sw::SHARDWISE_BENCH_BACKEND, sw::pipeline<Passes...>>;
  const std::string name = std::string("tp_two_mlps_sgd, ") + what;
  bench::measure<step>(name.c_str(), 300, [](auto& ex) { bench::floats(ex, 20 * 10); });
}

}  // namespace

int main() {
  try {
    if (sw::cuda::device_count() < gpus) {
      std::printf("%d GPUs found, %d needed: nothing is measured\n", sw::cuda::device_count(), gpus);
      return 0;
    }
    rows_of<10, 100, 1>();
    rows_of<5, 4096, 100>();
    perceptrons<>("as written");
    perceptrons<sw::fuse_kernels>("fused");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
