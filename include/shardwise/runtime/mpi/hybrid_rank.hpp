// SPDX-License-Identifier: Apache-2.0
// hybrid_rank: a rank that is one of several threads of one of several processes. Along an axis within the process it meets the others in
// shared memory, as thread_rank does, along an axis between processes by MPI, as mpi_rank does.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/runtime/mpi/world.hpp>
#include <shardwise/runtime/processes/within_process.hpp>
#include <shardwise/runtime/rank.hpp>
#include <shardwise/runtime/threads/standing.hpp>
#include <shardwise/runtime/threads/stream.hpp>
#include <shardwise/runtime/threads/team.hpp>
#include <shardwise/runtime/threads/threads.hpp>
#include <shardwise/runtime/with_rank.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise::inline v0_1 {

namespace mpi {

struct hybrid_collectives;

// Where the threads of one process meet: all of them, and along each axis within the process, each lane apart.
template <class Mesh, class Within>
struct process_groups {
  using layout = processes::layout_of<Mesh, Within>;
  threads::group all;
  // groups[lane][a][g]: by the number of the mesh's group, of which this process has some
  std::array<std::vector<threads::group>, max_axes> groups[threads::lanes];

  process_groups() {
    make(all, layout::threads);
    for (auto& lane : groups)
      for (int a = 0; a < Mesh::axes; ++a) {
        if (!layout::is_within(a)) continue;
        const int n = Mesh::sizes[static_cast<unsigned>(a)];
        lane[static_cast<unsigned>(a)] = std::vector<threads::group>(static_cast<unsigned>(Mesh::size / n));
        for (auto& g : lane[static_cast<unsigned>(a)]) make(g, n);
      }
  }

 private:
  static void make(threads::group& g, int n) {
    g.member.resize(static_cast<unsigned>(n));
    g.gate.reset(n);
  }
};

// A group within the process as the threads' collectives use it, where waits are the world's.
struct hybrid_gate {
  world* of = nullptr;
  threads::barrier* gate = nullptr;
  int channel = -1, axis = -1;
  const char* what = "";
  void wait(threads::standing&) const { of->meet(*gate, channel, what, axis); }
  void finish() const { gate->finish(); }
};
struct hybrid_group {
  hybrid_gate gate{};
  threads::exhibit* member = nullptr;
};

}  // namespace mpi

inline namespace SHARDWISE_RANK_BUILD {

// Made by launch_mpi<Mesh, Within>. Its members do what thread_rank's and mpi_rank's do.
template <class Mesh, class Within>
class hybrid_rank {
 public:
  using mesh_type = Mesh;
  using layout = processes::layout_of<Mesh, Within>;
  using collectives = mpi::hybrid_collectives;  // in hybrid_collectives.hpp
  static constexpr const char* backend_name = "mpi and threads";

  hybrid_rank(mpi::world& w, mpi::process_groups<Mesh, Within>& groups, int host_ranks)
      : hybrid_rank(w, groups, 0, nullptr, host_ranks) {}

  int index() const { return world_->rank(); }
  static constexpr int size() { return Mesh::size; }
  const std::array<int, max_axes>& coordinate() const { return coordinate_; }
  int coordinate(int axis) const { return coordinate_[static_cast<unsigned>(axis)]; }
  static constexpr bool is_within(int axis) { return layout::is_within(axis); }
  // Whether what one rank writes every other one can read.
  static constexpr bool shares_memory() { return layout::processes == 1; }

  // All ranks meet.
  void barrier() {
    meet({"a barrier of all ranks", threads::activity::all_ranks}, nullptr, [](auto&) {});
    if constexpr (layout::processes > 1)
      world_->collective(mpi::all_ranks, "a barrier of all ranks", -1,
                         [](MPI_Comm c, MPI_Request* r) { mpi::check(MPI_Ibarrier(c, r), "MPI_Ibarrier"); });
  }

  // Every rank must show the same value: programs, seeds, sizes that have to agree. `what` is static text.
  void agree(std::uint64_t value, const char* what) {
    std::uint64_t first = value;  // of the process's first thread, then of rank 0: the first thread of the first process
    meet({what, threads::activity::comparison}, &value,
         [&](auto& g) { first = *static_cast<const std::uint64_t*>(g.member[0].info); });
    if constexpr (layout::processes > 1) {
      mpi::world::buffers& b = world_->of_lane(0);
      if (b.out.size() < sizeof first) b.out.resize(sizeof first);
      if (b.in.size() < sizeof first * layout::processes) b.in.resize(sizeof first * layout::processes);
      std::memcpy(b.out.data(), &first, sizeof first);
      const std::string in = std::string("a comparison of ") + what;
      // all hear of all: nobody goes on before every rank has come
      world_->collective(mpi::all_ranks, in.c_str(), -1, [&](MPI_Comm c, MPI_Request* r) {
        mpi::check(MPI_Iallgather(b.out.data(), sizeof first, MPI_BYTE, b.in.data(), sizeof first, MPI_BYTE, c, r),
                   "MPI_Iallgather");
      });
      std::memcpy(&first, b.in.data(), sizeof first);
    }
    if (first != value)
      throw std::logic_error("shardwise: rank " + std::to_string(index()) + " and rank 0 disagree on " + what + " (" +
                             std::to_string(value) + " and " + std::to_string(first) +
                             "); all ranks must run one program on equal arguments");
  }

  // As thread_rank's where all ranks are threads of one process; else whoever asks knows by shares_memory() that they cannot.
  template <class F>
  void exchange(const void* mine, const F& f) {
    if (!shares_memory())
      throw std::logic_error(
          "shardwise: exchange: ranks of several processes show each other no memory; use combine_disjoint");
    meet({"an exchange of blocks", threads::activity::all_ranks}, mine,
         [&](auto& g) { f([&](int rank) { return g.member[static_cast<unsigned>(layout::thread_of(rank))].info; }); });
  }

  // Words of which each rank has set its own and left the others 0: all of them, on every rank. Bits arrive as they are. Each thread sends
  // its part of the words to the other processes, so that they travel once.
  template <class E>
  void combine_disjoint(std::vector<E>& whole) {
    constexpr std::size_t most = 1U << 26;  // bytes at a time
    constexpr threads::activity what{"an exchange of blocks", threads::activity::all_ranks};
    auto* const bytes = reinterpret_cast<unsigned char*>(whole.data());
    mpi::world::buffers& b = world_->of_lane(0);
    for (std::size_t at = 0, total = whole.size() * sizeof(E); Mesh::size > 1 && at < total; at += most) {
      const std::size_t now = total - at < most ? total - at : most;
      const interval mine = part_of(now, thread());
      const auto size = static_cast<std::size_t>(mine.size);
      if (b.out.size() < size) b.out.resize(size);
      if (b.in.size() < size) b.in.resize(size);
      meet(what, bytes + at, [&](auto& g) {
        auto* const o = reinterpret_cast<unsigned char*>(b.out.data());
        for (int t = 0; t < layout::threads; ++t) {
          const auto* const theirs = static_cast<const unsigned char*>(g.member[static_cast<unsigned>(t)].info) + mine.begin;
          if (t == 0) std::memcpy(o, theirs, size);
          else
            for (std::size_t i = 0; i < size; ++i) o[i] = static_cast<unsigned char>(o[i] | theirs[i]);
        }
      });
      if constexpr (layout::processes > 1)
        world_->collective(mpi::all_ranks, what.name, -1, [&](MPI_Comm c, MPI_Request* r) {
          mpi::check(MPI_Iallreduce(b.out.data(), b.in.data(), static_cast<int>(size), MPI_UINT8_T, MPI_BOR, c, r),
                     "MPI_Iallreduce");
        });
      else std::memcpy(b.in.data(), b.out.data(), size);
      meet(what, b.in.data(), [&](auto& g) {
        for (int t = 0; t < layout::threads; ++t) {
          const interval part = part_of(now, t);
          if (part.size > 0)
            std::memcpy(bytes + at + part.begin, g.member[static_cast<unsigned>(t)].info,
                        static_cast<std::size_t>(part.size));
        }
      });
    }
  }

  // Payload copied into other ranks' memory, or handed to MPI for them.
  std::int64_t bytes_written(int axis) const {
    return (*written_)[static_cast<unsigned>(axis)].load(std::memory_order_relaxed);
  }
  void count_written(int axis, std::int64_t bytes) {
    (*written_)[static_cast<unsigned>(axis)].fetch_add(bytes, std::memory_order_relaxed);
  }
  void reset_counts() {
    for (auto& w : *written_) w.store(0, std::memory_order_relaxed);
  }

  // Collectives that run beside this thread: with meeting places and communicators of their own.
  using stream_type = threads::stream<hybrid_rank>;
  stream_type& stream() { return stream_; }
  threads::standing& place() { return place_; }
  threads::standing& stream_place() { return stream_place_; }

  // As thread_rank::compute_threads; the ranks of one host share its cores.
  void compute_threads(int threads) { team_.resize(threads); }
  int compute_threads() const { return team_.threads(); }
  threads::team& team() { return team_; }

  // For collectives: one among the ranks along an axis between processes, and the group along an axis within this one.
  template <class F>
  void along(int axis, const char* what, const F& begin) {
    world_->collective(mpi::channel_of(lane_, axis), what, axis, begin);
  }
  mpi::world::buffers& buffers() { return world_->of_lane(lane_); }
  bool reduces_fast() const { return world_->options().fast_reduce; }
  mpi::hybrid_group& group(int axis) { return group_[static_cast<unsigned>(axis)]; }
  void begins(int axis, const char* what) { group_[static_cast<unsigned>(axis)].gate.what = what; }

 private:
  friend class threads::stream<hybrid_rank>;
  using account = std::array<std::atomic<std::int64_t>, max_axes>;

  hybrid_rank(mpi::world& w, mpi::process_groups<Mesh, Within>& groups, int lane, account* written, int host_ranks)
      : world_(&w),
        groups_(&groups),
        lane_(lane),
        coordinate_(Mesh::coordinate(w.rank())),
        written_(written ? written : &own_),
        team_(host_ranks) {
    for (int a = 0; a < Mesh::axes; ++a) {
      if (!layout::is_within(a)) continue;
      threads::group& g =
          groups.groups[lane][static_cast<unsigned>(a)][static_cast<unsigned>(threads::world<Mesh>::group_of(w.rank(), a))];
      group_[static_cast<unsigned>(a)] = {{&w, &g.gate, mpi::channel_of(lane, a), a, ""}, g.member.data()};
    }
  }
  // The same rank as its stream's thread knows it.
  hybrid_rank(hybrid_rank& owner, threads::stream_lane) : hybrid_rank(*owner.world_, *owner.groups_, 1, owner.written_, 1) {}
  void fail(std::exception_ptr e) { mpi::fail(*world_, runtime::with_rank(e, index())); }
  int thread() const { return layout::thread_of(index()); }
  static interval part_of(std::size_t bytes, int thread) {
    return split({0, static_cast<std::int64_t>(bytes)}, 1, layout::threads, thread);
  }

  // f(the exhibits of the process's threads) when all of them have come to the same call; f throws nothing.
  template <class F>
  void meet(const threads::activity& what, const void* info, const F& f) {
    auto& g = groups_->all;
    threads::exhibit& mine = g.member[static_cast<unsigned>(thread())];
    mine.info = info;
    mine.doing = what;
    world_->meet(g.gate, mpi::process_ranks, what.name, -1);
    // the same sentence on all threads: of the first and the first that does something else
    const threads::activity first = g.member[0].doing;
    threads::activity theirs;
    int other = 1;
    while (other < layout::threads && g.member[static_cast<unsigned>(other)].doing == first) ++other;
    if (other < layout::threads) theirs = g.member[static_cast<unsigned>(other)].doing;
    else f(g);
    g.gate.finish();
    if (other < layout::threads) {
      const int process = layout::process_of(index());
      throw std::logic_error("shardwise: rank " + std::to_string(layout::rank_of(process, 0)) + " waits in " + first.text() +
                             ", and rank " + std::to_string(layout::rank_of(process, other)) + " in " + theirs.text() +
                             "; every rank must make the same calls in the same order");
    }
  }

  mpi::world* world_;
  mpi::process_groups<Mesh, Within>* groups_;
  int lane_;
  std::array<int, max_axes> coordinate_;
  std::array<mpi::hybrid_group, max_axes> group_{};
  account own_{};
  account* written_;
  threads::standing place_, stream_place_;
  threads::stream<hybrid_rank> stream_{*this};
  threads::team team_;
};

}  // namespace SHARDWISE_RANK_BUILD

namespace mpi {

template <class Within>
struct hybrid {
  template <class Mesh>
  using rank = hybrid_rank<Mesh, Within>;
};

}  // namespace mpi

}  // namespace shardwise::inline v0_1
