// SPDX-License-Identifier: Apache-2.0
// How parameters and buffers enter a traced graph: one leaf for each, or, as the plan says, stored in shards, in another type, in flat
// parameters, with split states.
#pragma once

#include <shardwise/module/accumulate.hpp>
#include <shardwise/module/bind.hpp>
#include <shardwise/vocabulary/flat_part.hpp>
#include <shardwise/vocabulary/parameter_info.hpp>

namespace shardwise::inline v0_1::detail {

// Where a walk through a model stands in its plan, for what is said of parameters by name. A plan that says nothing costs nothing.
template <class Plan, int Modules, bool Asked = plan_traits<Plan>::any_freezes || plan_traits<Plan>::any_groups>
struct plan_walk {
  constexpr void enter(const char*, int) {}
  constexpr void exit() {}
  static constexpr int group(const char*) { return 0; }
};
template <class Plan, int Modules>
struct plan_walk<Plan, Modules, true> {
  using traits = plan_traits<Plan>;
  typename traits::state at[Modules + 1]{};
  int depth = 0;

  constexpr plan_walk() { at[0] = traits::root(); }
  constexpr void enter(const char* name, int index) {
    const auto outer = at[depth++];
    at[depth] = !name             ? traits::advance(outer, index_name(index).view())
                : name[0] == '\0' ? outer
                                  : traits::advance(outer, std::string_view(name));
  }
  constexpr void exit() { --depth; }
  constexpr int group(const char* parameter) const { return traits::update_group(at[depth], std::string_view(parameter)); }
};

// Enters parameters and buffers into the graph in declaration order, each with the module it belongs to. In the table buffers
// come after the `parameters` parameters.
template <class Mesh, class Plan, int Modules>
struct parameter_recorder {
  builder& b;
  parameter_info* table;
  int parameters = 0;
  int count = 0, buffers = 0;
  plan_walk<Plan, Modules> walk{};

  constexpr int enter(const char* name, int index) {
    walk.enter(name, index);
    const int outer = b.current_scope;
    b.current_scope = b.enter(name, index);
    return outer;
  }
  constexpr int current() const { return b.current_scope; }
  constexpr void exit(int outer) {
    walk.exit();
    b.current_scope = outer;
  }

  template <class Decl, class Sym>
  constexpr void leaf(Sym& slot, const char* name) {
    constexpr bool is_buffer = is_buffer_decl<Decl>::value;
    int& number = is_buffer ? buffers : count;
    node n = empty_node;
    n.op = is_buffer ? op_code::module_buffer : op_code::param;
    n.a = is_buffer ? attributes<leaf_attributes>(number) : attributes<parameter_attributes>(number, 0, 0, walk.group(name));
    n.spec = b.intern(Sym::sp, Sym::hash);
    n.scope = b.current_scope;
    slot.b = &b;
    slot.id = b.append(n);
    using init_type = typename Decl::init_type;
    table[(is_buffer ? parameters : 0) + number++] = {slot.id, b.current_scope, name, init_type::kind, init_type::scale};
  }
};

// The same under a plan with fully_shard or mixed: the leaf of a parameter that is stored in shards, or in another type, has the spec
// that it is stored in, the member's tensor that of its use, and the builder learns how one becomes the other.
template <class Mesh, class Plan, int Leaves, int Scopes>
struct group_recorder : parameter_recorder<Mesh, Plan, Scopes> {
  using of_groups = void;
  stored_shard leaves[Leaves > 0 ? Leaves : 1]{};
  int first[Scopes]{}, last[Scopes]{};  // leaves of the group of each scope, plus one
  stored_shards stored{leaves, Leaves};

  constexpr group_recorder(builder& to, parameter_info* info, int parameters)
      : parameter_recorder<Mesh, Plan, Scopes>{to, info, parameters} {}

  template <class PB, class Decl, class Sym>
  constexpr void in_group(const Sym& slot) {
    using placing = tensor_in_group<PB, typename Decl::shape_type, is_buffer_decl<Decl>::value>;
    constexpr bool casts = Sym::sp.type != placing::value.stored.type;
    if constexpr (placing::in_shards || casts) {
      builder& b = this->b;
      stored_shard s;
      s.spec = b.intern(Sym::sp, Sym::hash);
      s.first = slot.id;
      if constexpr (casts) {
        s.type = static_cast<std::int64_t>(Sym::sp.type);
        s.cotangent = static_cast<std::int64_t>(parameter_precision<PB>::summed) + 1;
        s.low = b.intern(of_type(placing::value.stored, Sym::sp.type));
      }
      if constexpr (placing::in_shards)
        set_gathers<owning_group<typename PB::parent>>(s, slot.id, of_type(placing::value.part, Sym::sp.type));
      leaves[slot.id] = s;
      const int spec_id = b.intern(placing::value.stored);
      if (slot.id < b.node_capacity) b.nodes[slot.id].spec = spec_id;
    }
  }

 protected:
  // How its group makes a leaf whole, of which `s` knows how it is read; `part` is its spec over the inner axis alone.
  template <class Group>
  constexpr void set_gathers(stored_shard& s, int leaf, [[maybe_unused]] const spec& part) {
    const int scope = ancestor(Group::depth);
    s.axis = Mesh::template index_of<typename Group::style::axis>;
    s.scope = scope;
    s.unshard = static_cast<std::int64_t>(Group::style::template gathered < Group::depth == 0 >);
    if constexpr (!std::is_void_v<typename Group::style::inner>) {
      s.inner = Mesh::template index_of<typename Group::style::inner>;
      s.part = this->b.intern(part);
      s.unshard_part = static_cast<std::int64_t>(Group::style::template gathered_part < Group::depth == 0 >);
    }
    if (first[scope] == 0) first[scope] = leaf + 1;
    else leaves[last[scope] - 1].next = leaf;
    s.first = first[scope] - 1;
    last[scope] = leaf + 1;
  }

  // The scope that holds the current one, so many below the model's own.
  constexpr int ancestor(int depth) const {
    const builder& b = this->b;
    int below = 0;
    for (int s = b.current_scope; b.scopes[s].parent >= 0; s = b.scopes[s].parent) ++below;
    int scope = b.current_scope;
    for (; below > depth; --below) scope = b.scopes[scope].parent;
    return scope;
  }
};
template <class Mesh, class Plan, int Leaves, int Scopes>
using storing_recorder =
    std::conditional_t<plan_traits<Plan>::any_shards || plan_traits<Plan>::any_mixed,
                       group_recorder<Mesh, Plan, Leaves, Scopes>, parameter_recorder<Mesh, Plan, Scopes>>;

// The same under a plan with flat_parameters: the leaf of a group's first parameter is the flat one, in the place of the others' stands
// a number that nothing reads.
template <class Mesh, class Plan, int Leaves, int Scopes>
struct flat_recorder : group_recorder<Mesh, Plan, Leaves, Scopes> {
  using base = group_recorder<Mesh, Plan, Leaves, Scopes>;
  flat_part* flat;
  std::int64_t total[Scopes]{};  // elements of the flat parameter of each scope's group

  constexpr flat_recorder(builder& to, parameter_info* info, int parameters, flat_part* table)
      : base{to, info, parameters}, flat(table) {}

  template <class PB, class Decl, class Sym>
  constexpr void in_group(const Sym& slot) {
    using placing = tensor_in_group<PB, typename Decl::shape_type, is_buffer_decl<Decl>::value>;
    if constexpr (!placing::is_flat) {
      base::template in_group<PB, Decl>(slot);
    } else {
      using group = owning_group<typename PB::parent>;
      builder& b = this->b;
      stored_shard s;
      s.spec = b.intern(Sym::sp, Sym::hash);
      this->template set_gathers<group>(s, slot.id, spec(Sym::sp));
      s.flat = 0;  // finish() says which
      s.begin = total[s.scope];
      this->leaves[slot.id] = s;
      constexpr std::int64_t count = numel(spec(Sym::sp));
      total[s.scope] += count;
      flat[this->count - 1] = {first_number(s.first), s.begin, count, spec(Sym::sp)};
      if (s.first == slot.id || slot.id >= b.node_capacity) return;
      if (!placed_as_first(s)) return b.refuse_node(problem::flat_parameters_differ, slot.id);
      node n = empty_node;
      n.op = op_code::fill;
      n.spec = s.spec;
      n.scope = b.current_scope;
      b.nodes[slot.id] = n;
    }
  }
  // Behind the last leaf: flat parameters have their extents.
  constexpr void finish() {
    builder& b = this->b;
    for (int scope = 0; scope < Scopes; ++scope) {
      const int first = this->first[scope] - 1;
      if (first < 0 || this->leaves[first].flat < 0) continue;
      const int axis = this->leaves[first].axis;
      spec s = b.specs[this->leaves[first].spec < b.spec_capacity ? this->leaves[first].spec : 0];
      const std::int64_t ranks = s.axis_size[axis];
      for (int d = 0; d < max_rank; ++d) s.extent[d] = s.stride[d] = 0;
      s.rank = 1;
      s.extent[0] = (total[scope] + ranks - 1) / ranks * ranks;
      make_contiguous(s);
      const int whole = b.intern(s);
      for (int k = first; k >= 0; k = this->leaves[k].next) this->leaves[k].flat = whole;
      s.place[axis] = shard_value(0);
      normalise(s);
      const int stored = b.intern(s);
      if (first < b.node_capacity) b.nodes[first].spec = stored;
    }
  }

 private:
  // One tensor has one placement on each axis: its gradient is summed over all axes on which a part's is.
  constexpr bool placed_as_first(const stored_shard& s) const {
    const builder& b = this->b;
    const auto first = this->leaves[s.first].spec;
    if (s.spec >= b.spec_capacity || first >= b.spec_capacity) return true;  // recorded again, with room
    for (int a = 0; a < b.specs[first].axes; ++a)
      if (!(b.specs[s.spec].place[a] == b.specs[first].place[a])) return false;
    return true;
  }
  // The number of the parameter whose leaf this is.
  constexpr int first_number(int leaf) const {
    for (int p = 0; p < this->count; ++p)
      if (this->table[p].node == leaf) return p;
    return -1;
  }
};

// The same under a plan that splits the optimizer's states of whole parameters: each parameter's leaf says over which axes.
template <class Base>
struct state_recorder : Base {
  using of_groups = void;
  constexpr state_recorder(builder& to, parameter_info* info, int parameters) : Base{to, info, parameters} {}

  template <class PB, class Decl, class Sym>
  constexpr void in_group(const Sym& slot) {
    if constexpr (requires { typename Base::of_groups; }) Base::template in_group<PB, Decl>(slot);
    if constexpr (!is_buffer_decl<Decl>::value) {
      constexpr unsigned axes = axes_of_states<PB, typename Decl::shape_type>();
      if (axes == 0 || slot.id >= this->b.node_capacity) return;
      node& n = this->b.nodes[slot.id];
      auto of = attributes_of<parameter_attributes>(n.a);
      of.split_states = axes;
      n.a = pack_attributes(of);
    }
  }
};
template <class Mesh, class Plan, int Leaves, int Scopes>
using recorder_of = std::conditional_t<splits_any_states<Plan>, state_recorder<storing_recorder<Mesh, Plan, Leaves, Scopes>>,
                                       storing_recorder<Mesh, Plan, Leaves, Scopes>>;

}  // namespace shardwise::inline v0_1::detail
