// SPDX-License-Identifier: Apache-2.0
// staged_blocks: the blocks of a collective that the hosts of GPUs exchange, in the host's memory; constants and pointers, without CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/graph/graph.hpp>
#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/propagation/attributes.hpp>
#include <shardwise/propagation/scratch.hpp>
#include <shardwise/propagation/transition.hpp>
#include <shardwise/runtime/processes/host_link.hpp>
#include <shardwise/runtime/program/call.hpp>

namespace shardwise::inline v0_1::cuda {

// One collective of n calls, a batch or one alone: its operands are copied to the host's memory, the hosts exchange there, and the results
// are copied back. Operand and result have room of their own, since several members may read one block.
class staged_blocks {
 public:
  struct copied {
    void* device;
    std::byte* host;
    std::size_t bytes;
  };

  staged_blocks() = default;
  // `memory` has `room` bytes, which are all that is ever touched.
  staged_blocks(const runtime::call* c, int n, std::byte* memory, std::int64_t room) : calls_(c, c + n) {
    std::int64_t at = 0;
    for (runtime::call& k : calls_) {
      k.workspace = nullptr;  // which no collective between hosts has a use for
      const auto size = static_cast<std::int64_t>(size_of(k.type[runtime::result]));
      for (const int of : {0, runtime::result}) {
        if (!k.l[of].is_dense())
          throw std::logic_error(
              "shardwise: a collective got a strided block; make it contiguous before it is redistributed");
        const std::int64_t bytes = k.l[of].numel() * size;
        if (bytes > 0) (of == 0 ? given_ : made_).push_back({k.p[of], memory + at, static_cast<std::size_t>(bytes)});
        k.p[of] = memory + at;
        at += passes::align_up(bytes);
      }
    }
    if (at > room)
      throw std::logic_error("shardwise: a collective between hosts takes " + std::to_string(at) +
                             " bytes of pinned memory, more than the " + std::to_string(room) +
                             " of the largest that was planned");
  }
  bool empty() const { return calls_.empty(); }

  // What is copied before `run`, and behind it.
  const std::vector<copied>& to_host() const { return given_; }
  const std::vector<copied>& to_device() const { return made_; }
  void run(processes::host_link& link, processes::host_link::place_text where) const noexcept {
    link.collective(calls_.data(), static_cast<int>(calls_.size()), where);
  }

  // What a program's collectives along `axes` (bit a: axis a) need: as much as the largest, whatever ranks hold. They run one after the
  // other (runtime/program/schedule.hpp), so they share it.
  template <class Graph>
  static constexpr std::int64_t bytes_of(const Graph& g, unsigned axes) {
    std::int64_t most = 0;
    for (int i = 0; i < g.node_count; ++i) {
      const std::int64_t batch = batch_of(g, i, axes);
      if (batch < 0) continue;
      std::int64_t all = 0;
      for (int k = batch == 0 ? i : 0; k < (batch == 0 ? i + 1 : g.node_count); ++k)
        if (batch_of(g, k, axes) == batch)
          all += largest_bytes(g.spec_of(g.nodes[k].in[0])) + largest_bytes(g.specs[g.nodes[k].spec]);
      if (all > most) most = all;
    }
    return most;
  }

 private:
  // Of a collective along one of the axes: the number of its batch, 0 where it is alone. Of any other node -1.
  template <class Graph>
  static constexpr std::int64_t batch_of(const Graph& g, int i, unsigned axes) {
    const node& n = g.nodes[i];
    if (n.op != op_code::redistribute) return -1;
    const auto of = attributes_of<redistribute_attributes>(n.a);
    const auto axis = static_cast<unsigned>(of.axis);
    const spec &x = g.spec_of(n.in[0]), &o = g.specs[n.spec];
    if ((axes >> axis & 1U) == 0 || !communicates(transition_of(x.place[axis], o.place[axis], x.axis_size[axis]))) return -1;
    return of.batch;
  }
  static constexpr std::int64_t largest_bytes(const spec& s) {
    auto n = static_cast<std::int64_t>(size_of(s.type));
    const operations::largest_block b(s);
    for (int d = 0; d < s.rank; ++d) n *= b.extent[d];
    return passes::align_up(n);
  }

  std::vector<runtime::call> calls_;
  std::vector<copied> given_, made_;
};

}  // namespace shardwise::inline v0_1::cuda
