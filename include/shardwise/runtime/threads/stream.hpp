// SPDX-License-Identifier: Apache-2.0
// stream: a rank's communication stream. Collectives issued in program order run on a thread of their own, with meeting
// places of their own, while the rank computes on.
#pragma once

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <exception>

#include <shardwise/runtime/failures.hpp>
#include <shardwise/runtime/program/call.hpp>
#include <shardwise/runtime/program/clock.hpp>

namespace shardwise::inline v0_1 {

namespace threads {

// Lane 0: the ranks' own threads; lane 1: their streams.
inline constexpr int lanes = 2;
struct stream_lane {};

// What a collective takes beside its copies: shared memory as slow as a network, for measurements and tests.
struct link {
  double latency = 0;           // seconds for each collective
  double bytes_per_second = 0;  // of the payload that the rank sends; 0: as fast as memory
};

inline void pass_time(double seconds) {
  timespec t{static_cast<time_t>(seconds), 0};
  t.tv_nsec = static_cast<long>((seconds - static_cast<double>(t.tv_sec)) * 1e9);
  nanosleep(&t, nullptr);
}

// One thread issues and waits, the rank's; one runs the calls, created by the first of them. Both sleep when they have
// nothing to do: ranks may outnumber cores. Price of a call beside its work: copying it, and waking a thread, 5 to 20
// microseconds.
// Law: what a call reads and writes stays untouched until it is done. After a failure, of this rank or another, calls
// are done without having run, and `wait` throws; so nothing that waits hangs.
template <class Rank>
class stream {
 public:
  using kernel = void (*)(const runtime::call&, const runtime::step_env&, Rank&);
  using ticket = unsigned;
  // Where a call stands in its program, for errors: (call::node, rank).
  using place = std::string (*)(int node, int rank);

  explicit stream(Rank& owner) : owner_(&owner) {}
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  // Whoever issued calls has waited for them, since their memory was his.
  ~stream() {
    if (!slots_) return;
    put({nullptr, {}, {}, nullptr, nullptr});
    pthread_join(thread_, nullptr);
    delete[] slots_;
  }

  // Takes what the stream needs of the system; `issue` does it at the first call.
  void start() {
    if (!slots_) create();
  }
  // Blocks while 64 calls are under way. When the call ran is written to `when`, if there is one; an error of the call says
  // `where` it stands.
  ticket issue(kernel function, const runtime::call& c, const runtime::step_env& env, runtime::time_span* when = nullptr,
               place where = nullptr) {
    start();
    return put({function, c, env, when, where});
  }
  // Returns when the call and all before it are done.
  void wait(ticket t) {
    reach(t);
    if (broken_.load(std::memory_order_acquire)) throw rank_failed();
  }
  // Returns when nothing is under way, however it ended.
  void drain() noexcept { reach(issued_.load(std::memory_order_relaxed)); }

 private:
  static constexpr unsigned capacity = 64;
  struct slot {
    kernel run;
    runtime::call c;
    runtime::step_env env;
    runtime::time_span* when;
    place where;
  };

  ticket put(const slot& s) {
    const unsigned n = issued_.load(std::memory_order_relaxed);
    reach(n - capacity + 1);
    slots_[n % capacity] = s;
    if (s.run) owner_->stream_place().given();
    issued_.store(n + 1, std::memory_order_release);
    issued_.notify_one();
    return n + 1;
  }

  // Counts go round; `t` is never further ahead than half of their range.
  void reach(ticket t) const noexcept {
    for (int spin = 0;; ++spin) {
      const unsigned done = done_.load(std::memory_order_acquire);
      if (static_cast<int>(done - t) >= 0) {
        if (spin > 200) owner_->place().goes_on();
        return;
      }
      if (spin == 200) owner_->place().awaits_stream();
      if (spin >= 200) done_.wait(done, std::memory_order_acquire);
    }
  }

  void create() {
    slots_ = new slot[capacity]{};
    const auto entry = [](void* self) -> void* {
      static_cast<stream*>(self)->run();
      return nullptr;
    };
    if (pthread_create(&thread_, nullptr, entry, this) == 0) return;
    delete[] slots_;
    slots_ = nullptr;
    throw std::runtime_error("shardwise: the system gives no thread for a rank's communication stream");
  }

  void run() {
    Rank lane(*owner_, stream_lane{});
    for (unsigned n = 0;; ++n) {
      for (int spin = 0; issued_.load(std::memory_order_acquire) == n; ++spin)
        if (spin >= 200) issued_.wait(n, std::memory_order_acquire);
      const slot& s = slots_[n % capacity];
      if (!s.run) return;
      if (!broken_.load(std::memory_order_relaxed)) {
        try {
          if (s.when) s.when->begin = runtime::now();
          lane.place().runs(s.where);
          s.run(s.c, s.env, lane);
          if (s.when) s.when->end = runtime::now();
        } catch (const rank_failed&) {
          broken_.store(true, std::memory_order_release);
        } catch (const std::exception& e) {
          broken_.store(true, std::memory_order_release);
          if (!s.where) lane.fail(std::current_exception());
          else
            lane.fail(std::make_exception_ptr(
                std::runtime_error(std::string(e.what()) + " (" + s.where(s.c.node, lane.index()) + ")")));
        } catch (...) {
          broken_.store(true, std::memory_order_release);
          lane.fail(std::current_exception());
        }
      }
      lane.place().served();
      done_.store(n + 1, std::memory_order_release);
      done_.notify_all();
    }
  }

  Rank* owner_;
  slot* slots_ = nullptr;
  pthread_t thread_{};
  std::atomic<unsigned> issued_{0}, done_{0};
  std::atomic<bool> broken_{false};
};

}  // namespace threads

}  // namespace shardwise::inline v0_1
