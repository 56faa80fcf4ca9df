// SPDX-License-Identifier: Apache-2.0
// executor_base: what the executors of all backends are apart from where blocks lie: options, sizes, names, values given and taken,
// timelines, and what they refuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#if SHARDWISE_EXPLAIN
#include <shardwise/runtime/executor/explained.hpp>
#endif
#include <shardwise/runtime/executor/checks.hpp>
#include <shardwise/runtime/executor/gradient_sums.hpp>
#include <shardwise/runtime/program/copied_parameters.hpp>
#include <shardwise/runtime/program/lowered.hpp>
#include <shardwise/runtime/program/offered.hpp>
#include <shardwise/runtime/program/scaler_state.hpp>
#include <shardwise/runtime/rank.hpp>
#include <shardwise/runtime/timeline/program.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

// What runs a step on a rank. Host ranks' is in runtime/executor/executor.hpp (shardwise.hpp), devices' in
// runtime/cuda/executor.cuh (cuda.cuh).
template <class Step, class Rank>
class executor;

namespace runtime {

struct block_access;

// Self is the executor, which derives from this and says what it does with its memory, by this rank alone, on blocks that are
// stored densely; `id` is a node of the program:
//   lower(sizes)                 settles extents, strides and pointers
//   quiesce(), relowered()       before it and after it, where the size changes: nothing is under way; what was captured is new
//   fill_block(id, f)            f(elements) writes all of the block: on a device what it leaves out becomes zero
//   zero_block(id, from = 0)     the block becomes zeros, from byte number `from` on
//   draw_block(id, kind, scale, seed, path)   the block gets its initial values (program/initial_values.hpp)
//   shown(id)                    the block where other ranks can read it, until hidden()
//   landing(id), landed()        where a block is put together, which it becomes when it is complete
//   copy_local(to, other, from)  a block of another executor of this rank, as it is
//   gather_block(id, first, to)  writes the block to where it lies in `to`, the whole tensor, if `first`: no other rank writes it
//   most_events()                of one run in a timeline
//   run_part(env, update)        of a program that keeps gradients: see gradient_sums
template <class Step, class Rank, class Self>
class executor_base : public gradient_sums<Step, Self> {
  using base = gradient_sums<Step, Self>;
#if !SHARDWISE_DEVICE_PASS
  static_assert(checked_program<Step>::ok);
#endif

 public:
  using source = typename base::source;
  using mesh_type = typename program_traits<Step>::mesh_type;
  using element = typename base::element;
  using numbers = typename base::numbers;
  using base::calls, base::find, base::image, base::layout_of, base::program;
  static constexpr int world_size = mesh_type::size;

  // The program's run-time sizes, size 0 first, each from 0 to its bound (its value after construction); from 1 where a largest or
  // smallest element is taken along it. Nothing is compiled or allocated anew: the calls' extents, strides and views are settled
  // again in the arena planned for the bounds. Inputs of another size than before must be set again. Collective.
  template <class... Sizes>
    requires((std::is_integral_v<Sizes> && ...) && sizeof...(Sizes) >= 1 && sizeof...(Sizes) <= max_dyn_sizes)
  void resize(Sizes... sizes) {
    const run_sizes n(static_cast<std::int64_t>(sizes)...);
    base::check_sizes(n, static_cast<int>(sizeof...(Sizes)));
    for (std::size_t i = 0; i < sizeof...(Sizes); ++i)
      rank_->agree(static_cast<std::uint64_t>(n.n[i]), "the run-time sizes");
    self().quiesce();
    self().lower(n);
    base::resize_inputs(n_dyn_, n);
    n_dyn_ = n;
    self().relowered();
    if (timeline_) record(timeline_, phase_);
  }

  // From the next run on, writes into `t` what this rank does and when, while there is room; nullptr: no more. `t` outlives
  // the executor or is taken back. All memory is taken here. `phase` names the program among several in one timeline.
  // On a device a recorded run is launched call by call: nothing is seen inside a replayed graph; `run` waits for it.
  void record(timeline* t, const std::string& phase = "") {
    if (t) {
      timeline_program p = timeline_program_of(self(), rank_->coordinate().data(), n_dyn_, phase);
      p.most_events = self().most_events();
      recorded_as_ = t->add(timeline_rank_of(*rank_), std::move(p));
    }
    timeline_ = t;
    if (&phase != &phase_) phase_ = phase;
  }

  const layout& output_layout() const { return layout_of(image().outputs[0]); }

  // Output `index` of the last run as a whole tensor, row-major, at the run's sizes, on every rank, or on rank `root` alone: the others
  // get no elements. Collective, and no part of the program: what it sends is in no constant. A task that returns
  // redistribute<axis, replicate>(y) instead has it there. Of comparisons E is std::int32_t; of bool there is none: a sentence. Of a
  // partial output, as only functions have them: throws.
  template <class E = element>
  std::vector<E> full_output(int index = 0, int root = -1) {
    static_assert(raise<(std::is_same_v<E, bool> ? problem::full_output_bool : problem::none), Step, mesh_type>::ok);
    base::check_output(index);
    check_ran();
    check_root("full_output", root);
    const int id = image().outputs[index];
    base::template check_type<E>("full_output", id);
    for (int a = 0; a < mesh_type::axes; ++a)
      if (image().spec_of(id).place[a].is_partial())
        throw std::logic_error("shardwise: full_output: output " + std::to_string(index) + " is partial on mesh axis " +
                               std::to_string(a) +
                               ", so ranks hold summands; return it redistributed to replicate on that axis");
    return full_value<E>(id, root);
  }
  // The output that the task calls Name.
  template <fixed_string Name>
  auto full_output(int root = -1) {
    constexpr int number = base::template output_number<Name>();
    return full_output<typename base::template output_element<number>::type>(number, root);
  }

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

  // --- by name: "layers.3.attn.wq"; a name that the model does not have throws, with the nearest ones -------------------

  template <class Range>
  void set_parameter(std::string_view name, const Range& global) {
    set_parameter(base::parameter_index(name), global);
  }
  template <class Range>
  void set_buffer(std::string_view name, const Range& global) {
    set_buffer(base::buffer_index(name), global);
  }
  // The whole tensor, row-major, on every rank, or on rank `root` alone: the others get no elements. Collective.
  std::vector<element> full_parameter(std::string_view name, int root = -1) {
    const int at = base::parameter_index(name);
    check_root("full_parameter", root);
    base::check_parameter("full_parameter", at);
    return full(find(op_code::param, at), root);
  }
  std::vector<element> full_buffer(std::string_view name, int root = -1) {
    const int at = base::buffer_index(name);
    check_root("full_buffer", root);
    base::check_parameter("full_buffer", base::table_place(op_code::module_buffer, at));
    return full(find(op_code::module_buffer, at), root);
  }
  // What the optimizer keeps for a parameter. Of a parameter that it keeps nothing for: throws.
  const layout& state_layout(std::string_view name, moment m) const { return layout_of(base::state_node(name, m)); }
  template <class Range>
  void set_state(std::string_view name, moment m, const Range& global) {
    const int id = base::state_node(name, m);
    base::check_size("set_state", id, std::size(global));
    self().fill_block(id,
                      [&](element* p) { base::load("set_state", id, std::data(global), p, rank_->coordinate().data()); });
  }
  std::vector<element> full_state(std::string_view name, moment m, int root = -1) {
    check_root("full_state", root);
    return full(base::state_node(name, m), root);
  }

  // What a plan's dynamic_loss_scale has come to; on a device it waits for the runs that are queued. All ranks hold the same.
  shardwise::scaler_state scaler_state() {
    constexpr int counts = own_state<scale_counts, problem::scaler_state_missing>();
    constexpr int scale = own_state<scale_state, problem::scaler_state_missing>();
    shardwise::scaler_state s;
    s.scale = static_cast<double>(self().shown(scale)[0]);
    self().hidden();
    const element* const n = self().shown(counts);
    s.good_steps = static_cast<std::int64_t>(n[0]);
    s.skipped_steps = static_cast<std::int64_t>(n[1]);
    self().hidden();
    return s;
  }
  // Gives it back, as from a file; all ranks give the same.
  void set_scaler_state(const shardwise::scaler_state& s) {
    constexpr int counts = own_state<scale_counts, problem::scaler_state_missing>();
    constexpr int scale = own_state<scale_state, problem::scaler_state_missing>();
    check_scaler_state(s);
    self().fill_block(scale, [&](element* p) { p[0] = static_cast<element>(s.scale); });
    self().fill_block(counts, [&](element* p) {
      p[0] = static_cast<element>(s.good_steps);
      p[1] = static_cast<element>(s.skipped_steps);
    });
  }

  // The 2-norm of all gradients of the last run that updated, as report_norm says; 0 before there was one. On a device it waits for
  // the runs that are queued. The same on all ranks.
  double gradient_norm() {
    constexpr int id = own_state<shardwise::gradient_norm, problem::gradient_norm_missing>();
    const element norm = self().shown(id)[0];
    self().hidden();
    return static_cast<double>(norm);
  }

  // What another program of the model holds, whatever its plan, its mesh (of as many ranks) and its passes: by name, block by block,
  // each rank taking out of the others' blocks what its own are made of (copied_blocks). Parameters or buffers of other names or
  // shapes do not compile. Collective, unless all are placed alike.
  template <class Other, class OtherRank>
  void copy_parameters(executor<Other, OtherRank>& from) {
    static_assert(checked_parameters<Step, Other, has_exchange<Rank>>::ok);
    from.check_parameters("copy_parameters");
    copy_leaves<copied_leaves::parameters, Other>(from);
    for (int at = 0; at < base::table_count(); ++at) base::given().parameter(at);
  }
  template <class Other, class OtherRank>
  void copy_parameters(const executor<Other, OtherRank>& from) {
    copy_parameters(const_cast<executor<Other, OtherRank>&>(from));  // it is read alone
  }
  // The same of the optimizers' states: both programs must keep the same ones. Sums of gradients (keep_gradients) are not copied; of a
  // program that has some that no update has seen: throws.
  template <class Other, class OtherRank>
  void copy_state(executor<Other, OtherRank>& from) {
    static_assert(checked_states<Step, Other, has_exchange<Rank>>::ok);
    if (from.accumulated() != 0)
      throw std::logic_error(
          "shardwise: copy_state: gradients have been added up that no update has seen, and the copy would not have them; call "
          "update(env) or zero_gradients() on the other executor first");
    check_shared_counts<Other>(from);
    copy_leaves<copied_leaves::states, Other>(from);
  }
  template <class Other, class OtherRank>
  void copy_state(const executor<Other, OtherRank>& from) {
    copy_state(const_cast<executor<Other, OtherRank>&>(from));
  }

  // Initial values of parameters and buffers as the modules declare them, from (seed, path, global element index); states are
  // zeroed, as they are after construction. Collective: ranks that give different seeds are told.
  void initialise(std::uint64_t seed) {
    rank_->agree(seed, "the seed");
    for (int at = 0; at < base::table_count(); ++at) draw_leaf(at, seed);
    reset_states();
    clear_padding();
  }
  // The optimizer's states become zeros, a loss scale what it was at first, and sums of gradients are forgotten.
  void reset_states() {
    base::forget_sums();
    for (int id = 0; id < image().node_count; ++id) {
      if (image().nodes[id].op != op_code::state) continue;
      if (image().nodes[id].f == 0) self().zero_block(id);
      else self().fill_block(id, [&](element* p) { *p = static_cast<element>(image().nodes[id].f); });
    }
  }

  std::size_t call_count() const { return calls().size(); }

 protected:
  explicit executor_base(Rank* rank) : rank_(rank) {
#if SHARDWISE_EXPLAIN && !SHARDWISE_DEVICE_PASS
    if (rank_) explain_program<Step, mesh_type>(rank_->index());
#endif
  }

  // The initial value of a parameter, or of a buffer behind them.
  void draw_leaf(int at, std::uint64_t seed) {
    const auto& info = runtime::parameters_of<Step>.item[at];
    self().draw_block(base::table_node(at), info.kind, info.scale, seed, base::table_name(at));
    base::given().parameter(at);
  }

  // The node of a state that is the program's and no parameter's; Missing: what is said of a program without it.
  template <state_kind Which, problem Missing>
  static constexpr int own_state() {
#if SHARDWISE_DEVICE_PASS
    return 0;
#else
    constexpr int id = state_of_program(source::program, Which);
    static_assert(raise<(id >= 0 ? problem::none : Missing), mesh_type>::ok);
    return id;
#endif
  }
  // Whether an executor that is made with one of Of, or with none (void), is made right.
  template <class Of>
  static constexpr bool takes_parameters_of() {
#if SHARDWISE_DEVICE_PASS
    return true;
#else
    constexpr bool right = [] {
      if constexpr (base::borrows) return std::is_same_v<Of, typename source::parameters_of>;
      else return std::is_void_v<Of>;
    }();
    static_assert(raise<(right ? problem::none : problem::shared_parameters_executor), Step, mesh_type>::ok);
    return right;
#endif
  }
  // The other executor's parameters and buffers, before anything is lowered.
  template <class Of>
  void borrow_parameters(executor<Of, Rank>& from) {
    from.check_parameters("executor");
    if (from.rank_->index() != rank_->index())
      throw std::invalid_argument("shardwise: executor: parameters of an executor of rank " +
                                  std::to_string(from.rank_->index()) + " are to be used on rank " +
                                  std::to_string(rank_->index()) + "; give the executor of the same rank");
    base::borrow_leaves(from);
  }
  // What follows the parameters in flat ones: no run makes anything but zeros of it.
  void clear_padding() {
    if constexpr (base::flat.any())
      for (int id = 0; id < image().node_count; ++id) {
        if (image().nodes[id].op != op_code::param) continue;
        const int number = static_cast<int>(attributes_of<leaf_attributes>(image().nodes[id].a).index);
        if (!base::flat.is_flat(number)) continue;
        const layout& l = layout_of(id);
        const std::int64_t used = base::flat.end_of(number) - l.origin[0];
        if (used < l.ext[0]) self().zero_block(id, static_cast<std::size_t>(used > 0 ? used : 0) * sizeof(element));
      }
  }
  void check_ran() const {
    if (!ran_) [[unlikely]]
      base::refuse_unrun();
  }
  // A flat group has one count of steps: all its parameters' must be equal in the other program.
  template <class OtherStep, class Other>
  void check_shared_counts([[maybe_unused]] Other& from) {
    if constexpr (base::flat.any() && has_exchange<Rank>) {  // else both programs have the same flat groups
      using table = copied_blocks<Step, OtherStep, copied_leaves::states>;
      for (int k = 1; k < table::count; ++k)
        for (int j = 0; j < k; ++j) {
          if (table::leaves[j].to != table::leaves[k].to || table::leaves[j].from == table::leaves[k].from) continue;
          if (from.full(table::leaves[j].from, -1) != from.full(table::leaves[k].from, -1))
            throw std::logic_error(
                "shardwise: copy_state: '" + base::table_name(table::leaves[j].parameter) + "' and '" +
                base::table_name(table::leaves[k].parameter) +
                "' lie in one flat group here and have different counts of steps in the other program, and the "
                "group has one; copy the states to a program without flat_parameters");
          break;
        }
    }
  }
  // The blocks of another program's leaves: those that are placed alike by this rank alone, the others by all ranks together.
  template <copied_leaves What, class OtherStep, class Other>
  void copy_leaves(Other& from) {
    using table = copied_blocks<Step, OtherStep, What>;
    for (int k = 0; k < table::count; ++k)
      if (table::leaves[k].list == -1) self().copy_local(table::leaves[k].to, from, table::leaves[k].from);
    if constexpr (has_exchange<Rank>) {
      constexpr const char* copying = What == copied_leaves::states ? "copy_state" : "copy_parameters";
      for (int k = 0; k < table::count; ++k)
        if (table::leaves[k].list == copied_whole) {
          const std::vector<element> whole = from.full(table::leaves[k].from, -1);
          const int to = table::leaves[k].to;
          self().fill_block(to, [&](element* p) { base::load(copying, to, whole.data(), p, rank_->coordinate().data()); });
        }
      bool moves = false;
      for (int k = 0; k < table::count; ++k) moves = moves || table::leaves[k].list >= 0;
      if (!moves) return;
      if (!rank_shares_memory(*rank_)) {
        for (int k = 0; k < table::count; ++k)
          if (table::leaves[k].list >= 0) carry_over(copying, table::leaves[k].to, from, table::leaves[k].from);
        return;
      }
      dynamic_array<const void*> mine(static_cast<std::size_t>(table::count), nullptr);
      dynamic_array<element*> to(static_cast<std::size_t>(table::count), nullptr);
      for (int k = 0; k < table::count; ++k)
        if (table::leaves[k].list >= 0) {
          mine[static_cast<std::size_t>(k)] = from.shown(table::leaves[k].from);
          to[static_cast<std::size_t>(k)] = self().landing(table::leaves[k].to);
        }
      const int own = rank_->index();
      rank_->exchange(mine.data(), [&](const auto& peer) {
        for (int k = 0; k < table::count; ++k) {
          const auto& leaf = table::leaves[k];
          if (leaf.list < 0) continue;
          const auto& list = table::lists[leaf.list];
          const spec &s = Other::image().spec_of(leaf.from), &t = image().spec_of(leaf.to);
          for (int i = list.begin[own]; i < list.begin[own + 1]; ++i) {
            const box_copy& box = list.item[i];
            const void* const there = static_cast<const void* const*>(peer(box.from))[k];
            copy_box(box, static_cast<const element*>(there), layout_on(s, box.from), to[static_cast<std::size_t>(k)],
                     layout_on(t, own));
          }
        }
      });
      from.hidden();
      self().landed();
    }
  }

  // The whole tensor of which this rank has a block, on rank `root`, or on all for -1.
  std::vector<element> full(int id, int root) {
    static_assert(shardwise::detail::rank_has<has_exchange<Rank>, Rank, rank_member::exchange>);
    const bool wanted = root < 0 || root == rank_->index();
    std::vector<element> whole(wanted || !rank_shares_memory(*rank_) ? elements_of(layout_of(id)) : 0);
    if constexpr (has_exchange<Rank>) {
      if (!rank_shares_memory(*rank_)) {
        self().gather_block(id, base::writes_first(id, rank_->coordinate().data()), whole);
        if (!wanted) whole.clear();
        return whole;
      }
      const spec& s = image().spec_of(base::node_of(id));
      rank_->exchange(self().shown(id), [&](const auto& peer) {
        if (!wanted) return;
        if (base::is_part(id)) {
          for (int r = 0; r < world_size; ++r)
            store_block(static_cast<const element*>(peer(r)), whole.data(),
                        base::flat.layout_of(base::flat.part(base::flat.parameter_of(image(), id)), layout_on(s, r)));
          return;
        }
        const int own = rank_->index();
        each_copy(s, whole_spec(s), own, [&](const box_copy& box) {
          copy_box(box, static_cast<const element*>(peer(box.from)), layout_on(s, box.from), whole.data(),
                   layout_on(whole_spec(s), own));
        });
      });
      self().hidden();
    }
    return whole;
  }

  // The same of a node that the program has computed, whose extents the run's sizes may have decided: each rank shows its block and
  // where it lies. No axis is partial.
  template <class E>
  std::vector<E> full_value(int id, int root) {
    static_assert(shardwise::detail::rank_has<has_exchange<Rank>, Rank, rank_member::exchange>);
    const std::vector<E> block = self().template value<E>(id);
    const layout& l = layout_of(id);
    const bool first = base::writes_first(id, rank_->coordinate().data());
    std::vector<E> whole(elements_of(l), E(0));
    if constexpr (has_exchange<Rank>) {
      if (rank_shares_memory(*rank_)) {
        struct piece {
          const E* at;
          const layout* how;
        };
        const piece mine{first ? block.data() : nullptr, &l};
        rank_->exchange(&mine, [&](const auto& peer) {
          for (int r = 0; r < world_size && (root < 0 || root == rank_->index()); ++r)
            if (const piece& p = *static_cast<const piece*>(peer(r)); p.at) store_block(p.at, whole.data(), *p.how);
        });
      } else if constexpr (requires { rank_->combine_disjoint(whole); }) {
        if (first) store_block(block.data(), whole.data(), l);
        rank_->combine_disjoint(whole);
      } else {
        throw std::logic_error(
            "shardwise: full_output: these ranks share no memory, and their type has no combine_disjoint, by which processes put a "
            "whole tensor together; give the rank that member, or return the output redistributed to replicate");
      }
    }
    if (root >= 0 && root != rank_->index()) whole.clear();
    return whole;
  }

  Rank* rank_;
  bool ran_ = false;
  run_sizes n_dyn_;
  timeline* timeline_ = nullptr;
  int recorded_as_ = 0;
  std::string phase_;

 private:
  static bool rank_shares_memory(const Rank& r) {
    if constexpr (requires { r.shares_memory(); }) return r.shares_memory();
    else return true;
  }
  static std::size_t elements_of(const layout& l) {
    std::size_t n = 1;
    for (int d = 0; d < l.rank; ++d) n *= static_cast<std::size_t>(l.global[d]);
    return n;
  }
  // Between processes: one whole tensor at a time.
  template <class Other>
  void carry_over(const char* call_name, int to, Other& from, int id) {
    std::vector<element> whole(elements_of(from.layout_of(id)));
    from.gather_block(id, Other::writes_first(id, rank_->coordinate().data()), whole);
    self().fill_block(to, [&](element* p) { base::load(call_name, to, whole.data(), p, rank_->coordinate().data()); });
  }
  void check_root(const char* call_name, int root) const {
    if (root < -1 || root >= world_size)
      throw std::out_of_range(std::string("shardwise: ") + call_name + ": rank " + std::to_string(root) +
                              " is asked for; the mesh has ranks 0.." + std::to_string(world_size - 1) +
                              ", and -1 is all of them");
  }

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
