// SPDX-License-Identifier: Apache-2.0
// The launch of GPUs by MPI on four processes without a GPU, with CUDA and NCCL on paper: who is connected with whom, sums along each axis,
// meetings, and runs that fail.
//   mpirun -n 4 test_cuda_mpi_paper                                                    prints "rank r of 4: ok"
//   mpirun -n 4 test_cuda_mpi_paper throw|return|stall|kill|wrong nccl|cols|rows|hosts     rank 3 fails; run.py does so
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "paper.hpp"

#include <shardwise/runtime/cuda/staged_blocks.hpp>
#include <shardwise/runtime/host/collective_blocks.hpp>
#include <shardwise/runtime/mpi/cuda.hpp>
#include <shardwise/shardwise.hpp>

namespace {

namespace sw = shardwise;

struct rows : sw::axis<2> {};
struct cols : sw::axis<2> {};
using grid = sw::mesh<rows, cols>;
template <class... Axes>
using by = sw::by_nccl<Axes...>;

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

std::string place(int node, int rank) { return "in node " + std::to_string(node) + ", rank " + std::to_string(rank); }
struct staged {
  sw::processes::host_link* link;
  sw::cuda::staged_blocks blocks;
};

// What ranks show, added up along an axis, by whatever connects them there: where it will be. What is queued outlives a failed run.
template <class Rank>
const float& queue_sum(int axis, Rank& rank, cudaStream_t s, float mine, sw::transition kind = sw::transition::all_reduce) {
  auto& x = *new std::vector<float>(3, mine);
  rank.queue_collectives(axis, 1);
  if (!rank.is_carried(axis)) {
    auto& y = *new std::vector<float>(3);
    sw::cuda::check(ncclAllReduce(x.data(), y.data(), 3, ncclFloat, ncclSum, rank.communicator(axis), s), "ncclAllReduce");
    return y[2];
  }
  sw::runtime::call c;
  c.kind = kind;
  c.axis = axis;
  c.ranks = 2;
  c.coordinate = rank.coordinate(axis);
  c.node = 5;
  c.from = sw::partial_value();
  c.to = sw::replicate_value();
  for (const int of : {0, sw::runtime::result}) {
    c.type[of] = sw::dtype::f32;
    c.l[of] = sw::runtime::flat_layout(3);
    c.p[of] = x.data();
  }
  auto& memory = *new sw::cuda::pinned_memory(1024);
  auto& queued = *new staged{rank.link(), {&c, 1, static_cast<std::byte*>(memory.host()), 1024}};
  for (const auto& k : queued.blocks.to_host())
    sw::cuda::check(cudaMemcpyAsync(k.host, k.device, k.bytes, cudaMemcpyDeviceToHost, s), "cudaMemcpyAsync");
  const auto run = [](void* p) {
    const auto& q = *static_cast<staged*>(p);
    q.blocks.run(*q.link, &place);
  };
  sw::cuda::check(cudaLaunchHostFunc(s, run, &queued), "cudaLaunchHostFunc");
  for (const auto& k : queued.blocks.to_device())
    sw::cuda::check(cudaMemcpyAsync(k.device, k.host, k.bytes, cudaMemcpyHostToDevice, s), "cudaMemcpyAsync");
  return x[2];
}
template <class Rank>
float sum_along(int axis, Rank& rank, cudaStream_t s, sw::transition kind = sw::transition::all_reduce) {
  const float& there = queue_sum(axis, rank, s, static_cast<float>(1 << rank.index()), kind);
  float sum = 0;
  rank.copy(&sum, &there, sizeof sum, cudaMemcpyDeviceToHost, s);  // as a loss is read
  return sum;
}

// Two programs of a rank, a stream each, queued one after the other and not waited for: on every second rank the first one is late.
template <class Rank>
void check_order(int axis, Rank& rank) {
  const sw::cuda::stream one, other;
  const auto sleeps = [](void*) { usleep(30'000); };
  float want = 0;
  for (int k = 0; k < 2; ++k) want += static_cast<float>(1 << grid::group_member(rank.index(), axis, k));
  for (int i = 0; i < 3; ++i) {
    const auto mine = static_cast<float>(1 << rank.index());
    rank.order().follow(one.get());
    if (rank.coordinate(axis) == 1) sw::cuda::check(cudaLaunchHostFunc(one.get(), sleeps, nullptr), "cudaLaunchHostFunc");
    const float& first = queue_sum(axis, rank, one.get(), mine);
    rank.order().follow(other.get());
    const float& second = queue_sum(axis, rank, other.get(), 64 * mine);
    rank.synchronize(other.get());
    require(first == want && second == 64 * want, "programs of one rank meet others' in no common order");
  }
  for (const auto* s : {&one, &other}) rank.order().forget(s->get());
}

template <class Rank>
void check(Rank& rank, cudaStream_t s) {
  for (int i = 0; i < 5; ++i) rank.barrier();
  rank.agree(3, "the seed");
  std::vector<double> shown(4, 0.0);
  shown[static_cast<std::size_t>(rank.index())] = 1 + rank.index();
  rank.combine_disjoint(shown);
  require(shown == std::vector<double>{1, 2, 3, 4}, "disjoint words are not combined");
  bool refused = false;
  try {
    rank.agree(static_cast<std::uint64_t>(rank.index()), "the rank");
  } catch (const std::logic_error&) {
    refused = true;
  }
  require(refused == (rank.index() != 0), "a disagreement is not found");
  for (int a = 0; a < grid::axes; ++a) {
    require(rank.is_carried(a) == (rank.communicator(a) == nullptr), "NCCL connects other axes than it was told");
    float want = 0;
    for (int k = 0; k < 2; ++k) want += static_cast<float>(1 << grid::group_member(rank.index(), a, k));
    rank.reset_counts();
    for (int i = 0; i < 10; ++i) require(sum_along(a, rank, s) == want, "a sum along an axis is wrong");
    // of three elements the first rank owns two: it sends one, and twice its two; the other sends two and one
    require(!rank.is_carried(a) || rank.bytes_written(a) == 10 * 3 * 4, "other bytes are counted");
    check_order(a, rank);
  }
}

template <class By>
void check_launch(const char* name) {
  sw::launch_cuda_mpi<grid, By>(
      [&](auto& rank) {
        const sw::cuda::stream s;
        require(rank.is_carried(0) == ((sw::processes::host_axes<grid, By>() & 1U) != 0), name);
        check(rank, s.get());
      },
      {30, false});
}

template <class Rank>
void fail(Rank& rank, const std::string& how) {
  const sw::cuda::stream s;
  check(rank, s.get());
  if (rank.index() == 3) {
    if (how == "throw") throw std::runtime_error("gave up");
    if (how == "return") return;
    if (how == "kill") raise(SIGKILL);
    if (how == "stall") sleep(60);
    if (how == "wrong") sum_along(1, rank, s.get(), sw::transition::none);
  }
  for (int i = 0; i < 3; ++i)
    for (const int a : {1, 0}) sum_along(a, rank, s.get());
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level < MPI_THREAD_MULTIPLE) {
    std::printf("skipped: this MPI serves one thread at a time\n");
    return MPI_Finalize();
  }
  try {
    struct more : sw::axis<7> {};
    sw::launch_cuda_mpi<sw::mesh<more>>([](auto&) {});
    return 1;
  } catch (const std::runtime_error& e) {
    if (!std::string(e.what()).starts_with("shardwise: launch_cuda_mpi: the mesh 7 has 7 ranks; MPI knows 4 processes"))
      return 1;
  }
  if (argc > 2) {
    const std::string how = argv[1], with = argv[2];
    const auto body = [&](auto& rank) { fail(rank, how); };
    const sw::mpi_options patience{how == "stall" ? 2.0 : 30.0, false};
    if (with == "nccl") return sw::launch_cuda_mpi<grid>(argc, argv, body, patience);
    if (with == "cols") return sw::launch_cuda_mpi<grid, by<cols>>(argc, argv, body, patience);
    if (with == "rows") return sw::launch_cuda_mpi<grid, by<rows>>(argc, argv, body, patience);
    return sw::launch_cuda_mpi<grid, by<>>(argc, argv, body, patience);
  }
  try {
    check_launch<by<cols>>("cols");
    check_launch<by<rows>>("rows");
    check_launch<by<>>("hosts");
    check_launch<by<rows, cols>>("both");
    int rank = -1;
    sw::launch_cuda_mpi<grid>([&](auto& r) { rank = r.index(); });
    std::printf("rank %d of 4: ok\n", rank);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return MPI_Finalize();
}
