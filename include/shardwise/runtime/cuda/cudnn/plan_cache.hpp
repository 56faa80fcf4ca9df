// SPDX-License-Identifier: Apache-2.0
// What cuDNN's attention and convolutions share: handles, plans that are built once for each distinct request, errors. With cuDNN's front
// end, which takes a compiler a minute and 2 GB: included by the headers beside it alone.
#pragma once

#include <cudnn.h>
#include <cudnn_frontend.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include <shardwise/runtime/cuda/error.hpp>

namespace shardwise::inline v0_1::cuda::cudnn {

namespace fe = cudnn_frontend;

inline void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) throw device_error(call, cudnnGetErrorString(status));
}

inline std::string version() {
  const std::size_t v = cudnnGetVersion();
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
}
inline std::string name() { return "cuDNN " + version(); }

inline int current_device() {
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

// A handle on the stream, for one thread at a time. Those of a process are kept for its threads and never destroyed: at its end CUDA may
// be gone before statics are.
class leased_handle {
 public:
  explicit leased_handle(CUstream_st* stream) : device_(current_device()) {
    kept& all = get_kept();
    {
      const std::lock_guard<std::mutex> lock(all.mutex);
      auto& free = all.of[device_];
      if (!free.empty()) {
        handle_ = free.back();
        free.pop_back();
      }
    }
    if (!handle_) check(cudnnCreate(&handle_), "cudnnCreate");
    check(cudnnSetStream(handle_, stream), "cudnnSetStream");
  }
  leased_handle(const leased_handle&) = delete;
  leased_handle& operator=(const leased_handle&) = delete;
  ~leased_handle() {
    kept& all = get_kept();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.of[device_].push_back(handle_);
  }
  cudnnHandle_t get() const { return handle_; }

 private:
  struct kept {
    std::mutex mutex;
    std::unordered_map<int, std::vector<cudnnHandle_t>> of;  // by device
  };
  static kept& get_kept() {
    static kept* const one = new kept;
    return *one;
  }

  int device_;
  cudnnHandle_t handle_ = nullptr;
};

// A request that was met on a device: its plan, or why there is none.
template <class Request>
struct plan {
  int device = 0;
  Request request;
  std::shared_ptr<fe::graph::Graph> graph;
  std::int64_t bytes = 0;  // of workspace
  std::string why;
  mutable std::atomic<bool> ran{false};
};

// All plans of a process for one kind of operation. None is ever destroyed: a captured step reads a plan's kernels for as long as it is
// replayed.
template <class Request>
class plan_cache {
 public:
  static plan_cache& get() {
    static plan_cache* const one = new plan_cache;
    return *one;
  }

  // Builds it unless it is known. build(plan, handle) sets the graph and its bytes, or why there is none. Throws std::logic_error where
  // it is to be built while the stream, if one is given, is being captured; `what` is run by the plan. Price: some ten milliseconds to
  // seconds, once for each distinct request and device.
  template <class Build>
  const plan<Request>& of(const Request& r, CUstream_st* stream, const char* what, const Build& build) {
    const int device = current_device();
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& p : plans_)
      if (p->device == device && p->request == r) return *p;
    if (stream) refuse_capture(r, stream, what);
    auto p = std::make_unique<plan<Request>>();
    p->device = device;
    p->request = r;
    build(*p, leased_handle(nullptr).get());
    plans_.push_back(std::move(p));
    return *plans_.back();
  }

 private:
  static void refuse_capture(const Request& r, cudaStream_t stream, const char* what) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cuda::check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
    if (status != cudaStreamCaptureStatusNone)
      throw std::logic_error(std::string("shardwise: ") + what + " by cuDNN: the plan of " + text_of(r) +
                             " is to be built while its stream is captured, which CUDA forbids; run the call once, or ask " +
                             what + "_library_for, before the capture begins");
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<plan<Request>>> plans_;
};

// Runs it with the blocks of these numbers.
template <class Request>
void run_plan(const plan<Request>& p, std::unordered_map<std::int64_t, void*>& blocks, void* workspace, CUstream_st* stream,
              const char* what) {
  const leased_handle handle(stream);
  fe::error_t e = p.graph->execute(handle.get(), blocks, workspace);
  if (e.is_bad()) throw device_error(std::string(what) + " by " + name() + " (" + text_of(p.request) + ")", e.get_message());
  p.ran = true;
}

}  // namespace shardwise::inline v0_1::cuda::cudnn
