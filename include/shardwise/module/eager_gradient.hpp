// SPDX-License-Identifier: Apache-2.0
// Gradients of an eager model's parameters, as a model of gradients, and optimizer steps on them: the graphs are those
// of train_step, run node by node.
#pragma once

#include <vector>

#include <shardwise/module/gradient_graphs.hpp>
#include <shardwise/runtime/program/scaler_state.hpp>

namespace shardwise::inline v0_1 {

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
// A parameter that the loss does not depend on, or that is frozen, has a gradient without a value. The model trains, unless with_mode or its plan
// say otherwise, and buffers that the task writes are written. Law: with an eager_optimizer's step this
// is the train_step of the same model, task, plan and optimizer, bit for bit. Collective where that is.
template <class Task>
constexpr auto value_and_grad(Task) {
  return detail::task_gradient<Task>{};
}

namespace detail {

// Program's results of a model and the operands; `observer`: null, or told of the nodes. The model is read before the first call of
// one of its modules alone.
template <class Program, class Model, class X, class... More>
void compute_gradients(typename X::untyped* out, runtime::call_observer* observer, const Model& model, const X& x,
                       const More&... more) {
  constexpr int inputs = Program::input_count, parameters = Program::parameter_total;
  constexpr int operands = inputs + parameters + Program::buffer_total;
  const typename X::untyped* in[operands] = {&x.value(), &more.value()...};
  int k = inputs;
  each_leaf(model, [&](const auto& parameter) { in[k++] = &parameter.value(); });
  each_leaf<walked::buffers>(model, [&](const auto& buffer) { in[k++] = &buffer.value(); });
  X::template run_untyped<Program>(x.value(), in, operands, out, observer);
}

// These results as value_and_grad gives them.
template <class Program, class Model, class X>
auto named_gradients(typename X::untyped* out) {
  constexpr int parameters = Program::parameter_total;
  using loss_type = typename X::template like<Program::loss>;
  const auto fill = [&](auto& r) {
    int at = 1;
    each_leaf(r.gradients, [&]<class Gradient>(Gradient& g) { g = Gradient::of(std::move(out[at++])); });
  };
  using names = typename Program::output_names;
  if constexpr (names::count == 0) {
    loss_and_gradients<loss_type, gradients_of<Model>> r{loss_type::of(std::move(out[0])), {}};
    fill(r);
    return r;
  } else {
    const loss_type loss = loss_type::of(std::move(out[0]));
    using metrics = eager_metrics<X, Program, names>;
    auto named =
        metrics::make(loss, out + parameters + 1, std::make_index_sequence<static_cast<std::size_t>(names::count - 1)>{});
    loss_and_gradients<loss_type, gradients_of<Model>, decltype(named)> r{loss, {}, std::move(named)};
    fill(r);
    return r;
  }
}

}  // namespace detail

template <class Task>
template <class Model, tensor X, tensor... More>
auto detail::task_gradient<Task>::operator()(const Model& model, const X& x, const More&... more) const {
  using program = detail::model_gradient<typename Model::bound, Task, X, More...>;
  typename X::untyped out[program::result_count];
  detail::compute_gradients<program>(out, nullptr, model, x, more...);
  return detail::named_gradients<program, Model, X>(out);
}

// An optimizer with its states for the parameters of one eager model.
template <class Optimizer, class Model>
class eager_optimizer {
  using program = detail::update_program<Optimizer, typename Model::bound>;

 public:
  // One update in place: gradients are summed over the ranks where they are partial, clipped if the optimizer clips, and
  // applied. All tensors that share a parameter's storage see it. A parameter whose gradient has no value stays as it is.
  // `env`: rate, step (from 1) and the optimizer's numbers, as executor::run takes them: a step_env or an
  // env_of<eager_optimizer<...>>. Collective.
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
  // The 2-norm of all gradients of the last step, as report_norm says; 0 before there was one. The same on all ranks.
  double gradient_norm() const {
    constexpr int id = runtime::state_of_program(program::program, shardwise::gradient_norm);
    static_assert(
        raise<(id >= 0 ? problem::none : problem::gradient_norm_missing), typename Model::bound::context::mesh_type>::ok);
    if (states_.empty()) return 0;
    using type = element_t<program::program.spec_of(id).type>;
    const auto index = static_cast<std::size_t>(attributes_of<leaf_attributes>(program::program.nodes[id].a).index);
    return static_cast<double>(*reinterpret_cast<const type*>(states_[index].data()));
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

template <class Optimizer, class Model>
struct program_traits<eager_optimizer<Optimizer, Model>> {
  using param_groups = typename detail::groups_of_plan<typename Model::bound::plan_type>::type;
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
