// SPDX-License-Identifier: Apache-2.0
// lowered_program: a program for one rank over an arena: layouts and calls; what the executors of all backends share. It is one type
// for all programs, so that a source with many of them compiles it once.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/runtime/program/blocks.hpp>
#include <shardwise/runtime/program/program_tables.hpp>
#include <shardwise/runtime/program/random_stream.hpp>
#include <shardwise/runtime/program/ready.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1::runtime {

// Where a node of a program stands, for errors: "in add_1, module layers.3.attn, rank 2".
inline std::string place_of(const graph_view& program, int node_id, int rank) {
  const node& n = program.nodes[node_id];
  const std::string path = module_path(program, n.scope);
  return "in " + node_names(program)[static_cast<std::size_t>(node_id)] + ", module " + (path.empty() ? "<task>" : path) +
         ", rank " + std::to_string(rank);
}

// Specs become local extents, strides and pointers: everything that depends on the rank is settled here, once.
class lowered_program {
 public:
  // Before anything has been set. An input that nothing reads needs no value.
  static given_values nothing_given(const program_tables& of) {
    const graph_view& g = of.graph;
    dynamic_array<char> read(static_cast<std::size_t>(g.node_count), 0);
    for (int i = 0; i < g.node_count; ++i)
      for (int k = 0; k < g.nodes[i].inputs; ++k) read[static_cast<std::size_t>(g.nodes[i].in[k])] = 1;
    for (int k = 0; k < g.output_count; ++k) read[static_cast<std::size_t>(g.outputs[k])] = 1;
    const int inputs = of.input_count();
    dynamic_array<char> needed(static_cast<std::size_t>(inputs), 0);
    for (int i = 0; i < g.node_count; ++i)
      if (g.nodes[i].op == op_code::input && read[static_cast<std::size_t>(i)] != 0)
        needed[static_cast<std::size_t>(attributes_of<leaf_attributes>(g.nodes[i].a).index)] = 1;
    given_values r(inputs, of.table_count());
    for (int i = 0; i < inputs; ++i)
      if (needed[static_cast<std::size_t>(i)] == 0) r.input(i);
    return r;
  }

  // Takes parameters and buffers from another executor, before `lower`: with_parameters_of.
  void borrow_leaves(const lowered_program& from) {
    const graph_view& g = tables_.graph;
    borrowed_.assign(static_cast<std::size_t>(g.node_count), nullptr);
    for (int i = 0; i < g.node_count; ++i) {
      if (g.nodes[i].op != op_code::param && g.nodes[i].op != op_code::module_buffer) continue;
      const graph_view& h = from.tables_.graph;
      int there = 0;
      while (h.nodes[there].op != g.nodes[i].op ||
             attributes_of<leaf_attributes>(h.nodes[there].a).index != attributes_of<leaf_attributes>(g.nodes[i].a).index)
        ++there;
      borrowed_[static_cast<std::size_t>(i)] = static_cast<std::byte*>(from.pointer(there));
    }
    for (int at = 0; at < tables_.table_count(); ++at) given().parameter(at);
  }

  // `workspace`: the scratch that kernels are given. Extents of dyn dims become what a run's sizes make of them.
  void lower(std::byte* arena, const int* coordinate, const run_sizes& n_dyn, void* workspace) {
    const graph_view& g = tables_.graph;
    const std::size_t nodes = static_cast<std::size_t>(g.node_count);
    arena_ = arena;
    layouts_.resize(nodes + static_cast<std::size_t>(tables_.flat.slots()));
    view_bytes_.assign(nodes, 0);
    calls_.clear();
    results_.clear();
    find_exchanges();
    dynamic_array<std::int64_t> site_offset;
    draws_ = site_offsets(g, n_dyn, 0, site_offset);
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      const spec& out = g.specs[n.spec];
      const std::size_t at = static_cast<std::size_t>(i);
      if (n.inputs > 0 && is_view(n, g.specs[g.nodes[n.in[0]].spec], out)) {
        const std::size_t from = static_cast<std::size_t>(n.in[0]);
        std::int64_t skipped = 0;
        layouts_[at] = view_layout(n.op, n.a, layouts_[from], out, coordinate, n_dyn, skipped);
        view_bytes_[at] = view_bytes_[from] + skipped * static_cast<std::int64_t>(size_of(out.type));
        continue;
      }
      layouts_[at] = local_layout(out, coordinate, n_dyn);
      if (!runs_kernel(n.op)) continue;
      call k;
      k.a = n.a;
      k.f = n.f;
      k.node = i;
      k.all_inputs = n.inputs;
      k.inputs = n.expression < 0 ? n.inputs : n.inputs - g.expressions[n.expression].operands();
      for (int j = 0; j < n.inputs; ++j) {
        k.l[j] = layouts_[static_cast<std::size_t>(n.in[j])];
        k.p[j] = place_of(n.in[j]);
        k.type[j] = g.spec_of(n.in[j]).type;
      }
      k.type[result] = out.type;
      k.written = written_operands(g, n);
      k.l[result] = layouts_[at];
      if (has_results(g, i)) k.results = lower_results(i, coordinate, n_dyn);
      else k.p[result] = place_of(i);
      k.workspace = workspace;
      if (rules::is_random(n.op))
        k.draw = site_offset[static_cast<std::size_t>(attributes_of<random_attributes>(n.a).site)] +
                 shard_offset(out, coordinate, n_dyn);
      if (n.op == op_code::opaque) k.function = opaque_function_of(g, n);
      if (n.op == op_code::redistribute)
        lower_redistribute(k, static_cast<int>(attributes_of<redistribute_attributes>(n.a).axis),
                           g.specs[g.nodes[n.in[0]].spec], out, coordinate, n_dyn);
      calls_.push_back(k);
    }
    for (int id = g.node_count; id < g.node_count + tables_.flat.slots(); ++id) {
      const int p = tables_.flat.parameter_of(g, id);
      if (const int node = tables_.flat.is_flat(p) ? tables_.node_of(id) : -1; node >= 0)
        layouts_[static_cast<std::size_t>(id)] =
            flat_parts::layout_of(tables_.flat.part(p), layouts_[static_cast<std::size_t>(node)]);
    }
    link_batches(calls_);
    update_call_ = 0;
    for (const call& k : calls_) update_call_ += k.node >= tables_.update_begin ? 0 : 1;
  }

  // The first call that is the update's in a program that keeps gradients (keep_gradients); of one that keeps none, behind all calls.
  std::size_t update_call() const { return update_call_; }

  const dynamic_array<call>& calls() const { return calls_; }
  void set_workspace(std::size_t call_index, void* scratch) { calls_[call_index].workspace = scratch; }
  // One past the last call that goes out together with call i, the first of a batch or in none.
  std::size_t launch_end(std::size_t i) const {
    if (calls_[i].members > 1) return i + static_cast<std::size_t>(calls_[i].members);
    std::size_t end = i + 1;
    while (end < calls_.size() && end != update_call() &&
           passes::starts_together(tables_.graph, calls_[end - 1].node, calls_[end].node))
      ++end;
    return end;
  }
  std::size_t launch_count() const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < calls_.size(); i = launch_end(i)) ++n;
    return n;
  }
  const program_tables& tables() const { return tables_; }
  const layout& layout_of(int id) const { return layouts_[static_cast<std::size_t>(id)]; }
  // The storage of node `id`'s value, while nothing else has taken it.
  void* pointer(int id) const {
    if (tables_.is_part(id)) {
      const int node = tables_.node_of(id);
      return static_cast<std::byte*>(place_of(node)) +
             flat_parts::place(tables_.flat.part(tables_.flat.parameter_of(tables_.graph, id)), layout_of(node)) *
                 static_cast<std::int64_t>(size_of(tables_.graph.spec_of(node).type));
    }
    for (const exchange& e : exchanges_)  // what was computed in an input's next storage is where the input is
      if (tables_.plan.owner[id] == e.spare && id != e.spare)
        return static_cast<std::byte*>(place_of(e.input)) + tables_.plan.offset[id] - tables_.plan.offset[e.spare] +
               view_bytes_[static_cast<std::size_t>(id)];
    return place_of(id);
  }
  // Behind a run: inputs that got other storage (set_) have it, and theirs is what the next run computes in. Nothing is copied; calls
  // are pointed anew. Price: nothing where there are none; else a comparison for each pointer of each call.
  void exchange_storage() {
    for (exchange& e : exchanges_) {
      e.done = !e.done;
      std::byte *const a = arena_ + tables_.plan.offset[e.input], *const b = arena_ + tables_.plan.offset[e.spare];
      const auto moved = [&](void*& p) {
        std::byte* const at = static_cast<std::byte*>(p);
        if (at >= a && at < a + e.bytes) p = b + (at - a);
        else if (at >= b && at < b + e.bytes) p = a + (at - b);
      };
      for (call& c : calls_)
        for (void*& p : c.p) moved(p);
      for (dynamic_array<result_blocks>& r : results_)
        for (void*& p : r[0].p) moved(p);
    }
  }
  std::size_t bytes_of(int id) const {
    return static_cast<std::size_t>(layout_of(id).numel()) * size_of(tables_.spec_of(id).type);
  }

  // The share of the rank at mesh coordinate `c` of node `id`'s value, given whole.
  template <class From, class To>
  void load(const char* call_name, int id, const From* global, To* local, const int* c) const {
    load_share(call_name, global, local, layout_of(id), tables_.spec_of(id), c);
  }

  void check_size(const char* call_name, int id, std::size_t given) const {
    std::int64_t want = 1;
    const layout& l = layout_of(id);
    for (int d = 0; d < l.rank; ++d) want *= l.global[d];
    if (static_cast<std::int64_t>(given) != want)
      throw std::invalid_argument(std::string("shardwise: ") + call_name + ": " + std::to_string(given) +
                                  " elements are given; the whole tensor has " + std::to_string(want));
  }
  // A whole input, whose elements are of its type, or int64 ids for one of int32: `local(type)` -> where its block goes.
  template <class E, class Local>
  void load_input(int id, const E* global, const int* c, Local&& local) const {
    if constexpr (std::is_same_v<E, std::int64_t>)
      if (tables_.graph.spec_of(id).type == dtype::i32)
        return load("set_input", id, global, static_cast<std::int32_t*>(local()), c);
    check_type<E>("set_input", id);
    load("set_input", id, global, static_cast<E*>(local()), c);
  }
  // A std::vector<bool>, which keeps bits, element by element.
  template <class Bits>
  static dynamic_array<bool> each_bit(const Bits& bits) {
    dynamic_array<bool> whole(bits.size(), false);
    for (std::size_t i = 0; i < bits.size(); ++i) whole[i] = bits[i];
    return whole;
  }
  template <class E>
  void check_type(const char* call_name, int id) const {
    check_type(call_name, id, dtype_v<E>);
  }
  void check_type(const char* call_name, int id, dtype given) const {
    if (tables_.spec_of(id).type != given)
      throw std::invalid_argument(std::string("shardwise: ") + call_name + ": elements of type " + element_name(given) +
                                  " are given; the tensor's are " + element_name(tables_.spec_of(id).type) +
                                  ": convert the values to that type first");
  }
  // The first `given` are what a run's sizes shall be.
  void check_sizes(const run_sizes& n, int given) const {
    const dyn_bounds& bounds = tables_.dyn_bound;
    if (given != bounds.count())
      throw std::invalid_argument(
          "shardwise: resize: " + std::to_string(given) + (given == 1 ? " size is" : " sizes are") + " given; " +
          (bounds.count() == 0 ? std::string("the program has no dyn dim")
                               : "the program has " + std::to_string(bounds.count()) + ": give each, size 0 first"));
    for (int i = 0; i < given; ++i) {
      const std::int64_t least = (tables_.dyn_not_empty >> i) & 1U;
      if (n.n[i] >= least && n.n[i] <= bounds[i]) continue;
      throw std::invalid_argument("shardwise: resize: " + std::to_string(n.n[i]) + " is given for size " +
                                  std::to_string(i) + "; it must be from " + std::to_string(least) +
                                  (least == 1 ? ", because the program takes a largest or smallest element along it," : "") +
                                  " to the declared bound " + std::to_string(bounds[i]));
    }
  }
  static const char* element_name(dtype t) { return t == dtype::i32 ? "int32 (std::int32_t)" : name_of(t); }

 protected:
  // `borrows`: parameters and buffers are another executor's.
  lowered_program(const program_tables& of, bool borrows) : tables_(of), borrows_(borrows), own_given_(nothing_given(of)) {}
  lowered_program(const lowered_program&) = delete;
  lowered_program& operator=(const lowered_program&) = delete;
  ~lowered_program() = default;

  // Which inputs and parameters have values. Programs over one arena share theirs.
  given_values& given() { return *given_; }
  const given_values& given() const { return *given_; }
  void share_given(given_values& with) { given_ = &with; }

  // Draws of one batch are their own: env becomes that of batch number `batch` of a step, from 0.
  void number_batch(step_env& env, std::int64_t batch) const {
    env.first_site += static_cast<std::uint64_t>(batch * tables_.graph.sites);
    env.first_draw += static_cast<std::uint64_t>(batch * draws_);
  }

  void check_given() const {
    if (!given_->complete()) [[unlikely]]
      refuse_unset();
  }
  void check_parameter(const char* call_name, int at) const {
    if (!given_->has_parameter(at)) [[unlikely]]
      refuse_parameter(call_name, at);
  }
  void check_parameters(const char* call_name) const {
    for (int at = 0; at < tables_.table_count(); ++at) check_parameter(call_name, at);
  }
  // Inputs whose extents change with the run-time sizes must be set again.
  void resize_inputs(const run_sizes& from, const run_sizes& to) {
    const given_values before = nothing_given(tables_);
    const auto changes = [&](const spec& s) {
      for (int d = 0; d < s.rank; ++d)
        if (extent_at(s, d, from) != extent_at(s, d, to)) return true;
      return false;
    };
    for (int i = 0; i < tables_.graph.node_count; ++i)
      if (const int at = static_cast<int>(attributes_of<leaf_attributes>(tables_.graph.nodes[i].a).index);
          tables_.graph.nodes[i].op == op_code::input && changes(tables_.graph.spec_of(i)) && !before.has_input(at))
        given_->take_input(at);
  }
  void check_output(int index) const {
    if (index < 0 || index >= tables_.graph.output_count)
      throw std::out_of_range(program_tables::no_such("output", index, tables_.graph.output_count));
  }
  [[noreturn]] __attribute__((noinline)) static void refuse_unrun() {
    throw std::logic_error("shardwise: output: the program has not run yet, so it has no outputs; call run first");
  }

 private:
  // Of the results that somebody wants: they lie where their nodes say.
  const result_blocks* lower_results(int id, const int* coordinate, const run_sizes& n_dyn) {
    const graph_view& g = tables_.graph;
    dynamic_array<result_blocks> r(1);
    for (int j = id + 1; j < g.node_count; ++j) {
      const node& n = g.nodes[j];
      if (n.op != op_code::getitem || n.in[0] != id) continue;
      const spec& s = g.specs[n.spec];
      const std::int64_t which = attributes_of<getitem_attributes>(n.a).result;
      r[0].l[which] = local_layout(s, coordinate, n_dyn);
      r[0].type[which] = s.type;
      r[0].p[which] = place_of(j);
    }
    results_.push_back(static_cast<dynamic_array<result_blocks>&&>(r));
    return results_.back().data();
  }

  [[noreturn]] __attribute__((noinline)) void refuse_unset() const {
    for (int i = 0; i < tables_.input_count(); ++i) {
      if (given_->has_input(i)) continue;
      const spec& s = tables_.graph.spec_of(tables_.find(op_code::input, i));
      std::string what = "input " + std::to_string(i) + ", ";
      text::put_extents(what, s);
      what.push_back(' ');
      text::put_placements(what, s);
      throw std::logic_error("shardwise: run: " + what + ", has no value" + (s.dyn != 0 ? " of this run-time size" : "") +
                             "; give it one with set_input(" + std::to_string(i) + ", ...), or fill the block input<...>(" +
                             std::to_string(i) + "), before the run");
    }
    check_parameters("run");
    throw std::logic_error("shardwise: run: a value is missing");
  }
  [[noreturn]] __attribute__((noinline)) void refuse_parameter(const char* call_name, int at) const {
    const bool is_buffer = at >= tables_.parameter_total;
    throw std::logic_error(std::string("shardwise: ") + call_name + (is_buffer ? ": buffer '" : ": parameter '") +
                           tables_.table_name(at) +
                           "' has no value; give all of them one with initialise(seed), copy_parameters or " +
                           (is_buffer ? "set_buffer" : "set_parameter"));
  }

  // An input and the leaf that has its next storage; done: an odd number of runs has been.
  struct exchange {
    int input = -1, spare = -1;
    std::int64_t bytes = 0;
    bool done = false;
  };
  void find_exchanges() {
    if (!exchanges_.empty()) return;
    const graph_view& g = tables_.graph;
    for (int i = 0; i < g.node_count; ++i)
      if (const std::int64_t input = exchanged_with(g.nodes[i]); input >= 0)
        exchanges_.push_back({tables_.find(op_code::input, static_cast<int>(input)), i, tables_.plan.bytes[i], false});
  }
  // The storage that calls find node `id`'s value in.
  void* place_of(int id) const {
    std::int64_t at = tables_.plan.offset[id];
    if (borrows_) {
      const int own = tables_.plan.owner[id];
      if (const op_code op = tables_.graph.nodes[own].op; op == op_code::param || op == op_code::module_buffer)
        return borrowed_[static_cast<std::size_t>(own)] + at - tables_.plan.offset[own] +
               view_bytes_[static_cast<std::size_t>(id)];
    }
    for (const exchange& e : exchanges_) {
      const std::int64_t a = tables_.plan.offset[e.input], b = tables_.plan.offset[e.spare];
      if (!e.done) continue;
      if (at >= a && at < a + e.bytes) at += b - a;
      else if (at >= b && at < b + e.bytes) at += a - b;
    }
    return arena_ + at + view_bytes_[static_cast<std::size_t>(id)];
  }

  const program_tables tables_;
  const bool borrows_;
  given_values own_given_;
  given_values* given_ = &own_given_;
  dynamic_array<exchange> exchanges_;
  std::byte* arena_ = nullptr;
  dynamic_array<std::byte*> borrowed_;  // of a program that borrows, by node: where a parameter or buffer lies
  dynamic_array<layout> layouts_;
  dynamic_array<std::int64_t> view_bytes_;
  dynamic_array<call> calls_;
  std::size_t update_call_ = 0;
  std::int64_t draws_ = 0;  // of one run, by offset
  dynamic_array<dynamic_array<result_blocks>>
      results_;  // of calls with several: one each, which calls point to, so it stays where it is
};

}  // namespace shardwise::inline v0_1::runtime
