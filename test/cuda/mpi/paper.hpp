// SPDX-License-Identifier: Apache-2.0
// As much of CUDA's runtime and of NCCL as ranks and staged collectives call, on this process's memory: a stream is a thread that runs what is
// queued, an NCCL communicator is MPI's, and a collective that is aborted ends. So the launch of GPUs by MPI runs where there is no GPU. For one
// source of a program that links neither library, under an MPI with MPI_THREAD_MULTIPLE.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>
#include <time.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <shardwise/runtime/mpi/calls.hpp>

struct CUstream_st {
  CUstream_st() {
    worker = std::thread([this] {
      for (;;) {
        std::unique_lock lock(gate);
        changed.wait(lock, [&] { return !queue.empty(); });
        const std::function<void()> f = queue.front();
        lock.unlock();
        if (!f) return;
        f();
        lock.lock();
        queue.pop_front();
        changed.notify_all();
      }
    });
  }
  ~CUstream_st() {
    put({});
    worker.join();
  }
  void put(std::function<void()> f) {
    const std::lock_guard lock(gate);
    queue.push_back(std::move(f));
    changed.notify_all();
  }
  bool idle() {
    const std::lock_guard lock(gate);
    return queue.empty();
  }
  void wait() {
    std::unique_lock lock(gate);
    changed.wait(lock, [&] { return queue.empty(); });
  }

  std::mutex gate;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;  // its front is under way
  std::thread worker;
};

// Passed as often as it has been recorded, in the order of that.
struct CUevent_st {
  void pass(int n) {
    const std::lock_guard lock(gate);
    passed = n;
    changed.notify_all();
  }
  void wait(int n) {
    std::unique_lock lock(gate);
    changed.wait(lock, [&] { return passed >= n; });
  }

  bool is_passed() {
    const std::lock_guard lock(gate);
    return passed >= recorded;
  }

  std::mutex gate;
  std::condition_variable changed;
  int recorded = 0, passed = 0;
};

struct ncclComm {
  MPI_Comm ranks = MPI_COMM_NULL;
  std::atomic<bool> aborted{false};
};

namespace paper {

inline std::mutex gate;
inline std::set<cudaStream_t> streams;
inline std::map<const std::byte*, std::size_t> pinned;
inline bool is_pinned(const void* p) {
  const auto* const at = static_cast<const std::byte*>(p);
  const std::lock_guard lock(gate);
  const auto next = pinned.upper_bound(at);
  return next != pinned.begin() && at < std::prev(next)->first + std::prev(next)->second;
}
inline int ids = 0;

}  // namespace paper

extern "C" {

cudaError_t cudaGetDeviceCount(int* n) {
  *n = 8;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "on paper"; }
const char* cudaGetErrorName(cudaError_t) { return "on paper"; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 1;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int) {
  *s = new CUstream_st;
  const std::lock_guard lock(paper::gate);
  paper::streams.insert(*s);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  {
    const std::lock_guard lock(paper::gate);
    paper::streams.erase(s);
  }
  delete s;  // which waits
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) { return s->idle() ? cudaSuccess : cudaErrorNotReady; }
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  s->wait();
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  *e = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }  // a stream may still know it
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  s->put([e, n = ++e->recorded] { e->pass(n); });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  s->put([e, n = e->recorded] { e->wait(n); });
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  std::set<cudaStream_t> all;
  {
    const std::lock_guard lock(paper::gate);
    all = paper::streams;
  }
  for (cudaStream_t s : all) s->wait();
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  *p = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  cudaDeviceSynchronize();
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t*, std::size_t*) { return cudaSuccess; }
cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned) {
  *p = std::malloc(bytes);
  const std::lock_guard lock(paper::gate);
  paper::pinned.emplace(static_cast<const std::byte*>(*p), bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) {
  {
    const std::lock_guard lock(paper::gate);
    paper::pinned.erase(static_cast<const std::byte*>(p));
  }
  return cudaFree(p);
}
// As CUDA's own: from and to memory of the host that is not pinned it waits.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t s) {
  s->put([=] { std::memcpy(to, from, bytes); });
  if ((kind == cudaMemcpyDeviceToHost && !paper::is_pinned(to)) ||
      (kind == cudaMemcpyHostToDevice && !paper::is_pinned(from)))
    s->wait();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t e) { return e->is_passed() ? cudaSuccess : cudaErrorNotReady; }
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  e->wait(e->recorded);
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* given) {
  s->put([=] { f(given); });
  return cudaSuccess;
}

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
