// SPDX-License-Identifier: Apache-2.0
// timeline: what one rank did in a few steps, and when: written by its executor while it runs, made a file by
// io/trace_export.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <shardwise/runtime/program/clock.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1 {

enum class call_kind : std::uint8_t { compute, communication, copy };

// call: one call of the program runs. launch: a collective is handed to the other stream. wait: a stream waits until a call
// of the other one is done. arrival: the rank waits for a pending input.
enum class event_kind : std::uint8_t { call, launch, wait, arrival };

struct timeline_event {
  runtime::time_span time;
  std::int32_t call = -1;  // of the run's program; of a launch or wait, the one that is launched or waited for
  std::int32_t calls = 1;  // neighbours that went out together with it, itself included
  event_kind kind = event_kind::call;
  std::uint8_t stream = 0;  // 0 computes, 1 communicates beside it
};

// What is known of a call before it runs.
struct timeline_call {
  call_kind kind = call_kind::compute;
  std::int32_t node = -1;
  std::string name;  // the node's, as the graph's text has it: einsum_3, all_reduce_1
  std::string op;
  std::string module;      // "blocks.3.fc"; of fused operations that of the first
  std::string fused;       // "[add, relu]": what else the kernel computes
  std::string shapes;      // "(8, 16), (16, 4) -> (8, 4)": this rank's blocks
  std::string placements;  // of the result
  std::int64_t bytes = 0;  // of operands and result on this rank
  std::int64_t sent = 0;   // payload for other ranks
  std::int64_t live = 0;   // bytes of the arena in use while it runs, in the program's order
};

struct timeline_program {
  std::string phase;  // of an iterated step: setup, main, cleanup
  dynamic_array<timeline_call> calls;
  std::int64_t most_events = 0;  // of one run
  std::int64_t arena = 0;        // bytes
};

struct timeline_run {
  std::int32_t program = 0;
  std::int64_t step = 0;  // as step_env has it
  std::int64_t first_event = 0, events = 0;
  runtime::time_span time;
};

// Which rank of which mesh, on what.
struct timeline_rank {
  int rank = -1, world_size = 0;
  std::string backend;     // threads, fake, nccl
  std::string coordinate;  // "1, 0": on every axis of the mesh
};

// Room for `steps` runs, all taken when an executor is given it (executor::record), so that a run allocates nothing. Further
// runs are counted, not kept: `missed`; the exported file says so too. Several programs of one rank may write into one
// timeline in turn. Price of a recorded run: two readings of the clock for each event, some 50 ns.
class timeline {
 public:
  explicit timeline(std::int64_t steps) : room_(steps) {
    if (steps < 1)
      throw std::invalid_argument("shardwise: timeline: room for " + std::to_string(steps) +
                                  " steps is asked for; at least 1");
  }

  const timeline_rank& rank() const { return rank_; }
  std::span<const timeline_run> runs() const { return {runs_.data(), runs_.size()}; }
  std::span<const timeline_event> events(const timeline_run& r) const {
    return {events_.data() + r.first_event, static_cast<std::size_t>(r.events)};
  }
  const timeline_program& program_of(const timeline_run& r) const { return programs_[static_cast<std::size_t>(r.program)]; }
  std::int64_t room() const { return room_; }
  // Runs that came when all room was taken.
  std::int64_t missed() const { return missed_; }
  // Room for as many steps again; what is known of programs stays.
  void clear() {
    runs_.clear();
    used_ = missed_ = 0;
  }

  // --- for executors --------------------------------------------------------------------------------------------------

  // The number by which `begin` knows the program.
  int add(timeline_rank who, timeline_program p) {
    if (rank_.rank >= 0 && rank_.rank != who.rank)
      throw std::logic_error("shardwise: timeline: it belongs to rank " + std::to_string(rank_.rank) +
                             " and is given to rank " + std::to_string(who.rank) + "; every rank needs one of its own");
    rank_ = std::move(who);
    if (p.most_events > most_events_) most_events_ = p.most_events;
    events_.resize(static_cast<std::size_t>(room_ * most_events_));
    runs_.reserve(static_cast<std::size_t>(room_));
    programs_.push_back(std::move(p));
    return static_cast<int>(programs_.size()) - 1;
  }
  // Whether there is room for the run.
  bool begin(int program, std::int64_t step) {
    if (static_cast<std::int64_t>(runs_.size()) == room_) {
      ++missed_;
      return false;
    }
    runs_.push_back({program, step, used_, 0, {runtime::now(), -1}});
    return true;
  }
  timeline_event& next(event_kind kind, std::size_t call, int stream = 0) {
    ++runs_.back().events;
    timeline_event& e = events_[static_cast<std::size_t>(used_++)];
    e = {{}, static_cast<std::int32_t>(call), 1, kind, static_cast<std::uint8_t>(stream)};
    return e;
  }
  void end() { runs_.back().time.end = runtime::now(); }

 private:
  std::int64_t room_, most_events_ = 0, used_ = 0, missed_ = 0;
  timeline_rank rank_;
  dynamic_array<timeline_program> programs_;
  dynamic_array<timeline_run> runs_;
  dynamic_array<timeline_event> events_;
};

}  // namespace shardwise::inline v0_1
