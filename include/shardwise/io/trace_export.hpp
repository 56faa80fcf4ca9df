// SPDX-License-Identifier: Apache-2.0
// write_chrome_trace: timelines as a file for Perfetto (ui.perfetto.dev) and chrome://tracing, in Chrome's trace event
// format: a process for each rank, a thread for each of its streams.
#pragma once

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <shardwise/io/storage/json.hpp>
#include <shardwise/runtime/timeline/timeline.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

using storage::put_json;

// Times are microseconds from the first event, to the nanosecond.
inline void put_microseconds(std::string& out, std::int64_t nanoseconds) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%lld.%03d", static_cast<long long>(nanoseconds / 1000),
                static_cast<int>(nanoseconds % 1000));
  out += digits;
}

// The events of one rank, one a line.
class trace_writer {
 public:
  enum track { compute_track, communication_track, step_track, tracks };

  trace_writer(std::string& out, const timeline& t, std::int64_t origin) : out_(&out), t_(&t), origin_(origin) {}

  void write() {
    name_tracks();
    for (const timeline_run& r : t_->runs()) {
      write_step(r);
      std::vector<std::size_t> beside;  // collectives of the other stream that nothing has waited for yet
      std::vector<std::size_t> launch_of(t_->program_of(r).calls.size(), npos);
      const auto events = t_->events(r);
      for (std::size_t i = 0; i < events.size(); ++i) {
        const timeline_event& e = events[i];
        if (e.time.begin < 0) continue;  // another rank had failed
        write_slice(r, e);
        if (e.kind == event_kind::call || e.kind == event_kind::launch) count(r, e);
        if (e.kind == event_kind::launch) launch_of[static_cast<std::size_t>(e.call)] = i;
        if (e.kind == event_kind::call && e.stream == communication_track) beside.push_back(i);
        if (e.kind == event_kind::wait) write_flows(r, events, e, launch_of, beside);
      }
    }
    write_counters();
    write_missed();
  }

 private:
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
  struct change {
    std::int64_t at, by;
  };

  const timeline_call& call_of(const timeline_run& r, const timeline_event& e) const {
    return t_->program_of(r).calls[static_cast<std::size_t>(e.call)];
  }
  // Of the calls that went out together.
  std::int64_t sum_of(const timeline_run& r, const timeline_event& e, std::int64_t timeline_call::* of) const {
    std::int64_t n = 0;
    for (int k = 0; k < e.calls; ++k) n += t_->program_of(r).calls[static_cast<std::size_t>(e.call + k)].*of;
    return n;
  }

  void begin(std::string_view name, const char* phase, int tid) {
    *out_ += ",\n{\"name\":";
    put_json(*out_, name);
    *out_ += std::string(",\"ph\":\"") + phase + "\",\"pid\":" + std::to_string(t_->rank().rank) +
             ",\"tid\":" + std::to_string(tid);
  }
  void put(const char* key, std::string_view value) {
    *out_ += std::string(",\"") + key + "\":";
    put_json(*out_, value);
  }
  void put(const char* key, std::int64_t value) { *out_ += std::string(",\"") + key + "\":" + std::to_string(value); }
  void put_time(const char* key, std::int64_t nanoseconds) {
    *out_ += std::string(",\"") + key + "\":";
    put_microseconds(*out_, nanoseconds);
  }
  // What follows until `close` is an object; its first member is always `key`.
  template <class Value>
  void open_args(const char* key, const Value& value) {
    *out_ += ",\"args\":{\"" + std::string(key) + "\":";
    if constexpr (std::is_integral_v<Value>) *out_ += std::to_string(value);
    else put_json(*out_, value);
  }
  void close() { *out_ += "}"; }

  void name_track(int tid, const char* name, int order) {
    begin("thread_name", "M", tid);
    open_args("name", std::string(name));
    close(), close();
    begin("thread_sort_index", "M", tid);
    open_args("sort_index", order);
    close(), close();
  }
  void name_tracks() {
    const timeline_rank& who = t_->rank();
    begin("process_name", "M", 0);
    open_args("name", "rank " + std::to_string(who.rank) + " (" + who.coordinate + ")");
    close(), close();
    begin("process_sort_index", "M", 0);
    open_args("sort_index", who.rank);
    close(), close();
    name_track(step_track, "steps", 0);
    name_track(compute_track, "compute", 1);
    name_track(communication_track, "communication", 2);
  }

  // A slice; one that did not end (its run threw) is only begun.
  void put_span(const runtime::time_span& s) {
    put_time("ts", s.begin - origin_);
    if (s.end >= 0) put_time("dur", s.end - s.begin);
  }
  void write_step(const timeline_run& r) {
    begin("step " + std::to_string(r.step), r.time.end >= 0 ? "X" : "B", step_track);
    put("cat", "step");
    put_span(r.time);
    open_args("step", r.step);
    if (const std::string& phase = t_->program_of(r).phase; !phase.empty()) put("phase", phase);
    put("arena_bytes", t_->program_of(r).arena);
    close(), close();
  }
  static const char* category(const timeline_event& e, const timeline_call& c) {
    if (e.kind == event_kind::launch) return "launch";
    if (e.kind == event_kind::wait) return "wait";
    return c.kind == call_kind::communication ? "communication" : c.kind == call_kind::copy ? "copy" : "compute";
  }
  void write_slice(const timeline_run& r, const timeline_event& e) {
    const char* const phase = e.time.end >= 0 ? "X" : "B";
    if (e.kind == event_kind::arrival) {
      begin("wait for inputs", phase, e.stream);
      put("cat", "wait");
      put_span(e.time);
      open_args("step", r.step);
      close(), close();
      return;
    }
    const timeline_call& c = call_of(r, e);
    begin((e.kind == event_kind::launch ? "launch "
           : e.kind == event_kind::wait ? "wait for "
                                        : "") +
              c.name,
          phase, e.stream);
    put("cat", category(e, c));
    put_span(e.time);
    open_args("op", c.op);
    if (!c.fused.empty()) put("fused", c.fused);
    put("module", c.module);
    put("node", c.node);
    put("call", e.call);
    put("step", r.step);
    if (const std::string& part = t_->program_of(r).phase; !part.empty()) put("phase", part);
    if (e.kind == event_kind::call) {
      put("shapes", c.shapes);
      put("placements", c.placements);
      put("bytes", sum_of(r, e, &timeline_call::bytes));
      if (c.kind == call_kind::communication) put("sent", sum_of(r, e, &timeline_call::sent));
      if (e.calls > 1) {
        put("calls", e.calls);
        std::string together;
        for (int k = 1; k < e.calls; ++k)
          together += (k > 1 ? ", " : "") + t_->program_of(r).calls[static_cast<std::size_t>(e.call + k)].name;
        put("together_with", together);
      }
    }
    close(), close();
  }

  void write_flow(const timeline_call& c, const char* phase, int tid, std::int64_t at, std::int64_t id) {
    begin(c.name, phase, tid);
    put("cat", "communication");
    put("id", id);
    put_time("ts", at - origin_);
    if (phase[0] == 'f') put("bp", "e");
    close();
  }
  // From where it was launched, by way of where it ran, to the wait; where streams order themselves, from where it ran.
  void write_flows(const timeline_run& r, std::span<const timeline_event> events, const timeline_event& wait,
                   const std::vector<std::size_t>& launch_of, std::vector<std::size_t>& beside) {
    if (wait.stream != compute_track || wait.time.end < 0) return;
    std::erase_if(beside, [&](std::size_t i) {
      const timeline_event& e = events[i];
      if (e.call > wait.call) return false;
      const timeline_call& c = call_of(r, e);
      const std::size_t from = launch_of[static_cast<std::size_t>(e.call)];
      const std::int64_t id = std::int64_t{t_->rank().rank} * 1'000'000'000 + flows_++;
      if (from != npos) write_flow(c, "s", compute_track, events[from].time.begin, id);
      write_flow(c, from != npos ? "t" : "s", communication_track, e.time.begin, id);
      write_flow(c, "f", compute_track, std::max(wait.time.begin, e.time.begin), id);
      return true;
    });
  }

  void count(const timeline_run& r, const timeline_event& e) {
    const timeline_call& c = call_of(r, e);
    if (e.kind == event_kind::call && c.kind == call_kind::communication && e.time.end >= 0) {
      const std::int64_t sent = sum_of(r, e, &timeline_call::sent);
      in_flight_.push_back({e.time.begin, sent});
      in_flight_.push_back({e.time.end, -sent});
    }
    if (e.stream == compute_track) live_.push_back({e.time.begin, c.live});
  }
  void write_counter(const char* name, std::int64_t at, std::int64_t bytes) {
    begin(name, "C", 0);
    put_time("ts", at - origin_);
    open_args("bytes", bytes);
    close(), close();
  }
  void write_counters() {
    const auto earlier = [](const change& a, const change& b) { return a.at < b.at; };
    std::sort(in_flight_.begin(), in_flight_.end(), earlier);  // changes at one time are written as one
    std::int64_t now = 0;
    for (std::size_t i = 0; i < in_flight_.size(); ++i) {
      now += in_flight_[i].by;
      if (i + 1 == in_flight_.size() || in_flight_[i + 1].at != in_flight_[i].at)
        write_counter("bytes in flight", in_flight_[i].at, now);
    }
    std::int64_t before = -1;
    for (const change& c : live_)
      if (c.by != std::exchange(before, c.by)) write_counter("arena bytes in use", c.at, c.by);
  }

  void write_missed() {
    if (t_->missed() == 0 || t_->runs().empty()) return;
    const std::int64_t end = std::max(t_->runs().back().time.begin, t_->runs().back().time.end);
    begin("timeline full: " + std::to_string(t_->missed()) + " further steps are not here", "i", step_track);
    put("s", "p");
    put_time("ts", end - origin_);
    open_args("missed_steps", t_->missed());
    close(), close();
  }

  std::string* out_;
  const timeline* t_;
  std::int64_t origin_, flows_ = 0;
  std::vector<change> in_flight_, live_;
};

}  // namespace detail

// Ranks as processes (pid) sorted by number; threads 0 compute, 1 communication, 2 whole steps. Slices ("X") are named as
// the graph's text names nodes; cat is compute, communication, copy, launch, wait or step; args have the operation, module
// path, node id, number of the call, shapes on the rank, bytes. Flows ("s", "t", "f") lead from a collective's launch by
// way of its slice to the wait for it; counters are the payload bytes in flight and the arena's bytes in use. distributedInfo
// names the ranks, baseTimeNanoseconds the clock at ts 0, so that files of several processes of a machine can be laid together.
// Timelines into which nothing was recorded are left out; if all are, or two are of one rank, std::invalid_argument.
inline std::string chrome_trace(std::span<const timeline> ranks) {
  std::vector<const timeline*> all;
  std::int64_t origin = 0, missed = 0;
  for (const timeline& t : ranks) {
    if (t.runs().empty()) continue;
    const std::int64_t begin = t.runs().front().time.begin;
    origin = all.empty() ? begin : std::min(origin, begin);
    missed += t.missed();
    all.push_back(&t);
  }
  if (all.empty())
    throw std::invalid_argument(
        "shardwise: chrome_trace: nothing is recorded; give an executor the timeline with record(&t), then run a step");
  std::sort(all.begin(), all.end(), [](const timeline* a, const timeline* b) { return a->rank().rank < b->rank().rank; });
  std::string numbers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && all[i]->rank().rank == all[i - 1]->rank().rank)
      throw std::invalid_argument("shardwise: chrome_trace: two timelines are of rank " +
                                  std::to_string(all[i]->rank().rank) + "; give one for each rank");
    numbers += (i > 0 ? "," : "") + std::to_string(all[i]->rank().rank);
  }
  const timeline_rank& first = all.front()->rank();
  std::string out = "{\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":" + std::to_string(origin) +
                    ",\n\"distributedInfo\":{\"backend\":";
  detail::put_json(out, first.backend);
  out += ",\"rank\":" + std::to_string(first.rank) + ",\"world_size\":" + std::to_string(first.world_size) + ",\"ranks\":[" +
         numbers + "]},\n\"otherData\":{\"missed_steps\":" + std::to_string(missed) + "},\n\"traceEvents\":[\n";
  const std::size_t head = out.size();
  for (const timeline* t : all) detail::trace_writer(out, *t, origin).write();
  out.erase(head, 2);  // the first event's comma
  return out + "\n]}\n";
}

// The file of all ranks that are threads of this process. Throws std::runtime_error with the path if it cannot be written.
inline void write_chrome_trace(const std::string& path, std::span<const timeline> ranks) {
  const std::string text = chrome_trace(ranks);
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out)
    throw std::runtime_error("shardwise: write_chrome_trace: the file " + path +
                             " cannot be written; give a path in a folder that can");
}
inline void write_chrome_trace(const std::string& path, const timeline& rank) {
  write_chrome_trace(path, std::span(&rank, 1));
}

// "trace.json" -> "trace.rank3.json": the file of one of several processes.
inline std::string trace_file_of(const std::string& path, int rank) {
  const std::size_t name = path.find_last_of('/') + 1;  // 0 where there is no folder
  std::size_t dot = path.find_last_of('.');
  if (dot == std::string::npos || dot <= name) dot = path.size();
  return path.substr(0, dot) + ".rank" + std::to_string(rank) + path.substr(dot);
}

}  // namespace shardwise::inline v0_1
