// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime on paper (cuda/paper/cuda.hpp), and NCCL by MPI: a communicator is MPI's, and a collective that is aborted ends. So the launch
// of GPUs by MPI runs where there is no GPU. For one source of a program that links neither library, under an MPI with MPI_THREAD_MULTIPLE.
#pragma once

#include <nccl.h>
#include <time.h>

#include <atomic>
#include <cstring>

#include "../paper/cuda.hpp"

#include <shardwise/runtime/mpi/calls.hpp>

struct ncclComm {
  MPI_Comm ranks = MPI_COMM_NULL;
  std::atomic<bool> aborted{false};
};

namespace paper {

inline int ids = 0;

}  // namespace paper

extern "C" {

const char* ncclGetErrorString(ncclResult_t) { return "on paper"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int number = 100 * paper::ids++ + rank;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}
// Of all processes at once, as the launch does it. Ranks that hold one id are a communicator.
ncclResult_t ncclCommInitRank(ncclComm_t* c, int ranks, ncclUniqueId id, int rank) {
  int number = 0, size = 0, place = 0;
  std::memcpy(&number, id.internal, sizeof number);
  *c = new ncclComm;
  MPI_Comm_split(MPI_COMM_WORLD, number, rank, &(*c)->ranks);
  MPI_Comm_size((*c)->ranks, &size);
  MPI_Comm_rank((*c)->ranks, &place);
  return size == ranks && place == rank ? ncclSuccess : ncclInvalidUsage;
}
ncclResult_t ncclCommInitAll(ncclComm_t*, int, const int*) { return ncclInvalidUsage; }
ncclResult_t ncclCommSplit(ncclComm_t c, int color, int key, ncclComm_t* o, ncclConfig_t*) {
  *o = new ncclComm;
  MPI_Comm_split(c->ranks, color, key, &(*o)->ranks);
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t c) {
  MPI_Comm_free(&c->ranks);
  delete c;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t c) {
  c->aborted = true;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* r) {
  *r = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }
// Sums of floats alone.
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t n, ncclDataType_t, ncclRedOp_t, ncclComm_t c,
                           cudaStream_t s) {
  s->put([=] {
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Iallreduce(from, to, static_cast<int>(n), MPI_FLOAT, MPI_SUM, c->ranks, &r);
    for (int done = 0; !done && !c->aborted;) {
      MPI_Test(&r, &done, MPI_STATUS_IGNORE);
      const timespec t{0, 100'000};
      if (!done) nanosleep(&t, nullptr);
    }
  });
  return ncclSuccess;
}
ncclResult_t ncclAllGather(const void*, void*, std::size_t, ncclDataType_t, ncclComm_t, cudaStream_t) {
  return ncclInvalidUsage;
}
}
