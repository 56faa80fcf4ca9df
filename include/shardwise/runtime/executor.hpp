// SPDX-License-Identifier: Apache-2.0
// executor: lowers a program for one rank and runs it: a loop over calls, one kernel for each distinct signature.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <shardwise/graph/render.hpp>
#include <shardwise/pass/memory.hpp>
#include <shardwise/pass/program_traits.hpp>
#include <shardwise/runtime/lowering.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise {

namespace runtime {

struct instruction {
  int kernel;
  call c;
};

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

enum class executor_checks { none, poison };

namespace runtime {

// What an executor reads of a program. The threads executor launches no kernel, so in nvcc's device pass it reads an
// empty one and the program's constants are not evaluated there.
#if SHARDWISE_DEVICE_PASS
template <class Step>
struct host_program {
  static constexpr graph<1, 1> program{};
  struct parameter {
    int node = 0, scope = 0;
    const char* name = "";
    init_kind kind{};
    double scale = 0;
  };
  static constexpr struct {
    parameter item[1]{};
  } parameters{};
  static constexpr int parameter_total = 0;
  static constexpr std::int64_t peak_bytes = 0, dyn_bound = 0;
  struct memory {
    static constexpr passes::memory_plan<1> value{};
  };
  static constexpr struct {
    std::uint64_t order_hash = 0;
  } traffic{};
};
#else
template <class Step>
using host_program = Step;
#endif

}  // namespace runtime

// Step is a train_step or forward_step; Rank a rank of its mesh, by default a thread of this process. All memory is taken in the constructor.
template <class Step, class Rank = thread_rank<typename program_traits<Step>::mesh_type>>
class executor {
  using source = runtime::host_program<Step>;

 public:
  using mesh_type = typename program_traits<Step>::mesh_type;
  using element = typename program_traits<Step>::element;
  static constexpr int world_size = mesh_type::size;

  explicit executor(Rank& rank, executor_checks checks = executor_checks::none)
      : rank_(&rank), arena_(source::peak_bytes), checks_(checks) {
    start();
  }
  executor(Rank& rank, std::span<std::byte> arena, executor_checks checks = executor_checks::none)
      : rank_(&rank), arena_(arena, source::peak_bytes), checks_(checks) {
    start();
  }

  // One run of the program. All ranks call it with equal arguments.
  void run(const step_env& env) {
    std::size_t at = 0;
    try {
      if (checks_ == executor_checks::none) {
        for (; at < calls_.size(); ++at) table[calls_[at].kernel](calls_[at].c, env, *rank_);
      } else {
        for (; at < calls_.size(); ++at) {
          table[calls_[at].kernel](calls_[at].c, env, *rank_);
          for (std::size_t k = dies_begin_[at]; k < dies_begin_[at + 1]; ++k)
            std::memset(arena_.data() + dies_[k].first, 0xFF, static_cast<std::size_t>(dies_[k].second));
        }
      }
    } catch (const rank_failed&) {
      throw;
    } catch (const std::exception& e) {
      const node& n = program().nodes[calls_[at].c.node];
      const std::string path = module_path(program(), n.scope);
      throw std::runtime_error(std::string(e.what()) + " (in " + name_of(n.op) + ", module " + (path.empty() ? "<task>" : path) +
                               ", rank " + std::to_string(rank_->index()) + ")");
    }
  }

  // The run-time size of the program's dyn dim, from 1 to its bound (the size after construction). Nothing is compiled or
  // allocated anew: the calls' extents, strides and views are settled again in the arena planned for the bound.
  void resize(std::int64_t n) {
    if (n < 1 || n > bound)
      throw std::invalid_argument("shardwise: resize: " + std::to_string(n) + " is given; " +
                                  (bound == 0 ? std::string("the program has no dyn dim")
                                              : "the size must be from 1 to the declared bound " + std::to_string(bound)));
    rank_->agree(static_cast<std::uint64_t>(n), "the run-time size");
    lower(n);
  }

  // Output 0 of the program as this rank holds it: the loss of a train_step.
  element loss() const { return output()[0]; }
  std::span<const element> output() const {
    const int id = program().outputs[0];
    return {static_cast<const element*>(pointer(id)), static_cast<std::size_t>(layouts_[static_cast<unsigned>(id)].numel())};
  }
  const runtime::layout& output_layout() const { return layouts_[static_cast<unsigned>(program().outputs[0])]; }

  // --- inputs ---------------------------------------------------------------------------------------------------------

  // Copies this rank's block of a whole (global, row-major) input tensor.
  template <class Range>
  void set_input(int index, const Range& global) {
    using E = std::remove_cvref_t<decltype(*std::data(global))>;
    const int id = find(op_code::input, index);
    check_size("set_input", id, std::size(global));
    check_type<E>("set_input", id);
    runtime::load_block(std::data(global), static_cast<E*>(pointer(id)), layouts_[static_cast<unsigned>(id)]);
  }
  // This rank's block itself, to be filled in place.
  template <class E>
  std::span<E> input(int index) {
    const int id = find(op_code::input, index);
    check_type<E>("input", id);
    return {static_cast<E*>(pointer(id)), static_cast<std::size_t>(layouts_[static_cast<unsigned>(id)].numel())};
  }

  // --- parameters -----------------------------------------------------------------------------------------------------

  static constexpr int parameter_count() { return source::parameter_total; }
  static std::string parameter_name(int index) {
    const auto& p = source::parameters.item[index];
    const std::string path = module_path(program(), p.scope);
    return path.empty() ? p.name : path + "." + p.name;
  }
  static int parameter_index(const std::string& name) {
    for (int i = 0; i < parameter_count(); ++i)
      if (parameter_name(i) == name) return i;
    throw std::out_of_range("shardwise: the model has no parameter named '" + name + "'");
  }
  const spec& parameter_spec(int index) const { return program().spec_of(find(op_code::param, index)); }
  const runtime::layout& parameter_layout(int index) const {
    return layouts_[static_cast<unsigned>(find(op_code::param, index))];
  }
  std::span<element> parameter(int index) {
    const int id = find(op_code::param, index);
    return {static_cast<element*>(pointer(id)), static_cast<std::size_t>(layouts_[static_cast<unsigned>(id)].numel())};
  }
  template <class Range>
  void set_parameter(int index, const Range& global) {
    const int id = find(op_code::param, index);
    check_size("set_parameter", id, std::size(global));
    runtime::load_block(std::data(global), static_cast<element*>(pointer(id)), layouts_[static_cast<unsigned>(id)]);
  }
  // Writes this rank's block into a whole tensor shared by all ranks. Collective: returns when all blocks are there.
  template <class Range>
  void gather_parameter(int index, Range&& global) {
    const int id = find(op_code::param, index);
    check_size("gather_parameter", id, std::size(global));
    bool first = true;  // of equal copies the one at coordinate 0 writes
    const spec& s = program().spec_of(id);
    for (int a = 0; a < s.axes; ++a) first = first && (s.place[a].is_shard() || rank_->coordinate(a) == 0);
    if (first) runtime::store_block(static_cast<const element*>(pointer(id)), std::data(global), layouts_[static_cast<unsigned>(id)]);
    rank_->barrier();
  }

  // The value that node `id` of the program last had, if its storage has not been reused since (for tests).
  const void* pointer(int id) const { return arena_.data() + source::memory::value.offset[id] + view_bytes_[static_cast<unsigned>(id)]; }
  void* pointer(int id) { return arena_.data() + source::memory::value.offset[id] + view_bytes_[static_cast<unsigned>(id)]; }
  const runtime::layout& layout_of(int id) const { return layouts_[static_cast<unsigned>(id)]; }

  // Initial values as the modules declare them, from (seed, parameter path, global element index); states are zeroed.
  void initialise(std::uint64_t seed) {
    for (int i = 0; i < parameter_count(); ++i) {
      const auto& info = source::parameters.item[i];
      runtime::initialise_block(parameter(i), parameter_layout(i), info.kind, info.scale, seed, parameter_name(i));
    }
    reset_states();
  }
  void reset_states() {
    for (int id = 0; id < program().node_count; ++id)
      if (program().nodes[id].op == op_code::state)
        std::memset(pointer(id), 0, static_cast<std::size_t>(layouts_[static_cast<unsigned>(id)].numel()) * sizeof(element));
  }

  static constexpr const auto& program() { return source::program; }
  // Kernels instantiated for this program: one for each operation and element type in it.
  static constexpr int kernel_count() { return kernels::signatures.count; }
  std::size_t call_count() const { return calls_.size(); }
  std::span<std::byte> arena_bytes() { return {arena_.data(), static_cast<std::size_t>(arena_.size())}; }

 private:
  struct graph_tag {
    static constexpr const auto& value = source::program;
  };
  using kernels = runtime::kernels_of<graph_tag>;

  template <std::size_t... K>
  static constexpr auto make_table(std::index_sequence<K...>) {
    return std::array<runtime::kernel_function<Rank>, sizeof...(K) + 1>{
        runtime::kernel_entry<runtime::signature{kernels::signatures.item[K].op, kernels::signatures.item[K].type}, Rank>()..., nullptr};
  }
  static constexpr auto table = make_table(std::make_index_sequence<static_cast<std::size_t>(kernels::signatures.count)>{});

  static int find(op_code op, int index) {
    for (int i = 0; i < program().node_count; ++i)
      if (program().nodes[i].op == op && program().nodes[i].a.v[0] == index) return i;
    throw std::out_of_range(std::string("shardwise: the program has no ") + name_of(op) + " number " + std::to_string(index));
  }
  void check_size(const char* call_name, int id, std::size_t given) const {
    std::int64_t want = 1;
    const runtime::layout& l = layouts_[static_cast<unsigned>(id)];
    for (int d = 0; d < l.rank; ++d) want *= l.global[d];
    if (static_cast<std::int64_t>(given) != want)
      throw std::invalid_argument(std::string("shardwise: ") + call_name + ": " + std::to_string(given) +
                                  " elements are given; the whole tensor has " + std::to_string(want));
  }
  template <class E>
  static void check_type(const char* call_name, int id) {
    if (program().spec_of(id).type != dtype_v<E>)
      throw std::invalid_argument(std::string("shardwise: ") + call_name + ": the element type differs from the tensor's; pass " +
                                  (program().spec_of(id).type == dtype::i32 ? "std::int32_t" : "the program's floating-point type"));
  }

  static constexpr std::int64_t bound = source::dyn_bound;

  void start() {
    rank_->agree(source::traffic.order_hash, "the ordered list of collectives");
    lower(0);
  }

  // Specs become local extents, strides and pointers: everything that depends on the rank is settled here, once.
  void lower(std::int64_t n_dyn) {
    const auto& g = program();
    const auto& plan = source::memory::value;
    const auto coordinate = rank_->coordinate();
    const int* const c = coordinate.data();
    const std::size_t nodes = static_cast<std::size_t>(g.node_count);
    layouts_.resize(nodes);
    view_bytes_.assign(nodes, 0);
    calls_.clear();
    dies_.clear();
    dies_begin_.assign(1, 0);
    dead_.assign(nodes, false);
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      const spec& out = g.specs[n.spec];
      const std::size_t at = static_cast<std::size_t>(i);
      const bool view = n.inputs > 0 && is_view(n, g.specs[g.nodes[n.in[0]].spec], out);
      if (view) {
        const std::size_t from = static_cast<std::size_t>(n.in[0]);
        std::int64_t skipped = 0;
        layouts_[at] = runtime::view_layout(n.op, n.a, layouts_[from], out, c, n_dyn, skipped);
        view_bytes_[at] = view_bytes_[from] + skipped * static_cast<std::int64_t>(size_of(out.type));
        continue;
      }
      layouts_[at] = runtime::local_layout(out, c, n_dyn);
      const int kernel = kernels::list.of[i];
      if (kernel < 0) continue;  // a leaf
      runtime::instruction ins;
      ins.kernel = kernel;
      runtime::call& k = ins.c;
      k.a = n.a;
      k.f = n.f;
      k.node = i;
      k.inputs = n.inputs;
      for (int j = 0; j < n.inputs; ++j) {
        k.l[j] = layouts_[static_cast<std::size_t>(n.in[j])];
        k.p[j] = pointer(n.in[j]);
      }
      k.l[runtime::result] = layouts_[at];
      k.p[runtime::result] = pointer(i);
      k.workspace = plan.workspace > 0 ? arena_.data() : nullptr;
      if (n.op == op_code::redistribute)
        runtime::lower_redistribute(k, static_cast<int>(n.a.v[0]), g.specs[g.nodes[n.in[0]].spec], out, c);
      calls_.push_back(ins);
      if (checks_ == executor_checks::poison) note_deaths(i);
      dies_begin_.push_back(dies_.size());
    }
  }

  void note_deaths(int i) {
    const auto& plan = source::memory::value;
    for (int o = 0; o <= i; ++o)
      if (plan.owner[o] == o && plan.last_use[o] <= i && plan.bytes[o] > 0 && !dead_[static_cast<std::size_t>(o)]) {
        dead_[static_cast<std::size_t>(o)] = true;
        // on this rank the buffer may be shorter than planned; the rest of it is nobody's
        dies_.emplace_back(plan.offset[o], plan.bytes[o]);
      }
  }

  Rank* rank_;
  runtime::arena arena_;
  executor_checks checks_;
  std::vector<runtime::layout> layouts_;
  std::vector<std::int64_t> view_bytes_;
  std::vector<runtime::instruction> calls_;
  std::vector<std::pair<std::int64_t, std::int64_t>> dies_;
  std::vector<std::size_t> dies_begin_;
  std::vector<bool> dead_;
};

}  // namespace shardwise
