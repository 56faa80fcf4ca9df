// SPDX-License-Identifier: Apache-2.0
// barrier: where threads of ranks meet. A rank opens it for all that fails, or leaves while others wait for it.
#pragma once

#include <atomic>

#include <shardwise/runtime/failures.hpp>
#include <shardwise/runtime/threads/standing.hpp>

namespace shardwise::inline v0_1::threads {

// Waits spin briefly and then sleep: four ranks on two cores would otherwise burn each other's time.
class barrier {
 public:
  void reset(int parties) { parties_ = static_cast<unsigned>(parties); }
  // All parties meet and return; or a rank has failed or left before the last one came, and all of them throw.
  void wait(standing& place) { meet<true>(&place); }
  // A later meeting of parties that have met in a collective: it takes place even if a rank fails meanwhile, so that no
  // party leaves, and frees its memory, while another one still writes into it. Nothing between the two may throw.
  void finish() { meet<false>(nullptr); }
  void open() {
    state_.fetch_or(broken, std::memory_order_acq_rel);
    state_.notify_all();
  }
  // Mesh rank `rank`, one of the parties, will not come any more: who waits for it would wait for ever.
  void leave(int rank) {
    int nobody = -1;
    left_.compare_exchange_strong(nobody, rank, std::memory_order_acq_rel);
    open();
  }
  // For a party that waits by itself, since it looks at more than this gate: comes, and says in which round; no_round if the gate has
  // been opened. Until the round is over it may leave.
  static constexpr unsigned no_round = 1;  // rounds are multiples of one_round
  unsigned come() {
    unsigned s = state_.load(std::memory_order_acquire);
    for (;;) {
      if (s & broken) return no_round;
      const bool last = (s & arrived) + 1 == parties_;
      const unsigned next = last ? ((s & ~arrived) + one_round) & ~broken : s + 1;
      if (!state_.compare_exchange_weak(s, next, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      if (last) state_.notify_all();
      return s & ~arrived;
    }
  }
  bool is_over(unsigned round) const { return (state_.load(std::memory_order_acquire) & ~(broken | arrived)) != round; }
  // Opens the gate for all that have come in `round`, unless it is over: then all have met, and false is returned.
  bool leave_round(unsigned round) {
    unsigned s = state_.load(std::memory_order_acquire);
    do
      if ((s & ~(broken | arrived)) != round) return false;
    while (!state_.compare_exchange_weak(s, s | broken, std::memory_order_acq_rel, std::memory_order_acquire));
    state_.notify_all();
    return true;
  }
  // Whether who came in `round` still waits.
  bool is_open_round(unsigned round) const { return (state_ & ~arrived) == round; }

 private:
  // one word, so that the last arrival and a failure have an order: [broken 1][round 15][arrived 16]
  static constexpr unsigned broken = 1U << 31, arrived = 0xFFFFU, one_round = arrived + 1;

  template <bool MayFail>
  void meet(standing* place) {
    unsigned s = state_.load(std::memory_order_acquire);
    for (;;) {
      if (MayFail && (s & broken)) release();
      const bool last = (s & arrived) + 1 == parties_;
      const unsigned next = last ? (s & broken) | (((s & ~arrived) + one_round) & ~broken) : s + 1;
      if (!state_.compare_exchange_weak(s, next, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      if (!last) break;
      state_.notify_all();
      return;
    }
    const unsigned mine = s & ~(broken | arrived);
    for (int spin = 0;; ++spin) {
      const unsigned now = state_.load(std::memory_order_acquire);
      const bool over = (now & ~(broken | arrived)) != mine;
      if (over || (MayFail && (now & broken))) {
        if (MayFail && spin > 200) place->goes_on();
        if (over) return;
        release();
      }
      if (MayFail && spin == 200) place->stands_at(this, mine);
      if (spin >= 200) state_.wait(now, std::memory_order_acquire);
    }
  }

  [[noreturn]] __attribute__((noinline)) void release() const {
    if (const int who = left_.load(std::memory_order_acquire); who >= 0) throw rank_returned(who);
    throw rank_failed();
  }

  std::atomic<unsigned> state_{0};
  std::atomic<int> left_{-1};
  unsigned parties_ = 1;
};

}  // namespace shardwise::inline v0_1::threads
