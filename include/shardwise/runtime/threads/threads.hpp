// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process: launch, groups along mesh axes, and a barrier that a rank opens for all that fails, or
// leaves while others wait for it.
#pragma once

// not <thread>, <mutex> and <memory>: those cost every program a quarter of a second in g++ and 0.8 s in nvcc
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/runtime/launcher.hpp>
#include <shardwise/runtime/rank.hpp>
#include <shardwise/runtime/threads/barrier.hpp>
#include <shardwise/runtime/threads/stream.hpp>
#include <shardwise/runtime/threads/team.hpp>
#include <shardwise/runtime/threads/watch.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise::inline v0_1 {

namespace threads {

struct collectives;

// What a member of a group shows the others during a collective.
struct exhibit {
  const void* source = nullptr;
  void* target = nullptr;
  void* inbox = nullptr;
  const void* info = nullptr;
  activity doing = {};
};

struct group {
  barrier gate;
  std::vector<exhibit> member;
};

template <class Mesh>
struct world {
  std::exception_ptr first_error;
  pthread_mutex_t error_mutex = PTHREAD_MUTEX_INITIALIZER;
  group all;
  // groups[lane][a][g]: the g-th process group along axis a: the ranks that differ on it alone. The ranks' own threads and their streams meet in places of their own,
  // so that neither has to keep the other's order.
  std::array<std::vector<group>, max_axes> groups[lanes];
  // What the watch looks at: where each rank's thread and stream wait, and who is out of its function.
  standing places[lanes][Mesh::size];
  std::atomic<bool> gone[Mesh::size]{};

  world() {
    make(all, Mesh::size);
    for (auto& lane : groups)
      for (int a = 0; a < Mesh::axes; ++a) {
        const int n = Mesh::sizes[static_cast<unsigned>(a)], count = Mesh::size / n;
        lane[static_cast<unsigned>(a)] = std::vector<group>(static_cast<unsigned>(count));
        for (int g = 0; g < count; ++g) make(lane[static_cast<unsigned>(a)][static_cast<unsigned>(g)], n);
      }
  }
  // The number of `rank`'s group along axis a: its coordinates without that axis, row-major.
  static int group_of(int rank, int a) {
    const auto c = Mesh::coordinate(rank);
    int f = 0;
    for (int i = 0; i < Mesh::axes; ++i)
      if (i != a) f = f * Mesh::sizes[static_cast<unsigned>(i)] + c[static_cast<unsigned>(i)];
    return f;
  }
  void fail(std::exception_ptr e) {
    pthread_mutex_lock(&error_mutex);
    if (!first_error) first_error = e;
    pthread_mutex_unlock(&error_mutex);
    broken_ = true;
    each_gate([](barrier& b) { b.open(); });
  }
  void stall(const std::string& why) { fail(std::make_exception_ptr(rank_stalled(why))); }
  bool broken() const { return broken_; }
  // What the first failure said.
  std::string first_words() {
    pthread_mutex_lock(&error_mutex);
    const std::exception_ptr e = first_error;
    pthread_mutex_unlock(&error_mutex);
    try {
      if (e) std::rethrow_exception(e);
    } catch (const std::exception& x) {
      return x.what();
    } catch (...) {
      return "an exception that is none of std::exception's";
    }
    return {};
  }
  template <class F>
  static void parties(int rank, int axis, const F& f) {
    const int n = axis < 0 ? Mesh::size : Mesh::sizes[static_cast<unsigned>(axis)];
    for (int k = 0; k < n; ++k) f(axis < 0 ? k : Mesh::group_member(rank, axis, k));
  }

  // The rank's function has returned. Law: a rank leaves no meeting before all its parties have come, so that whoever waits
  // for it afterwards waits for a call that it has not made.
  void leave(int rank) {
    all.gate.leave(rank);
    for (auto& lane : groups)
      for (int a = 0; a < Mesh::axes; ++a)
        lane[static_cast<unsigned>(a)][static_cast<unsigned>(group_of(rank, a))].gate.leave(rank);
  }

 private:
  void make(group& g, int n) {
    g.member.resize(static_cast<unsigned>(n));
    g.gate.reset(n);
  }
  template <class F>
  void each_gate(const F& f) {
    f(all.gate);
    for (auto& lane : groups)
      for (int a = 0; a < Mesh::axes; ++a)
        for (int g = 0; g < Mesh::size / Mesh::sizes[static_cast<unsigned>(a)]; ++g)
          f(lane[static_cast<unsigned>(a)][static_cast<unsigned>(g)].gate);
  }

  std::atomic<bool> broken_{false};
};

}  // namespace threads

inline namespace SHARDWISE_RANK_BUILD {

// One rank of a run: who it is, its groups, and the bytes it has written into other ranks' memory.
template <class Mesh>
class thread_rank {
 public:
  using mesh_type = Mesh;
  using collectives = threads::collectives;  // in collectives.hpp
  static constexpr const char* backend_name = "threads";

  thread_rank(threads::world<Mesh>& w, int index) : thread_rank(w, index, 0) {}

  int index() const { return index_; }
  static constexpr int size() { return Mesh::size; }
  const std::array<int, max_axes>& coordinate() const { return coordinate_; }
  int coordinate(int axis) const { return coordinate_[static_cast<unsigned>(axis)]; }
  threads::group& group(int axis) { return *group_[static_cast<unsigned>(axis)]; }
  // Where its thread waits for other ranks: gates are told, and the watch reads it.
  threads::standing& place() { return *place_; }
  threads::standing& stream_place() { return world_->places[1][index_]; }
  // All ranks meet.
  void barrier() {
    meet({"a barrier of all ranks", activity::all_ranks}, nullptr, [](auto&) {});
  }

  // Counted where the bytes are copied, independently of every prediction; by a peer where it fetches them.
  std::int64_t bytes_written(int axis) const {
    return counts_->written[static_cast<unsigned>(axis)].load(std::memory_order_relaxed);
  }
  void count_written(int axis, std::int64_t bytes) {
    counts_->written[static_cast<unsigned>(axis)].fetch_add(bytes, std::memory_order_relaxed);
    unsent_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void reset_counts() {
    for (auto& w : counts_->written) w.store(0, std::memory_order_relaxed);
  }

  // Collectives that run beside this thread, in the order in which it issues them; all ranks issue the same.
  using stream_type = threads::stream<thread_rank>;
  stream_type& stream() { return stream_; }

  // Its executors' kernels run on so many threads, this one among them, 1 at first; not while a program of this rank runs. Law: the
  // bits are those of one thread. Threads of all ranks share the cores: more of them than cores only cost. Throws
  // std::invalid_argument below 1 and above most_compute_threads. Price: scratch of each executor for each further thread, and a
  // thread each; with 1, a comparison for each call.
  void compute_threads(int threads) { team_.resize(threads); }
  int compute_threads() const { return team_.threads(); }
  threads::team& team() { return team_; }

  // From now on every collective of this rank takes as long on top as `l` says; not while one is under way.
  void slow_down(const threads::link& l) { counts_->link = l; }
  // The bytes counted since the last time are sent: called at the end of a collective.
  void sent() {
    const threads::link& l = counts_->link;
    const auto unsent = static_cast<double>(unsent_.exchange(0, std::memory_order_relaxed));
    if (l.latency > 0 || l.bytes_per_second > 0)
      threads::pass_time(l.latency + (l.bytes_per_second > 0 ? unsent / l.bytes_per_second : 0));
  }

  // All ranks show a pointer and read the others' blocks by it: f(peer), where peer(r) is what rank r shows, runs when all have
  // come, and no rank goes on before it has returned on all. It throws nothing, and counts no bytes.
  template <class F>
  void exchange(const void* mine, const F& f) {
    meet({"an exchange of blocks", activity::all_ranks}, mine,
         [&](auto& g) { f([&](int rank) { return g.member[static_cast<unsigned>(rank)].info; }); });
  }

  // Every rank must show the same value: programs, seeds, sizes that have to agree. `what` is static text.
  void agree(std::uint64_t value, const char* what) {
    std::uint64_t first = 0;
    meet({what, activity::comparison}, &value,
         [&](auto& g) { first = *static_cast<const std::uint64_t*>(g.member[0].info); });
    if (first != value)
      throw std::logic_error("shardwise: rank " + std::to_string(index_) + " and rank 0 disagree on " + what + " (" +
                             std::to_string(value) + " and " + std::to_string(first) +
                             "); all ranks must run one program on equal arguments");
  }

 private:
  friend class threads::stream<thread_rank>;

  thread_rank(threads::world<Mesh>& w, int index, int lane)
      : world_(&w),
        index_(index),
        coordinate_(Mesh::coordinate(index)),
        place_(&w.places[lane][index]),
        counts_(&own_counts_) {
    for (int a = 0; a < Mesh::axes; ++a)
      group_[static_cast<unsigned>(a)] =
          &w.groups[lane][static_cast<unsigned>(a)][static_cast<unsigned>(threads::world<Mesh>::group_of(index, a))];
  }
  // The same rank as its stream's thread knows it: other meeting places, one account.
  thread_rank(thread_rank& owner, threads::stream_lane) : thread_rank(*owner.world_, owner.index_, 1) {
    counts_ = &owner.own_counts_;
  }
  void fail(std::exception_ptr e) { world_->fail(e); }

  // f(all ranks' exhibits) when all have come to the same call; f throws nothing.
  using activity = threads::activity;
  template <class F>
  void meet(const activity& what, const void* info, const F& f) {
    auto& g = world_->all;
    threads::exhibit& mine = g.member[static_cast<unsigned>(index_)];
    mine.info = info;
    mine.doing = what;
    place().does(what);
    try {
      g.gate.wait(place());
    } catch (const rank_returned& e) {
      throw rank_returned(e.rank, index_, what.text().c_str());
    }
    // the same sentence on all ranks: of rank 0 and the first that does something else
    const activity first = g.member[0].doing;
    activity theirs;
    int other = 1;
    while (other < Mesh::size && g.member[static_cast<unsigned>(other)].doing == first) ++other;
    if (other < Mesh::size) theirs = g.member[static_cast<unsigned>(other)].doing;
    else f(g);
    g.gate.finish();
    if (other < Mesh::size)
      throw std::logic_error("shardwise: rank 0 waits in " + first.text() + ", and rank " + std::to_string(other) + " in " +
                             theirs.text() + "; every rank must make the same calls in the same order");
  }

  struct account {
    std::atomic<std::int64_t> written[max_axes]{};
    threads::link link{};
  };

  threads::world<Mesh>* world_;
  int index_;
  std::array<int, max_axes> coordinate_;
  std::array<threads::group*, max_axes> group_{};
  threads::standing* place_;
  account own_counts_;
  account* counts_;
  std::atomic<std::int64_t> unsent_{0};
  threads::stream<thread_rank> stream_{*this};
  threads::team team_{Mesh::size};
};

}  // namespace SHARDWISE_RANK_BUILD

namespace threads {

// body(r) in a thread of its own for each rank, the first in this one; no_thread(r) where the system gives none.
template <int Ranks, class Body, class F>
void run_threads(Body& body, const F& no_thread) {
  struct start {
    Body* run;
    int rank;
    pthread_t thread;
  };
  start pool[Ranks]{};
  int started = 1;
  for (; started < Ranks; ++started) {
    start& s = pool[started];
    s.run = &body;
    s.rank = started;
    const auto entry = [](void* p) -> void* {
      (*static_cast<start*>(p)->run)(static_cast<start*>(p)->rank);
      return nullptr;
    };
    if (pthread_create(&s.thread, nullptr, entry, &s) != 0) break;
  }
  if (started == Ranks) body(0);
  else
    no_thread(std::make_exception_ptr(
        std::runtime_error("shardwise: the system gives no thread for rank " + std::to_string(started))));
  for (int r = 1; r < started; ++r) pthread_join(pool[r].thread, nullptr);
}

template <class Mesh, class F>
void run_ranks(F& f) {
  threads::world<Mesh> w;
  auto body = [&](int r) {
    try {
      {
        thread_rank<Mesh> rank(w, r);
        f(rank);
      }
      w.leave(r);
    } catch (const rank_failed&) {
      // the rank that caused it has reported
    } catch (...) {
      w.fail(std::current_exception());
    }
    w.gone[r] = true;
  };
  {
    const watch<threads::world<Mesh>, Mesh::size> watching(w);
    run_threads<Mesh::size>(body, [&](std::exception_ptr e) { w.fail(e); });
  }
  if (w.first_error) std::rethrow_exception(w.first_error);
}

// The same threads are ranks of both meshes: who fails or leaves does so in both.
template <class Mesh, class Other, class F>
void run_ranks_of_two(F& f) {
  threads::world<Mesh> w;
  threads::world<Other> v;
  const auto fail = [&](std::exception_ptr e) {
    w.fail(e);
    v.fail(e);
  };
  auto body = [&](int r) {
    try {
      {
        thread_rank<Mesh> rank(w, r);
        thread_rank<Other> other(v, r);
        f(rank, other);
      }
      w.leave(r);
      v.leave(r);
    } catch (const rank_failed&) {
    } catch (...) {
      fail(std::current_exception());
    }
    w.gone[r] = v.gone[r] = true;
  };
  {
    const watch<threads::world<Mesh>, Mesh::size> watching(w);
    const watch<threads::world<Other>, Other::size> watching_other(v);
    run_threads<Mesh::size>(body, fail);
  }
  if (w.first_error) std::rethrow_exception(w.first_error);
}

}  // namespace threads

// Runs f(rank) once for each rank of the mesh, each in a thread of its own, and returns when all are done. If a rank
// throws, the others are released from their collectives and the first exception is rethrown here. A rank that returns
// while others wait for it is such an exception, thrown where they wait: rank_returned.
template <class Mesh, class F>
void launch(F&& f) {
  if constexpr (detail::can_launch<Mesh, thread_rank, F>()) threads::run_ranks<Mesh>(f);
}

// The same with each thread a rank of two meshes of as many ranks, the same number in both: f(rank, other). So that what one program
// holds moves to another one's mesh: executor::copy_parameters.
template <class Mesh, class Other, class F>
  requires detail::is_mesh<Mesh> && detail::is_mesh<Other>
void launch(F&& f) {
  constexpr bool as_many = Mesh::size == Other::size;
  static_assert(raise<(as_many ? problem::none : problem::launch_ranks_differ), Mesh, Other>::ok);
  if constexpr (as_many) threads::run_ranks_of_two<Mesh, Other>(f);
}

// The same of a main: --ranks N among its arguments says how many ranks there shall be, and so which mesh of a mesh_choice. Throws
// where the program was not built for that number, or this process is one of several that a launcher started.
template <class Mesh, class F>
int launch(int argc, char** argv, F&& f) {
  if constexpr (runtime::choice_of<Mesh>::good) {
    const int ranks = runtime::threads_asked_for(runtime::launch_arguments_of(argc, argv));
    runtime::with_mesh<Mesh>(ranks, "--ranks", [&]<class M>() { launch<M>(f); });
  } else {
    launch<Mesh>(static_cast<F&&>(f));
  }
  return 0;
}

}  // namespace shardwise::inline v0_1
