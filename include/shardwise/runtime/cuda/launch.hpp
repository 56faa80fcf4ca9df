// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a mesh on GPUs: as threads of this process, or as one of the processes that a launcher started.
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <shardwise/runtime/cuda/rank.hpp>
#include <shardwise/runtime/launcher.hpp>
#include <shardwise/runtime/with_rank.hpp>

namespace shardwise::inline v0_1 {

namespace cuda {

// NVLink multicast stays off unless the user asks for it: a program that ends while it is set up can leave the GPUs of
// a shared host unusable. NCCL reads its environment at its first call.
inline void before_nccl() { setenv("NCCL_NVLS_ENABLE", "0", 0); }

// Without a driver there are none; `why` is then the runtime's reason.
inline int visible_gpus(std::string& why) {
  int n = 0;
  const cudaError_t status = cudaGetDeviceCount(&n);
  if (status == cudaSuccess) return n;
  cudaGetLastError();
  why = std::string(" (") + cudaGetErrorString(status) + ")";
  return 0;
}

inline int device_count() {
  std::string why;
  return visible_gpus(why);
}

template <class Mesh>
void require_gpus() {
  std::string why;
  const int n = visible_gpus(why);
  if (n < Mesh::size)
    throw std::runtime_error("shardwise: the mesh " + runtime::mesh_sizes<Mesh>() + " needs " + std::to_string(Mesh::size) +
                             (Mesh::size == 1 ? " GPU" : " GPUs") + "; this process sees " + std::to_string(n) + why +
                             "; run on more GPUs, set CUDA_VISIBLE_DEVICES, or choose a smaller mesh");
}

struct process {
  int rank = 0, device = 0;
};

// Communicators of a rank that is a process are aborted once, by its own thread or, where that waits for a peer that has gone, by the one
// that watches over it.
struct ending {
  communicators* all;
  std::mutex turn = {};
  bool aborted = false;
  void abort() {
    const std::lock_guard lock(turn);
    communicators* const one[] = {all};
    if (!std::exchange(aborted, true)) abort_all(one, [] {});
  }
};

// Of <host>:<port>, where the host of an IPv6 address stands in brackets.
inline std::string host_of(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host.size() > 2 && host.front() == '[' && host.back() == ']' ? host.substr(1, host.size() - 2) : host;
}
inline std::string words_of(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& x) {
    return x.what();
  } catch (...) {
    return "shardwise: an exception that is none of std::exception's";
  }
}

// The GPU of a process that is number `local` of its host by the word of `said`, or -1.
inline int device_of(int rank, int local, const char* said) {
  std::string why;
  const int gpus = visible_gpus(why);
  if (local < 0) local = gpus > 0 ? rank % gpus : 0;
  // a launcher may show each process its own GPU alone
  const int device = gpus == 1 ? 0 : local;
  if (device >= gpus)
    throw std::runtime_error("shardwise: rank " + std::to_string(rank) + " needs GPU " + std::to_string(device) + " (" +
                             said + "); this process sees " + std::to_string(gpus) + why +
                             "; start no more processes on a machine than it has GPUs, or set CUDA_VISIBLE_DEVICES");
  return device;
}

// Who this process is, checked against the mesh; then the GPUs, and nothing before.
template <class Mesh>
process process_of(const runtime::launch_arguments& a = {}) {
  const runtime::process_place who = runtime::place_of_process(a);
  if (!who.by) {
    std::string names;
    for (const runtime::starter& x : runtime::starters)
      names += std::string(names.empty() ? "" : ", ") + x.started_by + " (" + x.rank + ", " + x.size + ", " + x.local + ")";
    throw std::runtime_error("shardwise: no launcher has started this process; start one process for each GPU with one of " +
                             names + ", or call launch_cuda for ranks as threads");
  }
  const int rank = who.rank, size = who.size;
  if (size != Mesh::size)
    throw std::runtime_error("shardwise: the mesh " + runtime::mesh_sizes<Mesh>() + " has " + std::to_string(Mesh::size) +
                             " ranks; " + who.by + " has started " + std::to_string(size) + " processes (" + who.said +
                             "); start as many as the mesh has ranks");
  const char* const meet = std::getenv("NCCL_COMM_ID");
  if (size > 1 && (!meet || !std::strchr(meet, ':')))
    throw std::runtime_error(std::string("shardwise: the environment variable NCCL_COMM_ID is ") +
                             (meet ? std::string("'") + meet + "'" : std::string("missing")) +
                             "; set it to <host of rank 0>:<free port> for all processes, so that NCCL can connect them");
  return {rank, device_of(rank, who.local, who.local_said)};
}

}  // namespace cuda

// --- ranks as threads
// -------------------------------------------------------------------------------------------------

// Runs f(rank) once for each rank of the mesh, rank r on GPU r in a thread of its own, and returns when all are done.
// If a rank throws, or returns while others wait for it, the others are released from collectives and barriers, and the
// first exception is rethrown here with the rank in its sentence.
template <class Mesh, class F>
void launch_cuda(F&& f) {
  cuda::require_gpus<Mesh>();
  cuda::before_nccl();
  // Made by this thread for all: a rank alone would wait for peers that an error keeps from coming.
  std::vector<cuda::communicators> made(static_cast<std::size_t>(Mesh::size));
  std::vector<cuda::communicators*> all;
  for (auto& c : made) all.push_back(&c);
  if constexpr (Mesh::size > 1) {
    ncclComm_t world[Mesh::size]{};
    cuda::check(ncclCommInitAll(world, Mesh::size, nullptr), "ncclCommInitAll");
    for (int r = 0; r < Mesh::size; ++r) made[static_cast<std::size_t>(r)].world() = world[r];
    cuda::split_axes<Mesh>(all, 0);
  }
  cuda::crew<Mesh> crew;
  std::deque<cuda_rank<Mesh>> ranks;  // which stay where they are
  all.clear();
  for (int r = 0; r < Mesh::size; ++r) {
    ranks.emplace_back(r, r, std::move(made[static_cast<std::size_t>(r)]), &crew);
    all.push_back(&ranks.back().all_communicators());
  }
  const auto body = [&](cuda_rank<Mesh>& rank) {
    try {
      cuda::check(cudaSetDevice(rank.device()), "cudaSetDevice");
      f(rank);
      crew.retire(rank.index());
    } catch (const rank_failed&) {
      // the rank that caused it has reported
    } catch (...) {
      crew.fail(std::current_exception(), rank.index());
    }
    crew.leave(rank.index());
  };
  std::vector<std::thread> pool;
  pool.reserve(ranks.size());
  for (auto& rank : ranks) pool.emplace_back([&body, &rank] { body(rank); });
  const auto join = [&] {
    for (auto& t : pool) t.join();
  };
  const threads::watch<cuda::crew<Mesh>, Mesh::size> watching(crew);
  crew.wait();
  if (crew.failed) cuda::abort_all(all, join);
  else join();
  if (crew.meeting.first_error) std::rethrow_exception(crew.meeting.first_error);
}

// --- ranks as processes
// -----------------------------------------------------------------------------------------------

// Runs f(rank) for the one rank that this process is, by the launcher's variables; NCCL_COMM_ID says where rank 0 is
// met. If f throws, this rank's communicators are aborted and the exception is rethrown with the rank in its sentence; the other
// ranks throw rank_failed with the same sentence. So they do if a process ends otherwise, or does not come within rank_timeout():
// processes::lifeline.
template <class Mesh, class F>
void launch_cuda_process(F&& f, const runtime::launch_arguments& arguments = {}) {
  const cuda::process who = cuda::process_of<Mesh>(arguments);
  cuda::before_nccl();
  cuda::check(cudaSetDevice(who.device), "cudaSetDevice");
  cuda::communicators made;
  if constexpr (Mesh::size > 1) {
    // with NCCL_COMM_ID this is the same id in every process, and rank 0 answers at its address while it initialises
    ncclUniqueId id;
    cuda::check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    cuda::check(ncclCommInitRank(&made.world(), Mesh::size, id, who.rank), "ncclCommInitRank");
    cuda::communicators* const one[] = {&made};
    cuda::split_axes<Mesh>(one, who.rank);
  }
  cuda_rank<Mesh> rank(who.rank, who.device, std::move(made), nullptr);
  cuda::ending end{&rank.all_communicators()};
  std::optional<processes::lifeline> line;
  if constexpr (Mesh::size > 1) line.emplace(who.rank, Mesh::size);
  try {
    if (line) {
      line->on_loss([](void* e) { static_cast<cuda::ending*>(e)->abort(); }, &end);
      std::vector<std::uint32_t> port{line->port()};
      rank.combine_disjoint(port);
      line->meet(cuda::host_of(std::getenv("NCCL_COMM_ID")), static_cast<std::uint16_t>(port[0]));
      rank.attach(*line);
    }
    f(rank);
    rank.barrier();  // nobody takes its memory away while a peer still reads it
    if (line) line->finish();
  } catch (...) {
    const std::string elsewhere = line ? line->cause() : "";  // of which this exception may be an echo
    const std::exception_ptr e = elsewhere.empty() ? runtime::with_rank(std::current_exception(), who.rank)
                                                   : std::make_exception_ptr(rank_failed(elsewhere));
    if (line) line->fail(cuda::words_of(e));
    end.abort();
    if (line) line->leave();
    std::rethrow_exception(e);
  }
}

// Ranks as processes if the arguments (--rank, --world-size) or a launcher say that there are several, or as many as the mesh has
// ranks; else as threads, as many as --ranks says. Mesh may be a mesh_choice.
template <class Mesh, class F>
int launch_cuda(int argc, char** argv, F&& f) {
  if constexpr (!runtime::choice_of<Mesh>::good) {
    (void)detail::can_launch<Mesh, cuda_rank, F>();  // says what is wrong
    return 1;
  } else {
    const runtime::launch_arguments a = runtime::launch_arguments_of(argc, argv);
    const runtime::process_place p = a.ranks < 0 ? runtime::place_of_process(a) : runtime::process_place{};
    const bool counts = p.by && (p.size > 1 || runtime::has_mesh_of<Mesh>(p.size));
    runtime::with_mesh<Mesh>(counts ? p.size : a.ranks, counts ? p.said : "--ranks", [&]<class M>() {
      if constexpr (detail::can_launch<M, cuda_rank, F>()) {
        if (counts) launch_cuda_process<M>(f, a);
        else launch_cuda<M>(f);
      }
    });
    return 0;
  }
}

}  // namespace shardwise::inline v0_1
