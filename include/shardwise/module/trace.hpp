// SPDX-License-Identifier: Apache-2.0
// trace: runs a model's forward and loss on symbolic tensors and keeps the graph as a constant.
#pragma once

#include <shardwise/graph/pending.hpp>
#include <shardwise/module/bind.hpp>

namespace shardwise {

// A tensor that the caller fills before each step: element type, shape and placements as in spec_of.
template <class T, class Shape, class... Placements>
struct input_tensor {
  template <class Mesh>
  using spec_type = spec_of<T, Shape, Mesh, Placements...>;
};

template <class... Inputs>
struct inputs {
  static constexpr int count = static_cast<int>(sizeof...(Inputs));
};

namespace detail {

struct parameter_info {
  int node = -1;
  int scope = -1;
  const char* name = nullptr;
  init_kind kind = init_kind::zeros;
  double scale = 0;
};

// Enters parameters into the graph in declaration order, each with the module it belongs to.
template <class Mesh>
struct parameter_recorder {
  builder& b;
  parameter_info* table;
  int count = 0;

  constexpr int enter(const char* name, int index) {
    const int outer = b.current_scope;
    b.current_scope = b.enter(name, index);
    return outer;
  }
  constexpr int current() const { return b.current_scope; }
  constexpr void exit(int outer) { b.current_scope = outer; }

  template <class Decl, class Sym>
  constexpr void leaf(Sym& slot, const char* name) {
    node n = empty_node;
    n.op = op_code::param;
    n.a.v[0] = count;
    n.spec = b.intern(Sym::sp, Sym::hash);
    n.scope = b.current_scope;
    slot.b = &b;
    slot.id = b.append(n);
    using init_type = typename Decl::init_type;
    table[count++] = {slot.id, b.current_scope, name, init_type::kind, init_type::scale};
  }
};

template <class Mesh, class In>
constexpr auto record_input(builder& b, int index) {
  constexpr spec s = In::template spec_type<Mesh>::value;
  using sym_type = sym<s, Mesh>;
  node n = empty_node;
  n.op = op_code::input;
  n.a.v[0] = index;
  n.spec = b.intern(sym_type::sp, sym_type::hash);
  const sym_type x{&b, b.append(n)};
  if constexpr (requires { In::waits; }) return wait(x);
  else return x;
}

// g++ evaluates function arguments in any order; a braced list keeps inputs in theirs.
template <class Task, class Model, class... S>
struct call_task {
  Model& model;
  constexpr auto operator()(const S&... s) const { return Task{}(model, s...); }
};

template <int Params>
struct parameter_table {
  parameter_info item[Params > 0 ? Params : 1]{};
};

template <class Graph, int Params>
struct trace_result {
  Graph g{};
  parameter_table<Params> params{};
  bool complete = false;
};

}  // namespace detail

// Task: struct { using inputs = sw::inputs<...>; constexpr auto operator()(const auto& model, const auto&... in) const; },
// returning the scalar loss. `value` is the forward graph: output 0 the loss as returned, possibly partial.
template <template <class> class Model, class Task, class Plan, class Mesh, class T = float>
struct traced {
  using model_type = bind<Model, Plan, Mesh, T>;
  using unbound_model = Model<unbound>;
  using mesh_type = Mesh;
  static constexpr int parameters = detail::parameter_count<unbound_model>();
  static constexpr int modules = detail::module_count<unbound_model>() > 0 ? detail::module_count<unbound_model>() : 1;

 private:
  template <int N, int S>
  static constexpr auto record() {
    using graph_type = graph<N, S, modules>;
    detail::trace_result<graph_type, parameters> r;
    builder b = r.g.edit();
    model_type model{};
    detail::parameter_recorder<Mesh> rec{b, r.params.item};
    detail::visit_module<unbound_model>(model, "", -1, rec);
    const int loss = run(b, model, typename Task::inputs{}, std::make_index_sequence<Task::inputs::count>{});
    r.complete = !b.overflowed();
    r.g.finish(b);
    r.g.outputs[0] = loss;
    r.g.output_count = 1;
    return r;
  }

  template <class... In, std::size_t... I>
  static constexpr int run(builder& b, const model_type& model, inputs<In...>, std::index_sequence<I...>) {
    std::tuple<decltype(detail::record_input<Mesh, In>(b, 0))...> in{detail::record_input<Mesh, In>(b, static_cast<int>(I))...};
    const auto loss = std::apply([&](const auto&... x) { return Task{}(model, x...); }, in);
    if constexpr (detail::resolved<std::remove_const_t<decltype(loss)>>) {
      return loss.id;
    } else {  // the forward does not compile: a constant stands for its loss
      node n = empty_node;
      n.op = op_code::fill;
      n.spec = b.intern(detail::mesh_spec<Mesh>(dtype_v<T>));
      return b.append(n);
    }
  }

  // One evaluation into a guessed capacity, a second one only if the guess was short.
  static constexpr int guess = 4 * parameters + 96;
  template <int N, int S>
  static constexpr auto recorded = record<N, S>();
  static constexpr const auto& complete_trace() {
    if constexpr (recorded<guess, 96>.complete) return recorded<guess, 96>;
    else return recorded<recorded<guess, 96>.g.node_count, recorded<guess, 96>.g.spec_count>;
  }
  static constexpr const auto& all = complete_trace();

 public:
  // Its capacity may be larger than its size: to store it anew would cost more than the rest of it.
  static constexpr const auto& value = all.g;
  static constexpr const auto& params = all.params;
};

}  // namespace shardwise
