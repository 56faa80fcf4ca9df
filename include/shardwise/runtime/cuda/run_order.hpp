// SPDX-License-Identifier: Apache-2.0
// run_order: what the executors of a rank queue is done in the order in which its thread has queued it, whatever streams they have.
#pragma once

#include <optional>

#include <shardwise/runtime/cuda/error.hpp>
#include <shardwise/runtime/cuda/resources.hpp>

namespace shardwise::inline v0_1::cuda {

// Streams know no order among themselves. Without one the timing of a device would decide which of two programs meets the other ranks first,
// on each rank anew, and a program with another's parameters would read them while that one writes. Price: a comparison; where the rank goes
// from one executor to another, an event recorded and awaited, of which the host waits for neither; and runs of two executors do not overlap.
class run_order {
 public:
  // What is queued on `s` from now on begins when all is done that was queued before on the stream that was given here last.
  void follow(cudaStream_t s) {
    if (last_ && last_ != s) {
      if (!done_) done_.emplace();  // here, where the rank's device is the current one
      check(cudaEventRecord(done_->get(), last_), "cudaEventRecord");
      check(cudaStreamWaitEvent(s, done_->get(), 0), "cudaStreamWaitEvent");
    }
    last_ = s;
  }
  // `s` has nothing queued and ends.
  void forget(cudaStream_t s) {
    if (last_ == s) last_ = nullptr;
  }

 private:
  cudaStream_t last_ = nullptr;
  std::optional<event> done_;
};

}  // namespace shardwise::inline v0_1::cuda
