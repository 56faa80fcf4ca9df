// SPDX-License-Identifier: Apache-2.0
// host_calls: a program's opaque functions on a device's rank: blocks are copied to the host, the function runs there, its result is
// copied back, all in the stream's order, so that a captured graph holds it as two kinds of copies and a host node.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <shardwise/graph/graph.hpp>
#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/propagation/scratch.hpp>
#include <shardwise/runtime/cuda/context.hpp>
#include <shardwise/runtime/cuda/resources.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1::cuda {

// Opaque functions run on one stream, one after the other, and share one buffer of pinned memory, as large as the blocks of the largest
// one. CUDA calls them from a thread of its own, in which nothing may call CUDA, and through which no exception may pass: the first one
// is kept, what runs after it gives zeros and calls no function, so that no rank leaves the others waiting in a collective, and
// who next waits for the stream throws it. Price: the copies, and the device waits for the host.
class host_calls {
 public:
  template <class Graph>
  explicit host_calls(const Graph& g) : bytes_(bytes_of(g)) {
    if (bytes_ == 0) return;
    blocks_ = std::make_unique<pinned_memory>(bytes_);
    std::memset(blocks_->host(), 0, bytes_);
  }
  host_calls(const host_calls&) = delete;
  host_calls& operator=(const host_calls&) = delete;

  // Pinned memory that a program's opaque functions take.
  template <class Graph>
  static constexpr std::size_t bytes_of(const Graph& g) {
    std::int64_t most = 0;
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      if (n.op != op_code::opaque) continue;
      std::int64_t all = largest_bytes(g.specs[n.spec]);
      for (int k = 0; k < n.inputs; ++k) all += largest_bytes(g.spec_of(n.in[k]));
      if (all > most) most = all;
    }
    return static_cast<std::size_t>(most);
  }
  std::size_t bytes() const { return bytes_; }

  // The opaque ones among a program's calls, which lie where they do until the next time. Nothing is queued.
  template <class Graph, class Calls>
  void prepare(const Graph& g, const Calls& calls) {
    own_.assign(calls.size(), one{});
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const call& c = calls[i];
      if (g.nodes[c.node].op != op_code::opaque) continue;
      one& o = own_[i];
      o = {this, c.function, c.node, c.inputs};
      std::int64_t at = 0;
      for (int k = 0; k <= c.inputs; ++k) {  // the result's block, then the operands'
        const int of = k == 0 ? result : k - 1;
        o.size[k] = c.l[of].numel() * static_cast<std::int64_t>(size_of(c.type[of]));
        o.device[k] = c.p[of];
        o.block[k] = {static_cast<std::byte*>(blocks_->host()) + at, c.l[of].numel()};
        at += passes::align_up(o.size[k]);
      }
      if (at > static_cast<std::int64_t>(bytes_))
        throw std::logic_error("shardwise: opaque: the blocks of a call take " + std::to_string(at) +
                               " bytes, more than the " + std::to_string(bytes_) + " of the largest that was planned");
    }
  }

  // Call i, on a stream. `silent`: zeros, and no function is called.
  void launch(std::size_t i, cudaStream_t on, bool silent) {
    one& o = own_[i];
    for (int k = 1; k <= o.inputs; ++k) copy(o.block[k].data, o.device[k], o.size[k], cudaMemcpyDeviceToHost, on);
    if (silent) {
      if (o.size[0] > 0) check(cudaMemsetAsync(o.device[0], 0, static_cast<std::size_t>(o.size[0]), on), "cudaMemsetAsync");
      return;
    }
    check(cudaLaunchHostFunc(on, &run, &o), "cudaLaunchHostFunc");
    copy(o.device[0], o.block[0].data, o.size[0], cudaMemcpyHostToDevice, on);
  }

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  int failed_node() const { return node_; }
  // Throws what a function threw. Nothing is queued.
  void rethrow() {
    if (!failed()) return;
    const std::exception_ptr e = std::exchange(error_, nullptr);
    failed_.store(false, std::memory_order_release);
    std::rethrow_exception(e);
  }

 private:
  struct one {
    host_calls* all = nullptr;
    opaque_function function = nullptr;
    std::int32_t node = -1;
    std::int32_t inputs = 0;
    opaque_block block[max_inputs + 1]{};  // in pinned memory
    void* device[max_inputs + 1]{};
    std::int64_t size[max_inputs + 1]{};  // in bytes
  };

  static constexpr std::int64_t largest_bytes(const spec& s) {
    std::int64_t n = static_cast<std::int64_t>(size_of(s.type));
    const operations::largest_block b(s);
    for (int d = 0; d < s.rank; ++d) n *= b.extent[d];
    return passes::align_up(n);
  }
  static void copy(void* to, const void* from, std::int64_t bytes, cudaMemcpyKind kind, cudaStream_t on) {
    if (bytes > 0) check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, on), "cudaMemcpyAsync");
  }
  static void CUDART_CB run(void* p) {
    const one& o = *static_cast<const one*>(p);
    host_calls& all = *o.all;
    if (!all.failed()) {
      try {
        o.function(o.block);
        return;
      } catch (...) {
        all.error_ = std::current_exception();
        all.node_ = o.node;
        all.failed_.store(true, std::memory_order_release);
      }
    }
    if (o.size[0] > 0) std::memset(o.block[0].data, 0, static_cast<std::size_t>(o.size[0]));
  }

  std::size_t bytes_;
  std::unique_ptr<pinned_memory> blocks_;
  dynamic_array<one> own_;  // by number of the call
  std::exception_ptr error_;
  std::int32_t node_ = -1;
  std::atomic<bool> failed_{false};
};

}  // namespace shardwise::inline v0_1::cuda
