// SPDX-License-Identifier: Apache-2.0
// peer_slots: memory of a rank that its peers along one axis write into: its words and epochs, and when it may be freed.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include <shardwise/runtime/cuda/resources.hpp>

namespace shardwise::inline v0_1::cuda {

// Eight bytes of payload travel as one word of sixteen: payload, epoch, payload, epoch, four bytes each. Eight bytes arrive at once, so whoever
// finds the epoch has the payload beside it, and no flag travels behind. Price: twice the bytes.
inline constexpr std::int64_t payload_of_word = 8;

// Of one axis; along longer ones NCCL reduces.
inline constexpr int max_slot_ranks = 8;

// In the device's memory, since a graph that is replayed has the same arguments each time.
struct slot_state {
  std::uint32_t epoch;    // of the last collective that is done
  std::uint32_t ended;    // not 0: the run is aborted, and no collective waits any more
  std::uint32_t arrived;  // blocks of the one under way that are done
};

// What a kernel is given. A rank's memory holds, for each parity of the epoch, `words` words from each of its peers.
//
// Two parities suffice. A rank writes those of collective e + 1 over those of e - 1. It has then received all of e, so each peer has begun
// e; and a peer begins e when its kernel of e - 1, which read the words in question, has ended.
//
// Whose the epoch is: that of one axis of one rank. Collectives of a rank are done one after the other in the order in which its thread has
// queued them, whatever streams they are on: those of one program by its schedule (runtime/program/schedule.hpp), those of several by
// run_order. All ranks of an axis queue the same, so their epochs agree, and one set of slots serves all streams and programs.
struct peer_slots {
  uint4* lands[max_slot_ranks]{};  // where this rank's words of parity 0 land, by the peer's place on the axis
  const uint4* comes = nullptr;    // this rank's memory: first what the first peer sends in parity 0
  slot_state* state = nullptr;
  const std::uint32_t* abort = nullptr;  // the host's: not 0 when the run has failed
  std::int32_t words = 0, ranks = 0, rank = 0;
};

// The memory of one rank for one axis. It is the rank's and lives until the launch ends, not the executor's that asked for it: a peer whose
// executor lives longer may still begin a collective that this rank does not come to, which then has to end in a sentence and not in
// writes to what is freed. At the launch's end all ranks' functions have returned, none before its device was quiet. An executor that needs
// larger slots gets new ones beside those that earlier graphs know.
class slot_memory {
 public:
  slot_memory(std::int32_t words, int ranks, cudaStream_t stream) : memory_(bytes_of(words, ranks)) {
    slots.words = words;
    slots.ranks = ranks;
    slots.state = reinterpret_cast<slot_state*>(memory_.data());
    slots.comes = reinterpret_cast<const uint4*>(memory_.data() + state_bytes);
    // no collective has the epoch 0
    check(cudaMemsetAsync(memory_.data(), 0, bytes_of(words, ranks), stream), "cudaMemsetAsync");
  }
  // Where words of parity 0 land that the rank at place `from` sends to the one at place `to`, whose memory begins at `at`.
  static uint4* landing(std::byte* at, std::int32_t words, int from, int to) {
    return reinterpret_cast<uint4*>(at + state_bytes) + static_cast<std::ptrdiff_t>(words) * (from - (from > to ? 1 : 0));
  }
  std::byte* data() const { return memory_.data(); }

  peer_slots slots;

 private:
  static constexpr std::size_t state_bytes = 256;  // a line of its own, apart from what peers write
  static constexpr std::size_t bytes_of(std::int32_t words, int ranks) {
    return state_bytes + 2 * static_cast<std::size_t>(ranks - 1) * static_cast<std::size_t>(words) * sizeof(uint4);
  }
  device_memory memory_;
};

// What ranks show each other of it, by axis; null: this rank has none.
struct slot_offer {
  std::byte* at = nullptr;
  std::int32_t words = 0;
};

}  // namespace shardwise::inline v0_1::cuda
