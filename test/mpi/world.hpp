// SPDX-License-Identifier: Apache-2.0
// How many processes run a test of the mpi backend: what is meant for another number is left out. What they do together beside ranks.
#pragma once

#include <shardwise/runtime/mpi/mpi.hpp>

#include <filesystem>
#include <string>
#include <unistd.h>

namespace test {

inline int world_size() {
  shardwise::mpi::start();
  int n = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  return n;
}
inline int world_rank() {
  int r = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  return r;
}

// A folder that all processes of this run know, and a function that the first runs alone between two meetings.
inline std::string folder_of_run(const std::string& name) {
  long id = getpid();
  MPI_Bcast(&id, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  return (std::filesystem::temp_directory_path() / (name + std::to_string(id))).string();
}
inline void first_alone(const auto& f) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() == 0) f();
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace test
