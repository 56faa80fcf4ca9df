// SPDX-License-Identifier: Apache-2.0
// executor_base: what the executors of all backends are apart from where blocks lie: options, sizes, names, values given and taken,
// timelines, and what they refuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <shardwise/runtime/program/copied_parameters.hpp>
#include <shardwise/runtime/program/lowered.hpp>
#include <shardwise/runtime/program/offered.hpp>
#include <shardwise/runtime/timeline/program.hpp>

namespace shardwise::inline v0_1 {

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

namespace runtime {

// Self is the executor, which derives from this and says what it does with its memory, by this rank alone, on blocks that are
// stored densely; `id` is a node of the program:
//   lower(n_dyn)                 settles extents, strides and pointers; 0: the bound
//   quiesce(), relowered()       before it and after it, where the size changes: nothing is under way; what was captured is new
//   fill_block(id, f)            f(elements) writes the block
//   zero_block(id)               the block becomes zeros
//   gather_block(id, first, to)  writes the block to where it lies in `to`, the whole tensor, if `first`: no other rank writes it
//   most_events()                of one run in a timeline
template <class Step, class Rank, class Self>
class executor_base : public lowered<Step> {
  using base = lowered<Step>;
#if !SHARDWISE_DEVICE_PASS
  static_assert(checked_program<Step>::ok);
#endif

 public:
  using source = typename base::source;
  using mesh_type = typename program_traits<Step>::mesh_type;
  using element = typename base::element;
  using base::calls, base::find, base::layout_of, base::program;
  static constexpr int world_size = mesh_type::size;

  // The run-time size of the program's dyn dim, from 1 to its bound (the size after construction). Nothing is compiled or
  // allocated anew: the calls' extents, strides and views are settled again in the arena planned for the bound. Inputs of
  // another size than before must be set again. Collective.
  void resize(std::int64_t n) {
    base::check_dyn(n);
    rank_->agree(static_cast<std::uint64_t>(n), "the run-time size");
    self().quiesce();
    self().lower(n);
    if (n != (n_dyn_ != 0 ? n_dyn_ : source::dyn_bound)) base::resize_inputs();
    n_dyn_ = n;
    self().relowered();
    if (timeline_) record(timeline_, phase_);
  }

  // From the next run on, writes into `t` what this rank does and when, while there is room; nullptr: no more. `t` outlives
  // the executor or is taken back. All memory is taken here. `phase` names the program among several in one timeline.
  // On a device a recorded run is launched call by call: nothing is seen inside a replayed graph; `run` waits for it.
  void record(timeline* t, const std::string& phase = "") {
    if (t) {
      timeline_program p = timeline_program_of<Step>(self(), rank_->coordinate().data(), n_dyn_, phase);
      p.most_events = self().most_events();
      recorded_as_ = t->add(timeline_rank_of(*rank_), std::move(p));
    }
    timeline_ = t;
    if (&phase != &phase_) phase_ = phase;
  }

  const layout& output_layout() const { return layout_of(program().outputs[0]); }

  // --- parameters, and buffers of modules -------------------------------------------------------------------------------

  const layout& parameter_layout(int index) const { return layout_of(find(op_code::param, index)); }
  // From the whole tensor, row-major, equal on all ranks: this rank takes its block.
  template <class Range>
  void set_parameter(int index, const Range& global) {
    set_whole("set_parameter", op_code::param, index, global);
  }
  // Writes this rank's block into a whole tensor: shared by the ranks where they are threads, and where they are processes
  // each one's own, which is then whole on all. Collective: returns when all blocks are there.
  template <class Range>
  void gather_parameter(int index, Range&& global) {
    gather_whole("gather_parameter", op_code::param, index, global);
  }
  const layout& buffer_layout(int index) const { return layout_of(find(op_code::module_buffer, index)); }
  template <class Range>
  void set_buffer(int index, const Range& global) {
    set_whole("set_buffer", op_code::module_buffer, index, global);
  }
  template <class Range>
  void gather_buffer(int index, Range&& global) {
    gather_whole("gather_buffer", op_code::module_buffer, index, global);
  }

  // Initial values of parameters and buffers as the modules declare them, from (seed, path, global element index); states are
  // zeroed, as they are after construction. Collective: ranks that give different seeds are told.
  void initialise(std::uint64_t seed) {
    rank_->agree(seed, "the seed");
    for (int at = 0; at < base::table_count(); ++at) {
      const auto& info = source::parameters.item[at];
      const int id = base::table_node(at);
      self().fill_block(id, [&](element* p) {
        const std::span<element> block{p, static_cast<std::size_t>(layout_of(id).numel())};
        initialise_block(block, layout_of(id), info.kind, info.scale, seed, base::table_name(at));
      });
      base::given().parameter(at);
    }
    reset_states();
  }
  // The optimizer's states become zeros.
  void reset_states() {
    for (int id = 0; id < program().node_count; ++id)
      if (program().nodes[id].op == op_code::state) self().zero_block(id);
  }

  std::size_t call_count() const { return calls().size(); }

 protected:
  explicit executor_base(Rank* rank) : rank_(rank) {}

  void check_ran() const {
    if (!ran_) [[unlikely]]
      base::refuse_unrun();
  }
  // Copies the parameters and buffers of another program; copy(node, node of the other program).
  template <class OtherStep, class Other, class Copy>
  void copy_tables(const Other& from, const Copy& copy) {
    static_assert(checked_parameters<Step, OtherStep>::ok);
    from.check_parameters("copy_parameters");
    for (int at = 0; at < base::table_count(); ++at) {
      copy(base::table_node(at), from.table_node(at));
      base::given().parameter(at);
    }
  }

  Rank* rank_;
  bool ran_ = false;
  std::int64_t n_dyn_ = 0;
  timeline* timeline_ = nullptr;
  int recorded_as_ = 0;
  std::string phase_;

 private:
  // `op` is the leaf that a parameter or a buffer is.
  template <class Range>
  void set_whole(const char* call_name, op_code op, int index, const Range& global) {
    const int id = find(op, index);
    base::check_size(call_name, id, std::size(global));
    self().fill_block(id, [&](element* p) { base::load(call_name, id, std::data(global), p, rank_->coordinate().data()); });
    base::given().parameter(base::table_place(op, index));
  }
  template <class Range>
  void gather_whole(const char* call_name, op_code op, int index, Range& global) {
    const int id = find(op, index);
    base::check_size(call_name, id, std::size(global));
    base::check_parameter(call_name, base::table_place(op, index));
    self().gather_block(id, base::writes_first(id, rank_->coordinate().data()), global);
    rank_->barrier();
  }

  Self& self() { return static_cast<Self&>(*this); }
};

}  // namespace runtime

}  // namespace shardwise::inline v0_1
