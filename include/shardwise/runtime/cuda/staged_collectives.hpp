// SPDX-License-Identifier: Apache-2.0
// staged_collectives: a program's collectives along axes that hosts carry: blocks are copied to pinned memory, the hosts exchange there, and
// results are copied back, all in the stream's order, so that a captured graph holds them as two kinds of copies and a host node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <shardwise/runtime/cuda/context.hpp>
#include <shardwise/runtime/cuda/resources.hpp>
#include <shardwise/runtime/cuda/staged_blocks.hpp>
#include <shardwise/runtime/processes/host_link.hpp>

namespace shardwise::inline v0_1::cuda {

// CUDA calls the exchange from a thread of its own, in which nothing may call CUDA, so MPI is given the host's memory alone. What fails there
// the link tells all ranks, and whoever next waits for the device throws it (cuda_rank::check_peers). Price: both copies, and those of
// what MPI sends and receives; the device waits meanwhile, unless kernels on the other stream have something to do.
class staged_collectives {
 public:
  template <class Graph>
  staged_collectives(const Graph& g, processes::host_link* link)
      : link_(link), bytes_(link ? staged_blocks::bytes_of(g, link->axes()) : 0) {
    if (bytes_ == 0) return;
    memory_ = std::make_unique<pinned_memory>(static_cast<std::size_t>(bytes_));
    std::memset(memory_->host(), 0, static_cast<std::size_t>(bytes_));
  }
  staged_collectives(const staged_collectives&) = delete;
  staged_collectives& operator=(const staged_collectives&) = delete;

  std::size_t bytes() const { return static_cast<std::size_t>(bytes_); }

  // Those among a program's calls, which lie where they do until the next time. Nothing is queued.
  template <class Calls>
  void prepare(const Calls& calls, processes::host_link::place_text where) {
    own_.clear();
    if (bytes_ == 0) return;
    own_.resize(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const call& c = calls[i];
      if (!communicates(c.kind) || !link_->carries(c.axis) || c.members == 0) continue;
      own_[i] = {link_, where, {&calls[i], c.members, static_cast<std::byte*>(memory_->host()), bytes_}};
    }
  }

  // Call i and the further ones of its batch, on a stream.
  void launch(std::size_t i, cudaStream_t on) {
    one& o = own_[i];
    for (const auto& k : o.blocks.to_host())
      check(cudaMemcpyAsync(k.host, k.device, k.bytes, cudaMemcpyDeviceToHost, on), "cudaMemcpyAsync");
    check(cudaLaunchHostFunc(on, &run, &o), "cudaLaunchHostFunc");
    for (const auto& k : o.blocks.to_device())
      check(cudaMemcpyAsync(k.device, k.host, k.bytes, cudaMemcpyHostToDevice, on), "cudaMemcpyAsync");
  }

 private:
  struct one {
    processes::host_link* link = nullptr;
    processes::host_link::place_text where = nullptr;
    staged_blocks blocks = {};
  };
  static void CUDART_CB run(void* p) {
    const one& o = *static_cast<const one*>(p);
    o.blocks.run(*o.link, o.where);
  }

  processes::host_link* link_;
  std::int64_t bytes_;
  std::unique_ptr<pinned_memory> memory_;
  std::vector<one> own_;  // by number of the call
};

}  // namespace shardwise::inline v0_1::cuda
