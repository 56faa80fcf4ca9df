// SPDX-License-Identifier: Apache-2.0
// trace: runs a model's forward and loss on symbolic tensors and keeps the graph as a constant.
#pragma once

#include <shardwise/graph/functions/pending.hpp>
#include <shardwise/module/accumulate.hpp>
#include <shardwise/module/bind.hpp>
#include <shardwise/module/outputs.hpp>
#include <shardwise/module/refused_trace.hpp>
#include <shardwise/vocabulary/flat_part.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// A parameter or buffer of a program.
struct parameter_info {
  int node = -1;
  int scope = -1;
  const char* name = nullptr;
  init_kind kind = init_kind::zeros;
  double scale = 0;
};

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
      s.flat = 0;
      s.begin = total[s.scope];
      this->leaves[slot.id] = s;
      constexpr std::int64_t count = numel(spec(Sym::sp));
      total[s.scope] += count;
      flat[this->count - 1] = {first_number(s.first), s.begin, count, spec(Sym::sp)};
      if (s.first == slot.id || slot.id >= b.node_capacity) return;
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
      if (total[scope] == 0) continue;
      const int first = this->first[scope] - 1;
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

template <class Mesh, class In, class Report = noted>
constexpr auto record_input(builder& b, int index) {
  constexpr spec s = In::template spec_type<Mesh>::value;
  using sym_type = sym<s, Mesh, Report>;
  node n = empty_node;
  n.op = op_code::input;
  n.a = attributes<leaf_attributes>(index);
  n.spec = b.intern(sym_type::sp, sym_type::hash);
  const sym_type x{&b, b.append(n)};
  if constexpr (requires { In::waits; }) return wait(x);
  else return x;
}

template <class Task, class Model, class Mesh, class Inputs, class Report = noted>
struct task_call;
template <class Task, class Model, class Mesh, class... In, class Report>
struct task_call<Task, Model, Mesh, inputs<In...>, Report> {
  // asked of the call alone: what is wrong within it is said there
  static constexpr bool fits =
      std::is_invocable_v<Task, const Model&,
                          const decltype(record_input<Mesh, In, Report>(std::declval<builder&>(), 0))&...>;
  static_assert(raise<(fits ? problem::none : problem::task_call), Task, inputs<In...>>::ok);
  static constexpr auto result() {
    if constexpr (fits)
      return std::type_identity<decltype(Task{}(std::declval<const Model&>(),
                                                record_input<Mesh, In, Report>(std::declval<builder&>(), 0)...))>{};
    else return std::type_identity<no_result>{};
  }
  using type = typename decltype(result())::type;
};

template <int Params>
struct parameter_table {
  parameter_info item[Params > 0 ? Params : 1]{};
};
// Of the parameters of a plan without flat_parameters nothing is kept.
struct no_flat_table {};

template <class Graph, int Tensors, class Flat = no_flat_table>
struct trace_result {
  Graph g{typename Graph::unfilled{}};
  parameter_table<Tensors> params{};
  Flat flat{};
  bool complete = false;
  bool again = false;  // with builder::own_values
  bool resolved = true;
  refusal refused{};
};

}  // namespace detail

// Task: struct { using inputs = sw::inputs<...>; constexpr auto operator()(const auto& model, const auto&... in) const; },
// returning the scalar loss, or outputs(named<"loss">(..), ...). `value` is the forward graph: output 0 the loss as returned,
// possibly partial, and the others behind it. Mode: of the modules of which the plan says none. Accumulation: an accumulate, whose
// micro-batches the task is called with, one after the other.
template <template <class> class Model, class Task, class Plan, class Mesh, class T = float,
          run_mode Mode = run_mode::unsaid, class Accumulation = accumulate<1>>
struct traced {
  using model_type = bind<Model, Plan, Mesh, T, Mode>;
  using unbound_model = typename model_type::bound::unbound_module;
  using mesh_type = Mesh;
  static constexpr int parameters = detail::parameter_count<unbound_model>();
  static constexpr int buffers = detail::buffer_count<unbound_model>();
  static constexpr int modules = detail::module_count<unbound_model>() > 0 ? detail::module_count<unbound_model>() : 1;
  static constexpr std::int64_t averaged_over = detail::batch_axes<Plan, Mesh>::averaged;
  using scaler = typename detail::dynamic_scale_of<Plan>::type;
  static constexpr std::int64_t loss_scaled =
      detail::loss_scale_of<Plan> > 1 && std::is_void_v<scaler> ? detail::loss_scale_of<Plan> : 1;
  static constexpr dtype stored_as = dtype_v<T>;  // of parameters and an optimizer's states
  static constexpr bool shards = detail::plan_traits<Plan>::any_shards, casts = detail::plan_traits<Plan>::any_mixed;
  static constexpr bool flattens = detail::plan_traits<Plan>::any_flat;
  using accumulation = Accumulation;
  static constexpr int micro_batches = Accumulation::shardwise_micro_batches;
  using called_with = typename detail::called_inputs<typename Task::inputs, Accumulation>::type;
  using result_type = typename detail::task_call<Task, model_type, Mesh, called_with>::type;
  using results = detail::task_result<result_type>;
  using output_names = typename results::names;
#if !SHARDWISE_DEVICE_PASS
  static_assert(raise<results::what, Task, result_type>::ok);
#endif

 private:
  using flat_type = std::conditional_t<flattens, flat_table<parameters>, detail::no_flat_table>;
  template <class Result>
  static constexpr auto recorder(builder& b, Result& r) {
    if constexpr (flattens)
      return detail::flat_recorder<Mesh, Plan, parameters + buffers, modules>(b, r.params.item, parameters, r.flat.item);
    else return detail::recorder_of<Mesh, Plan, parameters + buffers, modules>{b, r.params.item, parameters};
  }
  template <int N, int S, int M, bool Own>
  static constexpr auto record(call_log* calls = nullptr) {
    using graph_type = graph<N, S, M, (results::count < 1 ? 1 : results::count)>;
    detail::trace_result<graph_type, parameters + buffers, flat_type> r;
    builder b = r.g.edit();
    b.own_values = Own;
    b.calls = calls;
    model_type model{};
    auto rec = recorder(b, r);
    detail::visit_module<unbound_model>(model, "", -1, rec);
    if constexpr (flattens) rec.finish();
    if constexpr (shards || casts) b.stored = &rec.stored;
    run(r, b, model, typename Task::inputs{}, std::make_index_sequence<Task::inputs::count>{});
    r.complete = !b.overflowed();
    r.again = !Own && b.last_write >= 0 && b.same_values;
    r.refused = b.refused;
    r.g.finish(b);
    r.g.fill(b.node_count < N ? b.node_count : N, r.g.output_count);
    return r;
  }

  template <class Result, class... In, std::size_t... I>
  static constexpr void run(Result& r, builder& b, const model_type& model, inputs<In...>, std::index_sequence<I...>) {
    if constexpr (results::count == 0) {
      keep(r, b, detail::unresolved<Mesh>{});
    } else {
      std::tuple<decltype(detail::record_input<Mesh, In>(b, 0))...> in{
          detail::record_input<Mesh, In>(b, static_cast<int>(I))...};
      if constexpr (micro_batches > 1) {
        run_pieces(r, b, model, in, std::make_index_sequence<micro_batches>{});
      } else {
        const auto result = std::apply([&](const auto&... x) { return Task{}(model, x...); }, in);
        results::each(result, [&](const auto& x) { keep(r, b, x); });
      }
    }
  }
  // The inputs' pieces K, one after the other.
  template <class Result, class In, std::size_t... K>
  static constexpr void run_pieces(Result& r, builder& b, const model_type& model, const In& in, std::index_sequence<K...>) {
    constexpr auto all = std::make_index_sequence<std::tuple_size_v<In>>{};
    int ids[results::count][micro_batches]{};
    const auto call = [&]<std::size_t Piece>(std::integral_constant<std::size_t, Piece>) {
      const auto result = call_piece<static_cast<int>(Piece)>(model, in, all);
      int output = 0;
      results::each(result, [&](const auto& x) {
        if constexpr (detail::resolved<std::remove_cvref_t<decltype(x)>>)
          ids[output][Piece] = b.operand(x.id, op_code::param);
        ++output;
      });
      if constexpr (Piece + 1 == sizeof...(K))
        detail::join_results<results, micro_batches>(result, ids, [&](const auto& x) { keep(r, b, x); });
    };
    (call(std::integral_constant<std::size_t, K>{}), ...);
  }
  template <int Piece, class In, std::size_t... I>
  static constexpr auto call_piece(const model_type& model, const In& in, std::index_sequence<I...>) {
    // a braced list keeps inputs in their order
    const std::tuple<decltype(detail::piece_of_input<Accumulation, Piece, static_cast<int>(I)>(std::get<I>(in)))...> pieces{
        detail::piece_of_input<Accumulation, Piece, static_cast<int>(I)>(std::get<I>(in))...};
    return std::apply([&](const auto&... x) { return Task{}(model, x...); }, pieces);
  }
  template <class Result, class X>
  static constexpr void keep(Result& r, builder& b, const X& x) {
    int id = -1;
    if constexpr (detail::resolved<X>) {
      id = b.operand(x.id, op_code::param);
    } else {  // it does not compile: a constant stands for it
      node n = empty_node;
      n.op = op_code::fill;
      n.spec = b.intern(detail::mesh_spec<Mesh>(dtype_v<T>));
      id = b.append(n);
      r.resolved = false;
    }
    r.g.outputs[r.g.output_count++] = id;
  }

  // One evaluation into a guessed capacity, a second one only if the guess was short; once more if it must tell values
  // apart.
  static constexpr int gathers = (shards ? 1 : 0) + (casts ? 1 : 0) + (detail::plan_traits<Plan>::any_nested ? 1 : 0) +
                                 (flattens ? 2 : 0);  // of a parameter
  static constexpr int guess = micro_batches * ((4 + gathers) * (parameters + buffers) + 96);
  template <int N, int S, int M, bool Own>
  static constexpr auto recorded = record<N, S, M, Own>();
  template <bool Own>
  static constexpr const auto& complete_trace() {
    if constexpr (recorded<guess, 96, modules, Own>.complete) return recorded<guess, 96, modules, Own>;
    else
      return recorded<recorded<guess, 96, modules, Own>.g.node_count, recorded<guess, 96, modules, Own>.g.spec_count,
                      recorded<guess, 96, modules, Own>.g.scope_count, Own>;
  }
  static constexpr const auto& final_trace() {
    if constexpr (complete_trace<false>().again) return complete_trace<true>();
    else return complete_trace<false>();
  }
  static constexpr const auto& all = final_trace();

  struct found {
    static constexpr const auto& value = all.g;
    static constexpr const refusal& refused = all.refused;
    static constexpr bool resolved = all.resolved;
  };
  struct once_more {
    template <class Report>
    using with = detail::task_call<
        Task, typename detail::bind_with<Model, Plan, detail::trace_context<Mesh, dtype_v<T>, Report, Mode>>::type, Mesh,
        called_with, Report>;
  };
  static constexpr const auto& checked() {
#if !SHARDWISE_DEVICE_PASS
    if constexpr (!all.resolved || all.refused.what != problem::none)
      static_assert(detail::say_refusal<found, once_more>::ok);
#endif
    return all.g;
  }

 public:
  // Its capacity may be larger than its size: to store it anew would cost more than the rest of it.
  static constexpr const auto& value = checked();
  static constexpr const auto& params = all.params;  // the parameters, then the buffers
  static constexpr const auto& flat = all.flat;      // where the parameters of flat groups lie

  // Tells the log of all calls of modules, of notes and hooks, in the order of the program: one more evaluation of the trace.
  static constexpr void tell(call_log& log) {
    using graph_type = std::remove_cvref_t<decltype(all.g)>;
    record<graph_type::node_capacity, graph_type::spec_capacity, graph_type::scope_capacity, complete_trace<false>().again>(
        &log);
  }
};

}  // namespace shardwise::inline v0_1
