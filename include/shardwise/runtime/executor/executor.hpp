// SPDX-License-Identifier: Apache-2.0
// executor: runs a lowered program on the host: a loop over calls, one kernel for each distinct signature.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <shardwise/graph/tensor.hpp>
#include <shardwise/runtime/executor/arena.hpp>
#include <shardwise/runtime/executor/call_loop.hpp>
#include <shardwise/runtime/executor/executor_base.hpp>
#include <shardwise/runtime/executor/held_blocks.hpp>
#include <shardwise/runtime/host/initialise.hpp>
#include <shardwise/runtime/host/provided_kernels.hpp>
#include <shardwise/runtime/threads/collectives.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1 {

// Step is a train_step or forward_step; Rank a rank of its mesh, by default a thread of this process. All memory is taken
// in the constructor, and the optimizer's states in it are zeros. Collectives that the program waits for run beside its kernels, on the rank's stream if it has one.
template <class Step, class Rank = thread_rank<typename program_traits<Step>::mesh_type>>
class executor : public runtime::executor_base<Step, Rank, executor<Step, Rank>>,
                 public runtime::held_blocks<executor<Step, Rank>, typename program_traits<Step>::element> {
  using base = runtime::executor_base<Step, Rank, executor>;
  using source = typename base::source;
  static_assert(checked_host_rank<Rank>::ok);

 public:
  using mesh_type = typename base::mesh_type;
  using element = typename base::element;
  using numbers = typename base::numbers;
  using base::calls, base::find, base::image, base::layout_of, base::parameter_count, base::pointer, base::program;

  explicit executor(Rank& rank, executor_checks checks = executor_checks::none)
      : base(&rank), arena_(source::peak_bytes), loop_(*this, loop_of(), checks) {
    if constexpr (base::template takes_parameters_of<void>()) start();
  }
  executor(Rank& rank, std::span<std::byte> arena, executor_checks checks = executor_checks::none)
      : base(&rank), arena_(arena, source::peak_bytes), loop_(*this, loop_of(), checks) {
    if constexpr (base::template takes_parameters_of<void>()) start();
  }
  // Of a program with_parameters_of<Program, Of>: the parameters and buffers are those of `from`, which outlives this one.
  template <class Of>
  executor(Rank& rank, executor<Of, Rank>& from, executor_checks checks = executor_checks::none)
      : base(&rank), arena_(source::peak_bytes), loop_(*this, loop_of(), checks) {
    if constexpr (base::template takes_parameters_of<Of>()) {
      base::borrow_parameters(from);
      start();
    }
  }
  // Without a rank, and with a rank of another mesh or another kind: sentences.
  template <class None = void>
  executor() : base(nullptr), arena_(0), loop_(*this, loop_of(), executor_checks::none) {
    static_assert(raise<problem::executor_rank, None, mesh_type>::ok);
  }
  template <class Other, class... More>
    requires(!std::is_same_v<Other, Rank> && !std::is_same_v<std::remove_cv_t<Other>, executor>)
  explicit executor(Other&, const More&...) : base(nullptr), arena_(0), loop_(*this, loop_of(), executor_checks::none) {
    static_assert(raise<problem::executor_rank, Other, mesh_type>::ok);
  }

  // One run of the program. All ranks call it with equal arguments; a checked run tells ranks whose seeds differ. Throws if
  // an input or a parameter has no value yet, or a number of `env` that the optimizer reads is not set: see check_env.
  void run(const step_env& env) { run_numbers(env); }
  // With numbers for groups of parameters: see env_of.
  template <class Names>
  void run(const grouped_env<Names>& env) {
    run_numbers(env);
  }

  template <class... Given>
    requires(sizeof...(Given) != 1 || !(std::is_convertible_v<const Given&, const step_env&> && ...))
  void run(const Given&...) {
    static_assert(raise<problem::run_without_env, executor, Given...>::ok);
  }

  // Who is told of the calls of the runs that follow; null: nobody. Price: a virtual call for each call of the program.
  void observe(runtime::call_observer* observer) { loop_.observe(observer); }

  // Output 0 of the program as this rank holds it: the loss of a train_step.
  element loss() const { return output()[0]; }
  std::span<const element> output() const {
    check_ran();
    return block<const element>(image().outputs[0]);
  }
  // Output `index`: its elements from the first to the last one, and the layout that finds them.
  template <class E = element>
  local_block<E> output(int index) const {
    base::check_output(index);
    check_ran();
    const int id = image().outputs[index];
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
  // the reduction over the mesh is what was given, as distribute does. Ids of int32 may be given as int64.
  template <class Range>
  void set_input(int index, const Range& global) {
    using E = std::remove_cvref_t<decltype(*std::data(global))>;
    const int id = find(op_code::input, index);
    base::check_size("set_input", id, std::size(global));
    base::template load_input<E>(id, std::data(global), rank_->coordinate().data(), [&]() -> void* {
      loop_.forget_arrival(id);
      return pointer(id);
    });
    base::given().input(index);
  }
  void set_input(int index, const std::vector<bool>& global) { set_input(index, base::each_bit(global)); }
  // A pending tensor of the input's extents and placements: the next run goes on without it until the program waits for
  // the input or reads it; a program that never waits for it runs when it has arrived.
  template <class Pending>
    requires(detail::is_pending<Pending>)
  void set_input(int index, Pending&& p) {
    using T = typename Pending::pending_type;
    const int id = find(op_code::input, index);
    base::template check_type<typename T::element>("set_input", id);
    if (!(image().spec_of(id) == T::sp))
      throw std::invalid_argument("shardwise: set_input: input " + std::to_string(index) +
                                  " has other extents or placements than the pending tensor; declare it with "
                                  "arriving<input_like<...>> of the tensor's type");
    loop_.arrive(id, T::sp.type, std::move(p).release());
    base::given().input(index);
    loop_.land_unawaited(id);
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

  // This rank's value of node `id` of the program, if its storage has not been reused since: its elements from the first to the last
  // one in storage, where layout_of(id) finds them.
  template <class E = element>
  std::vector<E> value(int id) const {
    base::template check_type<E>("value", id);
    const E* const first = static_cast<const E*>(pointer(id));
    return {first, first + layout_of(id).span()};
  }

  // Kernels instantiated for this program: one for each operation and element type in it.
  static constexpr int kernel_count() { return kernels::signatures.count; }
  std::span<std::byte> arena_bytes() { return {arena_.data(), static_cast<std::size_t>(arena_.size())}; }

 private:
  template <class Other, class R>
  friend class executor;
  template <class Iterated, class R>
  friend class iterated_executor;
  friend base;
  friend struct runtime::block_access;
  friend class runtime::gradient_sums<Step, executor>;
  friend class runtime::held_blocks<executor, element>;
  template <class OtherStep, class R, class Self>
  friend class runtime::executor_base;

  // One of several programs over one arena: what is set for one of them is set for all.
  executor(Rank& rank, std::span<std::byte> arena, runtime::given_values& given, executor_checks checks)
      : base(&rank), arena_(arena, source::peak_bytes), loop_(*this, loop_of(), checks) {
    base::share_given(given);
    start();
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
  // --- what executor_base asks for

  void quiesce() { loop_.land(); }
  void relowered() {}
  template <class F>
  void fill_block(int id, const F& f) {
    f(static_cast<element*>(pointer(id)));
  }
  void draw_block(int id, init_kind kind, double scale, std::uint64_t seed, std::string_view path) {
    const runtime::layout& l = layout_of(id);
    host::initialise_block(std::span<element>(static_cast<element*>(pointer(id)), static_cast<std::size_t>(l.numel())), l,
                           kind, scale, seed, path);
  }
  const element* shown(int id) const { return static_cast<const element*>(pointer(id)); }
  void hidden() {}
  element* landing(int id) { return static_cast<element*>(pointer(id)); }
  void landed() {}
  template <class Other>
  void copy_local(int to, const Other& from, int id) {
    std::memcpy(pointer(to), from.pointer(id), base::bytes_of(to));
  }
  void zero_block(int id, std::size_t from = 0) {
    std::memset(static_cast<std::byte*>(pointer(id)) + from, 0, base::bytes_of(id) - from);
  }
  template <class Range>
  void gather_block(int id, bool first, Range& whole) {
    const auto store = [&](element* to) {
      if (first) runtime::store_block(static_cast<const element*>(pointer(id)), to, layout_of(id));
    };
    if constexpr (requires(std::vector<element>& v) { rank_->combine_disjoint(v); })
      if (!rank_->shares_memory()) {  // each process has a whole tensor of its own
        std::vector<element> all(std::size(whole), element(0));
        store(all.data());
        rank_->combine_disjoint(all);
        std::memcpy(std::data(whole), all.data(), all.size() * sizeof(element));
        return;
      }
    store(std::data(whole));
  }
  std::int64_t most_events() const { return loop_.most_events(); }

  static constexpr bool overlapped = runtime::has_stream<Rank> && has_waits(source::program);

  void run_numbers(const numbers& env) {
    base::check_ready(env);
    if constexpr (base::keeps) {
      base::check_sums("run");
      base::add_batch(env);
      base::update_parameters(env);
    } else {
      run_calls(env, 0, calls().size());
    }
  }
  void run_part(const numbers& env, bool update) {
    run_calls(env, update ? base::update_call() : 0, update ? calls().size() : base::update_call());
  }
  void run_calls(const numbers& env, std::size_t at, std::size_t end) {
    constexpr bool groups = sizeof env.of > sizeof(step_env);
    loop_.run(*rank_, {env.of, groups}, at, end, timeline_, recorded_as_);
    ran_ = true;
  }
  static std::string place(int node, int rank) { return runtime::place_of(image(), node, rank); }

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
    lower({});
    base::reset_states();
    base::clear_padding();
  }

  void lower(const run_sizes& n_dyn) { loop_.lower(*rank_, arena_.data(), n_dyn); }
  static constexpr runtime::loop_program<Rank> loop_of() {
    return {.kernel_of = table::of,
            .cut_of = table::cut_of,
            .place = place,
            .overlapped = overlapped,
            .stream_workspace = overlapped ? host_backend::stream_workspace(source::program) : std::int64_t{0}};
  }

  using base::rank_, base::ran_, base::timeline_, base::recorded_as_, base::check_ran;
  runtime::arena arena_;
  runtime::call_loop<Rank> loop_;
};

}  // namespace shardwise::inline v0_1
