// SPDX-License-Identifier: Apache-2.0
// How many processes run a test of the mpi backend: what is meant for another number is left out.
#pragma once

#include <shardwise/runtime/mpi/mpi.hpp>

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

}  // namespace test
