// SPDX-License-Identifier: Apache-2.0
// Owners of what CUDA hands out: memory, streams, events, graphs, handles; each gives back what it took.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <shardwise/runtime/cuda/error.hpp>

namespace shardwise::inline v0_1::cuda {

class device_memory {
 public:
  explicit device_memory(std::size_t bytes) {
    void* p = nullptr;
    const cudaError_t status = cudaMalloc(&p, bytes > 0 ? bytes : 1);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      std::size_t left = 0, all = 0;
      cudaMemGetInfo(&left, &all);
      throw device_error("cudaMalloc of " + std::to_string(bytes) + " bytes",
                         "the device has " + std::to_string(left) + " of its " + std::to_string(all) +
                             " bytes left; the program's peak_bytes must fit");
    }
    check(status, "cudaMalloc");
    data_ = static_cast<std::byte*>(p);
  }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  ~device_memory() { cudaFree(data_); }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
};

// Host memory that copies to and from a device do not wait for.
class pinned_memory {
 public:
  explicit pinned_memory(std::size_t bytes) {
    check(cudaHostAlloc(&host_, bytes > 0 ? bytes : 1, cudaHostAllocDefault), "cudaHostAlloc");
  }
  pinned_memory(const pinned_memory&) = delete;
  pinned_memory& operator=(const pinned_memory&) = delete;
  ~pinned_memory() { cudaFreeHost(host_); }
  void* host() const { return host_; }

 private:
  void* host_ = nullptr;
};

class stream {
 public:
  // A lower number is a higher priority: collectives, which others wait for, go first.
  explicit stream(int priority = 0) {
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority), "cudaStreamCreateWithPriority");
  }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// An order between streams; it measures no time.
class event {
 public:
  event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags"); }
  event(event&& o) noexcept : event_(std::exchange(o.event_, nullptr)) {}
  event& operator=(event&&) = delete;
  ~event() {
    if (event_) cudaEventDestroy(event_);
  }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// A point of a stream in time.
class timing_event {
 public:
  timing_event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  timing_event(timing_event&& o) noexcept : event_(std::exchange(o.event_, nullptr)) {}
  timing_event& operator=(timing_event&&) = delete;
  ~timing_event() {
    if (event_) cudaEventDestroy(event_);
  }
  void record(cudaStream_t on) { check(cudaEventRecord(event_, on), "cudaEventRecord"); }
  // Nanoseconds from `origin` to this; both have passed.
  std::int64_t since(const timing_event& origin) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, origin.event_, event_), "cudaEventElapsedTime");
    return static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
  }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class lt_handle {
 public:
  lt_handle() { check(cublasLtCreate(&handle_), "cublasLtCreate"); }
  lt_handle(const lt_handle&) = delete;
  lt_handle& operator=(const lt_handle&) = delete;
  ~lt_handle() { cublasLtDestroy(handle_); }
  cublasLtHandle_t get() const { return handle_; }

 private:
  cublasLtHandle_t handle_ = nullptr;
};

// What a graph starts, by kind.
struct graph_nodes {
  int kernels = 0, copies = 0, fills = 0, others = 0;

  static graph_nodes of(cudaGraph_t graph) {
    std::size_t count = 0;
    check(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes");
    std::vector<cudaGraphNode_t> nodes(count);
    if (count > 0) check(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes");
    graph_nodes n;
    for (cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type{};
      check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
      switch (type) {
        case cudaGraphNodeTypeKernel: ++n.kernels; break;
        case cudaGraphNodeTypeMemcpy: ++n.copies; break;
        case cudaGraphNodeTypeMemset: ++n.fills; break;
        default: ++n.others; break;
      }
    }
    return n;
  }
};

// A captured graph, ready to launch.
class graph_instance {
 public:
  graph_instance() = default;
  explicit graph_instance(cudaGraph_t captured) {
    try {
      nodes_ = graph_nodes::of(captured);
      check(cudaGraphInstantiate(&exec_, captured, 0), "cudaGraphInstantiate");
    } catch (...) {
      cudaGraphDestroy(captured);
      throw;
    }
    cudaGraphDestroy(captured);
  }
  // What queue() launches on the stream, and on those that it has wait for it. Throws what it throws; no stream captures then.
  template <class F>
  static graph_instance of(cudaStream_t stream, F&& queue) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t captured = nullptr;
    try {
      queue();
    } catch (...) {
      cudaStreamEndCapture(stream, &captured);
      if (captured) cudaGraphDestroy(captured);
      throw;
    }
    check(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture");
    return graph_instance(captured);
  }
  graph_instance(graph_instance&& o) noexcept : exec_(std::exchange(o.exec_, nullptr)), nodes_(o.nodes_) {}
  graph_instance& operator=(graph_instance&& o) noexcept {
    std::swap(exec_, o.exec_);
    std::swap(nodes_, o.nodes_);
    return *this;
  }
  ~graph_instance() {
    if (exec_) cudaGraphExecDestroy(exec_);
  }
  cudaGraphExec_t get() const { return exec_; }
  const graph_nodes& nodes() const { return nodes_; }

 private:
  cudaGraphExec_t exec_ = nullptr;
  graph_nodes nodes_;
};

// Two pinned buffers used in turn: the host fills one while the other is still being copied to the device.
class staging {
 public:
  explicit staging(std::size_t bytes) : buffer_{pinned_memory(bytes), pinned_memory(bytes)} {}
  // Rank: that of a device.
  template <class Rank>
  void* next(Rank& rank) {
    turn_ ^= 1U;
    rank.synchronize(sent_[turn_]);
    return buffer_[turn_].host();
  }
  void send(void* to, std::size_t bytes, cudaStream_t on) {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(to, buffer_[turn_].host(), bytes, cudaMemcpyHostToDevice, on), "cudaMemcpyAsync");
    check(cudaEventRecord(sent_[turn_].get(), on), "cudaEventRecord");
  }

 private:
  pinned_memory buffer_[2];
  event sent_[2];
  unsigned turn_ = 0;
};

}  // namespace shardwise::inline v0_1::cuda
