// SPDX-License-Identifier: Apache-2.0
// recorder: a device's events around the launches of a run, which become times of the host's clock when the run is over.
#pragma once

#include <cstddef>
#include <vector>

#include <shardwise/runtime/cuda/resources.hpp>
#include <shardwise/runtime/program/schedule.hpp>
#include <shardwise/runtime/timeline/timeline.hpp>

namespace shardwise::inline v0_1::cuda {

// Price of a recorded run: two events for each launch and wait, some microseconds on the stream, and a host that waits. The
// device's clock is laid on the host's where the run begins: to some ten microseconds, the same for the whole run.
class recorder {
 public:
  void reserve(std::size_t spans) {
    while (points_.size() < 2 * spans) points_.emplace_back();
    spans_.reserve(spans);
  }
  // Nothing is under way on `stream`.
  void begin(timeline& t, cudaStream_t stream) {
    timeline_ = &t;
    spans_.clear();
    last_ = -1;
    begin_.record(stream);
    check(cudaEventSynchronize(begin_.get()), "cudaEventSynchronize");
    host_begin_ = runtime::now();
  }
  void open(event_kind kind, std::size_t call, int stream, cudaStream_t on, std::size_t calls = 1) {
    timeline_event& e = timeline_->next(kind, call, stream);
    e.calls = static_cast<std::int32_t>(calls);
    points_[2 * spans_.size()].record(on);
    spans_.push_back(&e.time);
    if (kind == event_kind::call && stream != runtime::compute_stream) last_ = static_cast<std::int64_t>(call);
  }
  void close(cudaStream_t on) { points_[2 * spans_.size() - 1].record(on); }
  // Where the streams join, if there was anything on the other one.
  void open_last_wait(cudaStream_t on) {
    if (last_ >= 0) open(event_kind::wait, static_cast<std::size_t>(last_), runtime::compute_stream, on);
  }
  void close_last_wait(cudaStream_t on) {
    if (last_ >= 0) close(on);
  }
  // All streams are done.
  void end() {
    for (std::size_t i = 0; i < spans_.size(); ++i)
      *spans_[i] = {host_begin_ + points_[2 * i].since(begin_), host_begin_ + points_[2 * i + 1].since(begin_)};
    timeline_->end();
  }

 private:
  timeline* timeline_ = nullptr;
  timing_event begin_;
  std::vector<timing_event> points_;
  std::vector<runtime::time_span*> spans_;
  std::int64_t host_begin_ = 0;
  std::int64_t last_ = -1;  // call of the communication stream
};

}  // namespace shardwise::inline v0_1::cuda
