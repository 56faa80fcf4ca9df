// SPDX-License-Identifier: Apache-2.0
// watch: a thread beside the ranks that ends waits which nobody else would end: ranks that all wait for each other, at once, and
// ranks that wait for one that does not come, after the time-out.
#pragma once

#include <pthread.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <shardwise/runtime/failures.hpp>
#include <shardwise/runtime/program/clock.hpp>
#include <shardwise/runtime/threads/barrier.hpp>
#include <shardwise/runtime/threads/standing.hpp>

namespace shardwise::inline v0_1::threads {

// World has places[lane][rank] (standing), gone[rank], broken(), stall(text), first_words() and parties(rank, axis, f), which calls f for
// every rank that meets `rank` along the axis, -1: all; where ranks wait for devices, device_late(rank), why one is late. Looks ten
// times a second.
//
// Law: ranks are said to wait for each other only if, at one moment, each of them slept at a gate whose round was not complete. Each
// was seen there twice, in the same turn, and between the two looks lay a look at all the others; so at that moment no thread was left
// to complete any.
template <class World, int Ranks>
class watch {
 public:
  explicit watch(World& w) : world_(&w), limit_(rank_timeout()) {
    if (Ranks == 1) return;
    const auto entry = [](void* self) -> void* {
      static_cast<watch*>(self)->run();
      return nullptr;
    };
    started_ = pthread_create(&thread_, nullptr, entry, this) == 0;
    if (!started_) throw std::runtime_error("shardwise: the system gives no thread to watch the ranks");
  }
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;
  ~watch() {
    if (!started_) return;
    pthread_mutex_lock(&mutex_);
    over_ = true;
    pthread_cond_signal(&changed_);
    pthread_mutex_unlock(&mutex_);
    pthread_join(thread_, nullptr);
  }

 private:
  using sight = standing::sight;
  static constexpr int lanes = 2;

  void run() {
    const std::int64_t limit = static_cast<std::int64_t>(limit_ * 1e9);
    std::int64_t broken_since = -1;
    while (sleep()) {
      const std::int64_t now = runtime::now();
      if (world_->broken()) {
        if (broken_since < 0) broken_since = now;
        if (limit > 0 && now - broken_since >= limit) give_up();
        continue;
      }
      look(before_);
      if (all_stuck(before_)) {
        look(after_);
        if (same()) {
          world_->stall("shardwise: all ranks wait for each other: " + list(after_) +
                        "; every rank must make the same calls in the same order");
          continue;
        }
      }
      for (int lane = 0; lane < lanes; ++lane)
        for (int r = 0; r < Ranks; ++r) {
          const sight& s = before_[lane][r];
          const bool waits = at_gate(s) || s.how == standing::kind::awaits_device;
          if (!waits || s.turn != turn_[lane][r] || since_[lane][r] < 0) {
            turn_[lane][r] = s.turn;
            since_[lane][r] = waits ? now : -1;
          } else if (limit > 0 && now - since_[lane][r] >= limit) {
            return_late(lane, r);
            lane = lanes;
            break;
          }
        }
    }
  }

  void return_late(int lane, int rank) {
    const sight& s = before_[lane][rank];
    constexpr const char* advice =
        "; every rank must make the same calls in the same order; if it only needs longer, give more seconds by SHARDWISE_TIMEOUT or "
        "sw::set_rank_timeout";
    if constexpr (requires { world_->device_late(rank); })
      if (!at_gate(s))
        return world_->stall("shardwise: rank " + std::to_string(rank) + " has waited " + seconds() + " for its device" +
                             world_->device_late(rank) + advice);
    std::string late;
    int n = 0;
    world_->parties(rank, s.doing.axis, [&](int peer) {
      if (peer == rank || (before_[lane][peer].gate == s.gate && at_gate(before_[lane][peer]))) return;
      late += (n++ ? ", " : "") + std::to_string(peer);
    });
    if (n == 0) return;  // the last has come since
    world_->stall("shardwise: " + std::string(n == 1 ? "rank " : "ranks ") + late + (n == 1 ? " has" : " have") +
                  " not come for " + seconds() + " to where rank " + std::to_string(rank) + " waits," + where(s, rank) +
                  advice);
  }

  // A rank is still in its function, so no exception can leave the launch: its stack uses what the launch holds.
  [[noreturn]] void give_up() {
    std::string who;
    for (int r = 0; r < Ranks; ++r)
      if (!world_->gone[r]) who += (who.empty() ? "" : ", ") + std::to_string(r);
    std::fprintf(stderr,
                 "shardwise: the run has failed, and its function has not returned on rank %s for %s since; the process is "
                 "aborted: %s\n",
                 who.c_str(), seconds().c_str(), world_->first_words().c_str());
    std::abort();
  }

  std::string seconds() const { return runtime::seconds_text(limit_); }
  static std::string where(const sight& s, int rank) {
    const bool known = s.place && s.doing.node >= 0;
    return " in " + s.doing.text() + (known ? " (" + s.place(s.doing.node, rank) + ")" : "");
  }
  std::string list(const sight (&all)[lanes][Ranks]) const {
    std::string text;
    for (int r = 0; r < Ranks; ++r)
      for (int lane = 0; lane < lanes; ++lane)
        if (!world_->gone[r] && at_gate(all[lane][r]))
          text +=
              (text.empty() ? "rank " : ", rank ") + std::to_string(r) + (lane ? "'s stream" : "") + where(all[lane][r], r);
    return text;
  }

  static bool at_gate(const sight& s) { return s.how == standing::kind::at_gate; }
  void look(sight (&to)[lanes][Ranks]) const {
    for (int lane = 0; lane < lanes; ++lane)
      for (int r = 0; r < Ranks; ++r) {
        sight& s = to[lane][r];
        s = world_->places[lane][r].look();
        if (at_gate(s) && !s.gate->is_open_round(s.round)) s.how = standing::kind::running;
      }
  }
  bool all_stuck(const sight (&all)[lanes][Ranks]) const {
    int stuck = 0;
    for (int r = 0; r < Ranks; ++r) {
      if (world_->gone[r]) continue;
      const sight &own = all[0][r], &stream = all[1][r];
      const bool asleep = at_gate(own) || (own.how == standing::kind::awaits_stream && at_gate(stream));
      if (!asleep || !(stream.idle || at_gate(stream))) return false;
      ++stuck;
    }
    return stuck > 0;
  }
  bool same() const {
    for (int lane = 0; lane < lanes; ++lane)
      for (int r = 0; r < Ranks; ++r) {
        const sight &a = before_[lane][r], &b = after_[lane][r];
        if (a.how != b.how || a.turn != b.turn || a.idle != b.idle) return false;
      }
    return true;
  }

  // False: the ranks have ended.
  bool sleep() {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100'000'000;
    until.tv_sec += until.tv_nsec / 1'000'000'000;
    until.tv_nsec %= 1'000'000'000;
    pthread_mutex_lock(&mutex_);
    if (!over_) pthread_cond_timedwait(&changed_, &mutex_, &until);
    const bool on = !over_;
    pthread_mutex_unlock(&mutex_);
    return on;
  }

  World* world_;
  double limit_;
  pthread_t thread_{};
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
  bool started_ = false, over_ = false;
  sight before_[lanes][Ranks]{}, after_[lanes][Ranks]{};
  unsigned turn_[lanes][Ranks]{};
  std::int64_t since_[lanes][Ranks]{};
};

}  // namespace shardwise::inline v0_1::threads
