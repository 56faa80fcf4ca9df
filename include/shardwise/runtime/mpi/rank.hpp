// SPDX-License-Identifier: Apache-2.0
// mpi_rank: one process of a run: who it is, its communication stream, how it meets the other ranks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/runtime/mpi/world.hpp>
#include <shardwise/runtime/rank.hpp>
#include <shardwise/runtime/threads/standing.hpp>
#include <shardwise/runtime/threads/stream.hpp>
#include <shardwise/runtime/threads/team.hpp>
#include <shardwise/runtime/with_rank.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise::inline v0_1 {

namespace mpi {
struct collectives;
template <class Mesh, class By>
class rank_link;
}  // namespace mpi

inline namespace SHARDWISE_RANK_BUILD {

// Made by launch_mpi. What its members do is what thread_rank's do, between processes: no rank reads another one's memory.
template <class Mesh>
class mpi_rank {
 public:
  using mesh_type = Mesh;
  using collectives = mpi::collectives;  // in collectives.hpp
  static constexpr const char* backend_name = "mpi";

  mpi_rank(mpi::world& w, int host_ranks) : mpi_rank(w, 0, nullptr, host_ranks) {}

  int index() const { return world_->rank(); }
  static constexpr int size() { return Mesh::size; }
  const std::array<int, max_axes>& coordinate() const { return coordinate_; }
  int coordinate(int axis) const { return coordinate_[static_cast<unsigned>(axis)]; }
  // Whether what one rank writes another can read.
  static constexpr bool shares_memory() { return Mesh::size == 1; }

  // All ranks meet.
  void barrier() {
    if constexpr (Mesh::size > 1)
      world_->collective(mpi::all_ranks, "a barrier of all ranks", -1,
                         [](MPI_Comm c, MPI_Request* r) { mpi::check(MPI_Ibarrier(c, r), "MPI_Ibarrier"); });
  }

  // Every rank must show the same value: programs, seeds, sizes that have to agree.
  void agree(std::uint64_t value, const char* what) {
    if constexpr (Mesh::size > 1) {
      const std::string in = std::string("a comparison of ") + what;
      std::uint64_t first = value;
      // all hear of all: nobody goes on before every rank has come
      share(in.c_str(), &value, sizeof value, [&](const std::byte* all) { std::memcpy(&first, all, sizeof first); });
      if (first != value)
        throw std::logic_error("shardwise: rank " + std::to_string(index()) + " and rank 0 disagree on " + what + " (" +
                               std::to_string(value) + " and " + std::to_string(first) +
                               "); all ranks must run one program on equal arguments");
    }
  }

  // A rank alone sees its own; ranks that are processes cannot see each other's, and whoever asks knows it by shares_memory().
  template <class F>
  void exchange(const void* mine, const F& f) {
    if (!shares_memory())
      throw std::logic_error(
          "shardwise: exchange: ranks that are processes show each other no memory; use combine_disjoint");
    f([=](int) { return mine; });
  }

  // Words of which each rank has set its own and left the others 0: all of them, on every rank. Bits arrive as they are.
  template <class E>
  void combine_disjoint(std::vector<E>& whole) {
    combine_bytes(reinterpret_cast<std::byte*>(whole.data()), whole.size() * sizeof(E));
  }
  void combine_bytes(std::byte* bytes, std::size_t total) {
    constexpr std::size_t most = 1U << 26;  // bytes at a time
    mpi::world::buffers& b = world_->of_lane(0);
    for (std::size_t at = 0; Mesh::size > 1 && at < total; at += most) {
      const std::size_t now = total - at < most ? total - at : most;
      if (b.out.size() < now) b.out.resize(now);
      if (b.in.size() < now) b.in.resize(now);
      std::memcpy(b.out.data(), bytes + at, now);
      world_->collective(mpi::all_ranks, "an exchange of blocks", -1, [&](MPI_Comm c, MPI_Request* r) {
        mpi::check(MPI_Iallreduce(b.out.data(), b.in.data(), static_cast<int>(now), MPI_UINT8_T, MPI_BOR, c, r),
                   "MPI_Iallreduce");
      });
      std::memcpy(bytes + at, b.in.data(), now);
    }
  }

  // Payload handed to MPI for other ranks.
  std::int64_t bytes_written(int axis) const {
    return (*written_)[static_cast<unsigned>(axis)].load(std::memory_order_relaxed);
  }
  void count_written(int axis, std::int64_t bytes) {
    (*written_)[static_cast<unsigned>(axis)].fetch_add(bytes, std::memory_order_relaxed);
  }
  void reset_counts() {
    for (auto& w : *written_) w.store(0, std::memory_order_relaxed);
  }

  // Collectives that run beside this thread, as thread_rank's: they have communicators of their own, so that neither has to keep the
  // other's order.
  using stream_type = threads::stream<mpi_rank>;
  stream_type& stream() { return stream_; }

  // Of this thread and of the stream's: what the stream notes for a watch; between processes the waits themselves look at the clock.
  threads::standing& place() { return place_; }
  threads::standing& stream_place() { return stream_place_; }

  // As thread_rank::compute_threads; the ranks of one host share its cores.
  void compute_threads(int threads) { team_.resize(threads); }
  int compute_threads() const { return team_.threads(); }
  threads::team& team() { return team_; }

  // For collectives: one among the ranks along an axis.
  template <class F>
  void along(int axis, const char* what, const F& begin) {
    world_->collective(mpi::channel_of(lane_, axis), what, axis, begin);
  }
  mpi::world::buffers& buffers() { return world_->of_lane(lane_); }
  bool reduces_fast() const { return world_->options().fast_reduce; }

 private:
  friend class threads::stream<mpi_rank>;
  template <class M, class By>
  friend class mpi::rank_link;
  using account = std::array<std::atomic<std::int64_t>, max_axes>;

  mpi_rank(mpi::world& w, int lane, account* written, int host_ranks)
      : world_(&w),
        lane_(lane),
        coordinate_(Mesh::coordinate(w.rank())),
        written_(written ? written : &own_),
        team_(host_ranks) {}
  // The same rank as its stream's thread knows it.
  mpi_rank(mpi_rank& owner, threads::stream_lane) : mpi_rank(*owner.world_, 1, owner.written_, 1) {}
  void fail(std::exception_ptr e) { mpi::fail(*world_, runtime::with_rank(e, index())); }
  // f(what all ranks show, one after the other)
  template <class F>
  void share(const char* in, const void* mine, std::size_t bytes, const F& f) {
    mpi::world::buffers& b = world_->of_lane(0);
    if (b.out.size() < bytes) b.out.resize(bytes);
    if (b.in.size() < bytes * static_cast<std::size_t>(Mesh::size))
      b.in.resize(bytes * static_cast<std::size_t>(Mesh::size));
    std::memcpy(b.out.data(), mine, bytes);
    world_->collective(mpi::all_ranks, in, -1, [&](MPI_Comm c, MPI_Request* r) {
      const int n = static_cast<int>(bytes);
      mpi::check(MPI_Iallgather(b.out.data(), n, MPI_BYTE, b.in.data(), n, MPI_BYTE, c, r), "MPI_Iallgather");
    });
    f(b.in.data());
  }

  mpi::world* world_;
  int lane_;
  std::array<int, max_axes> coordinate_;
  account own_{};
  account* written_;
  threads::standing place_, stream_place_;
  threads::stream<mpi_rank> stream_{*this};
  threads::team team_;
};

}  // namespace SHARDWISE_RANK_BUILD

}  // namespace shardwise::inline v0_1
