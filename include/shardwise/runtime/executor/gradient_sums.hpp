// SPDX-License-Identifier: Apache-2.0
// gradient_sums: the runs of a program that keeps gradients (module/keep_gradients.hpp): batches, and updates.
#pragma once

#include <stdexcept>
#include <string>

#include <shardwise/runtime/program/lowered.hpp>

namespace shardwise::inline v0_1::runtime {

// Self is the executor, which says how its memory is written and runs a part of the program's calls:
//   zero_block(id)           the block becomes zeros
//   run_part(env, update)    the calls of a batch, or those of an update
// Of a program that keeps no gradients the calls are a sentence.
template <class Step, class Self>
class gradient_sums : public lowered<Step> {
  using base = lowered<Step>;

 public:
  using numbers = typename base::numbers;
  using base::image;

  // One batch: forward and backward, and its gradients are added to the sums. All ranks call it with equal arguments. Of `env` it reads
  // what random numbers need; batches of one update draw numbers of their own under one env.step. Throws as run does if something
  // is not set.
  template <class Env>
  void accumulate(const Env& env) {
    if constexpr (keeps_sums<Env>()) {
      base::check_given();
      check_sums("accumulate");
      add_batch(env);
    }
  }
  // Reduces the sums, clips, and updates parameters and states; the next accumulate begins new sums. Throws if nothing has been
  // accumulated since the last update, and as run does.
  template <class Env>
  void update(const Env& env) {
    if constexpr (keeps_sums<Env>()) {
      base::check_ready(env);
      check_sums("update");
      if (batches_ == 0) [[unlikely]]
        throw std::logic_error(
            "shardwise: update: no gradients have been added up since the last update; call accumulate(env) for each "
            "batch before it, or run(env), which does both");
      update_parameters(env);
    }
  }
  // Forgets the sums: the next accumulate begins new ones.
  template <class None = void>
  void zero_gradients() {
    if constexpr (keeps_sums<None>()) batches_ = 0;
  }
  // Batches whose gradients the sums hold; -1: one has thrown, and a part of it is in them.
  std::int64_t accumulated() const { return batches_; }

 protected:
  // Of a program that keeps gradients, whether it is: one that keeps none is a sentence.
  template <class>
  static constexpr bool keeps_sums() {
#if !SHARDWISE_DEVICE_PASS
    static_assert(raise<(base::keeps ? problem::none : problem::keep_gradients_missing), Step>::ok);
#endif
    return base::keeps;
  }
  // A batch that throws leaves a part of its gradients behind, which matters where there are others' already.
  void add_batch(const numbers& env) {
    const std::int64_t before = batches_;
    if (before == 0)
      for (int id = 0; id < image().node_count; ++id)
        if (keeps_gradient(image().nodes[id])) self().zero_block(id);
    if (before > 0) batches_ = broken_sums;
    self().run_part(base::of_batch(env, before), false);
    batches_ = before + 1;
  }
  static constexpr std::int64_t broken_sums = -1;
  void check_sums(const char* call_name) const {
    if (batches_ == broken_sums) [[unlikely]]
      throw std::logic_error(std::string("shardwise: ") + call_name +
                             ": a batch has thrown, and a part of its gradients is in the sums; call zero_gradients() and "
                             "accumulate the batches of this update anew");
  }
  void update_parameters(const numbers& env) {
    self().run_part(env, true);
    batches_ = 0;
  }
  void forget_sums() { batches_ = 0; }

 private:
  Self& self() { return static_cast<Self&>(*this); }

  std::int64_t batches_ = 0;  // that the sums hold
};

}  // namespace shardwise::inline v0_1::runtime
