// SPDX-License-Identifier: Apache-2.0
// executor on a device: one arena, a compute and a communication stream, the whole step captured once as a CUDA graph and
// replayed. A step allocates nothing, waits for nothing on the host and calls nothing virtual.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <shardwise/runtime/cuda/collectives.cuh>
#include <shardwise/runtime/cuda/device/env.cuh>
#include <shardwise/runtime/cuda/kernels.cuh>
#include <shardwise/runtime/cuda/rank.hpp>
#include <shardwise/runtime/cuda/recorder.hpp>
#include <shardwise/runtime/cuda/resources.hpp>
#include <shardwise/runtime/cuda/backend.hpp>
#include <shardwise/runtime/executor/executor.hpp>
#include <shardwise/operations/leaf/host.hpp>
#include <shardwise/runtime/program/schedule.hpp>
#include <shardwise/runtime/timeline/program.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise {

namespace cuda {

// The graph whose expressions are kernels of their own; without any, nvcc's device pass need not know it.
template <class Step, bool Has = program_traits<Step>::has_expressions>
struct expression_source {
  static constexpr graph<1, 1> value{};
};
template <class Step>
struct expression_source<Step, true> {
  static constexpr const auto& value = Step::program;
};

// A block on the host.
template <class E>
struct copied_block : std::vector<E> {
  // Its value if it is one.
  E item() const {
    if (this->size() != 1)
      throw std::logic_error("shardwise: item: this rank's block has " + std::to_string(this->size()) +
                             " elements; read them one by one, or make the output a scalar with sum or mean");
    return this->front();
  }
};

}  // namespace cuda

// graph: captured once, replayed. stream: every launch again in each step, for debuggers and sanitizers.
enum class device_execution { graph, stream };

// The executor of a rank on a device: the same members as on the host, but blocks are copied, not seen: `value`,
// `get_parameter`. `run` returns when the step is queued; loss, output, value and gather_parameter wait for it.
template <class Step, class Mesh>
class executor<Step, cuda_rank<Mesh>> : public runtime::lowered<Step> {
  using base = runtime::lowered<Step>;
  using source = typename base::source;
  using Rank = cuda_rank<Mesh>;
  static_assert(checked_device_step<Step>::ok);
  static_assert(checked_rank<Rank>::ok);

 public:
  using mesh_type = typename program_traits<Step>::mesh_type;
  using element = typename base::element;
  using base::calls, base::find, base::layout_of, base::parameter_count, base::parameter_name, base::pointer, base::program;
  static constexpr int world_size = mesh_type::size;

  explicit executor(Rank& rank, executor_checks checks) : executor(rank, device_execution::graph, checks) {}
  // Of the checks there is `finite`: such a run is launched call by call, and every result is copied to the host.
  explicit executor(Rank& rank, device_execution how = device_execution::graph, executor_checks checks = executor_checks::none)
      : rank_(&rank),
        how_(how),
        watches_(has_check(checks, executor_checks::finite)),
        arena_(static_cast<std::size_t>(source::peak_bytes)),
        env_(sizeof(cuda::device_env)),
        fault_(sizeof(cuda::index_fault)),
        tickets_(runtime::stream_count * ticket_bytes),
        seen_fault_(sizeof(cuda::index_fault)) {
    if (has_check(checks, executor_checks::poison))
      throw std::invalid_argument("shardwise: executor: executor_checks::poison is given; a device's executor has the check "
                                  "finite alone: run the program on host ranks for the other one");
    rank.agree(source::traffic.order_hash, "the ordered list of collectives");
    for (int i = 0; i < program().node_count; ++i)
      if (program().nodes[i].op == op_code::custom) custom_at(i);  // throws if it is not compiled
    const auto scratch = cuda_backend::scratch_of(program());
    compute_scratch_ = scratch.compute > 0 ? arena_.data() : nullptr;
    communication_scratch_ = scratch.communication > 0 ? arena_.data() + passes::align_up(scratch.compute) : nullptr;
    for (std::size_t s = 0; s < runtime::stream_count; ++s) {
      context_[s].stream = stream_[s].get();
      context_[s].env = reinterpret_cast<const cuda::device_env*>(env_.data());
      context_[s].fault = reinterpret_cast<cuda::index_fault*>(fault_.data());
      context_[s].lt = lt_.get();
      context_[s].plans = &plans_;
      context_[s].tickets = reinterpret_cast<std::uint32_t*>(tickets_.data() + s * ticket_bytes);
      context_[s].multiprocessors = rank.multiprocessors();
    }
    cuda::check(cudaMemsetAsync(tickets_.data(), 0, runtime::stream_count * ticket_bytes, stream()), "cudaMemsetAsync");
    // A library's first use of a kernel or of a connection may load code and allocate, which a capture forbids: one run on
    // zeros comes before it.
    clear();
    lower(0);
    queue_collectives();
    issue();
    rank.synchronize(stream());
    clear();
    if (how_ == device_execution::graph) capture();
  }
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;
  ~executor() {
    cudaStreamSynchronize(stream_[runtime::communication_stream].get());
    cudaStreamSynchronize(stream());
  }

  // Queues one run of the program. All ranks call it with equal arguments. Throws as on the host if something is not set.
  void run(const step_env& env) {
    base::check_ready(env);
    if (!env_known_ || std::memcmp(&env, &last_env_, sizeof env) != 0) {
      cuda::set_env(env, reinterpret_cast<cuda::device_env*>(env_.data()), stream());
      std::memcpy(&last_env_, &env, sizeof env);
      env_known_ = true;
    }
    queue_collectives();
    if (timeline_ && timeline_->begin(recorded_as_, env.step))
      record_run();
    else if (watches_)
      issue_watched();
    else if (how_ == device_execution::graph)
      cuda::check(cudaGraphLaunch(graph_.get(), stream()), "cudaGraphLaunch");
    else
      issue();
    ran_ = true;
  }

  // As on the host. A recorded run is launched call by call: nothing is seen inside a replayed graph; `run` waits for it.
  void record(timeline* t, const std::string& phase = "") {
    if (t) {
      timeline_program p = runtime::timeline_program_of<Step>(*this, rank_->coordinate().data(), n_dyn_, phase);
      p.most_events = static_cast<std::int64_t>(base::launch_count() + call_count()) + 1;  // each call may wait once
      recorder_.reserve(static_cast<std::size_t>(p.most_events));
      recorded_as_ = t->add(runtime::timeline_rank_of(*rank_), std::move(p));
    }
    timeline_ = t;
    if (&phase != &phase_) phase_ = phase;
  }

  // Waits until all that is queued is done; reports indices that kernels met outside their tables.
  void synchronize() {
    auto* const seen = static_cast<cuda::index_fault*>(seen_fault_.host());
    cuda::check(cudaMemcpyAsync(seen, fault_.data(), sizeof *seen, cudaMemcpyDeviceToHost, stream()), "cudaMemcpyAsync");
    rank_->synchronize(stream());
    if (seen->node < 0) return;
    const cuda::index_fault found = *seen;
    clear_fault();
    if (found.limits == 2)
      throw std::domain_error(host::not_a_probability(std::bit_cast<double>(found.index)) + " (" +
                              runtime::place_of(program(), found.node, rank_->index()) + ")");
    throw std::out_of_range("shardwise: index " + std::to_string(found.index) + " is outside 0.." +
                            std::to_string(found.limit - 1) + "; " + runtime::index_remedy(program().nodes[found.node].op) + " (" +
                            runtime::place_of(program(), found.node, rank_->index()) + ")");
  }

  void resize(std::int64_t n) {
    base::check_dyn(n);
    rank_->agree(static_cast<std::uint64_t>(n), "the run-time size");
    synchronize();
    lower(n);
    if (n != (n_dyn_ != 0 ? n_dyn_ : source::dyn_bound)) base::resize_inputs();
    n_dyn_ = n;
    if (how_ == device_execution::graph) capture();
    if (timeline_) record(timeline_, phase_);
  }

  // Output 0 of the program as this rank holds it: the loss of a train_step.
  element loss() { return output()[0]; }
  std::vector<element> output() {
    check_ran();
    return value(program().outputs[0]);
  }
  const runtime::layout& output_layout() const { return layout_of(program().outputs[0]); }
  // Output `index` as this rank holds it, from its first element to its last in storage; layout_of(outputs[index]) finds
  // the elements.
  template <class E = element>
  std::vector<E> output(int index) {
    base::check_output(index);
    check_ran();
    return value<E>(program().outputs[index]);
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
  // step.
  template <class Range>
  void set_input(int index, const Range& global) {
    using E = std::remove_cvref_t<decltype(*std::data(global))>;
    const int id = find(op_code::input, index);
    base::check_size("set_input", id, std::size(global));
    base::template check_type<E>("set_input", id);
    cuda::staging& s = staging_for(index, static_cast<std::size_t>(base::plan().bytes[id]));
    base::load("set_input", id, std::data(global), static_cast<E*>(s.next()), rank_->coordinate().data());
    s.send(pointer(id), base::bytes_of(id), stream());
    base::given().input(index);
  }

  // --- parameters -----------------------------------------------------------------------------------------------------

  const runtime::layout& parameter_layout(int index) const { return layout_of(find(op_code::param, index)); }
  std::vector<element> get_parameter(int index) { return get_block("get_parameter", op_code::param, index); }
  template <class Range>
  void set_parameter(int index, const Range& global) {
    set_whole("set_parameter", op_code::param, index, global);
  }
  // Writes this rank's block into a whole tensor: shared by the ranks where they are threads, and where they are
  // processes each one's own, which is then whole on all. Collective.
  template <class Range>
  void gather_parameter(int index, Range&& global) {
    gather_whole("gather_parameter", op_code::param, index, global);
  }
  // As on the host.
  template <class Other>
  void copy_parameters(executor<Other, Rank>& from) {
    static_assert(runtime::checked_parameters<Step, Other>::ok);
    from.check_parameters("copy_parameters");
    from.synchronize();
    for (int at = 0; at < base::table_count(); ++at) {
      const int id = base::table_node(at);
      base::given().parameter(at);
      cuda::check(cudaMemcpyAsync(pointer(id), from.pointer(from.table_node(at)), base::bytes_of(id), cudaMemcpyDeviceToDevice,
                                  stream()),
                  "cudaMemcpyAsync");
    }
    cuda::check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  }

  // --- buffers of modules: the same -----------------------------------------------------------------------------------

  const runtime::layout& buffer_layout(int index) const { return layout_of(find(op_code::module_buffer, index)); }
  std::vector<element> get_buffer(int index) { return get_block("get_buffer", op_code::module_buffer, index); }
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
  std::vector<E> value(int id) {
    base::template check_type<E>("value", id);
    std::vector<E> host(layout_of(id).span());
    if (!host.empty())
      cuda::check(cudaMemcpyAsync(host.data(), pointer(id), host.size() * sizeof(E), cudaMemcpyDeviceToHost, stream()),
                  "cudaMemcpyAsync");
    synchronize();
    return host;
  }

  // Initial values of parameters and buffers as the modules declare them, from (seed, path, global element index); states are
  // zeroed. Collective: ranks that give different seeds are told.
  void initialise(std::uint64_t seed) {
    rank_->agree(seed, "the seed");
    for (int at = 0; at < base::table_count(); ++at) {
      const auto& info = source::parameters.item[at];
      const int id = base::table_node(at);
      std::vector<element> block(static_cast<std::size_t>(layout_of(id).numel()));
      runtime::initialise_block(std::span<element>(block), layout_of(id), info.kind, info.scale, seed, base::table_name(at));
      upload(id, block);
      base::given().parameter(at);
    }
    reset_states();
  }
  void reset_states() {
    for (int id = 0; id < program().node_count; ++id)
      if (program().nodes[id].op == op_code::state && base::bytes_of(id) > 0)
        cuda::check(cudaMemsetAsync(pointer(id), 0, base::bytes_of(id), stream()), "cudaMemsetAsync");
  }

  std::size_t call_count() const { return calls().size(); }
  // What one run of the captured graph starts; nothing where the program is launched call by call. Libraries' kernels count,
  // too: a product that cuBLASLt cuts along its depth is two.
  const cuda::graph_nodes& nodes() const { return graph_.nodes(); }
  int kernel_nodes() const { return nodes().kernels; }
  // The stream that steps are queued on.
  cudaStream_t stream() const { return stream_[runtime::compute_stream].get(); }
  const dynamic_array<runtime::scheduled_call>& schedule() const { return schedule_; }

 private:
  template <class Other, class R>
  friend class executor;

  void check_ran() const {
    if (!ran_) [[unlikely]]
      base::refuse_unrun();
  }

  // A parameter or buffer: `op` is the leaf that it is.
  std::vector<element> get_block(const char* call_name, op_code op, int index) {
    const int id = find(op, index);
    base::check_parameter(call_name, base::table_place(op, index));
    return value(id);
  }
  template <class Range>
  void set_whole(const char* call_name, op_code op, int index, const Range& global) {
    const int id = find(op, index);
    base::check_size(call_name, id, std::size(global));
    std::vector<element> block(static_cast<std::size_t>(layout_of(id).numel()));
    base::load(call_name, id, std::data(global), block.data(), rank_->coordinate().data());
    upload(id, block);
    base::given().parameter(base::table_place(op, index));
  }
  template <class Range>
  void gather_whole(const char* call_name, op_code op, int index, Range& global) {
    const int id = find(op, index);
    base::check_size(call_name, id, std::size(global));
    base::check_parameter(call_name, base::table_place(op, index));
    const bool first = base::writes_first(id, rank_->coordinate().data());
    const std::vector<element> block = value(id);
    if (rank_->shares_memory()) {
      if (first) runtime::store_block(block.data(), std::data(global), layout_of(id));
    } else {
      std::vector<element> whole(std::size(global), element(0));
      if (first) runtime::store_block(block.data(), whole.data(), layout_of(id));
      rank_->combine_disjoint(whole);
      std::copy(whole.begin(), whole.end(), std::data(global));
    }
    rank_->barrier();
  }

  static constexpr std::size_t ticket_bytes = cuda::ticket_count * sizeof(std::uint32_t);

  void clear() {
    cuda::check(cudaMemsetAsync(arena_.data(), 0, static_cast<std::size_t>(source::peak_bytes), stream()), "cudaMemsetAsync");
    cuda::set_env(last_env_, reinterpret_cast<cuda::device_env*>(env_.data()), stream());
    clear_fault();
  }
  // All bits set: node -1.
  void clear_fault() { cuda::check(cudaMemsetAsync(fault_.data(), 0xFF, sizeof(cuda::index_fault), stream()), "cudaMemsetAsync"); }

  void upload(int id, const std::vector<element>& block) {
    if (block.empty()) return;
    cuda::check(cudaMemcpyAsync(pointer(id), block.data(), block.size() * sizeof(element), cudaMemcpyHostToDevice, stream()),
                "cudaMemcpyAsync");
    cuda::check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  }

  cuda::staging& staging_for(int index, std::size_t bytes) {
    while (static_cast<int>(staging_.size()) <= index) staging_.emplace_back();
    if (!staging_[static_cast<std::size_t>(index)]) staging_[static_cast<std::size_t>(index)] = std::make_unique<cuda::staging>(bytes);
    return *staging_[static_cast<std::size_t>(index)];
  }

  void lower(std::int64_t n_dyn) {
    base::lower(arena_.data(), rank_->coordinate().data(), n_dyn, [](const node&) { return nullptr; });
    schedule_ = runtime::schedule<Step>(calls());
    work_.assign(calls().begin(), calls().end());
    event_.clear();
    collectives_ = {};
    for (std::size_t i = 0; i < work_.size(); ++i) {
      runtime::call& c = work_[i];
      if (communicates(c.kind)) ++collectives_[static_cast<std::size_t>(c.axis)];
      if (c.kind == transition::all_to_all && c.from.dim == c.to.dim)
        c.l[1] = runtime::fibre_block(program().spec_of(program().nodes[c.node].in[0]), c.axis, rank_->coordinate().data(), n_dyn);
      work_[i].workspace = communicates(c.kind) ? communication_scratch_ : compute_scratch_;
      if (schedule_[i].awaited) event_.emplace(i, cuda::event());
    }
  }

  // Those of one run.
  void queue_collectives() {
    for (int a = 0; a < mesh_type::axes; ++a) rank_->queue_collectives(a, collectives_[static_cast<std::size_t>(a)]);
  }

  void capture() {
    rank_->barrier();
    cuda::check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t captured = nullptr;
    try {
      issue();
    } catch (...) {
      cudaStreamEndCapture(stream(), &captured);
      if (captured) cudaGraphDestroy(captured);
      throw;
    }
    cuda::check(cudaStreamEndCapture(stream(), &captured), "cudaStreamEndCapture");
    graph_ = cuda::graph_instance(captured);
    rank_->barrier();
  }

  void record_run() {
    rank_->synchronize(stream());
    recorder_.begin(*timeline_, stream());
    issue(&recorder_);
    rank_->synchronize(stream());
    recorder_.end();
  }

  // Every launch of the step, on the two streams, ordered by events where the schedule says so.
  void issue(cuda::recorder* seen = nullptr) {
    cudaStream_t const comm = stream_[runtime::communication_stream].get();
    cuda::check(cudaEventRecord(fork_.get(), stream()), "cudaEventRecord");
    cuda::check(cudaStreamWaitEvent(comm, fork_.get(), 0), "cudaStreamWaitEvent");
    for (std::size_t i = 0; i < work_.size();) {
      const std::size_t end = base::launch_end(i);
      const runtime::call& c = work_[i];
      cuda::context& ctx = context_[static_cast<std::size_t>(schedule_[i].stream)];
      try {
        for (std::size_t k = i; k < end; ++k)
          if (const auto awaited = static_cast<std::size_t>(schedule_[k].wait); schedule_[k].wait >= 0) {
            if (seen) seen->open(event_kind::wait, awaited, schedule_[i].stream, ctx.stream);
            cuda::check(cudaStreamWaitEvent(ctx.stream, event_.at(awaited).get(), 0), "cudaStreamWaitEvent");
            if (seen) seen->close(ctx.stream);
          }
        if (seen) seen->open(event_kind::call, i, schedule_[i].stream, ctx.stream, end - i);
        if (watching_) watched(i, end, ctx);
        else launch(c, end - i, ctx);
        if (seen) seen->close(ctx.stream);
        for (std::size_t k = i; k < end; ++k)
          if (schedule_[k].awaited) cuda::check(cudaEventRecord(event_.at(k).get(), ctx.stream), "cudaEventRecord");
      } catch (const device_error& e) {
        throw std::runtime_error(std::string(e.what()) + " (" + runtime::place_of(program(), c.node, rank_->index()) + ")");
      }
      i = end;
    }
    cuda::check(cudaEventRecord(join_.get(), comm), "cudaEventRecord");
    if (seen) seen->open_last_wait(stream());
    cuda::check(cudaStreamWaitEvent(stream(), join_.get(), 0), "cudaStreamWaitEvent");
    if (seen) seen->close_last_wait(stream());
  }

  void issue_watched() {
    rank_->synchronize(stream());
    watching_ = true;
    try {
      issue();
    } catch (...) {
      watching_ = false;
      throw;
    }
    watching_ = false;
  }
  // Calls i to end, which go out together, and what there is to see before and after them.
  void watched(std::size_t i, std::size_t end, cuda::context& ctx) {
    using watch = runtime::finite_watch<Step>;
    const auto fetch = [&](int id) -> const void* {
      const std::size_t bytes = layout_of(id).span() * size_of(program().spec_of(id).type);
      fetched_.resize(bytes);
      if (bytes > 0) {
        cuda::check(cudaMemcpyAsync(fetched_.data(), pointer(id), bytes, cudaMemcpyDeviceToHost, ctx.stream), "cudaMemcpyAsync");
        rank_->synchronize(ctx.stream);
      }
      return fetched_.data();
    };
    std::size_t at = i;
    try {
      bool allowed = false;
      for (; at < end; ++at) allowed = watch::before(*this, work_[at], fetch) || allowed;
      launch(work_[i], end - i, ctx);
      rank_->synchronize(ctx.stream);
      for (at = i; at < end; ++at) watch::after(*this, work_[at], allowed, fetch);
    } catch (const rank_failed&) {
      throw;
    } catch (const device_error&) {
      throw;
    } catch (const std::exception& e) {
      throw std::runtime_error(std::string(e.what()) + " (" + runtime::place_of(program(), work_[at < end ? at : i].node, rank_->index()) + ")");
    }
  }

  static cuda::launcher custom_at(int node_id) {
    const node& n = program().nodes[node_id];
    return cuda::custom_launcher(*custom_of(program(), n), program().spec_of(node_id).type);
  }
  void launch(const runtime::call& c, std::size_t count, cuda::context& ctx) {
    const op_code op = program().nodes[c.node].op;
    const int typed_by = makes_indices(op) ? program().nodes[c.node].in[0] : c.node;
    const bool integers = program().spec_of(typed_by).type == dtype::i32;
    if (communicates(c.kind)) {
      ncclComm_t const group = rank_->communicator(c.axis);
      rank_->count_written(c.axis, integers ? cuda::communicate<std::int32_t>(c, ctx, group) : cuda::communicate<element>(c, ctx, group));
    } else if (op == op_code::adam) {
      cuda::kernel<op_code::adam>::template run_all<element>(&c, count, ctx);
    } else if (op == op_code::sgd) {
      cuda::kernel<op_code::sgd>::template run_all<element>(&c, count, ctx);
    } else if (op == op_code::sumsq && count > 1) {
      cuda::kernel<op_code::sumsq>::template run_all<element>(&c, count, ctx);  // what they add is theirs
    } else if (op == op_code::custom) {
      custom_at(c.node)(c, ctx);
    } else if (const int then = program().nodes[c.node].expression; then >= 0) {
      cuda::followed_launchers<cuda::expression_source<Step>, element>::of(op, then)(c, ctx);
    } else {
      const cuda::launcher f = integers ? cuda::launcher_of<std::int32_t>(op) : cuda::launcher_of<element>(op);
      if (!f)
        throw std::logic_error(std::string("shardwise: ") + name_of(op) +
                               (op == op_code::opaque ? ": a function of the user's runs on the host only" : ": there is no device kernel") +
                               " (" + runtime::place_of(program(), c.node, rank_->index()) + ")");
      f(c, ctx);
    }
  }

  Rank* rank_;
  device_execution how_;
  bool watches_ = false;   // executor_checks::finite
  bool watching_ = false;  // in the run under way
  std::vector<std::byte> fetched_;
  cuda::device_memory arena_;
  cuda::device_memory env_;
  cuda::device_memory fault_;
  cuda::device_memory tickets_;
  cuda::pinned_memory seen_fault_;
  std::array<cuda::stream, runtime::stream_count> stream_{cuda::stream(0), cuda::stream(-5)};
  cuda::event fork_, join_;
  cuda::lt_handle lt_;
  cuda::matmul_plans plans_;
  std::array<cuda::context, runtime::stream_count> context_{};
  std::byte* compute_scratch_ = nullptr;
  std::byte* communication_scratch_ = nullptr;
  dynamic_array<runtime::scheduled_call> schedule_;
  std::vector<runtime::call> work_;
  std::array<std::int64_t, max_axes> collectives_{};  // of one run, by axis
  std::map<std::size_t, cuda::event> event_;
  std::vector<std::unique_ptr<cuda::staging>> staging_;
  cuda::graph_instance graph_;
  step_env last_env_{};
  bool env_known_ = false;
  bool ran_ = false;
  std::int64_t n_dyn_ = 0;
  timeline* timeline_ = nullptr;
  int recorded_as_ = 0;
  std::string phase_;
  cuda::recorder recorder_;
};

}  // namespace shardwise
