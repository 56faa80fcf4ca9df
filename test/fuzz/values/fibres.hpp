// SPDX-License-Identifier: Apache-2.0
// Ranks, and the stream that each has for collectives, as fibres of one thread: they meet in the same collectives as rank
// threads do, in an order that a number picks, so that a run of some ranks costs microseconds and can be run again.
#pragma once

#include <program.hpp>

#include <shardwise/runtime/threads/collectives.hpp>

#include <ucontext.h>

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define SHARDWISE_FUZZ_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define SHARDWISE_FUZZ_ASAN 1
#endif
#endif

namespace fuzz {

struct deadlock : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct given_up {};  // another fibre has failed

class fibres {
 public:
  // Fibres that wait say for what: a number that changes.
  struct condition {
    const unsigned* at = nullptr;
    unsigned unequal_to = 0, least = 0;
    bool by_least = false;
    bool holds() const { return !at || (by_least ? *at >= least : *at != unequal_to); }
  };

  static fibres& instance() {
    static fibres f;
    return f;
  }

  // Runs all until they have returned; the first exception of one is thrown here.
  void run(std::vector<std::function<void()>> bodies, std::uint64_t order) {
    bodies_ = std::move(bodies);
    error_ = nullptr;
    failed_ = false;
    state_ = order | 1;
    while (stacks_.size() < bodies_.size()) stacks_.push_back(std::make_unique<char[]>(stack_bytes));
    contexts_.resize(bodies_.size());
    waits_.assign(bodies_.size(), {});
    done_.assign(bodies_.size(), false);
    for (std::size_t k = 0; k < bodies_.size(); ++k) {
      getcontext(&contexts_[k]);
      contexts_[k].uc_stack.ss_sp = stacks_[k].get();
      contexts_[k].uc_stack.ss_size = stack_bytes;
      contexts_[k].uc_link = nullptr;
      makecontext(&contexts_[k], &fibres::entry, 0);
    }
    for (std::size_t left = bodies_.size(); left > 0;) {
      const std::size_t start = next() % bodies_.size();
      std::size_t found = bodies_.size();
      for (std::size_t j = 0; j < bodies_.size() && found == bodies_.size(); ++j) {
        const std::size_t k = (start + j) % bodies_.size();
        if (!done_[k] && (failed_ || waits_[k].holds())) found = k;
      }
      if (found == bodies_.size()) {
        failed_ = true;
        if (!error_) error_ = std::make_exception_ptr(deadlock("the ranks wait for each other for ever"));
        continue;
      }
      current_ = found;
      enter(found);
      if (done_[found]) --left;
    }
    if (error_) std::rethrow_exception(error_);
  }

  // Lets others go on until the condition holds. Once one has failed, nothing goes on: what it had is gone.
  void wait(const condition& c) {
    if (failed_) throw given_up();
    if (c.holds()) return;
    waits_[current_] = c;
    leave(false);
    waits_[current_] = {};
    if (failed_ || !c.holds()) throw given_up();
  }

 private:
  static constexpr std::size_t stack_bytes = 256 * 1024;

  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  void enter(std::size_t k) {
#ifdef SHARDWISE_FUZZ_ASAN
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, stacks_[k].get(), stack_bytes);
#endif
    swapcontext(&main_, &contexts_[k]);
#ifdef SHARDWISE_FUZZ_ASAN
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  }
  void leave([[maybe_unused]] bool last) {
#ifdef SHARDWISE_FUZZ_ASAN
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(last ? nullptr : &fake, main_stack_, main_bytes_);
#endif
    swapcontext(&contexts_[current_], &main_);
#ifdef SHARDWISE_FUZZ_ASAN
    __sanitizer_finish_switch_fiber(fake, &main_stack_, &main_bytes_);
#endif
  }
  static void entry() {
    fibres& f = instance();
#ifdef SHARDWISE_FUZZ_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &f.main_stack_, &f.main_bytes_);
#endif
    f.body();
    f.done_[f.current_] = true;
    f.leave(true);
  }
  void body() {
    try {
      if (!failed_) bodies_[current_]();
    } catch (const given_up&) {
    } catch (...) {
      if (!error_) error_ = std::current_exception();
      failed_ = true;
    }
  }

  std::vector<std::function<void()>> bodies_;
  std::vector<std::unique_ptr<char[]>> stacks_;
  std::vector<ucontext_t> contexts_;
  std::vector<condition> waits_;
  std::vector<bool> done_;
  ucontext_t main_{};
  std::size_t current_ = 0;
  std::exception_ptr error_;
  bool failed_ = false;
  std::uint64_t state_ = 1;
#ifdef SHARDWISE_FUZZ_ASAN
  const void* main_stack_ = nullptr;
  std::size_t main_bytes_ = 0;
#endif
};

// Where threads would say that they wait.
struct nowhere {
  void does(const shardwise::threads::activity&) {}
};

// As threads::barrier, for fibres.
class gate {
 public:
  void reset(int parties) { parties_ = parties; }
  void wait() {
    const unsigned mine = round_;
    if (++arrived_ == parties_) {
      arrived_ = 0;
      ++round_;
      return;
    }
    fibres::instance().wait({&round_, mine, 0, false});
  }
  void wait(const nowhere&) { wait(); }
  void finish() { wait(); }

 private:
  int parties_ = 1, arrived_ = 0;
  unsigned round_ = 0;
};

struct fibre_group {
  fuzz::gate gate;
  std::vector<sw::threads::exhibit> member;
};

// What host kernels and the collectives of rank threads ask of a rank; the mesh is a value.
class fibre_rank {
 public:
  using collectives = sw::threads::collectives;

  struct world {
    std::vector<fibre_group> groups[2][sw::max_axes];  // by lane: the ranks' own, and their streams'

    explicit world(const program& p) {
      for (auto& lane : groups)
        for (int a = 0; a < p.axes; ++a) {
          lane[a].resize(static_cast<std::size_t>(p.ranks()));  // found by the member at coordinate 0
          for (fibre_group& g : lane[a]) {
            g.gate.reset(p.sizes[a]);
            g.member.resize(static_cast<std::size_t>(p.sizes[a]));
          }
        }
    }
  };

  fibre_rank(world& w, const program& p, int index, int lane) : index_(index) {
    for (int a = 0; a < p.axes; ++a) coordinate_[a] = rank_coordinate(p, index, a);
    for (int a = 0; a < p.axes; ++a) {
      int first = 0;
      for (int b = 0; b < p.axes; ++b) first = first * p.sizes[b] + (b == a ? 0 : coordinate_[b]);
      group_[a] = &w.groups[lane][a][static_cast<std::size_t>(first)];
    }
  }
  int index() const { return index_; }
  const int* coordinate() const { return coordinate_; }
  fibre_group& group(int axis) { return *group_[axis]; }
  nowhere& place() { return place_; }
  void count_written(int, std::int64_t) {}
  void sent() {}

 private:
  int index_;
  int coordinate_[sw::max_axes]{};
  fibre_group* group_[sw::max_axes]{};
  nowhere place_;
};

}  // namespace fuzz
