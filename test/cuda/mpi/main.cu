// SPDX-License-Identifier: Apache-2.0
// Ranks on GPUs, a process each, that MPI starts and joins: under NCCL alone, under MPI alone and with either along one axis a training step gives
// what host threads give; and runs that fail.
//   mpirun -n N test_cuda_mpi                            N: 2 or 4. Prints "rank r of N: ok"
//   mpirun -n N test_cuda_mpi RANK throw|return|kill|exit|stall nccl|hosts     run.py does so
#define SHARDWISE_TEST_DEVICES 1
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <placed_steps.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <vector>

#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/runtime/mpi/cuda.hpp>

namespace {

namespace sw = shardwise;
using namespace test::placed;

// Parameters in shards along both axes, which are gathered along both.
template <int D, int N, class Backend, class Pipeline = sw::pipeline<>>
using program =
    sw::train_step<models<D, N>::template net_of, task<D>,
                   sw::plan<sw::data_parallel<dp<D>>, sw::at<"first", rows<dp<D>, 0>>, sw::at<"second", rows<tp<N>, 1>>>,
                   mesh<D, N>, sw::adam<>, Pipeline, double, Backend>;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}
void require_near(const std::vector<double>& got, const std::vector<double>& want, const std::string& what) {
  require(got.size() == want.size(), what + ": another number of elements");
  for (std::size_t i = 0; i < got.size(); ++i)
    require(std::abs(got[i] - want[i]) <= 1e-10 * (1 + std::abs(want[i])),
            what + ": " + std::to_string(got[i]) + " is not " + std::to_string(want[i]));
}

// The losses of five steps, and all that the program holds then.
template <class Step, class Rank, class... How>
std::vector<double> results(Rank& rank, How... how) {
  sw::executor<Step, Rank> ex(rank, how...);
  ex.initialise(3);
  std::vector<double> all;
  for (int s = 1; s <= 5; ++s) {
    train(ex, s, s);
    all.push_back(ex.loss());
  }
  for (const auto& whole : everything(ex)) all.insert(all.end(), whole.begin(), whole.end());
  return all;
}

// Two executors whose runs are queued in turns and not waited for: each has what it has alone.
template <class Step, class Rank>
std::vector<double> in_turns(Rank& rank) {
  sw::executor<Step, Rank> one(rank), other(rank);
  one.initialise(3);
  other.initialise(4);
  for (int s = 1; s <= 5; ++s) {
    train(one, s, s);
    for (int k = 0; k < 3; ++k) train(other, s, s);
  }
  std::vector<double> all;
  for (const auto& whole : everything(one)) all.insert(all.end(), whole.begin(), whole.end());
  return all;
}

// Bytes that a rank sends along each axis in five steps launched one by one.
template <class Step, class Rank>
std::vector<double> bytes(Rank& rank) {
  const auto run = [&] {
    if constexpr (requires { rank.device(); }) return sw::executor<Step, Rank>(rank, sw::device_execution::stream);
    else return sw::executor<Step, Rank>(rank);
  };
  auto ex = run();
  ex.initialise(3);
  rank.reset_counts();
  train(ex, 1, 5);
  ex.loss();
  std::vector<double> all;
  for (int a = 0; a < Step::mesh_type::axes; ++a) all.push_back(static_cast<double>(rank.bytes_written(a)));
  return all;
}

template <class Rank>
void check_meetings(Rank& rank) {
  constexpr int n = Rank::mesh_type::size;
  for (int i = 0; i < 5; ++i) rank.barrier();
  rank.agree(17, "the answer");
  std::vector<double> whole(static_cast<std::size_t>(n), 0.0);
  whole[static_cast<std::size_t>(rank.index())] = -0.5 * (rank.index() + 1);
  rank.combine_disjoint(whole);
  for (int r = 0; r < n; ++r)
    require(whole[static_cast<std::size_t>(r)] == -0.5 * (r + 1), "disjoint words are not combined");
  for (int a = 0; a < Rank::mesh_type::axes; ++a) {
    const bool several = Rank::mesh_type::sizes[static_cast<unsigned>(a)] > 1;
    require((rank.communicator(a) != nullptr) == (several && !rank.is_carried(a)),
            "NCCL connects other axes than it was told");
  }
  bool refused = false;
  try {
    rank.agree(static_cast<std::uint64_t>(rank.index()), "the rank");
  } catch (const std::logic_error&) {
    refused = true;
  }
  require(refused == (rank.index() != 0), "a disagreement is not found");
}

template <int D, int N, class By>
void check(const char* by) {
  using host = program<D, N, sw::host_backend>;
  using device = program<D, N, sw::cuda_backend>;
  using beside = program<D, N, sw::cuda_backend, sw::pipeline<sw::schedule_comm_wait>>;
  std::vector<std::vector<double>> want(D * N), sent(D * N);
  sw::launch<mesh<D, N>>([&](auto& rank) {
    want[static_cast<std::size_t>(rank.index())] = results<host>(rank);
    sent[static_cast<std::size_t>(rank.index())] = bytes<host>(rank);
  });
  const auto body = [&](auto& rank) {
    const auto& mine = want[static_cast<std::size_t>(rank.index())];
    check_meetings(rank);
    require_near(results<device>(rank), mine, "a captured graph");
    require_near(results<device>(rank, sw::device_execution::stream), mine, "launches one by one");
    require_near(results<device>(rank, sw::executor_checks::finite), mine, "a run that is watched");
    if constexpr (D == 2) require_near(results<beside>(rank), mine, "collectives beside kernels");
    const std::vector<double> beside_another = in_turns<device>(rank);
    require_near(beside_another, {mine.end() - static_cast<std::ptrdiff_t>(beside_another.size()), mine.end()},
                 "two executors in turns");
    const auto counted = bytes<device>(rank), all = sent[static_cast<std::size_t>(rank.index())];
    for (std::size_t a = 0; a < all.size(); ++a)
      if (rank.is_carried(static_cast<int>(a)))
        require(counted[a] == all[a],
                "hosts send " + std::to_string(counted[a]) + " bytes, threads " + std::to_string(all[a]));
    using Rank = std::remove_reference_t<decltype(rank)>;
    const sw::executor<device, Rank> ex(rank);
    require((ex.staged_bytes() > 0) == (rank.is_carried(0) || rank.is_carried(1)), "pinned memory for nothing, or none");
    std::printf("rank %d of %d: ok, %s, %zu bytes pinned\n", rank.index(), rank.size(), by, ex.staged_bytes());
    std::fflush(stdout);
  };
  if constexpr (std::is_same_v<By, void>) sw::launch_cuda_mpi<mesh<D, N>>(body, {60, false});
  else sw::launch_cuda_mpi<mesh<D, N>, By>(body, {60, false});
}

struct host : sw::axis<2> {};
struct gpu : sw::axis<2> {};

// As docs/gpus.md says it.
void check_docs() {
  int met = 0;
  sw::launch_cuda_mpi<sw::mesh<host, gpu>, sw::by_nccl<gpu>>([&](auto& rank) {
    if (rank.is_carried(0) && !rank.is_carried(1)) ++met;  // the host axis goes through the hosts' memory
  });
  require(met == 1, "the mesh of the documentation is launched otherwise");
}

void misbehave(const std::string& how) {
  if (how == "throw") throw std::runtime_error("gave up");
  if (how == "kill") raise(SIGKILL);
  if (how == "exit") std::_Exit(7);
  while (how == "stall") sleep(1);
}

template <class Rank>
void fail(Rank& rank, int bad, const std::string& how) {
  using mesh_of = typename Rank::mesh_type;
  using step = program<mesh_of::sizes[0], mesh_of::sizes[1], sw::cuda_backend>;
  sw::executor<step, Rank> ex(rank);
  ex.initialise(3);
  train(ex, 1, 2);
  ex.loss();
  if (rank.index() == bad) {
    misbehave(how);
    if (how == "return") return;
  }
  train(ex, 3, 6);
  ex.loss();
}

}  // namespace

int main(int argc, char** argv) {
  const bool fails = argc > 3;
  const std::string how = fails ? argv[2] : "", by = fails ? argv[3] : "";
  if (fails) {
    const int bad = std::atoi(argv[1]);
    const auto body = [&](auto& rank) { fail(rank, bad, how); };
    using meshes = sw::mesh_choice<mesh<1, 2>, mesh<2, 2>>;
    const sw::mpi_options patience{how == "stall" ? 4.0 : 60.0, false};
    if (by == "nccl") return sw::launch_cuda_mpi<meshes>(argc, argv, body, patience);
    return sw::launch_cuda_mpi<meshes, sw::by_nccl<>>(argc, argv, body, patience);
  }
  try {
    sw::mpi::start();
    int n = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (n == 2) {
      check<1, 2, void>("NCCL");
      check<1, 2, sw::by_nccl<>>("MPI");
    } else if (n == 4) {
      check_docs();
      check<2, 2, void>("NCCL");
      check<2, 2, sw::by_nccl<tp<2>>>("NCCL along the second axis");
      check<2, 2, sw::by_nccl<dp<2>>>("NCCL along the first axis");
      check<2, 2, sw::by_nccl<>>("MPI");
    } else {
      throw std::runtime_error("start 2 or 4 processes, not " + std::to_string(n));
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
