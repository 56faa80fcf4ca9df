// SPDX-License-Identifier: Apache-2.0
// One rank of a mesh as a process of its own: meets the others, all-reduces, and fails where and as it is told to.
//   NCCL_COMM_ID=127.0.0.1:29600 RANK=r WORLD_SIZE=n LOCAL_RANK=r test_cuda_process [RANK throw|kill|exit|stall]
// for each r below n, n being 2 or 4, all at once: failures.py does so. Prints "rank r of n: ok".
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <shardwise/runtime/cuda/launch.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace {

namespace sw = shardwise;

struct rows : sw::axis<2> {};
struct cols : sw::axis<2> {};

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

void misbehave(const std::string& how) {
  if (how == "throw") throw std::runtime_error("gave up");
  if (how == "kill") raise(SIGKILL);
  if (how == "exit") std::_Exit(0);
  for (;;) sleep(1);
}

template <class Rank>
void run(Rank& rank, int bad, const std::string& how) {
  using mesh = typename Rank::mesh_type;
  if (rank.index() == bad) misbehave(how);
  for (int i = 0; i < 10; ++i) rank.barrier();
  rank.agree(17, "the answer");
  const sw::cuda::stream queue;
  for (int a = 0; a < mesh::axes; ++a) {
    const int n = mesh::sizes[static_cast<unsigned>(a)];
    std::vector<float> x(1000, static_cast<float>(rank.index() + 1));
    const sw::cuda::device_memory m(x.size() * sizeof(float));
    sw::cuda::check(cudaMemcpy(m.data(), x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
    sw::cuda::check(ncclAllReduce(m.data(), m.data(), x.size(), ncclFloat, ncclSum, rank.communicator(a), queue.get()),
                    "ncclAllReduce");
    rank.synchronize(queue.get());
    sw::cuda::check(cudaMemcpy(x.data(), m.data(), x.size() * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
    int want = 0;
    for (int k = 0; k < n; ++k) want += mesh::group_member(rank.index(), a, k) + 1;
    for (float v : x) require(v == static_cast<float>(want), "the sum along an axis is wrong");
  }
  std::vector<double> whole(8, 0.0);
  whole[static_cast<std::size_t>(rank.index())] = -0.5 * (rank.index() + 1);
  rank.combine_disjoint(whole);
  for (int r = 0; r < mesh::size; ++r)
    require(whole[static_cast<std::size_t>(r)] == -0.5 * (r + 1) || rank.shares_memory(), "disjoint words are not combined");
  bool refused = false;
  try {
    rank.agree(static_cast<std::uint64_t>(rank.index()), "the rank");
  } catch (const std::logic_error&) {
    refused = true;
  }
  require(refused == (rank.index() != 0), "a disagreement is not found");
  std::printf("rank %d of %d: ok\n", rank.index(), mesh::size);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const size = std::getenv("WORLD_SIZE");
  const int bad = argc > 1 ? std::atoi(argv[1]) : -1;
  const std::string how = argc > 2 ? argv[2] : "throw";
  const auto body = [&](auto& rank) { run(rank, bad, how); };
  try {
    if (size && std::atoi(size) == 2) return sw::launch_cuda<sw::mesh<sw::on_cuda, rows>>(argc, argv, body);
    return sw::launch_cuda<sw::mesh<sw::on_cuda, rows, cols>>(argc, argv, body);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
