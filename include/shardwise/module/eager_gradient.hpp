// SPDX-License-Identifier: Apache-2.0
// Gradients of an eager model's parameters, as a model of gradients, and optimizer steps on them: the graphs are those
// of train_step, run node by node.
#pragma once

#include <vector>

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

template <class Graph, int Params>
struct gradient_list {
  Graph g;
  int node[Params +
           Graph::output_capacity];  // the loss, each parameter's gradient (-1: the loss does not depend on it), the metrics
};

// The joint graph with every parameter's gradient made dense; with Writes it writes over its inputs, at its end.
template <class Joint, int Params, bool Writes = false>
struct dense_gradients {
  using from = std::remove_cvref_t<decltype(Joint::value.g)>;
  static constexpr auto value = [] {
    gradient_list<resized<from, from::node_capacity + Params, from::spec_capacity + Params>, Params> r;
    copy_into(r.g, Joint::value.g);
    const int* const cotangent = Joint::value.cotangent;
    constexpr int forward = static_cast<int>(sizeof(Joint::value.cotangent) / sizeof(int));
    for (int& n : r.node) n = -1;
    r.node[0] = r.g.outputs[0];
    for (int k = 1; k < r.g.output_count; ++k) r.node[Params + k] = r.g.outputs[k];
    builder b = r.g.edit();
    for (int i = 0; i < forward; ++i) {
      if (b.nodes[i].op != op_code::param || cotangent[i] < 0) continue;
      int id = cotangent[i];
      if (const spec s = b.specs[b.nodes[id].spec]; !is_contiguous(s)) {
        node n = empty_node;
        n.op = op_code::contiguous;
        n.inputs = 1;
        n.in[0] = id;
        n.spec = b.intern(contiguous(s));
        id = b.append(n);
      }
      r.node[1 + attributes_of<leaf_attributes>(b.nodes[i].a).index] = id;
      if (!b.error && !(b.specs[b.nodes[id].spec] == contiguous(dual(b.specs[b.nodes[i].spec]))))
        b.error = {problem::gradient_placement, i};
      place_error(b.error, b, i);
    }
    r.g.finish(b);
    if constexpr (Writes) passes::sink_writes(r.g, r.node, Params + r.g.output_count);
    return r;
  }();
};

template <class Bound, class Task, class... X>
struct model_gradient {
  using binding_type = eager_binding<Bound>;
  using trace_type =
      functional<typename checked_loss<traced<binding_type::context::template model, task_on<Task, X...>,
                                              typename binding_type::plan_type, typename binding_type::mesh_type,
                                              typename binding_type::element, binding_type::context::gradient_mode>>::type,
                 true>;
  using list = dense_gradients<staged<autodiff::grad, trace_type>, binding_type::parameters, writes_leaves<trace_type>>;
  static constexpr const auto& program = list::value.g;
#if !SHARDWISE_DEVICE_PASS
  static_assert(refused_graph<graph_of<list>, typename binding_type::mesh_type>::ok);
#endif
  static constexpr int input_count = static_cast<int>(sizeof...(X)), parameter_total = binding_type::parameters;
  static constexpr int buffer_total = binding_type::buffers;
  static constexpr const int* results = list::value.node;
  using output_names = typename trace_type::output_names;
  static constexpr int result_count = parameter_total + program.output_count;
  static constexpr spec loss = program.specs[program.nodes[results[0]].spec];
  template <int K>
  struct metric {
    static constexpr spec placed = program.specs[program.nodes[results[parameter_total + K]].spec];
  };
};

// A joint graph of nothing but parameters and, as inputs, their gradients: what apply_optimizer starts from.
template <class Bound>
struct given_gradients {
  using binding_type = eager_binding<Bound>;
  using mesh_type = typename binding_type::mesh_type;
  static constexpr int parameters = binding_type::parameters, tensors = parameters + binding_type::buffers;
  static constexpr int nodes = tensors + parameters + 1;
  struct joint {
    graph<nodes, nodes, module_count<typename Bound::unbound_module>() + 1> g;
    int cotangent[nodes];
  };
  static constexpr auto value = [] {
    joint r;
    builder b = r.g.edit();
    parameter_table<tensors> table{};
    bind<binding_type::context::template model, typename binding_type::plan_type, mesh_type, typename binding_type::element>
        model{};
    parameter_recorder<mesh_type> recorder{b, table.item, parameters};
    visit_module<typename Bound::unbound_module>(model, "", -1, recorder);
    for (int& c : r.cotangent) c = -1;
    for (int k = 0; k < parameters; ++k) {
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
  using updated = staged<apply_optimizer<Optimizer, binding_type::parameters>, given_gradients<Bound>>;
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

// The gradients of a model's parameters: the model itself, each parameter a tensor placed as its gradient is.
template <class Model>
using gradients_of = typename detail::eager_binding<typename Model::bound>::gradients;

template <class Loss, class Gradients, class Metrics = void>
struct loss_and_gradients {
  Loss loss;  // as the task returns it: partial over the axes that share the batch; item() sums it
  Gradients gradients;
  Metrics metrics;  // get<"accuracy">(): all outputs of the task, as it returns them
};
template <class Loss, class Gradients>
struct loss_and_gradients<Loss, Gradients, void> {
  Loss loss;
  Gradients gradients;
};

namespace detail {

// The named outputs of a task, out of its loss and the values behind the gradients.
template <class X, class Program, class Names>
struct eager_metrics;
template <class X, class Program, class Loss, class... N>
struct eager_metrics<X, Program, output_names<Loss, N...>> {
  template <int K>
  struct tensor_at {
    static constexpr spec placed = Program::template metric<K>::placed;
    using type = typename X::template like<placed>;
  };
  template <class Named, class Tensor>
  static auto make_one(Tensor&& t) {
    return typename Named::template with<Tensor>{std::move(t)};
  }
  template <class Tensor, class Untyped, std::size_t... K>
  static auto make(Tensor loss, Untyped* out, std::index_sequence<K...>) {
    return outputs(make_one<Loss>(std::move(loss)),
                   make_one<N>(tensor_at<static_cast<int>(K) + 1>::type::of(std::move(out[K])))...);
  }
};

}  // namespace detail

// auto [loss, gradients] = value_and_grad(task)(model, x, y), and of a task that returns outputs(named<...>(loss), ...)
// auto [loss, gradients, metrics] = ..., then metrics.get<"accuracy">(): the task's loss, and its gradients with respect to the
// parameters of an eager model. Task: a type without members, or a lambda without captures, called as train_step does.
// A parameter that the loss does not depend on has a gradient without a value. The model trains, unless with_mode or its plan
// say otherwise, and buffers that the task writes are written. Law: with an eager_optimizer's step this
// is the train_step of the same model, task, plan and optimizer, bit for bit. Collective where that is.
template <class Task>
constexpr auto value_and_grad(Task) {
  return detail::task_gradient<Task>{};
}

template <class Task>
template <class Model, tensor X, tensor... More>
auto detail::task_gradient<Task>::operator()(const Model& model, const X& x, const More&... more) const {
  using program = detail::model_gradient<typename Model::bound, Task, X, More...>;
  using untyped = typename X::untyped;
  constexpr int inputs = program::input_count, parameters = program::parameter_total;
  constexpr int operands = inputs + parameters + program::buffer_total;
  const untyped* in[operands] = {&x.value(), &more.value()...};
  int k = inputs;
  detail::each_leaf(model, [&](const auto& parameter) { in[k++] = &parameter.value(); });
  detail::each_leaf<detail::walked::buffers>(model, [&](const auto& buffer) { in[k++] = &buffer.value(); });
  untyped out[program::result_count];
  X::template run_untyped<program>(x.value(), in, operands, out);
  using loss_type = typename X::template like<program::loss>;
  const auto fill = [&](auto& r) {
    int at = 1;
    detail::each_leaf(r.gradients, [&]<class Gradient>(Gradient& g) { g = Gradient::of(std::move(out[at++])); });
  };
  using names = typename program::output_names;
  if constexpr (names::count == 0) {
    loss_and_gradients<loss_type, gradients_of<Model>> r{loss_type::of(std::move(out[0])), {}};
    fill(r);
    return r;
  } else {
    const loss_type loss = loss_type::of(std::move(out[0]));
    using metrics = detail::eager_metrics<X, program, names>;
    auto named =
        metrics::make(loss, out + parameters + 1, std::make_index_sequence<static_cast<std::size_t>(names::count - 1)>{});
    loss_and_gradients<loss_type, gradients_of<Model>, decltype(named)> r{loss, {}, std::move(named)};
    fill(r);
    return r;
  }
}

// An optimizer with its states for the parameters of one eager model.
template <class Optimizer, class Model>
class eager_optimizer {
  using program = detail::update_program<Optimizer, typename Model::bound>;

 public:
  // One update in place: gradients are summed over the ranks where they are partial, clipped if the optimizer clips, and
  // applied. All tensors that share a parameter's storage see it. A parameter whose gradient has no value stays as it is.
  // `env`: rate, step (from 1) and the optimizer's numbers, as executor::run takes them. Collective.
  template <class Env>
  void step(Model& model, const gradients_of<Model>& gradients, const Env& env) {
    std::vector<const untyped*>& in = operands_;
    in.clear();
    detail::each_leaf(gradients, [&](const auto& g) { in.push_back(&g.value()); });
    detail::each_leaf(model, [&](auto& parameter) {
      parameter.value().live();  // only gradients may be missing
      in.push_back(&parameter.value());
    });
    const untyped& first = *in[program::input_count];
    if (states_.empty()) states_ = tensor_type::template zero_states<program>(first);
    for (const untyped& s : states_) in.push_back(&s);
    tensor_type::template update_untyped<program>(first, in.data(), static_cast<int>(in.size()), env);
  }
  // Forgets the moments: the next step is the first one.
  void reset() { states_.clear(); }

 private:
  // any tensor of the model's context leads to its runs
  using tensor_type =
      typename Model::bound::context::template tensor<detail::mesh_spec<typename Model::bound::context::mesh_type>(
          Model::bound::context::type)>;
  using untyped = typename tensor_type::untyped;

  std::vector<untyped> states_;
  std::vector<const untyped*> operands_;
};

// f(path, parameter, gradient) for every parameter of a model, in declaration order.
template <class Model, class F>
void for_each_gradient(Model& model, const gradients_of<Model>& gradients, F&& f) {
  std::vector<const void*> all;
  detail::each_leaf(gradients, [&](const auto& g) { all.push_back(&g); });
  std::size_t k = 0;
  for_each_parameter(model, [&]<class Tensor>(const std::string& path, Tensor& parameter) {
    using gradient = typename detail::gradient_tensor<typename Model::bound::context, Tensor>::type;
    f(path, parameter, *static_cast<const gradient*>(all[k++]));
  });
}

}  // namespace shardwise::inline v0_1
