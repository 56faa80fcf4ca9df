// SPDX-License-Identifier: Apache-2.0
// Models run eagerly: bind_eager gives every parameter an eager tensor's type; initial values, and exchange with
// programs.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <shardwise/module/bind.hpp>
#include <shardwise/runtime/eager/dtensor.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// A context that remembers whose: models can be bound anew, to trace them or to hold their gradients. Said: the mode that
// was asked for. Without one the model evaluates when it is called, and trains where its gradients are taken.
template <template <class> class Model, class Ctx, run_mode Said = run_mode::unsaid>
struct model_context : Ctx {
  template <class Bound>
  using model = Model<Bound>;
  static constexpr run_mode mode = Said == run_mode::unsaid ? run_mode::eval : Said;
  static constexpr run_mode gradient_mode = Said == run_mode::unsaid ? run_mode::train : Said;
  template <run_mode Mode>
  using in_mode = model_context<Model, Ctx, Mode>;
};

// A plan that eager models can have.
template <class Plan>
struct plan_of_eager {
  using type = Plan;
};
template <class Plan>
  requires(plan_traits<Plan>::any_flat)
struct plan_of_eager<Plan> {
  static_assert(raise<problem::flat_parameters_eager, Plan>::ok);
  using type = Plan;
};

}  // namespace detail

// The model whose parameters and buffers are eager tensors, placed as the plan says. They have no values until initialise or
// load_parameters has run. Its modules evaluate when it is called (run_mode), and train in value_and_grad, unless the plan says
// a mode; with_mode says another one.
template <template <class> class Model, class Plan, class Mesh, class T = float, class Rank = thread_rank<Mesh>>
using bind_eager = typename detail::bind_with<Model, typename detail::plan_of_eager<Plan>::type,
                                              detail::model_context<Model, eager_context<Mesh, dtype_v<T>, Rank>>>::type;

namespace detail {

enum class walked : std::uint8_t { parameters, buffers, both };
template <walked What, class Decl>
inline constexpr bool is_walked = What == walked::both || is_buffer_decl<Decl>::value == (What == walked::buffers);

// Names parameters and buffers as programs do: the members' names and list indices, joined by dots.
template <walked What, class F>
struct parameter_walk {
  F& f;
  std::string path{};

  int enter(const char* name, int index) {
    const int before = static_cast<int>(path.size());
    const std::string part = name ? std::string(name) : std::to_string(index);
    if (!part.empty()) path += (path.empty() ? "" : ".") + part;
    return before;
  }
  int current() const { return -1; }
  void exit(int before) { path.resize(static_cast<std::size_t>(before)); }

  template <class Decl, class Tensor>
  void leaf(Tensor& tensor, const char* name) {
    if constexpr (is_walked<What, Decl>)
      f.template operator()<Decl>(path.empty() ? std::string(name) : path + "." + name, tensor);
  }
};

template <walked What, class Model, class F>
void walk_parameters(Model& model, F&& f) {
  parameter_walk<What, F> walk{f};
  visit_module<typename Model::bound::unbound_module>(model, "", -1, walk);
}

// The same in the same order without names: f(tensor).
template <walked What, class F>
struct leaf_walk {
  F& f;
  constexpr int enter(const char*, int) { return 0; }
  constexpr int current() const { return -1; }
  constexpr void exit(int) {}
  template <class Decl, class Tensor>
  constexpr void leaf(Tensor& tensor, const char*) {
    if constexpr (is_walked<What, Decl>) f(tensor);
  }
};
template <walked What = walked::parameters, class Model, class F>
void each_leaf(Model& model, F&& f) {
  leaf_walk<What, F> walk{f};
  visit_module<typename Model::bound::unbound_module>(model, "", -1, walk);
}

// The program's parameter or buffer of this name, if it is the same tensor: same extents and placements.
template <class Decl, class Tensor, class Executor>
int same_parameter(const Executor& program, const std::string& path) {
  constexpr bool is_buffer = is_buffer_decl<Decl>::value;
  const int i = is_buffer ? Executor::buffer_index(path) : Executor::parameter_index(path);
  if (!((is_buffer ? program.buffer_spec(i) : program.parameter_spec(i)) == Tensor::sp))
    throw std::invalid_argument(
        std::string("shardwise: ") + (is_buffer ? "buffer" : "parameter") + " '" + path +
        "' has other extents, placements or elements in the program than in the eager model; bind both with "
        "one plan, mesh and element type, or carry it over whole: " +
        (is_buffer ? "gather_buffer" : "gather_parameter") + ", distribute");
  return i;
}

}  // namespace detail

// f(path, tensor) for every parameter, in declaration order, the order of the parameters of a train_step.
template <class Model, class F>
void for_each_parameter(Model& model, F&& f) {
  const auto named = [&]<class Decl>(const std::string& path, auto& parameter) { f(path, parameter); };
  detail::walk_parameters<detail::walked::parameters>(model, named);
}
// And for every buffer.
template <class Model, class F>
void for_each_buffer(Model& model, F&& f) {
  const auto named = [&]<class Decl>(const std::string& path, auto& buffer) { f(path, buffer); };
  detail::walk_parameters<detail::walked::buffers>(model, named);
}

// Initial values as the modules declare them, from (seed, path, global element index): those of executor::initialise.
// Collective: ranks that give different seeds are told.
template <class Model, class Eager>
void initialise(Model& model, const Eager& on, std::uint64_t seed) {
  on.rank().agree(seed, "the seed");
  detail::walk_parameters<detail::walked::both>(
      model, [&]<class Decl, class Tensor>(const std::string& path, Tensor& tensor) {
        using init_type = typename Decl::init_type;
        tensor = Tensor::initial(on, init_type::kind, init_type::scale, seed, path);
      });
}

// The parameters and buffers that a program has now, copied; and back. Local: no rank needs another one's part.
template <class Model, class Eager, class Executor>
void load_parameters(Model& model, const Eager& on, Executor& program) {
  detail::walk_parameters<detail::walked::both>(model,
                                                [&]<class Decl, class Tensor>(const std::string& path, Tensor& tensor) {
                                                  const int i = detail::same_parameter<Decl, Tensor>(program, path);
                                                  if constexpr (detail::is_buffer_decl<Decl>::value)
                                                    tensor = Tensor::from_local(on, std::as_const(program).buffer(i));
                                                  else tensor = Tensor::from_local(on, std::as_const(program).parameter(i));
                                                });
}
template <class Model, class Executor>
void store_parameters(Model& model, Executor& program) {
  detail::walk_parameters<detail::walked::both>(
      model, [&]<class Decl, class Tensor>(const std::string& path, Tensor& tensor) {
        const int k = detail::same_parameter<Decl, Tensor>(program, path);
        const auto to = detail::is_buffer_decl<Decl>::value ? program.buffer(k) : program.parameter(k);
        const auto from = tensor.to_local();
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = from.data[i];
      });
}

// The eager model in another mode, as model.train() and model.eval() in PyTorch: with_mode<train_mode>(model)(x). It shares the
// storage of all parameters and buffers with the model given, which stays as it is. What a plan says of single modules goes on to
// hold.
template <class Mode, class Model>
auto with_mode(const Model& model) {
  static_assert(raise<(detail::is_mode<Mode> ? problem::none : problem::mode_expected), Mode>::ok);
  using bound = typename Model::bound;
  using context = typename bound::context::template in_mode<detail::listed_setting<style_list<Mode>>::mode>;
  typename detail::bind_with<context::template model, typename bound::plan_type, context>::type in_mode{};
  std::vector<const void*> shared;
  detail::each_leaf<detail::walked::both>(model, [&](const auto& tensor) { shared.push_back(&tensor); });
  std::size_t k = 0;
  detail::each_leaf<detail::walked::both>(in_mode, [&]<class Tensor>(Tensor& tensor) {
    tensor = *static_cast<const Tensor*>(shared[k++]);  // equal placements, whatever the mode, so equal types
  });
  return in_mode;
}

}  // namespace shardwise::inline v0_1
