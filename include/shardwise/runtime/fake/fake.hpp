// SPDX-License-Identifier: Apache-2.0
// fake_rank: one rank of a mesh without its peers, for plans, dumps and tests of one rank's work. Collectives take place
// at once, at local cost.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/runtime/rank.hpp>
#include <shardwise/runtime/fake/collectives.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

// A collective that ran: which one, along which axis, and the payload bytes that this rank would have sent its peers.
struct collective_record {
  transition kind;
  int axis;
  std::int64_t bytes;
  bool operator==(const collective_record&) const = default;
};

inline namespace SHARDWISE_RANK_BUILD {

// Law: a collective gives what it gives on ranks that exist if, along its axis, every peer holds what this rank holds.
// A peer whose block has other extents (uneven shards) holds the rows that both have, and zeros in the others. So
//   all-reduce, reduce-scatter: n equal summands, added in rank order: n x, x itself for avg, max and min, x^n for
//     product; of a reduce-scatter this rank's chunk;
//   all-gather: this rank's block once for each rank, cut or filled up with zeros to that rank's extent;
//   all-to-all: this rank's chunk of that;
// always with the extents that the real result has on this rank. bytes_written counts what this rank would send.
template <class Mesh>
class fake_rank {
 public:
  using mesh_type = Mesh;
  using collectives = fake::collectives;
  static constexpr bool has_peers = false;
  static constexpr const char* backend_name = "fake";

  // index: which rank of the mesh this is.
  explicit fake_rank(int index) : index_(checked(index)), coordinate_(Mesh::coordinate(index)) {}
  fake_rank(const fake_rank&) = delete;
  fake_rank& operator=(const fake_rank&) = delete;

  int index() const { return index_; }
  static constexpr int size() { return Mesh::size; }
  const std::array<int, max_axes>& coordinate() const { return coordinate_; }
  int coordinate(int axis) const { return coordinate_[static_cast<unsigned>(axis)]; }
  // There is no one to wait for, and no one to disagree with.
  void barrier() {}
  void agree(std::uint64_t, const char*) {}

  std::int64_t bytes_written(int axis) const { return written_[static_cast<unsigned>(axis)]; }
  void count_written(int axis, std::int64_t bytes) { written_[static_cast<unsigned>(axis)] += bytes; }
  void reset_counts() { written_ = {}; }

  // The collectives since keep_log(true), in order.
  const std::vector<collective_record>& log() const { return log_; }
  void keep_log(bool on) {
    log_.clear();
    logs_ = on;
  }
  void note(transition kind, int axis, std::int64_t bytes) {
    count_written(axis, bytes);
    if (logs_) log_.push_back({kind, axis, bytes});
  }

 private:
  static int checked(int index) {
    if (index < 0 || index >= Mesh::size)
      throw std::out_of_range("shardwise: fake_rank: rank " + std::to_string(index) +
                              " is asked for; the mesh has ranks 0.." + std::to_string(Mesh::size - 1));
    return index;
  }

  int index_;
  std::array<int, max_axes> coordinate_;
  std::array<std::int64_t, max_axes> written_{};
  std::vector<collective_record> log_;
  bool logs_ = false;
};

}  // namespace SHARDWISE_RANK_BUILD

// Runs f(rank) once, in this thread, as rank `index` of a mesh whose other ranks are not there.
template <class Mesh, class F>
void launch_fake(int index, F&& f) {
  if constexpr (detail::can_launch<Mesh, fake_rank, F>()) {
    fake_rank<Mesh> rank(index);
    static_assert(checked_host_rank<fake_rank<Mesh>>::ok);
    f(rank);
  }
}

}  // namespace shardwise::inline v0_1
