// SPDX-License-Identifier: Apache-2.0
// call_loop: runs a lowered program's calls on a host rank, one after the other or with collectives beside them. One type for all
// programs that a kind of rank runs.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include <shardwise/graph/waits.hpp>
#include <shardwise/runtime/eager/flight.hpp>
#include <shardwise/runtime/executor/checks.hpp>
#include <shardwise/runtime/executor/dead_storage.hpp>
#include <shardwise/runtime/executor/finite.hpp>
#include <shardwise/runtime/executor/parted_calls.hpp>
#include <shardwise/runtime/program/lowered_program.hpp>
#include <shardwise/runtime/program/observer.hpp>
#include <shardwise/runtime/program/overlap.hpp>
#include <shardwise/runtime/rank.hpp>
#include <shardwise/runtime/threads/collectives.hpp>
#include <shardwise/runtime/timeline/timeline.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1::runtime {

// What a program and its kernels are to a loop.
template <class Rank>
struct loop_program {
  kernel_function<Rank> (*kernel_of)(int node);
  host::cut_kind (*cut_of)(int node);
  std::string (*place)(int node, int rank);  // for errors: place_of
  bool overlapped;                // collectives run on the rank's stream, beside kernels, where the program waits for them
  std::int64_t stream_workspace;  // of the scratch's end, for them
};

// The numbers of one run: of the run itself, and of groups of parameters behind it.
struct numbers_view {
  const step_env* of;
  bool groups;

  const step_env& run() const { return of[0]; }
  const step_env& read_by(op_code op, const op_attr& a) const { return groups ? of[optimizer_group(op, a)] : of[0]; }
};

template <class Rank>
class call_loop {
 public:
  call_loop(lowered_program& of, const loop_program<Rank>& program, executor_checks checks)
      : of_(of), program_(program), checks_(checks) {}

  // Settles the calls on this rank: before the first run, and whenever the run-time sizes `n_dyn` become others. The arena has peak_bytes.
  void lower(Rank& rank, std::byte* arena, const run_sizes& n_dyn) {
    arena_ = arena;
    const std::int64_t workspace = of_.tables().plan.workspace;
    std::byte* const scratch = workspace > 0 ? arena : nullptr;
    of_.lower(arena, rank.coordinate().data(), n_dyn, scratch);
    parted_.forget();
    plan_parts(rank);
    kernel_.clear();
    for (const call& c : calls()) kernel_.push_back(program_.kernel_of(c.node));
    if (program_.overlapped) {
      overlap_ = overlap_of(of_.tables(), calls());
      ticket_.resize(calls().size());
      std::byte* const beside = scratch ? scratch + workspace - passes::align_up(program_.stream_workspace) : nullptr;
      for (std::size_t i = 0; i < calls().size(); ++i)
        for (std::size_t k = i; overlap_.beside[i] && k < of_.launch_end(i); ++k) of_.set_workspace(k, beside);
    }
    if (has_check(checks_, executor_checks::poison)) dead_.note(of_.tables().graph, of_.tables().plan, calls());
  }

  // Calls [at, end). `seen`: where the run is written down, null: nowhere; `as`: the program's number there. Throws what a kernel throws,
  // with its node, module and rank behind it, and rank_failed as it is.
  void run(Rank& rank, const numbers_view& env, std::size_t at, const std::size_t end, timeline* seen, int as) {
    if (checks_ != executor_checks::none) rank.agree(env.run().seed, "the seed");
    const graph_view& g = of_.tables().graph;
    const dynamic_array<call>& list = calls();
    plan_parts(rank);
    if constexpr (requires { rank.place().runs(program_.place); }) rank.place().runs(program_.place);
    recorder_ = seen && seen->begin(as, env.run().step) ? seen : nullptr;
    try {
      if (program_.overlapped) {
        if constexpr (has_stream<Rank>) run_overlapped(rank, env, at, end);
      } else {
        for (; at < end; at += static_cast<std::size_t>(list[at].members)) {
          if (arrivals_.any()) land_for(at);
          if (has_check(checks_, executor_checks::poison)) dead_.poison_before(arena_, at);
          if (observer_) observer_->before(list[at].node);
          watched(at, [&] { run_call(rank, at, env); });
        }
      }
      if (observer_) observer_->before(end < list.size() ? list[end].node : g.node_count);
      if (has_check(checks_, executor_checks::poison)) dead_.poison_before(arena_, end);
      if (arrivals_.any()) land_for(list.size());
      if (recorder_) recorder_->end();
      of_.exchange_storage();
    } catch (const rank_failed&) {
      throw;
    } catch (const std::exception& e) {
      if (at >= end) throw;
      throw std::runtime_error(std::string(e.what()) + " (" + place_of(g, list[at].node, rank.index()) + ")");
    }
  }

  // Who is told of the calls of the runs that follow; null: nobody.
  void observe(call_observer* observer) { observer_ = observer; }

  // A call each, an arrival each, and of a collective beside kernels its launch and the wait for it.
  std::int64_t most_events() const {
    const graph_view& g = of_.tables().graph;
    std::int64_t n = static_cast<std::int64_t>(calls().size()) + 1;
    for (int i = 0; i < g.node_count; ++i) n += g.nodes[i].op == op_code::input ? 1 : 0;
    for (const bool beside : overlap_.beside) n += beside ? 2 : 0;
    return n;
  }

  // --- inputs that are under way

  // Input node `id` is set in another way.
  void forget_arrival(int id) {
    if (arrivals_.any()) arrivals_.forget(of_.pointer(id));
  }
  // The next run goes on without it until the program waits for it or reads it.
  void arrive(int id, dtype type, eager_flight<Rank>&& flight) {
    arrivals_.forget(of_.pointer(id));
    arrivals_.add(needed_at(id), of_.pointer(id), of_.layout_of(id), static_cast<std::int64_t>(size_of(type)),
                  std::move(flight));
  }
  // Nothing is under way any more.
  void land() { arrivals_.land_for(calls().size()); }
  // Of one that the program never waits for.
  void land_unawaited(int id) {
    if (!is_awaited(id)) land();
  }

 private:
  const dynamic_array<call>& calls() const { return of_.calls(); }

  // Call `at`, run by f, and what there is to see before and after it.
  template <class F>
  void watched(std::size_t at, F&& f) {
    if (!has_check(checks_, executor_checks::finite)) return f();
    const finite_watch watch(
        of_, &of_, [](void* from, int id) -> const void* { return static_cast<const lowered_program*>(from)->pointer(id); });
    const std::size_t end = at + static_cast<std::size_t>(calls()[at].members);
    bool allowed = false;
    for (std::size_t k = at; k < end; ++k) allowed = watch.before(calls()[k]) || allowed;
    f();
    for (std::size_t k = at; k < end; ++k) watch.after(calls()[k], allowed);
  }

  void run_call(Rank& rank, std::size_t at, const numbers_view& env) {
    const call& c = calls()[at];
    const step_env& read = env.read_by(of_.tables().graph.nodes[c.node].op, c.a);
    if (!recorder_) return parted_.run(at, kernel_[at], c, read, rank);
    time_span& when = next_event(event_kind::call, at).time;
    when.begin = now();
    parted_.run(at, kernel_[at], c, read, rank);
    when.end = now();
  }
  timeline_event& next_event(event_kind kind, std::size_t at, int stream = compute_stream) {
    timeline_event& e = recorder_->next(kind, at, stream);
    e.calls = calls()[at].members;
    return e;
  }
  void land_for(std::size_t at) {
    if (!recorder_ || !arrivals_.due(at)) return arrivals_.land_for(at);
    time_span& when = recorder_->next(event_kind::arrival, at).time;
    when.begin = now();
    arrivals_.land_for(at);
    when.end = now();
  }

  // What is under way uses the arena: whatever is thrown leaves when that is done. It will be: all ranks have issued the
  // same before, or fail as well, which ends it.
  void run_overlapped(Rank& rank, const numbers_view& env, std::size_t& at, const std::size_t end) {
    try {
      for (; at < end; at += static_cast<std::size_t>(calls()[at].members)) {
        if (arrivals_.any()) land_for(at);
        catch_up(rank, at);
        if (has_check(checks_, executor_checks::poison)) dead_.poison_before(arena_, at);
        if (observer_) observer_->before(calls()[at].node);
        watched(at, [&] {
          if (!overlap_.beside[at]) return run_call(rank, at, env);
          issue(rank, at, env);
          if (has_check(checks_, executor_checks::finite)) rank.stream().wait(ticket_[at]);
        });
      }
      catch_up(rank, end);
    } catch (...) {
      rank.stream().drain();
      throw;
    }
  }
  void issue(Rank& rank, std::size_t at, const numbers_view& env) {
    auto& stream = rank.stream();
    if (!recorder_) {
      ticket_[at] = stream.issue(kernel_[at], calls()[at], env.run(), nullptr, program_.place);
      return;
    }
    time_span& when = next_event(event_kind::launch, at).time;
    time_span& there = next_event(event_kind::call, at, communication_stream).time;
    when.begin = now();
    ticket_[at] = stream.issue(kernel_[at], calls()[at], env.run(), &there, program_.place);
    when.end = now();
  }
  void catch_up(Rank& rank, std::size_t at) {
    const int w = overlap_.await[at];
    if (w < 0) return;
    const unsigned t = ticket_[static_cast<std::size_t>(w)];
    if (!recorder_) return rank.stream().wait(t);
    time_span& when = recorder_->next(event_kind::wait, static_cast<std::size_t>(w)).time;
    when.begin = now();
    rank.stream().wait(t);
    when.end = now();
  }

  bool is_awaited(int input) const {
    const graph_view& g = of_.tables().graph;
    for (int i = 0; i < g.node_count; ++i)
      if (g.nodes[i].op == op_code::wait && awaited_by(g, i) == input) return true;
    return false;
  }
  // The first call behind a wait for input node `id`, or that touches its storage.
  std::size_t needed_at(int id) const {
    const graph_view& g = of_.tables().graph;
    int wait = g.node_count;
    for (int i = g.node_count - 1; i >= 0; --i)
      if (g.nodes[i].op == op_code::wait && awaited_by(g, i) == id) wait = i;
    std::size_t at = 0;
    for (; at < calls().size(); ++at) {
      const node& n = g.nodes[calls()[at].node];
      bool reads = calls()[at].node > wait;
      for (int k = 0; k < n.inputs; ++k) reads = reads || of_.tables().plan.owner[n.in[k]] == id;
      if (reads) break;
    }
    while (at < calls().size() && calls()[at].members == 0) --at;  // a batch needs what any member does
    return at;
  }

  void plan_parts(Rank& rank) { parted_.plan(rank, calls(), of_.tables().plan.workspace, program_.cut_of); }

  lowered_program& of_;
  const loop_program<Rank> program_;
  executor_checks checks_;
  std::byte* arena_ = nullptr;
  dynamic_array<kernel_function<Rank>> kernel_;
  arrivals<Rank> arrivals_;
  overlap overlap_;
  dynamic_array<unsigned> ticket_;  // of the calls on the stream
  dead_storage dead_;
  parted_calls<Rank> parted_;
  timeline* recorder_ = nullptr;  // of the run under way
  call_observer* observer_ = nullptr;
};

}  // namespace shardwise::inline v0_1::runtime
