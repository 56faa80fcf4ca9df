// SPDX-License-Identifier: Apache-2.0
// watch: a thread beside a rank that waits for its device, where no notice of another rank reaches it: it listens in the rank's place, and
// ends waits that nothing else would.
#pragma once

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include <shardwise/runtime/mpi/world.hpp>
#include <shardwise/runtime/program/clock.hpp>
#include <shardwise/runtime/threads/standing.hpp>

namespace shardwise::inline v0_1::mpi {

// What ends a run, and when:
//   a rank has failed           within a moment this one's thread learns it from world::look; if that does not end the watch within
//                               `patience` seconds, `release` is called once, to end what it waits in, and `grace` seconds later all
//                               processes are ended by MPI_Abort, with the message. Of the failed rank itself, whose word the others
//                               wait for so long (world::report_time): after that time, or `own_grace` seconds where it waits for
//                               its device, which then nothing wakes
//   a rank has returned         while this one's device waits for a collective that it has not queued: at once
//   a rank does not come        this one has waited for its device for mpi_options::timeout_seconds; says who has queued fewer collectives
// While a collective of the world is under way its own wait looks at the clock, and knows better what is missing.
class watch {
 public:
  static constexpr double patience = 1, own_grace = 1, grace = 9;

  // connected, bit a: along axis a the device's own library connects ranks. `place` says where the rank's thread waits.
  watch(world& w, unsigned connected, threads::standing& place) : world_(&w), axes_(connected), place_(&place) {
    w.watch_over(&place);
    const auto entry = [](void* self) -> void* {
      static_cast<watch*>(self)->run();
      return nullptr;
    };
    if (pthread_create(&thread_, nullptr, entry, this) != 0) {
      w.watch_over(nullptr);
      throw std::runtime_error("shardwise: the system gives no thread that watches over a rank's device");
    }
    runs_ = true;
  }
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;
  ~watch() {
    stop();
    world_->watch_over(nullptr);  // the world outlives the place
  }

  // release(given) ends what the rank's thread may wait in; called at once where a rank has failed before. nullptr: there is nothing to end.
  void on_loss(void (*release)(void*), void* given) {
    given_ = given;
    release_ = release;
  }
  // The rank's own thread goes on alone.
  void stop() {
    if (!runs_) return;
    runs_ = false;
    over_ = true;
    pthread_join(thread_, nullptr);
  }

 private:
  static double seconds(std::int64_t from, std::int64_t to) { return static_cast<double>(to - from) * 1e-9; }

  void run() {
    std::int64_t lost_since = -1, grace_since = -1, own_since = -1, waits_since = -1;
    unsigned turn = 0;
    while (!over_) {
      const timespec t{0, 20'000'000};
      nanosleep(&t, nullptr);
      const std::int64_t now = runtime::now();
      if (const int who = world_->hears_failure(); who >= 0) {
        if (lost_since < 0) lost_since = now;
        if (seconds(lost_since, now) >= patience) {
          if (void (*const release)(void*) = release_.exchange(nullptr)) {
            release(given_);
            grace_since = runtime::now();
          } else if (grace_since < 0) {
            grace_since = now;  // nothing to end, so far
          }
        }
        if (place_->look().how != threads::standing::kind::awaits_device) own_since = -1;
        else if (own_since < 0) own_since = runtime::now();
        if (grace_since >= 0 && is_over(who == world_->rank(), grace_since, own_since)) give_up();
        continue;
      }
      const threads::standing::sight s = place_->look();
      if (s.how != threads::standing::kind::awaits_device) {
        waits_since = -1;
        continue;
      }
      try {
        world_->look_for_returns(axes_);
      } catch (...) {
        fail(*world_, std::current_exception());
        continue;
      }
      if (s.turn != turn || waits_since < 0 || world_->is_in_collective()) {
        turn = s.turn;
        waits_since = now;
      } else if (seconds(waits_since, now) > world_->options().timeout_seconds) {
        if (const std::string why = world_->device_wait(axes_); !why.empty()) world_->fail(why);
        waits_since = -1;
      }
    }
  }
  // Whether this rank has had the time that it may still take: since `begin`, and waiting for its device since `waiting`, or not at all.
  bool is_over(bool own, std::int64_t begin, std::int64_t waiting) const {
    const std::int64_t now = runtime::now();
    if (seconds(begin, now) >= (own ? world_->report_time() : grace)) return true;
    return own && waiting >= 0 && seconds(begin < waiting ? waiting : begin, now) >= own_grace;
  }
  void give_up() {
    std::fprintf(stderr, "%s; rank %d does not come back to the library, and MPI_Abort ends all\n",
                 world_->failure().c_str(), world_->rank());
    std::fflush(stderr);
    world_->abort_all();
  }

  world* world_;
  unsigned axes_;
  threads::standing* place_;
  std::atomic<void (*)(void*)> release_{nullptr};
  void* given_ = nullptr;
  pthread_t thread_{};
  std::atomic<bool> over_{false};
  bool runs_ = false;
};

}  // namespace shardwise::inline v0_1::mpi
