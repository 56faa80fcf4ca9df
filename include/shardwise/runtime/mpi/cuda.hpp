// SPDX-License-Identifier: Apache-2.0
// Ranks on GPUs, a process each, which MPI starts and joins: launch_cuda_mpi. NCCL connects them along all axes of the mesh, or along those that
// by_nccl names; along the others blocks go through the hosts, by MPI. For CUDA translation units; link shardwise::nccl and shardwise::mpi. The
// program includes cuda.cuh.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include <shardwise/runtime/cuda/launch.hpp>
#include <shardwise/runtime/mpi/mpi.hpp>
#include <shardwise/runtime/mpi/rank_link.hpp>
#include <shardwise/runtime/processes/by_nccl.hpp>

namespace shardwise::inline v0_1 {

namespace mpi {

// The rank of this process on its GPU, connected with the others of its group. NCCL's ids travel by MPI.
template <class Mesh, class By>
class gpu {
 public:
  gpu(rank_link<Mesh, By>& link, int rank, int number)
      : device_(take(rank, number)), rank_(rank, device_, connect(link, rank), nullptr, &link) {}
  cuda_rank<Mesh>& rank() { return rank_; }
  void drain() { rank_.drain(); }
  void abort() { end_.abort(); }

 private:
  using groups = processes::nccl_groups<Mesh, By>;

  static int take(int rank, int number) {
    if (const char* const meet = std::getenv("NCCL_COMM_ID"))
      throw std::runtime_error(std::string("shardwise: launch_cuda_mpi: the environment variable NCCL_COMM_ID is '") + meet +
                               "', and MPI brings NCCL's ids to all processes; unset it");
    const int device = cuda::device_of(rank, number, "its number on its host by MPI");
    cuda::check(cudaSetDevice(device), "cudaSetDevice");
    return device;
  }
  static cuda::communicators connect(rank_link<Mesh, By>& link, int rank) {
    cuda::communicators made;
    cuda::before_nccl();
    ncclUniqueId id{};
    link.of_first_in_group(&id, sizeof id, [](void* to) {
      if constexpr (groups::size > 1) cuda::check(ncclGetUniqueId(static_cast<ncclUniqueId*>(to)), "ncclGetUniqueId");
    });
    if constexpr (groups::size > 1) {
      cuda::check(ncclCommInitRank(&made.world(), groups::size, id, groups::place_of(rank)), "ncclCommInitRank");
      cuda::communicators* const one[] = {&made};
      cuda::split_axes<Mesh, By>(one, rank);
    }
    return made;
  }

  int device_;  // the current one from here on
  cuda_rank<Mesh> rank_;
  cuda::ending end_{&rank_.all_communicators()};
};

template <class Mesh, class By, class F, class Says>
void launch_gpu(F& f, const mpi_options& options, const Says& says) {
  run_process<Mesh>([&](world& w, const host_place& host) { run_on_device<Mesh, By, gpu<Mesh, By>>(f, w, host); }, options,
                    says, by_launch_cuda_mpi);
}

template <class Mesh, class By, class F>
void launch_gpu(F& f, const mpi_options& options) {
  if constexpr (!detail::is_mesh<Mesh>) {
    (void)detail::can_launch<Mesh, cuda_rank, F>();  // says what is wrong
  } else if constexpr (processes::connections<Mesh, By>::good) {
    if constexpr (detail::can_launch<Mesh, cuda_rank, F>())
      launch_gpu<Mesh, By>(f, options, [](const std::string& text, bool silent) {
        if (silent) say(text);
      });
  }
}
template <class Choice, class By, class F>
int launch_gpu(int argc, char** argv, F& f, const mpi_options& options) {
  if constexpr (!runtime::choice_of<Choice>::good) {
    (void)detail::can_launch<Choice, cuda_rank, F>();  // says what is wrong
  } else if constexpr (processes::connections<Choice, By>::good) {
    return launch_main<Choice>(
        argc, argv, [&] { return launch_cuda<Choice>(argc, argv, f); },
        [&]<class M>(const auto& says) {
          if constexpr (detail::can_launch<M, cuda_rank, F>())
            launch_gpu<M, typename processes::connections<Choice, By>::template by<M>>(f, options, says);
        },
        by_launch_cuda_mpi);
  }
  return 1;
}

}  // namespace mpi

// Runs f(rank) for the one rank that this process is, rank r being process r of MPI's, on the GPU of its number on its host, or on the one that
// it sees. NCCL connects all ranks; MPI alone brings them together, so that neither an address nor a port is named. A collective along
// an axis that by_nccl does not name is a node of the captured graph, in which the hosts exchange blocks that lie in pinned memory
// (executor::staged_bytes): sums are made in rank order, as on hosts, or by MPI where options.fast_reduce says so. A rank that throws, returns
// while others wait for it, or does not come within options.timeout_seconds ends all as launch_mpi says; an MPI that knows of GPUs is
// given none of their memory.
template <class Mesh, class F>
void launch_cuda_mpi(F&& f, const mpi_options& options = {}) {
  mpi::launch_gpu<Mesh, processes::by_nccl_alone>(f, options);
}
template <class Mesh, class By, class F>
  requires processes::is_by_nccl<By>
void launch_cuda_mpi(F&& f, const mpi_options& options = {}) {
  mpi::launch_gpu<Mesh, By>(f, options);
}

// The same of a main, whose result it gives, as launch_mpi(argc, argv, f): where nothing has started several processes and the program has no
// mesh for one, ranks are threads on the GPUs of this process, which NCCL connects along all axes. Mesh may be a mesh_choice, of which each
// mesh takes those of the named axes that it has.
template <class Mesh, class F>
int launch_cuda_mpi(int argc, char** argv, F&& f, const mpi_options& options = {}) {
  return mpi::launch_gpu<Mesh, processes::by_nccl_alone>(argc, argv, f, options);
}
template <class Mesh, class By, class F>
  requires processes::is_by_nccl<By>
int launch_cuda_mpi(int argc, char** argv, F&& f, const mpi_options& options = {}) {
  return mpi::launch_gpu<Mesh, By>(argc, argv, f, options);
}

}  // namespace shardwise::inline v0_1
