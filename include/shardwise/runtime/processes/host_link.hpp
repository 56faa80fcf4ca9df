// SPDX-License-Identifier: Apache-2.0
// host_link: what joins ranks on devices whose own library does not connect them along every axis of the mesh: their hosts, which exchange
// blocks along some axes, meet, and tell each other what has failed. Knows neither the devices nor what carries the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include <shardwise/runtime/program/call.hpp>
#include <shardwise/runtime/threads/standing.hpp>

namespace shardwise::inline v0_1::processes {

// Of one rank. Its own thread calls the members; `collective` another one, too, in which a device runs host functions.
class host_link {
 public:
  // Where a call stands in its program, for errors: (call::node, rank).
  using place_text = std::string (*)(int node, int rank);

  host_link(const host_link&) = delete;
  host_link& operator=(const host_link&) = delete;

  // Bit a: blocks along axis a of the mesh go through hosts.
  unsigned axes() const { return axes_; }
  bool carries(int axis) const { return (axes_ >> axis & 1U) != 0; }

  // As a rank's members of these names (rank.hpp); neither waits for the device.
  virtual void barrier() = 0;
  virtual void agree(std::uint64_t value, const char* what) = 0;
  // Bytes of which each rank has set its own and left the others 0: all of them, on every rank.
  virtual void combine_disjoint(void* bytes, std::size_t count) = 0;

  // One collective of n calls, which are a batch or one alone, on blocks in the host's memory. One at a time. Throws nothing: what fails,
  // here or elsewhere, `check` throws; from then on collectives leave their blocks as they are, so that nothing waits for them.
  virtual void collective(const runtime::call* c, int n, place_text where) noexcept = 0;
  // Throws rank_failed, with the first cause, if the run has failed.
  virtual void check() = 0;
  // This rank fails by e; the others are told.
  virtual void fail(std::exception_ptr e) = 0;

  // This rank has queued n further collectives on an axis, of whatever kind; and where its own thread waits, which it says.
  virtual void queue(int axis, std::int64_t n) = 0;
  virtual threads::standing& place() = 0;

  // Payload handed to other ranks along an axis.
  virtual std::int64_t bytes_written(int axis) const = 0;
  virtual void reset_counts() = 0;

 protected:
  explicit host_link(unsigned axes) : axes_(axes) {}
  ~host_link() = default;

 private:
  unsigned axes_;
};

}  // namespace shardwise::inline v0_1::processes
