// SPDX-License-Identifier: Apache-2.0
// Models run eagerly: bind_eager gives every parameter an eager tensor's type; initial values, and exchange with
// programs.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <shardwise/module/bind.hpp>

namespace shardwise {

// Declared here, defined in runtime/: modules know contexts, not backends.
template <class Mesh>
class thread_rank;
template <class Mesh, dtype Type, class Rank>
struct eager_context;

namespace detail {

// A context that remembers whose: models can be bound anew, to trace them or to hold their gradients.
template <template <class> class Model, class Ctx>
struct model_context : Ctx {
  template <class Bound>
  using model = Model<Bound>;
};

}  // namespace detail

// The model whose parameters are eager tensors, placed as the plan says. They have no values until initialise or
// load_parameters has run.
template <template <class> class Model, class Plan, class Mesh, class T = float, class Rank = thread_rank<Mesh>>
using bind_eager =
    typename detail::bind_with<Model, Plan, detail::model_context<Model, eager_context<Mesh, dtype_v<T>, Rank>>>::type;

namespace detail {

// Names parameters as programs do: the members' names and list indices, joined by dots.
template <class F>
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
  void leaf(Tensor& parameter, const char* name) {
    f.template operator()<Decl>(path.empty() ? std::string(name) : path + "." + name, parameter);
  }
};

template <class Model, class F>
void walk_parameters(Model& model, F&& f) {
  parameter_walk<F> walk{f};
  visit_module<typename Model::bound::unbound_module>(model, "", -1, walk);
}

// The program's parameter of this name, if it is the same tensor: same extents and placements.
template <class Tensor, class Executor>
int same_parameter(const Executor& program, const std::string& path) {
  const int i = Executor::parameter_index(path);
  if (!(program.parameter_spec(i) == Tensor::sp))
    throw std::invalid_argument(
        "shardwise: parameter '" + path +
        "' has other extents, placements or elements in the program than in the eager model; bind both with "
        "one plan, mesh and element type, or carry it over whole: gather_parameter, distribute");
  return i;
}

}  // namespace detail

// f(path, tensor) for every parameter, in declaration order, the order of the parameters of a train_step.
template <class Model, class F>
void for_each_parameter(Model& model, F&& f) {
  detail::walk_parameters(model, [&]<class Decl>(const std::string& path, auto& parameter) { f(path, parameter); });
}

// Initial values as the modules declare them, from (seed, path, global element index): those of executor::initialise.
// Collective: ranks that give different seeds are told.
template <class Model, class Eager>
void initialise(Model& model, const Eager& on, std::uint64_t seed) {
  on.rank().agree(seed, "the seed");
  detail::walk_parameters(model, [&]<class Decl, class Tensor>(const std::string& path, Tensor& parameter) {
    using init_type = typename Decl::init_type;
    parameter = Tensor::initial(on, init_type::kind, init_type::scale, seed, path);
  });
}

// The parameters that a program has now, copied; and back. Local: no rank needs another one's part.
template <class Model, class Eager, class Executor>
void load_parameters(Model& model, const Eager& on, Executor& program) {
  detail::walk_parameters(model, [&]<class Decl, class Tensor>(const std::string& path, Tensor& parameter) {
    parameter = Tensor::from_local(on, std::as_const(program).parameter(detail::same_parameter<Tensor>(program, path)));
  });
}
template <class Model, class Executor>
void store_parameters(Model& model, Executor& program) {
  detail::walk_parameters(model, [&]<class Decl, class Tensor>(const std::string& path, Tensor& parameter) {
    const auto to = program.parameter(detail::same_parameter<Tensor>(program, path));
    const auto from = parameter.to_local();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from.data[i];
  });
}

}  // namespace shardwise
