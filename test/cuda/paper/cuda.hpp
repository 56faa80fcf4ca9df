// SPDX-License-Identifier: Apache-2.0
// As much of CUDA's runtime as ranks and executors call, on this process's memory: a device is its streams, a stream is a thread that does what
// is queued, and what waits on a GPU waits here. Kernels do nothing: what is tried is all that the host does. What CUDA refuses (a wait inside
// of a capture, a grid of no blocks, memory that is not there) is refused. For one source of a program that does not link CUDA's runtime.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace paper {

using work = std::function<void()>;

inline constexpr int devices = 8;
inline thread_local int device = 0;
inline thread_local std::vector<work>* capture = nullptr;  // of this thread
inline std::atomic<std::int64_t> kernels{0}, replays{0};   // launched, captured ones not among them; and graphs

inline std::mutex gate;
inline std::set<cudaStream_t> streams;
inline std::map<const std::byte*, std::size_t> pinned;
inline bool is_pinned(const void* p) {
  const auto* const at = static_cast<const std::byte*>(p);
  const std::lock_guard lock(gate);
  const auto next = pinned.upper_bound(at);
  return next != pinned.begin() && at < std::prev(next)->first + std::prev(next)->second;
}

}  // namespace paper

struct CUstream_st {
  CUstream_st() {
    worker = std::thread([this] {
      for (;;) {
        std::unique_lock lock(gate);
        changed.wait(lock, [&] { return !queue.empty(); });
        const paper::work f = queue.front();
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
    queued({});
    worker.join();
  }
  // While this thread captures, streams join the capture: what it queues on any of them is done in the order in which it came.
  void put(paper::work f) {
    if (paper::capture) paper::capture->push_back(std::move(f));
    else queued(std::move(f));
  }
  bool idle() {
    const std::lock_guard lock(gate);
    return queue.empty();
  }
  void wait() {
    std::unique_lock lock(gate);
    changed.wait(lock, [&] { return queue.empty(); });
  }

  int device = paper::device;
  std::mutex gate;
  std::condition_variable changed;
  std::deque<paper::work> queue;  // its front is under way
  std::thread worker;

 private:
  void queued(paper::work f) {
    const std::lock_guard lock(gate);
    queue.push_back(std::move(f));
    changed.notify_all();
  }
};

// Passed as often as it has been recorded, in the order of that.
struct CUevent_st {
  void pass(int n) {
    const std::lock_guard lock(gate);
    passed = std::max(passed, n);  // of a graph that is replayed the same one
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

struct CUgraph_st {
  std::vector<paper::work> all;
};
struct CUgraphExec_st {
  std::vector<paper::work> all;
};

namespace paper {

inline cudaError_t wait_for_device() {
  std::set<cudaStream_t> all;
  {
    const std::lock_guard lock(gate);
    all = streams;
  }
  for (cudaStream_t s : all)
    if (s->device == device) s->wait();
  return cudaSuccess;
}
// What a capture forbids its thread.
inline cudaError_t refused() { return capture ? cudaErrorStreamCaptureUnsupported : cudaSuccess; }

}  // namespace paper

extern "C" {

cudaError_t cudaGetDeviceCount(int* n) {
  *n = paper::devices;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "on paper"; }
const char* cudaGetErrorName(cudaError_t) { return "on paper"; }
cudaError_t cudaGetDevice(int* d) {
  *d = paper::device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int d) {
  if (d < 0 || d >= paper::devices) return cudaErrorInvalidDevice;
  paper::device = d;
  return cudaSuccess;
}
// Kernels do nothing here, so none may wait for what another one writes into its memory.
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaErrorPeerAccessUnsupported; }
// A GPU of compute capability 9.0.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int) {
  *value = what == cudaDevAttrMultiProcessorCount            ? 132
           : what == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 232'448
           : what == cudaDevAttrComputeCapabilityMajor       ? 9
           : what == cudaDevAttrComputeCapabilityMinor       ? 0
                                                             : 1;
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
cudaError_t cudaStreamQuery(cudaStream_t s) {
  if (paper::capture) return paper::refused();
  return s->idle() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  if (paper::capture) return paper::refused();
  s->wait();
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return paper::capture ? paper::refused() : paper::wait_for_device(); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  *e = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }  // a stream may still know it
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  s->put([e, n = ++e->recorded] { e->pass(n); });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  s->put([e, n = e->recorded] { e->wait(n); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
  if (paper::capture) return paper::refused();
  return e->is_passed() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  if (paper::capture) return paper::refused();
  e->wait(e->recorded);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 0.001F;
  return cudaSuccess;
}

// Zeros, so that what no kernel has written is the same in every run. A device has 2^40 bytes.
cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  if (paper::capture) return paper::refused();
  *p = bytes < std::size_t{1} << 40 ? std::calloc(bytes > 0 ? bytes : 1, 1) : nullptr;
  return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* p) {
  if (paper::capture) return paper::refused();
  paper::wait_for_device();
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* left, std::size_t* all) {
  *left = *all = std::size_t{1} << 40;
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned) {
  *p = std::calloc(bytes, 1);
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
// From and to memory of the host that is not pinned it waits.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t s) {
  const bool waits = (kind == cudaMemcpyDeviceToHost && !paper::is_pinned(to)) ||
                     (kind == cudaMemcpyHostToDevice && !paper::is_pinned(from));
  if (waits && paper::capture) return paper::refused();
  s->put([=] { std::memcpy(to, from, bytes); });
  if (waits) s->wait();
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                              std::size_t rows, cudaMemcpyKind, cudaStream_t s) {
  s->put([=] {
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(static_cast<std::byte*>(to) + r * to_pitch, static_cast<const std::byte*>(from) + r * from_pitch, width);
  });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t s) {
  s->put([=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* given) {
  s->put([=] { f(given); });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  if (paper::capture) return cudaErrorIllegalState;
  paper::capture = new std::vector<paper::work>;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* g) {
  if (!paper::capture) return cudaErrorIllegalState;
  *g = new CUgraph_st{std::move(*paper::capture)};
  delete std::exchange(paper::capture, nullptr);
  return cudaSuccess;
}
// Of no kind that anybody counts.
cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, std::size_t* n) {
  *n = 0;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t, cudaGraphNodeType* type) {
  *type = cudaGraphNodeTypeEmpty;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long) {
  *e = new CUgraphExec_st{g->all};
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  delete g;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }  // a stream may still run it
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s) {
  ++paper::replays;
  s->put([e] {
    for (const paper::work& f : e->all) f();
  });
  return cudaSuccess;
}

}  // extern "C"
