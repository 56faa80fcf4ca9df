// SPDX-License-Identifier: Apache-2.0
// Time of collectives of float on GPUs, replayed from a CUDA graph: NCCL's call beside the library's collective, as a program's
// redistribution runs it; all-reduces (in place) up to one_shot::most_sent are a kernel of its own. One JSON line a size, bytes being the
// whole tensor's: up to 1 MiB with the host's time to queue one, above with the bus bandwidth.
// usage: bench_collectives_collectives_cuda [MIB]      on 2, 4 and 8 GPUs, as far as there are; up to MIB (1024)
#include <shardwise/cuda.cuh>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

namespace sw = shardwise;

template <int N>
struct line_axis : sw::axis<N> {};
template <int N>
using line = sw::mesh<line_axis<N>>;

// What changes the placement of n elements in one dimension on an axis: one collective.
sw::runtime::call change_of(std::int64_t n, int ranks, int coordinate, sw::placement from, sw::placement to, void* x,
                            void* o) {
  sw::runtime::call c;
  c.from = from;
  c.to = to;
  c.kind = from.is_shard() ? sw::transition::all_gather
           : to.is_shard() ? sw::transition::reduce_scatter
                           : sw::transition::all_reduce;
  c.axis = 0;
  c.ranks = ranks;
  c.coordinate = coordinate;
  c.inputs = c.all_inputs = 1;
  const auto block = [&](sw::runtime::layout& l, bool part) {
    l.rank = 1;
    l.global[0] = n;
    l.ext[0] = part ? n / ranks : n;
    l.origin[0] = part ? coordinate * (n / ranks) : 0;
    l.make_dense();
  };
  block(c.l[0], from.is_shard());
  block(c.l[sw::runtime::result], to.is_shard());
  c.p[0] = x;
  c.p[sw::runtime::result] = o;
  return c;
}

// Microseconds for each of `count` that queue() launches, replayed as one graph: the median of 9 blocks of 4 replays.
double time_of(auto& rank, cudaStream_t stream, int count, auto&& queue) {
  queue();  // what is loaded and connected at first
  rank.synchronize(stream);
  rank.barrier();
  const sw::cuda::graph_instance graph = sw::cuda::graph_instance::of(stream, [&] {
    for (int i = 0; i < count; ++i) queue();
  });
  const auto launch = [&] { sw::cuda::check(cudaGraphLaunch(graph.get(), stream), "cudaGraphLaunch"); };
  std::vector<double> all;
  for (int b = 0; b < 9; ++b) {
    rank.barrier();
    launch();
    sw::cuda::timing_event begin, end;
    begin.record(stream);
    for (int k = 0; k < 4; ++k) launch();
    end.record(stream);
    rank.synchronize(stream);
    all.push_back(static_cast<double>(end.since(begin)) / 1000 / (4 * count));
  }
  rank.barrier();
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// Microseconds of the host for each of 100 that queue() queues one by one: the median of 9 blocks.
double host_time_of(auto& rank, cudaStream_t stream, auto&& queue) {
  std::vector<double> all;
  for (int b = 0; b < 9; ++b) {
    rank.barrier();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 100; ++i) queue();
    all.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / 100);
    rank.synchronize(stream);
  }
  rank.barrier();
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

template <int N>
void measure(std::int64_t most) {
  if (sw::cuda::device_count() < N) return;
  sw::launch_cuda<line<N>>([most](auto& rank) {
    namespace one_shot = sw::cuda::one_shot;
    const sw::cuda::stream stream;
    sw::cuda::context ctx;
    ctx.stream = stream.get();
    ctx.multiprocessors = rank.multiprocessors();
    constexpr std::int64_t limit = one_shot::most_words(N) * sw::cuda::payload_of_word;
    const auto bytes_there = static_cast<std::size_t>(most);
    const sw::cuda::device_memory memory(bytes_there), part(bytes_there / N);
    sw::cuda::check(cudaMemsetAsync(memory.data(), 0, bytes_there, ctx.stream), "cudaMemsetAsync");
    sw::cuda::check(cudaMemsetAsync(part.data(), 0, bytes_there / N, ctx.stream), "cudaMemsetAsync");
    std::array<std::int32_t, sw::max_axes> words{one_shot::slot_words(one_shot::most_words(N), N)};
    const sw::cuda::peer_slots* const slots = rank.share_slots(words, ctx.stream)[0];
    ncclComm_t const group = rank.communicator(0);
    void *const whole = memory.data(), *const own = part.data();
    // `crossing`: the part of the tensor's bytes that goes over each rank's link; bus bandwidth = bytes * crossing / time, as in NCCL's tests
    const auto row = [&](const char* what, std::int64_t bytes, double crossing, const sw::runtime::call& c, auto&& raw) {
      const int count = bytes > (64 << 20) ? 2 : bytes > (1 << 20) ? 10 : 50;
      const auto call = [&] { sw::cuda::communicate<float>(c, ctx, group, slots); };
      const double nccl = time_of(rank, ctx.stream, count, raw), us = time_of(rank, ctx.stream, count, call);
      const bool small = bytes <= 1 << 20;
      const double host_nccl = small ? host_time_of(rank, ctx.stream, raw) : 0,
                   host = small ? host_time_of(rank, ctx.stream, call) : 0;
      if (rank.index() != 0) return;
      std::printf("{\"what\":\"%s\",\"gpus\":%d,\"bytes\":%lld,\"nccl_us\":%.2f,\"us\":%.2f,\"by\":\"%s\"", what, N,
                  static_cast<long long>(bytes), nccl, us,
                  c.kind == sw::transition::all_reduce && slots && bytes <= limit ? "one kernel" : "nccl");
      if (small) std::printf(",\"nccl_host_us\":%.2f,\"host_us\":%.2f}\n", host_nccl, host);
      else
        std::printf(",\"nccl_bus_gbps\":%.1f,\"bus_gbps\":%.1f}\n", static_cast<double>(bytes) * crossing / nccl / 1e3,
                    static_cast<double>(bytes) * crossing / us / 1e3);
      std::fflush(stdout);
    };
    constexpr double others = (N - 1.0) / N;
    for (const std::int64_t bytes :
         {std::int64_t{8}, std::int64_t{400}, std::int64_t{4096}, std::int64_t{16384}, std::int64_t{40960},
          std::int64_t{131072}, std::int64_t{262144}, std::int64_t{404000}, std::int64_t{1} << 19, std::int64_t{1} << 20,
          std::int64_t{4} << 20, std::int64_t{16} << 20, std::int64_t{64} << 20, std::int64_t{1} << 30}) {
      if (bytes > most) continue;
      const std::int64_t n = bytes / 4;
      row("all_reduce", bytes, 2 * others,
          change_of(n, N, rank.index(), sw::partial_value(), sw::replicate_value(), whole, whole), [&] {
            sw::cuda::check(
                ncclAllReduce(whole, whole, static_cast<std::size_t>(n), ncclFloat32, ncclSum, group, ctx.stream),
                "ncclAllReduce");
          });
      if (n % N != 0 || (bytes > 4096 && bytes < (1 << 20))) continue;
      const auto each = static_cast<std::size_t>(n / N);
      row("all_gather", bytes, others, change_of(n, N, rank.index(), sw::shard_value(0), sw::replicate_value(), own, whole),
          [&] { sw::cuda::check(ncclAllGather(own, whole, each, ncclFloat32, group, ctx.stream), "ncclAllGather"); });
      row("reduce_scatter", bytes, others,
          change_of(n, N, rank.index(), sw::partial_value(), sw::shard_value(0), whole, own), [&] {
            sw::cuda::check(ncclReduceScatter(whole, own, each, ncclFloat32, ncclSum, group, ctx.stream),
                            "ncclReduceScatter");
          });
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::int64_t mebibytes = argc > 1 ? std::atoll(argv[1]) : 1024;
    if (mebibytes < 1) {
      std::fprintf(stderr, "MIB is '%s': give the largest tensor's mebibytes, a whole number from 1 on, as in 64\n",
                   argv[1]);
      return 2;
    }
    const std::int64_t most = mebibytes << 20;
    if (sw::cuda::device_count() < 2) {
      std::printf("fewer than 2 GPUs found: nothing is measured\n");
      return 0;
    }
    measure<2>(most);
    measure<4>(most);
    measure<8>(most);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
