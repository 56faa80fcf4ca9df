// SPDX-License-Identifier: Apache-2.0
// The graphs behind an eager model's gradients and optimizer steps: those of train_step, cut where gradients are given and taken.
#pragma once

#include <shardwise/module/eager.hpp>
#include <shardwise/module/function.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// Parameters become their gradients: dual placements (a reduced one's is partial: still to be summed), densely stored.
template <class Ctx>
struct gradient_context {
  using of_gradients = void;
  using mesh_type = typename Ctx::mesh_type;
  static constexpr dtype type = Ctx::type;
  template <spec S>
  using tensor = typename Ctx::template tensor<contiguous(dual(S))>;
};

// That of a parameter of type Tensor: a class, since g++ 12 crashes on the alias above in dependent code.
template <class Ctx, class Tensor>
struct gradient_tensor {
  static constexpr spec placed = contiguous(dual(Tensor::sp));
  using type = typename Ctx::template tensor<placed>;
};

template <class Bound>
struct eager_binding {
  using context = typename Bound::context;
  using plan_type = typename Bound::plan_type;
  using mesh_type = typename context::mesh_type;
  using element = element_t<context::type>;
  using gradients = typename bind_with<context::template model, plan_type, gradient_context<context>>::type;
  static constexpr int parameters = parameter_count<typename Bound::unbound_module>();
  static constexpr int buffers = buffer_count<typename Bound::unbound_module>();
};

// The task as train_step takes it, with the operands that it is called with.
template <class Task, class... X>
struct task_on {
  using inputs = shardwise::inputs<input_like<X>...>;
  constexpr auto operator()(const auto& model, const auto&... x) const { return Task{}(model, x...); }
};

template <class Graph, int Results>
struct gradient_list {
  Graph g{typename Graph::unfilled{}};
  // the loss, each parameter's gradient (-1: the loss does not depend on it), the metrics, the gradients of inputs
  int node[Results + Graph::output_capacity];
};

// The place of input i among those of which gradients are asked for, -1: it is none.
template <int... W>
constexpr int wanted_place(std::int64_t i, wrt<W...>) {
  int k = 0, found = -1;
  ((found = found < 0 && W == i ? k : found, ++k), ...);
  return found;
}
template <int... W>
constexpr int wanted_count(wrt<W...>) {
  return static_cast<int>(sizeof...(W));
}

// The joint graph with every parameter's gradient made dense, of the type that the parameter has (mixed) and divided by what the loss was
// scaled by (loss_scale), and those of the inputs Wrt; with Writes it writes over its inputs, at its end.
template <class Joint, int Params, bool Writes = false, class Wrt = wrt<>, std::int64_t LossScale = 1>
struct dense_gradients {
  using from = std::remove_cvref_t<decltype(Joint::value.g)>;
  static constexpr int wanted = wanted_count(Wrt{});
  static constexpr auto value = [] {
    constexpr int all = Params + wanted;
    constexpr int most = LossScale != 1 || has_low_precision(Joint::value.g) ? 3 * all : all;
    gradient_list<resized<from, from::node_capacity + most, from::spec_capacity + most>, all> r;
    copy_into(r.g, Joint::value.g);
    const int* const cotangent = Joint::value.cotangent;
    constexpr int forward = static_cast<int>(sizeof(Joint::value.cotangent) / sizeof(int));
    for (int& n : r.node) n = -1;
    r.node[0] = r.g.outputs[0];
    for (int k = 1; k < r.g.output_count; ++k) r.node[Params + k] = r.g.outputs[k];
    builder b = r.g.edit();
    for (int i = 0; i < forward; ++i) {
      const node& leaf = b.nodes[i];
      if ((leaf.op != op_code::param && leaf.op != op_code::input) || cotangent[i] < 0) continue;
      const std::int64_t index = attributes_of<leaf_attributes>(leaf.a).index;
      if (leaf.op == op_code::input && wanted_place(index, Wrt{}) < 0) continue;
      const std::int64_t to = leaf.op == op_code::param ? 1 + index : Params + r.g.output_count + wanted_place(index, Wrt{});
      int id = cotangent[i];
      if (const spec s = b.specs[b.nodes[id].spec]; !is_contiguous(s)) {
        node n = empty_node;
        n.op = op_code::contiguous;
        n.inputs = 1;
        n.in[0] = id;
        n.spec = b.intern(contiguous(s));
        id = b.append(n);
      }
      if (spec s = b.specs[b.nodes[id].spec]; s.type != b.specs[leaf.spec].type) {
        s.type = b.specs[leaf.spec].type;
        id = b.emit(op_code::cast, attributes<cast_attributes>(static_cast<std::int64_t>(s.type)), 0, b.intern(s),
                    b.nodes[id].scope, id);
      }
      if (LossScale != 1)
        id = b.emit(op_code::scale, {}, 1 / static_cast<double>(LossScale), b.nodes[id].spec, b.nodes[id].scope, id);
      r.node[to] = id;
      if (!b.error && !(b.specs[b.nodes[id].spec] == contiguous(dual(b.specs[b.nodes[i].spec]))))
        b.error = {problem::gradient_placement, i};
      place_error(b.error, b, i);
    }
    r.g.finish(b);
    if constexpr (Writes) passes::sink_writes(r.g, r.node, all + r.g.output_count);
    return r;
  }();
};

// The same behind the passes that a plan implies. They are given a graph whose outputs are all that is asked for.
template <class List, int Params>
struct as_outputs {
  static constexpr int ours = Params + List::value.g.output_count, count = ours + List::wanted;  // behind ours: of inputs
  static constexpr bool is_gradient(int k) {
    int i = 0;
    for (int skipped = k; List::value.node[i] < 0 || skipped-- > 0;) ++i;
    return (i > 0 && i <= Params) || i >= ours;
  }
  static constexpr auto value = [] {
    using from = std::remove_cvref_t<decltype(List::value.g)>;
    graph<from::node_capacity, from::spec_capacity, from::scope_capacity, Params + List::wanted + from::output_capacity> g;
    copy_into(g, List::value.g);
    g.output_count = 0;
    for (int i = 0; i < count; ++i)
      if (List::value.node[i] >= 0) g.outputs[g.output_count++] = List::value.node[i];
    return g;
  }();
};
template <class List, int Params, class Plan, bool Implied>
struct planned_gradients : List {};
template <class List, int Params, class Plan>
struct planned_gradients<List, Params, Plan, true> {
  using asked = as_outputs<List, Params>;
  using result = typename planned<Plan, asked>::type;
  static constexpr auto value = [] {
    gradient_list<graph_type_of<result>, Params + List::wanted> r;
    copy_into(r.g, result::value);
    for (int& n : r.node) n = -1;
    int k = 0;
    for (int i = 0; i < asked::count; ++i)
      if (List::value.node[i] >= 0) r.node[i] = result::value.outputs[k++];
    r.g.output_count = List::value.g.output_count;
    for (int i = 0; i < r.g.output_count; ++i) r.g.outputs[i] = r.node[i == 0 ? 0 : Params + i];
    return r;
  }();
};

// The gradients of a model bound eagerly as one program: Joint, of Trace's loss, behind the passes that its plan implies, and what is
// asked of every such program.
template <class Bound, class Trace, class Joint, class Wrt, int Inputs>
struct gradient_program {
  using binding_type = eager_binding<Bound>;
  using plan_type = typename binding_type::plan_type;
  using trace_type = Trace;
  using dense = dense_gradients<Joint, binding_type::parameters, writes_leaves<trace_type>, Wrt, trace_type::loss_scaled>;
#if !SHARDWISE_DEVICE_PASS
  static_assert(loss_is_scaled<trace_type, plan_type>::ok);
  static_assert(raise<(std::is_void_v<typename trace_type::scaler> ? problem::none : problem::dynamic_scale_eager),
                      typename trace_type::scaler>::ok);
  static_assert(low_sums_within<graph_of<dense>, reduction_bound_of<plan_type>, typename binding_type::mesh_type>::ok);
#endif
  using list = planned_gradients<dense, binding_type::parameters, plan_type, implies_passes<plan_type>>;
  static constexpr const auto& program = list::value.g;
#if !SHARDWISE_DEVICE_PASS
  static_assert(refused_graph<graph_of<list>, typename binding_type::mesh_type>::ok);
#endif
  static constexpr int input_count = Inputs, parameter_total = binding_type::parameters;
  static constexpr int buffer_total = binding_type::buffers;
  static constexpr const int* results = list::value.node;
  using output_names = typename trace_type::output_names;
  static constexpr int result_count = parameter_total + program.output_count + dense::wanted;
  static constexpr spec loss = program.specs[program.nodes[results[0]].spec];
  template <int K>
  struct metric {
    static constexpr spec placed = program.specs[program.nodes[results[parameter_total + K]].spec];
  };
};

// What a task's loss of a model is traced from.
template <class Bound, class Task, class... X>
using traced_loss = traced<eager_binding<Bound>::context::template model, task_on<Task, X...>,
                           typename eager_binding<Bound>::plan_type, typename eager_binding<Bound>::mesh_type,
                           typename eager_binding<Bound>::element, eager_binding<Bound>::context::gradient_mode>;

template <class Bound, class Task, class... X>
using model_trace = functional<typename checked_trained<typename checked_loss<traced_loss<Bound, Task, X...>>::type,
                                                        typename eager_binding<Bound>::plan_type>::type,
                               true>;
template <class Bound, class Task, class... X>
struct model_gradient
    : gradient_program<Bound, model_trace<Bound, Task, X...>, staged<autodiff::grad, model_trace<Bound, Task, X...>>, wrt<>,
                       static_cast<int>(sizeof...(X))> {};

// A joint graph of nothing but parameters and, as inputs, the gradients of those that are trained: what apply_optimizer starts
// from.
template <class Bound>
struct given_gradients {
  using binding_type = eager_binding<Bound>;
  using mesh_type = typename binding_type::mesh_type;
  static constexpr int parameters = binding_type::parameters, tensors = parameters + binding_type::buffers;
  static constexpr int nodes = tensors + parameters + 1;
  using traits = plan_traits<typename binding_type::plan_type>;
  static constexpr int specs = traits::any_mixed ? 6 * tensors + 1 : traits::any_shards ? 4 * tensors + 1 : nodes;
  static constexpr int modules = module_count<typename Bound::unbound_module>() + 1;
  struct joint {
    // in shards, of a tensor: used, in part, stored, and its gradient's; and stored, but of the type that it is used in
    graph<nodes, specs, modules> g;
    int cotangent[nodes];
  };
  static constexpr auto value = [] {
    joint r;
    builder b = r.g.edit();
    parameter_table<tensors> table{};
    bind<binding_type::context::template model, typename binding_type::plan_type, mesh_type, typename binding_type::element>
        model{};
    recorder_of<mesh_type, typename binding_type::plan_type, tensors, module_count<typename Bound::unbound_module>() + 1>
        recorder{b, table.item, parameters};
    visit_module<typename Bound::unbound_module>(model, "", -1, recorder);
    for (int& c : r.cotangent) c = -1;
    for (int k = 0; k < parameters; ++k) {
      if (is_frozen_parameter(b.nodes[table.item[k].node])) continue;
      node n = empty_node;
      n.op = op_code::input;
      n.a = attributes<leaf_attributes>(k);
      n.spec = b.intern(contiguous(dual(b.specs[b.nodes[table.item[k].node].spec])));
      n.scope = b.nodes[table.item[k].node].scope;
      r.cotangent[table.item[k].node] = b.append(n);
    }
    node nothing = empty_node;  // in place of a loss
    nothing.op = op_code::fill;
    nothing.spec = b.intern(mesh_spec<mesh_type>(binding_type::context::type));
    r.g.outputs[0] = b.append(nothing);
    r.g.output_count = 1;
    r.g.finish(b);
    return r;
  }();
};

template <class Optimizer, class Bound>
struct update_program {
  using binding_type = eager_binding<Bound>;
  using param_groups = typename groups_of_plan<typename binding_type::plan_type>::type;
  static constexpr bool splits = splits_any_states<typename binding_type::plan_type>;
  using updated = staged<apply_optimizer<typename optimizer_under<Optimizer, typename binding_type::plan_type>::type,
                                         binding_type::parameters, splits>,
                         given_gradients<Bound>>;
  static constexpr const auto& program = updated::value.g;
#if !SHARDWISE_DEVICE_PASS
  static_assert(refused_graph<graph_of<updated>, typename binding_type::mesh_type>::ok);
#endif
  static constexpr int input_count = binding_type::parameters, parameter_total = binding_type::parameters;
  static constexpr const int* results = nullptr;
  static constexpr int result_count = 0;
};

template <class Task>
struct task_gradient {
  template <class Model, tensor X, tensor... More>
  auto operator()(const Model& model, const X& x, const More&... more) const;
};

}  // namespace detail

}  // namespace shardwise::inline v0_1
