// SPDX-License-Identifier: Apache-2.0
// team: the threads that compute for one rank. Parts of a kernel's work are taken from one counter, by whoever is free.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace shardwise::inline v0_1 {

// Threads that a rank may compute with, its own among them.
inline constexpr int most_compute_threads = 128;

namespace threads {

inline int cores_of_process() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  return 1;
}

// Who runs a part is a matter of chance and must not matter: see runtime/host/parts.hpp. A team of one has no thread and costs
// nothing. Those of several wait as ranks do, but longer, because kernels follow each other closely; where all ranks' threads are
// more than the process has cores, they sleep at once.
class team {
 public:
  // Part `part` of a job, in thread `thread` of the team; 0 is the rank's own.
  using work = void (*)(const void* job, int part, int thread);

  explicit team(int ranks) : ranks_(ranks) {}
  team(const team&) = delete;
  team& operator=(const team&) = delete;
  ~team() { dismiss(); }

  int threads() const { return 1 + static_cast<int>(hired_); }

  // Threads are started here and live until another number is asked for, or the rank is gone.
  void resize(int threads) {
    if (threads < 1 || threads > most_compute_threads)
      throw std::invalid_argument(
          "shardwise: compute_threads: " + std::to_string(threads) + " is given; a rank computes with 1 to " +
          std::to_string(most_compute_threads) +
          " threads, its own among them: give a number in that range, the cores divided by the ranks at most"
          " to gain by it");
    if (threads == this->threads()) return;
    dismiss();
    if (threads == 1) return;
    spins_ = threads * ranks_ <= cores_of_process() ? 2000 : 0;
    members_ = new member[static_cast<std::size_t>(threads - 1)]{};
    for (int i = 1; i < threads; ++i) {
      member& m = members_[i - 1];
      m.of = this;
      m.thread = i;
      if (pthread_create(&m.id, nullptr, &enter, &m) != 0) {
        dismiss();
        throw std::runtime_error("shardwise: compute_threads: the system gives no thread " + std::to_string(i) + " of " +
                                 std::to_string(threads) + "; ask for fewer");
      }
      ++hired_;
    }
    const std::size_t bytes = std::exchange(scratch_bytes_, 0);
    try {
      reserve(bytes);
    } catch (...) {
      dismiss();
      scratch_bytes_ = bytes;
      throw;
    }
  }

  // Each thread but the rank's own has at least so many bytes of scratch, aligned to 64, from now on; not during a run.
  void reserve(std::size_t bytes) {
    if (bytes <= scratch_bytes_) return;
    for (unsigned i = 0; i < hired_; ++i) {
      void* const more = ::operator new(bytes, std::align_val_t{64});
      free_scratch(members_[i]);
      members_[i].scratch = more;
    }
    scratch_bytes_ = bytes;
  }
  void* scratch(int thread) const { return members_[thread - 1].scratch; }

  // f(job, part, thread) for parts 0 .. parts - 1; returns when all are done. Of exceptions the one of the first part that
  // throws is thrown here: what a thread alone, which takes the parts in their order, would have thrown.
  void run(work f, const void* job, int parts) {
    run_ = f;
    job_ = job;
    left_.store(parts, std::memory_order_relaxed);
    const unsigned before = state_.load(std::memory_order_relaxed);
    state_.store((before & ~all_counts) + one_job + static_cast<unsigned>(parts), std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst) > 0) state_.notify_all();
    while (take(0)) {
    }
    for (int spin = 0;; ++spin) {
      const int left = left_.load(std::memory_order_acquire);
      if (left == 0) break;
      if (spin >= spins_) left_.wait(left, std::memory_order_acquire);
      else relax();
    }
    if (failed_.load(std::memory_order_relaxed) != nobody) rethrow();
  }

 private:
  // One word: [job 16][next part 8][parts 8]. A part is taken by counting it; job and function stay until all parts are done.
  static constexpr int nobody = 1 << 30;
  static constexpr unsigned all_counts = 0xFFFFU, one_part = 0x100U, one_job = 0x10000U;
  static_assert(most_compute_threads <= 0xFF);

  struct member {
    team* of = nullptr;
    int thread = 0;
    pthread_t id{};
    void* scratch = nullptr;
  };

  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  static void* enter(void* p) {
    const member& m = *static_cast<member*>(p);
    m.of->attend(m.thread);
    return nullptr;
  }
  void attend(int thread) {
    for (;;) {
      while (take(thread)) {
      }
      if (!stay()) return;
    }
  }
  // Waits for a job with a part left; false: the team is dismissed.
  bool stay() {
    for (int spin = 0;; ++spin) {
      const unsigned s = state_.load(std::memory_order_acquire);
      if (dismissed_.load(std::memory_order_relaxed)) return false;
      if (has_part(s)) return true;
      if (spin < spins_) {
        relax();
        continue;
      }
      asleep_.fetch_add(1, std::memory_order_seq_cst);
      state_.wait(s, std::memory_order_seq_cst);
      asleep_.fetch_sub(1, std::memory_order_relaxed);
      spin = 0;
    }
  }

  static bool has_part(unsigned s) { return (s >> 8 & 0xFFU) < (s & 0xFFU); }
  // Runs a part that nobody has taken, if there is one.
  bool take(int thread) {
    unsigned s = state_.load(std::memory_order_acquire);
    do {
      if (!has_part(s)) return false;
    } while (!state_.compare_exchange_weak(s, s + one_part, std::memory_order_acq_rel, std::memory_order_acquire));
    const int part = static_cast<int>(s >> 8 & 0xFFU);
    if (part < failed_.load(std::memory_order_relaxed)) {
      try {
        run_(job_, part, thread);
      } catch (...) {
        keep(part, std::current_exception());
      }
    }
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
    return true;
  }

  void keep(int part, std::exception_ptr e) {
    pthread_mutex_lock(&error_mutex_);
    if (part < failed_.load(std::memory_order_relaxed)) {
      error_ = e;
      failed_.store(part, std::memory_order_relaxed);
    }
    pthread_mutex_unlock(&error_mutex_);
  }
  [[noreturn]] __attribute__((noinline)) void rethrow() {
    failed_.store(nobody, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }

  static void free_scratch(member& m) {
    if (m.scratch) ::operator delete(std::exchange(m.scratch, nullptr), std::align_val_t{64});
  }
  void dismiss() {
    if (!members_) return;
    dismissed_.store(true, std::memory_order_relaxed);
    state_.fetch_add(one_job, std::memory_order_seq_cst);  // nobody sleeps through it
    state_.notify_all();
    for (unsigned i = 0; i < hired_; ++i) {
      pthread_join(members_[i].id, nullptr);
      free_scratch(members_[i]);
    }
    delete[] std::exchange(members_, nullptr);
    hired_ = 0;
    dismissed_.store(false, std::memory_order_relaxed);
  }

  int ranks_;
  int spins_ = 0;
  unsigned hired_ = 0;
  member* members_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  work run_ = nullptr;
  const void* job_ = nullptr;
  alignas(64) std::atomic<unsigned> state_{0};
  std::atomic<int> asleep_{0};
  std::atomic<bool> dismissed_{false};
  alignas(64) std::atomic<int> left_{0};
  std::atomic<int> failed_{nobody};  // the first part that has thrown
  pthread_mutex_t error_mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::exception_ptr error_;
};

}  // namespace threads

}  // namespace shardwise::inline v0_1
