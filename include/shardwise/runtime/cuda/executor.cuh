// SPDX-License-Identifier: Apache-2.0
// executor on a device: one arena, a compute and a communication stream, the whole step captured once as a CUDA graph and
// replayed. A step allocates nothing, waits for nothing on the host and calls nothing virtual, but where hosts carry its collectives.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <shardwise/runtime/cuda/collectives.cuh>
#include <shardwise/runtime/cuda/copied_block.hpp>
#include <shardwise/runtime/cuda/device/initialise.cuh>
#include <shardwise/runtime/cuda/host_calls.hpp>
#include <shardwise/runtime/cuda/launch_calls.cuh>
#include <shardwise/runtime/cuda/product_options.hpp>
#include <shardwise/runtime/cuda/ranges.hpp>
#include <shardwise/runtime/cuda/rank.hpp>
#include <shardwise/runtime/cuda/recorder.hpp>
#include <shardwise/runtime/cuda/resources.hpp>
#include <shardwise/runtime/cuda/staged_collectives.hpp>
#include <shardwise/runtime/cuda/step_state.cuh>
#include <shardwise/runtime/cuda/backend.hpp>
#include <shardwise/runtime/executor/executor_base.hpp>
#include <shardwise/runtime/executor/finite.hpp>
#include <shardwise/runtime/program/numbers.hpp>
#include <shardwise/runtime/program/schedule.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1 {

// graph: captured once, replayed. stream: every launch again in each step, for debuggers and sanitizers.
enum class device_execution { graph, stream };

// How a device's executor runs, checks, and chooses the algorithms of its matrix products.
struct device_options {
  device_execution how = device_execution::graph;
  executor_checks checks = executor_checks::none;
  product_options products = {};
  // Small all-reduces between ranks that are threads are kernels that write into the peers' memory, where the devices reach it; false: NCCL's,
  // as all others are. Equal on all ranks.
  bool one_shot_all_reduce = true;
};

// The executor of a rank on a device: the same members as on the host, but blocks are copied, not seen: `value`,
// `get_parameter`. `run` returns when the step is queued; loss, output, value and gather_parameter wait for it.
template <class Step, class Mesh>
class executor<Step, cuda_rank<Mesh>>
    : public runtime::executor_base<Step, cuda_rank<Mesh>, executor<Step, cuda_rank<Mesh>>> {
  using base = runtime::executor_base<Step, cuda_rank<Mesh>, executor>;
  using source = typename base::source;
  using Rank = cuda_rank<Mesh>;
  static_assert(checked_device_step<Step>::ok);
  static_assert(checked_rank<Rank>::ok);

 public:
  using mesh_type = typename base::mesh_type;
  using element = typename base::element;
  using numbers = typename base::numbers;
  using base::calls, base::find, base::image, base::layout_of, base::parameter_count, base::parameter_name, base::pointer,
      base::program;

  explicit executor(Rank& rank, executor_checks checks) : executor(rank, device_execution::graph, checks) {}
  // Of the checks there is `finite`: such a run is launched call by call, and every result is copied to the host.
  explicit executor(Rank& rank, device_execution how = device_execution::graph,
                    executor_checks checks = executor_checks::none)
      : executor(rank, device_options{how, checks, {}}) {}
  explicit executor(Rank& rank, const device_options& options) : executor(rank, options, [](executor&) {}) {
    static_assert(base::template takes_parameters_of<void>());
  }
  // Of a program with_parameters_of<Program, Of>: the parameters and buffers are those of `from`, which outlives this one.
  template <class Of>
  executor(Rank& rank, executor<Of, Rank>& from, const device_options& options = {})
      : executor(rank, options, [&](executor& self) { self.borrow_parameters(from); }) {
    static_assert(base::template takes_parameters_of<Of>());
  }

 private:
  template <class Before>
  executor(Rank& rank, const device_options& options, Before&& before)
      : base(&rank),
        how_(options.how),
        watches_(has_check(options.checks, executor_checks::finite)),
        arena_(static_cast<std::size_t>(source::peak_bytes)),
        state_(rank.multiprocessors(), groups),
        host_calls_(image()),
        staged_(image(), rank.link()) {
    if (has_check(options.checks, executor_checks::poison))
      throw std::invalid_argument(
          "shardwise: executor: executor_checks::poison is given; a device's executor has the check "
          "finite alone: run the program on host ranks for the other one");
    rank.agree(source::traffic.order_hash, "the ordered list of collectives");
    const auto scratch = cuda_backend::scratch_of(program());
    compute_scratch_ = scratch.compute > 0 ? arena_.data() : nullptr;
    communication_scratch_ = scratch.communication > 0 ? arena_.data() + passes::align_up(scratch.compute) : nullptr;
    // A library's first use of a kernel or of a connection may load code and allocate, which a capture forbids: one run on
    // zeros comes before it.
    in_order();
    clear();
    before(*this);
    lower({});
    cuda::check_compiled<Step>(calls(), rank.index());
    share_slots(options.one_shot_all_reduce);
    choose_products(options.products);
    warming_ = true;  // zeros are no operands that a user's function must take
    {
      const typename Rank::awaiting_device connects(rank);  // a first collective waits for its peers where it is queued
      for (int part = 0; part < parts; ++part) {
        queue_collectives(part);
        issue(part);
      }
      rank.synchronize(stream());
    }
    warming_ = false;
    clear();
    base::reset_states();
    if (how_ == device_execution::graph) capture();
  }

 public:
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  // Queues one run of the program. All ranks call it with equal arguments. Throws as on the host if something is not set.
  void run(const step_env& env) { run_numbers(env); }
  template <class Names>
  void run(const grouped_env<Names>& env) {
    run_numbers(env);
  }

  // Launches from now on lie in NVTX ranges of their modules' paths and their nodes' names, or no longer. Of a step that is replayed
  // as a graph a profiler shows them where it is captured, here, and in recorded runs. Collective.
  void mark_ranges(bool on = true) {
    synchronize();
    if (on) ranges_.name(image());
    else ranges_.clear();
    relowered();
  }

  // Waits until all that is queued is done; reports indices that kernels met outside their tables, and what an opaque function threw.
  void synchronize() {
    state_.synchronize(image(), *rank_);
    report_host_calls();
  }

  // Output 0 of the program as this rank holds it: the loss of a train_step.
  element loss() { return output()[0]; }
  std::vector<element> output() {
    check_ran();
    return value(image().outputs[0]);
  }
  // Output `index` as this rank holds it, from its first element to its last in storage; layout_of(outputs[index]) finds
  // the elements.
  template <class E = element>
  std::vector<E> output(int index) {
    base::check_output(index);
    check_ran();
    return value<E>(image().outputs[index]);
  }

  // As on the host; what is copied has item(), too.
  template <fixed_string Name>
  auto output() {
    constexpr int number = base::template output_number<Name>();
    using type = typename base::template output_element<number>::type;
    return cuda::copied_block<type>{output<type>(number)};
  }
  template <class E = element>
  cuda::copied_block<E> output(std::string_view name) {
    return {output<E>(base::output_number(name))};
  }

  // --- inputs ---------------------------------------------------------------------------------------------------------

  // Copies this rank's part of a whole (global, row-major) input tensor, as on the host; the copy is queued before the next
  // step. Ids of int32 may be given as int64.
  template <class Range>
  void set_input(int index, const Range& global) {
    using E = std::remove_cvref_t<decltype(*std::data(global))>;
    const int id = find(op_code::input, index);
    base::check_size("set_input", id, std::size(global));
    cuda::staging& s = staging_for(index, static_cast<std::size_t>(base::plan().bytes[id]));
    base::template load_input<E>(id, std::data(global), rank_->coordinate().data(), [&] { return s.next(*rank_); });
    s.send(pointer(id), base::bytes_of(id), stream());
    base::given().input(index);
  }
  void set_input(int index, const std::vector<bool>& global) { set_input(index, base::each_bit(global)); }

  // --- blocks, copied, by number or by name ---------------------------------------------------------------------------

  std::vector<element> get_parameter(int index) { return get_block("get_parameter", op_code::param, index); }
  std::vector<element> get_parameter(std::string_view name) { return get_parameter(base::parameter_index(name)); }
  std::vector<element> get_buffer(int index) { return get_block("get_buffer", op_code::module_buffer, index); }
  std::vector<element> get_buffer(std::string_view name) { return get_buffer(base::buffer_index(name)); }
  std::vector<element> get_state(std::string_view name, moment m) { return value(base::state_node(name, m)); }

  // This rank's value of node `id` of the program, if its storage has not been reused since: its elements from the first to the last
  // one in storage, where layout_of(id) finds them.
  template <class E = element>
  std::vector<E> value(int id) {
    base::template check_type<E>("value", id);
    if constexpr (std::is_same_v<E, bool>) {  // whose vector keeps bits
      const std::vector<char> bytes = copied<char>(id);
      return std::vector<bool>(bytes.begin(), bytes.end());
    } else {
      return copied<E>(id);
    }
  }

  // What one run of the captured graph starts; nothing where the program is launched call by call. Libraries' kernels count,
  // too: a product that cuBLASLt cuts along its depth is two. Of a program that keeps gradients: of accumulate.
  const cuda::graph_nodes& nodes() const { return graph_[0].nodes(); }
  int kernel_nodes() const { return nodes().kernels; }
  // Pinned memory of the host in which the blocks of opaque functions lie while they run, beside the arena.
  std::size_t opaque_bytes() const { return host_calls_.bytes(); }
  // That in which blocks lie while hosts exchange them.
  std::size_t staged_bytes() const { return staged_.bytes(); }
  // The stream that steps are queued on.
  cudaStream_t stream() const { return state_.compute(); }
  const dynamic_array<runtime::scheduled_call>& schedule() const { return schedule_; }
  // What was chosen for this program's matrix products at its start, and how long that took.
  const product_report& products() const { return products_; }

 private:
  template <class Other, class R>
  friend class executor;
  friend base;
  friend struct runtime::block_access;
  friend class runtime::gradient_sums<Step, executor>;
  template <class OtherStep, class R, class Self>
  friend class runtime::executor_base;

  // The block of node `id` as elements of E, which are of the node's size.
  template <class E>
  std::vector<E> copied(int id) {
    std::vector<E> host(layout_of(id).span());
    in_order();
    synchronize();
    rank_->copy(host.data(), pointer(id), host.size() * sizeof(E), cudaMemcpyDeviceToHost, stream());
    return host;
  }
  // A parameter or buffer: `op` is the leaf that it is.
  std::vector<element> get_block(const char* call_name, op_code op, int index) {
    const int id = find(op, index);
    base::check_parameter(call_name, base::table_place(op, index));
    return value(id);
  }
  // What is queued from here on comes behind what this rank's other executors have queued: their collectives meet the same ranks, and a
  // program with_parameters_of another one reads what that one writes.
  void in_order() { rank_->order().follow(stream()); }
  // --- what executor_base asks for

  void quiesce() { synchronize(); }
  void relowered() {
    forget_graphs();
    if (how_ == device_execution::graph) capture();
  }
  template <class F>
  void fill_block(int id, const F& f) {
    std::vector<element> block(static_cast<std::size_t>(layout_of(id).numel()));
    f(block.data());
    upload(id, block);
  }
  void draw_block(int id, init_kind kind, double scale, std::uint64_t seed, std::string_view path) {
    in_order();
    cuda::initialise_block(static_cast<element*>(pointer(id)), layout_of(id), kind, scale, seed, path, state_.of_stream(0));
  }
  const element* shown(int id) { return copies_.show(value(id)); }
  void hidden() { copies_.shown.clear(); }
  element* landing(int id) { return copies_.land(id, layout_of(id).numel()); }
  void landed() {
    for (const auto& [id, block] : copies_.landing) upload(id, block);
    copies_.landing.clear();
  }
  template <class Other>
  void copy_local(int to, Other& from, int id) {
    from.synchronize();
    in_order();
    cuda::check(cudaMemcpyAsync(pointer(to), from.pointer(id), base::bytes_of(to), cudaMemcpyDeviceToDevice, stream()),
                "cudaMemcpyAsync");
    rank_->synchronize(stream());
  }
  void zero_block(int id, std::size_t from = 0) {
    in_order();
    if (base::bytes_of(id) > from)
      cuda::check(cudaMemsetAsync(static_cast<std::byte*>(pointer(id)) + from, 0, base::bytes_of(id) - from, stream()),
                  "cudaMemsetAsync");
  }
  template <class Range>
  void gather_block(int id, bool first, Range& global) {
    const std::vector<element> block = value(id);
    if (rank_->shares_memory()) {
      if (first) runtime::store_block(block.data(), std::data(global), layout_of(id));
      return;
    }
    std::vector<element> whole(std::size(global), element(0));
    if (first) runtime::store_block(block.data(), whole.data(), layout_of(id));
    rank_->combine_disjoint(whole);
    std::copy(whole.begin(), whole.end(), std::data(global));
  }
  // Each call may wait once.
  std::int64_t most_events() {
    const auto n = static_cast<std::int64_t>(base::launch_count() + calls().size()) + 1;
    recorder_.reserve(static_cast<std::size_t>(n));
    return n;
  }

  void run_numbers(const numbers& env) {
    base::check_ready(env);
    if constexpr (base::keeps) {
      base::check_sums("run");
      base::add_batch(env);
      base::update_parameters(env);
    } else {
      run_part(env, false);
    }
  }
  // Throws, with its place, what an opaque function threw in a run that is done.
  void report_host_calls() {
    if (!host_calls_.failed()) return;
    const int node = host_calls_.failed_node();
    try {
      host_calls_.rethrow();
    } catch (const rank_failed&) {
      throw;
    } catch (const std::exception& e) {
      throw std::runtime_error(std::string(e.what()) + " (" + runtime::place_of(image(), node, rank_->index()) + ")");
    }
  }
  void run_part(const numbers& env, bool update) {
    if (host_calls_.failed()) synchronize();  // of an earlier run
    const int part = update ? 1 : 0;
    if (how_ == device_execution::graph && !graph_[part].get())
      throw std::logic_error(
          "shardwise: executor: run is called after a resize or mark_ranges that has failed, so that no graph is captured; call "
          "that again, or make a new executor");
    in_order();
    state_.set(env.of);
    queue_collectives(part);
    if (timeline_ && timeline_->begin(recorded_as_, env.run().step)) record_run(part);
    else if (watches_) issue_watched(part);
    else launch_part(part);
    ran_ = true;
  }
  void launch_part(int part) {
    const typename Rank::awaiting_device waits(*rank_);
    if (how_ == device_execution::graph) cuda::check(cudaGraphLaunch(graph_[part].get(), stream()), "cudaGraphLaunch");
    else issue(part);
  }
  // A program's calls, of one that keeps gradients a batch's and an update's.
  static constexpr int parts = base::keeps ? 2 : 1;
  std::size_t part_begin(int part) const { return part == 0 ? 0 : base::update_call(); }
  std::size_t part_end(int part) const { return part + 1 < parts ? base::update_call() : work_.size(); }

  void clear() {
    cuda::check(cudaMemsetAsync(arena_.data(), 0, static_cast<std::size_t>(source::peak_bytes), stream()),
                "cudaMemsetAsync");
    state_.clear();
  }
  void upload(int id, const std::vector<element>& block) {
    if (block.empty()) return;
    in_order();
    rank_->copy(pointer(id), block.data(), block.size() * sizeof(element), cudaMemcpyHostToDevice, stream());
  }

  cuda::staging& staging_for(int index, std::size_t bytes) {
    while (static_cast<int>(staging_.size()) <= index) staging_.emplace_back();
    if (!staging_[static_cast<std::size_t>(index)])
      staging_[static_cast<std::size_t>(index)] = std::make_unique<cuda::staging>(bytes);
    return *staging_[static_cast<std::size_t>(index)];
  }

  // What was captured is of calls that are about to change: where that fails, nothing is launched with them any more.
  void forget_graphs() {
    for (auto& g : graph_) g = {};
  }

  void lower(const run_sizes& n_dyn) {
    forget_graphs();
    base::lower(arena_.data(), rank_->coordinate().data(), n_dyn, nullptr);
    schedule_ = runtime::schedule(base::tables(), calls());
    work_.assign(calls().begin(), calls().end());
    event_.clear();
    for (auto& counts : collectives_) counts = {};
    for (std::size_t i = 0; i < work_.size(); ++i) {
      runtime::call& c = work_[i];
      if (communicates(c.kind) && c.members != 0)
        ++collectives_[i < part_end(0) ? 0 : parts - 1][static_cast<std::size_t>(c.axis)];
      if (c.kind == transition::all_to_all && c.from.dim == c.to.dim)
        c.l[1] =
            runtime::group_block(image().spec_of(image().nodes[c.node].in[0]), c.axis, rank_->coordinate().data(), n_dyn);
      work_[i].workspace = communicates(c.kind) ? communication_scratch_ : compute_scratch_;
      if (schedule_[i].awaited) event_.emplace(i, cuda::event());
    }
    host_calls_.prepare(image(), work_);
    staged_.prepare(work_, [](int node, int rank) { return runtime::place_of(image(), node, rank); });
  }

  // Memory for the small all-reduces of this program at its largest sizes; it suffices for smaller ones. The ranks meet if the program reduces
  // at all, which all of them see alike.
  void share_slots(bool wanted) {
    std::array<std::int32_t, max_axes> words{};
    bool reduces = false;
    for (std::size_t i = 0; i < work_.size(); i = base::launch_end(i)) {
      const runtime::call& c = work_[i];
      if (!communicates(c.kind)) continue;
      for (std::size_t k = i; k < base::launch_end(i); ++k) reduces = reduces || work_[k].kind == transition::all_reduce;
      const std::int32_t n = cuda::one_shot::slot_words(cuda::one_shot_words<Step>(&c, base::launch_end(i) - i), c.ranks);
      std::int32_t& most = words[static_cast<std::size_t>(c.axis)];
      if (wanted && n > most) most = n;
    }
    if (reduces) slots_ = rank_->share_slots(words, stream());
  }

  // Those of one run of a part.
  void queue_collectives(int part) {
    for (int a = 0; a < mesh_type::axes; ++a) rank_->queue_collectives(a, collectives_[part][static_cast<std::size_t>(a)]);
  }

  // Every product once, where its operands will lie, before any collective is queued: a rank that measures then waits for nobody.
  // Ranks that are processes of their own measure nothing, since they could not agree, and replicas must be equal.
  void choose_products(product_options options) {
    if (!rank_->shares_memory()) options.choice = product_choice::deterministic;
    cuda::context& ctx = state_.of_stream(runtime::compute_stream);
    rank_->synchronize(ctx.stream);  // of what another executor has queued; from here on it waits for its own products alone
    ctx.plans->set_precision(checked_device_step<Step>::precision);
    ctx.plans->begin_search(options, ctx.stream);
    for (const runtime::call& c : work_)
      if (image().nodes[c.node].op == op_code::einsum) launch(c, 1, ctx);
    rank_->synchronize(ctx.stream);
    products_ = ctx.plans->end_search();
    clear();
  }

  void capture() {
    for (int part = 0; part < parts; ++part) capture(part);
  }
  void capture(int part) {
    for (std::size_t i = part_begin(part); i < part_end(part); ++i)
      cuda::prepare_call<Step>(work_[i], state_.of_stream(schedule_[i].stream));
    rank_->barrier();
    graph_[part] = cuda::graph_instance::of(stream(), [&] { issue(part); });
    rank_->barrier();
  }

  void record_run(int part) {
    rank_->synchronize(stream());
    recorder_.begin(*timeline_, stream());
    issue(part, &recorder_);
    rank_->synchronize(stream());
    recorder_.end();
  }

  // Every launch of a part, on the two streams, ordered by events where the schedule says so. What came before the part is done: at its
  // end the streams have met.
  void issue(int part, cuda::recorder* seen = nullptr) {
    const std::size_t begin = part_begin(part), last = part_end(part);
    cudaStream_t const comm = state_.communication();
    cuda::check(cudaEventRecord(fork_.get(), stream()), "cudaEventRecord");
    cuda::check(cudaStreamWaitEvent(comm, fork_.get(), 0), "cudaStreamWaitEvent");
    for (std::size_t i = begin; i < last;) {
      const std::size_t end = base::launch_end(i);
      const runtime::call& c = work_[i];
      cuda::context& ctx = state_.of_stream(schedule_[i].stream);
      try {
        for (std::size_t k = i; k < end; ++k)
          if (const auto awaited = static_cast<std::size_t>(schedule_[k].wait); schedule_[k].wait >= 0 && awaited >= begin) {
            if (seen) seen->open(event_kind::wait, awaited, schedule_[i].stream, ctx.stream);
            cuda::check(cudaStreamWaitEvent(ctx.stream, event_.at(awaited).get(), 0), "cudaStreamWaitEvent");
            if (seen) seen->close(ctx.stream);
          }
        if (seen) seen->open(event_kind::call, i, schedule_[i].stream, ctx.stream, end - i);
        const cuda::launch_ranges::range named(ranges_, c.node);
        if (watching_) watched(i, end, ctx);
        else launch(c, end - i, ctx);
        if (seen) seen->close(ctx.stream);
        for (std::size_t k = i; k < end; ++k)
          if (schedule_[k].awaited) cuda::check(cudaEventRecord(event_.at(k).get(), ctx.stream), "cudaEventRecord");
      } catch (const device_error& e) {
        throw std::runtime_error(std::string(e.what()) + " (" + runtime::place_of(image(), c.node, rank_->index()) + ")");
      }
      i = end;
    }
    cuda::check(cudaEventRecord(join_.get(), comm), "cudaEventRecord");
    if (seen) seen->open_last_wait(stream());
    cuda::check(cudaStreamWaitEvent(stream(), join_.get(), 0), "cudaStreamWaitEvent");
    if (seen) seen->close_last_wait(stream());
  }

  void issue_watched(int part) {
    rank_->synchronize(stream());
    watching_ = true;
    try {
      issue(part);
    } catch (...) {
      watching_ = false;
      throw;
    }
    watching_ = false;
  }
  // Calls i to end, which go out together, and what there is to see before and after them.
  void watched(std::size_t i, std::size_t end, cuda::context& ctx) {
    auto fetch = [&](int id) -> const void* {
      const std::size_t bytes = layout_of(id).span() * size_of(image().spec_of(id).type);
      fetched_.resize(bytes);
      rank_->copy(fetched_.data(), pointer(id), bytes, cudaMemcpyDeviceToHost, ctx.stream);
      return fetched_.data();
    };
    const runtime::finite_watch watch(*this, &fetch,
                                      [](void* from, int id) { return (*static_cast<decltype(fetch)*>(from))(id); });
    std::size_t at = i;
    try {
      bool allowed = false;
      for (; at < end; ++at) allowed = watch.before(work_[at]) || allowed;
      launch(work_[i], end - i, ctx);
      rank_->synchronize(ctx.stream);
      host_calls_.rethrow();
      for (at = i; at < end; ++at) watch.after(work_[at], allowed);
    } catch (const rank_failed&) {
      throw;
    } catch (const device_error&) {
      throw;
    } catch (const std::exception& e) {
      throw std::runtime_error(std::string(e.what()) + " (" +
                               runtime::place_of(image(), work_[at < end ? at : i].node, rank_->index()) + ")");
    }
  }

  void launch(const runtime::call& c, std::size_t count, cuda::context& ctx) {
    if (!communicates(c.kind)) {
      if (image().nodes[c.node].op == op_code::opaque)
        return host_calls_.launch(static_cast<std::size_t>(&c - work_.data()), ctx.stream, warming_);
      ctx.env = state_.env_of_group(static_cast<int>(optimizer_group(image().nodes[c.node].op, c.a)));
      return cuda::launch_calls<Step>(&c, count, ctx, rank_->index());
    }
    if (rank_->is_carried(c.axis)) return staged_.launch(static_cast<std::size_t>(&c - work_.data()), ctx.stream);
    ncclComm_t const group = rank_->communicator(c.axis);
    rank_->count_written(c.axis,
                         cuda::communicate_calls<Step>(&c, count, ctx, group, slots_[static_cast<std::size_t>(c.axis)]));
  }

  using base::rank_, base::ran_, base::timeline_, base::recorded_as_, base::check_ran;
  // The main group and those with names.
  static constexpr int groups = program_traits<Step>::param_groups::count + 1;
  device_execution how_;
  bool watches_ = false;   // executor_checks::finite
  bool watching_ = false;  // in the run under way
  bool warming_ = false;   // in the constructor's run on zeros
  std::vector<std::byte> fetched_;
  cuda::device_memory arena_;
  cuda::step_state state_;
  cuda::host_calls host_calls_;
  cuda::staged_collectives staged_;
  cuda::event fork_, join_;
  std::byte* compute_scratch_ = nullptr;
  std::byte* communication_scratch_ = nullptr;
  dynamic_array<runtime::scheduled_call> schedule_;
  std::vector<runtime::call> work_;
  std::array<std::int64_t, max_axes> collectives_[parts]{};  // of one run, by axis
  std::array<const cuda::peer_slots*, max_axes> slots_{};    // by axis
  std::map<std::size_t, cuda::event> event_;
  std::vector<std::unique_ptr<cuda::staging>> staging_;
  cuda::host_copies<element> copies_;
  cuda::graph_instance graph_[parts];
  cuda::recorder recorder_;
  cuda::launch_ranges ranges_;
  product_report products_;
  // Destroyed before all else, of a constructor that throws, too: what is queued uses the members above, host functions among them.
  struct settled {
    executor* self;
    ~settled() {
      self->rank_->settle();
      self->rank_->order().forget(self->stream());
    }
  } settled_{this};
};

}  // namespace shardwise::inline v0_1
