// SPDX-License-Identifier: Apache-2.0
// executor: runs a lowered program on the host: a loop over calls, one kernel for each distinct signature.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <shardwise/graph/tensor.hpp>
#include <shardwise/runtime/eager/flight.hpp>
#include <shardwise/runtime/executor/finite.hpp>
#include <shardwise/runtime/program/lowered.hpp>
#include <shardwise/runtime/host/kernel_table.hpp>
#include <shardwise/runtime/program/overlap.hpp>
#include <shardwise/runtime/threads/collectives.hpp>
#include <shardwise/runtime/timeline/program.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise {

namespace runtime {

// An arena of exactly the bytes asked for, or the caller's.
class arena {
 public:
  explicit arena(std::int64_t bytes) : bytes_(bytes), own_(true) {
    data_ = static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes > 0 ? bytes : 1), std::align_val_t{64}));
  }
  arena(std::span<std::byte> given, std::int64_t bytes) : bytes_(bytes), data_(given.data()), own_(false) {
    if (static_cast<std::int64_t>(given.size()) < bytes || reinterpret_cast<std::uintptr_t>(given.data()) % 64 != 0)
      throw std::invalid_argument("shardwise: the arena given has " + std::to_string(given.size()) + " bytes; the program needs " +
                                  std::to_string(bytes) + ", aligned to 64");
  }
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;
  ~arena() {
    if (own_) ::operator delete(data_, std::align_val_t{64});
  }
  std::byte* data() const { return data_; }
  std::int64_t size() const { return bytes_; }

 private:
  std::int64_t bytes_;
  std::byte* data_ = nullptr;
  bool own_;
};

}  // namespace runtime

// What an executor watches while it runs; together: poison | finite.
//   poison: storage that is dead is overwritten, and ranks compare their seeds.
//   finite: the first node whose result holds a NaN or an infinity ends the run with its name, module path and rank. What
//     counts, and how masks of -inf pass, stands at finite_watch. Results are looked at one by one, so collectives do not
//     overlap kernels.
enum class executor_checks : unsigned { none = 0, poison = 1, finite = 2 };
constexpr executor_checks operator|(executor_checks a, executor_checks b) {
  return static_cast<executor_checks>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool has_check(executor_checks all, executor_checks one) {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}

// Step is a train_step or forward_step; Rank a rank of its mesh, by default a thread of this process. All memory is taken
// in the constructor, and the optimizer's states in it are zeros. Collectives that the program waits for run beside its kernels, on the rank's stream if it has one.
template <class Step, class Rank = thread_rank<typename program_traits<Step>::mesh_type>>
class executor : public runtime::lowered<Step> {
  using base = runtime::lowered<Step>;
  using source = typename base::source;
  static_assert(checked_host_rank<Rank>::ok);

 public:
  using mesh_type = typename program_traits<Step>::mesh_type;
  using element = typename base::element;
  using base::calls, base::find, base::layout_of, base::parameter_count, base::pointer, base::program;
  static constexpr int world_size = mesh_type::size;

  explicit executor(Rank& rank, executor_checks checks = executor_checks::none)
      : rank_(&rank), arena_(source::peak_bytes), checks_(checks) {
    start();
  }
  executor(Rank& rank, std::span<std::byte> arena, executor_checks checks = executor_checks::none)
      : rank_(&rank), arena_(arena, source::peak_bytes), checks_(checks) {
    start();
  }
  // Without a rank, and with a rank of another mesh or another kind: sentences.
  template <class None = void>
  executor() : rank_(nullptr), arena_(0), checks_(executor_checks::none) {
    static_assert(raise<problem::executor_rank, None, mesh_type>::ok);
  }
  template <class Other, class... More>
    requires(!std::is_same_v<Other, Rank> && !std::is_same_v<std::remove_cv_t<Other>, executor>)
  explicit executor(Other&, const More&...) : rank_(nullptr), arena_(0), checks_(executor_checks::none) {
    static_assert(raise<problem::executor_rank, Other, mesh_type>::ok);
  }

  // One run of the program. All ranks call it with equal arguments; a checked run tells ranks whose seeds differ. Throws if
  // an input or a parameter has no value yet, or a number of `env` that the optimizer reads is not set: see check_env.
  void run(const step_env& env) {
    base::check_ready(env);
    if (checks_ != executor_checks::none) rank_->agree(env.seed, "the seed");
    const dynamic_array<runtime::call>& list = calls();
    std::size_t at = 0;
    recorder_ = timeline_ && timeline_->begin(recorded_as_, env.step) ? timeline_ : nullptr;
    try {
      if constexpr (overlapped) {
        run_overlapped(env, at);
      } else {
        for (; at < list.size(); ++at) {
          if (arrivals_.any()) land_for(at);
          if (has_check(checks_, executor_checks::poison)) poison_before(at);
          watched(at, [&] { run_call(at, env); });
        }
      }
      if (has_check(checks_, executor_checks::poison)) poison_before(list.size());
      if (arrivals_.any()) land_for(list.size());
      if (recorder_) recorder_->end();
      ran_ = true;
    } catch (const rank_failed&) {
      throw;
    } catch (const std::exception& e) {
      if (at >= list.size()) throw;
      throw std::runtime_error(std::string(e.what()) + " (" + runtime::place_of(program(), list[at].node, rank_->index()) + ")");
    }
  }

  template <class... Given>
    requires(sizeof...(Given) != 1 || !(std::is_convertible_v<const Given&, const step_env&> && ...))
  void run(const Given&...) {
    static_assert(raise<problem::run_without_env, executor, Given...>::ok);
  }

  // The run-time size of the program's dyn dim, from 1 to its bound (the size after construction). Nothing is compiled or
  // allocated anew: the calls' extents, strides and views are settled again in the arena planned for the bound. Inputs of
  // another size than before must be set again.
  void resize(std::int64_t n) {
    base::check_dyn(n);
    rank_->agree(static_cast<std::uint64_t>(n), "the run-time size");
    arrivals_.land_for(calls().size());
    lower(n);
    if (n != (n_dyn_ != 0 ? n_dyn_ : source::dyn_bound)) base::resize_inputs();
    n_dyn_ = n;
    if (timeline_) record(timeline_, phase_);
  }

  // From the next run on, writes into `t` what this rank does and when, while there is room; nullptr: no more. `t` outlives
  // the executor or is taken back. All memory is taken here. `phase` names the program among several in one timeline.
  void record(timeline* t, const std::string& phase = "") {
    if (t) {
      timeline_program p = runtime::timeline_program_of<Step>(*this, rank_->coordinate().data(), n_dyn_, phase);
      p.most_events = static_cast<std::int64_t>(calls().size()) + 1;
      for (int i = 0; i < program().node_count; ++i) p.most_events += program().nodes[i].op == op_code::input ? 1 : 0;
      for (const bool beside : overlap_.beside) p.most_events += beside ? 2 : 0;
      recorded_as_ = t->add(runtime::timeline_rank_of(*rank_), std::move(p));
    }
    timeline_ = t;
    if (&phase != &phase_) phase_ = phase;
  }

  // Output 0 of the program as this rank holds it: the loss of a train_step.
  element loss() const { return output()[0]; }
  std::span<const element> output() const {
    check_ran();
    return block<const element>(program().outputs[0]);
  }
  const runtime::layout& output_layout() const { return layout_of(program().outputs[0]); }
  // Output `index`: its elements from the first to the last one, and the layout that finds them.
  template <class E = element>
  local_block<E> output(int index) const {
    base::check_output(index);
    check_ran();
    const int id = program().outputs[index];
    base::template check_type<E>("output", id);
    return {{static_cast<const E*>(pointer(id)), layout_of(id).span()}, layout_of(id)};
  }

  // The output that the task calls Name: output<"accuracy">().item() of a scalar. A name that the task does not give does
  // not compile; given as a value, output("accuracy"), it throws, with the names that there are.
  template <fixed_string Name>
  auto output() const {
    constexpr int number = base::template output_number<Name>();
    return output<typename base::template output_element<number>::type>(number);
  }
  template <class E = element>
  local_block<E> output(std::string_view name) const {
    return output<E>(base::output_number(name));
  }

  // --- inputs ---------------------------------------------------------------------------------------------------------

  // Copies this rank's part of a whole (global, row-major) input tensor: its block, and of a partial one its share, so that
  // the reduction over the mesh is what was given, as distribute does.
  template <class Range>
  void set_input(int index, const Range& global) {
    using E = std::remove_cvref_t<decltype(*std::data(global))>;
    const int id = find(op_code::input, index);
    base::check_size("set_input", id, std::size(global));
    base::template check_type<E>("set_input", id);
    if (arrivals_.any()) arrivals_.forget(pointer(id));
    base::load("set_input", id, std::data(global), static_cast<E*>(pointer(id)), rank_->coordinate().data());
    base::given().input(index);
  }
  // A pending tensor of the input's extents and placements: the next run goes on without it until the program waits for
  // the input or reads it; a program that never waits for it runs when it has arrived.
  template <class Pending>
    requires(detail::is_pending<Pending>)
  void set_input(int index, Pending&& p) {
    using T = typename Pending::pending_type;
    const int id = find(op_code::input, index);
    base::template check_type<typename T::element>("set_input", id);
    if (!(program().spec_of(id) == T::sp))
      throw std::invalid_argument("shardwise: set_input: input " + std::to_string(index) +
                                  " has other extents or placements than the pending tensor; declare it with "
                                  "arriving<input_like<...>> of the tensor's type");
    arrivals_.forget(pointer(id));
    arrivals_.add(needed_at(id), pointer(id), layout_of(id), static_cast<std::int64_t>(size_of(T::sp.type)), std::move(p).release());
    base::given().input(index);
    if (!is_awaited(id)) arrivals_.land_for(calls().size());
  }
  template <tensor X>
    requires(!detail::is_pending<X>)
  void set_input(int, const X&) {
    static_assert(raise<problem::set_input_tensor, X>::ok);
  }
  template <tensor X>
    requires detail::is_pending<X>
  void set_input(int, const X&) {
    static_assert(raise<problem::pending_kept, X>::ok);
  }
  // This rank's block itself, to be filled in place: it counts as set from now on.
  template <class E>
  std::span<E> input(int index) {
    const int id = find(op_code::input, index);
    base::template check_type<E>("input", id);
    base::given().input(index);
    return block<E>(id);
  }

  // --- parameters -----------------------------------------------------------------------------------------------------

  const runtime::layout& parameter_layout(int index) const { return layout_of(find(op_code::param, index)); }
  // This rank's block of a parameter, to be written: it counts as set from now on. Of a const executor, to be read.
  std::span<element> parameter(int index) { return block_to_write(op_code::param, index); }
  std::span<const element> parameter(int index) const { return block_to_read("parameter", op_code::param, index); }
  template <class Range>
  void set_parameter(int index, const Range& global) {
    set_whole("set_parameter", op_code::param, index, global);
  }
  // Writes this rank's block into a whole tensor shared by all ranks. Collective: returns when all blocks are there.
  template <class Range>
  void gather_parameter(int index, Range&& global) {
    gather_whole("gather_parameter", op_code::param, index, global);
  }
  // The blocks of another program with the same parameters and buffers in the same places: an evaluation of the model in
  // training. Parameters or buffers of other names, shapes or placements do not compile.
  template <class Other>
  void copy_parameters(const executor<Other, Rank>& from) {
    static_assert(runtime::checked_parameters<Step, Other>::ok);
    from.check_parameters("copy_parameters");
    for (int at = 0; at < base::table_count(); ++at) {
      const int id = base::table_node(at);
      std::memcpy(pointer(id), from.pointer(from.table_node(at)), base::bytes_of(id));
      base::given().parameter(at);
    }
  }

  // --- buffers of modules: the same -----------------------------------------------------------------------------------

  const runtime::layout& buffer_layout(int index) const { return layout_of(find(op_code::module_buffer, index)); }
  std::span<element> buffer(int index) { return block_to_write(op_code::module_buffer, index); }
  std::span<const element> buffer(int index) const { return block_to_read("buffer", op_code::module_buffer, index); }
  template <class Range>
  void set_buffer(int index, const Range& global) {
    set_whole("set_buffer", op_code::module_buffer, index, global);
  }
  template <class Range>
  void gather_buffer(int index, Range&& global) {
    gather_whole("gather_buffer", op_code::module_buffer, index, global);
  }

  // This rank's value of node `id` of the program, if its storage has not been reused since.
  template <class E = element>
  std::vector<E> value(int id) const {
    base::template check_type<E>("value", id);
    const std::span<const E> b = block<const E>(id);
    return {b.begin(), b.end()};
  }

  // Initial values of parameters and buffers as the modules declare them, from (seed, path, global element index); states are
  // zeroed, as they are after construction. Collective: ranks that give different seeds are told.
  void initialise(std::uint64_t seed) {
    rank_->agree(seed, "the seed");
    for (int at = 0; at < base::table_count(); ++at) {
      const auto& info = source::parameters.item[at];
      const int id = base::table_node(at);
      runtime::initialise_block(block<element>(id), layout_of(id), info.kind, info.scale, seed, base::table_name(at));
      base::given().parameter(at);
    }
    reset_states();
  }
  // The optimizer's states become zeros.
  void reset_states() {
    for (int id = 0; id < program().node_count; ++id)
      if (program().nodes[id].op == op_code::state) std::memset(pointer(id), 0, base::bytes_of(id));
  }

  // Kernels instantiated for this program: one for each operation and element type in it.
  static constexpr int kernel_count() { return kernels::signatures.count; }
  std::size_t call_count() const { return calls().size(); }
  std::span<std::byte> arena_bytes() { return {arena_.data(), static_cast<std::size_t>(arena_.size())}; }

 private:
  template <class Other, class R>
  friend class executor;
  template <class Iterated, class R>
  friend class iterated_executor;

  // One of several programs over one arena: what is set for one of them is set for all.
  executor(Rank& rank, std::span<std::byte> arena, runtime::given_values& given, executor_checks checks)
      : rank_(&rank), arena_(arena, source::peak_bytes), checks_(checks) {
    base::share_given(given);
    start();
  }

  void check_ran() const {
    if (!ran_) [[unlikely]]
      base::refuse_unrun();
  }

  // A parameter or buffer: `op` is the leaf that it is.
  std::span<element> block_to_write(op_code op, int index) {
    const int id = find(op, index);
    base::given().parameter(base::table_place(op, index));
    return block<element>(id);
  }
  std::span<const element> block_to_read(const char* call_name, op_code op, int index) const {
    const int id = find(op, index);
    base::check_parameter(call_name, base::table_place(op, index));
    return block<const element>(id);
  }
  template <class Range>
  void set_whole(const char* call_name, op_code op, int index, const Range& global) {
    const int id = find(op, index);
    base::check_size(call_name, id, std::size(global));
    base::load(call_name, id, std::data(global), static_cast<element*>(pointer(id)), rank_->coordinate().data());
    base::given().parameter(base::table_place(op, index));
  }
  template <class Range>
  void gather_whole(const char* call_name, op_code op, int index, Range& global) {
    const int id = find(op, index);
    base::check_size(call_name, id, std::size(global));
    base::check_parameter(call_name, base::table_place(op, index));
    if (base::writes_first(id, rank_->coordinate().data()))
      runtime::store_block(static_cast<const element*>(pointer(id)), std::data(global), layout_of(id));
    rank_->barrier();
  }

  static constexpr bool overlapped = runtime::has_stream<Rank> && has_waits(source::program);

  // Call `at`, run by f, and what there is to see before and after it.
  template <class F>
  void watched(std::size_t at, F&& f) {
    if (!has_check(checks_, executor_checks::finite)) return f();
    using watch = runtime::finite_watch<Step>;
    const auto fetch = [this](int id) -> const void* { return pointer(id); };
    const bool allowed = watch::before(*this, calls()[at], fetch);
    f();
    watch::after(*this, calls()[at], allowed, fetch);
  }

  void run_call(std::size_t at, const step_env& env) {
    if (!recorder_) return kernel_[at](calls()[at], env, *rank_);
    runtime::time_span& when = recorder_->next(event_kind::call, at).time;
    when.begin = runtime::now();
    kernel_[at](calls()[at], env, *rank_);
    when.end = runtime::now();
  }
  void land_for(std::size_t at) {
    if (!recorder_ || !arrivals_.due(at)) return arrivals_.land_for(at);
    runtime::time_span& when = recorder_->next(event_kind::arrival, at).time;
    when.begin = runtime::now();
    arrivals_.land_for(at);
    when.end = runtime::now();
  }

  // What is under way uses the arena: whatever is thrown leaves when that is done. It will be: all ranks have issued the
  // same before, or fail as well, which ends it.
  void run_overlapped(const step_env& env, std::size_t& at) {
    try {
      for (; at < calls().size(); ++at) {
        if (arrivals_.any()) land_for(at);
        catch_up(at);
        if (has_check(checks_, executor_checks::poison)) poison_before(at);
        watched(at, [&] {
          if (!overlap_.beside[at]) return run_call(at, env);
          issue(at, env);
          if (has_check(checks_, executor_checks::finite)) rank_->stream().wait(ticket_[at]);
        });
      }
      catch_up(calls().size());
    } catch (...) {
      rank_->stream().drain();
      throw;
    }
  }
  static std::string place(int node, int rank) { return runtime::place_of(program(), node, rank); }
  void issue(std::size_t at, const step_env& env) {
    auto& stream = rank_->stream();
    if (!recorder_) {
      ticket_[at] = stream.issue(kernel_[at], calls()[at], env, nullptr, place);
      return;
    }
    runtime::time_span& when = recorder_->next(event_kind::launch, at).time;
    runtime::time_span& there = recorder_->next(event_kind::call, at, runtime::communication_stream).time;
    when.begin = runtime::now();
    ticket_[at] = stream.issue(kernel_[at], calls()[at], env, &there, place);
    when.end = runtime::now();
  }
  void catch_up(std::size_t at) {
    const int w = overlap_.await[at];
    if (w < 0) return;
    const unsigned t = ticket_[static_cast<std::size_t>(w)];
    if (!recorder_) return rank_->stream().wait(t);
    runtime::time_span& when = recorder_->next(event_kind::wait, static_cast<std::size_t>(w)).time;
    when.begin = runtime::now();
    rank_->stream().wait(t);
    when.end = runtime::now();
  }

  static bool is_awaited(int input) {
    for (int i = 0; i < program().node_count; ++i)
      if (program().nodes[i].op == op_code::wait && awaited_by(program(), i) == input) return true;
    return false;
  }
  // The first call behind a wait for input node `id`, or that touches its storage.
  std::size_t needed_at(int id) const {
    const auto& g = program();
    int wait = g.node_count;
    for (int i = g.node_count - 1; i >= 0; --i)
      if (g.nodes[i].op == op_code::wait && awaited_by(g, i) == id) wait = i;
    std::size_t at = 0;
    for (; at < calls().size(); ++at) {
      const node& n = g.nodes[calls()[at].node];
      bool reads = calls()[at].node > wait;
      for (int k = 0; k < n.inputs; ++k) reads = reads || base::plan().owner[n.in[k]] == id;
      if (reads) break;
    }
    return at;
  }

  void poison_before(std::size_t at) {
    for (std::size_t k = dies_begin_[at]; k < dies_begin_[at + 1]; ++k)
      std::memset(arena_.data() + dies_[k].first, 0xFF, static_cast<std::size_t>(dies_[k].second));
  }

  struct graph_tag {
    static constexpr const auto& value = source::program;
  };
  using kernels = runtime::kernels_of<graph_tag>;
  using table = runtime::kernel_table<graph_tag, Rank>;

  template <class E>
  std::span<E> block(int id) const {
    return {static_cast<E*>(pointer(id)), static_cast<std::size_t>(layout_of(id).numel())};
  }

  void start() {
    rank_->agree(source::traffic.order_hash, "the ordered list of collectives");
    if constexpr (overlapped) rank_->stream().start();
    lower(0);
    reset_states();
  }

  void lower(std::int64_t n_dyn) {
    std::byte* const scratch = base::plan().workspace > 0 ? arena_.data() : nullptr;
    const auto workspace_of = [=](const node&) { return scratch; };
    base::lower(arena_.data(), rank_->coordinate().data(), n_dyn, workspace_of);
    kernel_.clear();
    for (const runtime::call& c : calls()) kernel_.push_back(table::of(c.node));
    if constexpr (overlapped) {
      overlap_ = runtime::overlap_of<Step>(calls());
      ticket_.resize(calls().size());
      std::byte* const beside = scratch ? scratch + base::plan().workspace - passes::align_up(stream_workspace) : nullptr;
      for (std::size_t i = 0; i < calls().size(); ++i)
        if (overlap_.beside[i]) base::set_workspace(i, beside);
    }
    if (has_check(checks_, executor_checks::poison)) note_deaths();
  }

  // Before which call each buffer is dead (a wait is none): on this rank it may be shorter than planned; the rest of it is
  // nobody's.
  void note_deaths() {
    const auto& plan = base::plan();
    const int nodes = program().node_count;
    dynamic_array<bool> dead(static_cast<std::size_t>(nodes), false);
    dies_.clear();
    dies_begin_.assign(1, 0);
    for (std::size_t i = 0; i <= calls().size(); ++i) {
      const int next = i < calls().size() ? calls()[i].node : nodes;
      for (int o = 0; o < next; ++o)
        if (plan.owner[o] == o && plan.last_use[o] < next && plan.bytes[o] > 0 && !dead[static_cast<std::size_t>(o)]) {
          dead[static_cast<std::size_t>(o)] = true;
          dies_.push_back({plan.offset[o], plan.bytes[o]});
        }
      dies_begin_.push_back(dies_.size());
    }
  }

  Rank* rank_;
  runtime::arena arena_;
  executor_checks checks_;
  dynamic_array<runtime::kernel_function<Rank>> kernel_;
  static constexpr std::int64_t stream_workspace = overlapped ? host_backend::stream_workspace(source::program) : 0;
  runtime::arrivals<Rank> arrivals_;
  runtime::overlap overlap_;
  dynamic_array<unsigned> ticket_;  // of the calls on the stream
  dynamic_array<std::pair<std::int64_t, std::int64_t>> dies_;
  dynamic_array<std::size_t> dies_begin_;
  std::int64_t n_dyn_ = 0;
  bool ran_ = false;
  timeline* timeline_ = nullptr;
  timeline* recorder_ = nullptr;  // of the run under way
  int recorded_as_ = 0;
  std::string phase_;
};

}  // namespace shardwise
