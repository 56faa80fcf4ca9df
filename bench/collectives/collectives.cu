// SPDX-License-Identifier: Apache-2.0
// Time of an all-reduce on GPUs, in place and replayed from a CUDA graph: NCCL's call beside the library's collective, which up to
// one_shot::most_sent is a kernel of its own: one JSON line a size.
// usage: bench_collectives_collectives_cuda      on 2, 4 and 8 GPUs, as far as there are
#include <shardwise/cuda.cuh>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

namespace sw = shardwise;

template <int N>
struct line_axis : sw::axis<N> {};
template <int N>
using line = sw::mesh<line_axis<N>>;

sw::runtime::call all_reduce_of(std::int64_t n, int ranks, int coordinate, void* at) {
  sw::runtime::call c;
  c.kind = sw::transition::all_reduce;
  c.from = sw::partial_value();
  c.to = sw::replicate_value();
  c.axis = 0;
  c.ranks = ranks;
  c.coordinate = coordinate;
  c.inputs = c.all_inputs = 1;
  c.l[0].rank = 1;
  c.l[0].ext[0] = c.l[0].global[0] = n;
  c.l[0].make_dense();
  c.l[sw::runtime::result] = c.l[0];
  c.p[0] = c.p[sw::runtime::result] = at;
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

template <int N>
void measure() {
  if (sw::cuda::device_count() < N) return;
  sw::launch_cuda<line<N>>([](auto& rank) {
    namespace one_shot = sw::cuda::one_shot;
    const sw::cuda::stream stream;
    sw::cuda::context ctx;
    ctx.stream = stream.get();
    ctx.multiprocessors = rank.multiprocessors();
    constexpr std::int64_t limit = one_shot::most_words(N) * sw::cuda::payload_of_word;
    const sw::cuda::device_memory memory(16 << 20);
    sw::cuda::check(cudaMemsetAsync(memory.data(), 0, 16 << 20, ctx.stream), "cudaMemsetAsync");
    std::array<std::int32_t, sw::max_axes> words{one_shot::slot_words(one_shot::most_words(N), N)};
    const sw::cuda::peer_slots* const slots = rank.share_slots(words, ctx.stream)[0];
    ncclComm_t const group = rank.communicator(0);
    for (const std::int64_t bytes :
         {std::int64_t{4}, std::int64_t{400}, std::int64_t{4096}, std::int64_t{16384}, std::int64_t{40960},
          std::int64_t{131072}, std::int64_t{262144}, std::int64_t{404000}, std::int64_t{1} << 19, std::int64_t{1} << 20,
          std::int64_t{4} << 20, std::int64_t{16} << 20}) {
      const int count = bytes > (1 << 20) ? 10 : 50;
      const std::int64_t n = bytes / 4;
      const double nccl = time_of(rank, ctx.stream, count, [&] {
        sw::cuda::check(ncclAllReduce(memory.data(), memory.data(), static_cast<std::size_t>(n), ncclFloat32, ncclSum, group,
                                      ctx.stream),
                        "ncclAllReduce");
      });
      const sw::runtime::call c = all_reduce_of(n, N, rank.index(), memory.data());
      const double own = time_of(rank, ctx.stream, count, [&] { sw::cuda::communicate<float>(c, ctx, group, slots); });
      if (rank.index() != 0) continue;
      std::printf("{\"what\":\"all_reduce\",\"gpus\":%d,\"bytes\":%lld,\"nccl_us\":%.2f,\"us\":%.2f,\"by\":\"%s\"}\n", N,
                  static_cast<long long>(bytes), nccl, own, slots && bytes <= limit ? "one kernel" : "nccl");
      std::fflush(stdout);
    }
  });
}

}  // namespace

int main() {
  try {
    if (sw::cuda::device_count() < 2) {
      std::printf("fewer than 2 GPUs found: nothing is measured\n");
      return 0;
    }
    measure<2>();
    measure<4>();
    measure<8>();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
