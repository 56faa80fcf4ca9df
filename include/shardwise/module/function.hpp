// SPDX-License-Identifier: Apache-2.0
// function_step, gradient_step: a function of tensors, without a model, as a program; value_and_grad, the same at once.
#pragma once

#include <tuple>
#include <utility>

#include <shardwise/graph/functions/local.hpp>
#include <shardwise/graph/functions/opaque.hpp>
#include <shardwise/module/train_step.hpp>

namespace shardwise::inline v0_1 {

// An input with the extents, type and placements of a tensor type: input_like<decltype(x)>.
template <class Tensor>
struct input_like {
  template <class Mesh>
  struct spec_type {
    static_assert(detail::one_mesh<std::is_same_v<Mesh, typename Tensor::mesh_type>, Mesh, typename Tensor::mesh_type>::ok);
    static constexpr spec value = Tensor::sp;
  };
};

// The inputs that a gradient is asked for, by position.
template <int... Index>
struct wrt {};

namespace detail {

template <class Mesh, class In, class Report>
using input_sym = sym<In::template spec_type<Mesh>::value, Mesh, Report>;

template <class F, class Mesh, class Inputs, class Report = noted>
struct function_result;
template <class F, class Mesh, class... In, class Report>
struct function_result<F, Mesh, inputs<In...>, Report> {
  using type = decltype(F{}(std::declval<const input_sym<Mesh, In, Report>&>()...));
};

// The tensor that stands for a result: a claim's blocks, a strict tensor.
template <class R>
  requires((tensor<R> && !is_pending<R>) || requires { typename R::local_type; })
constexpr auto result_tensor(const R& r) {
  if constexpr (requires { typename R::local_type; }) return as_strict(r.local);
  else return as_strict(r);
}
template <class R>
constexpr auto result_tensors(const R& r) -> decltype(std::tuple{result_tensor(r)}) {
  return std::tuple{result_tensor(r)};
}
template <class... R>
constexpr auto result_tensors(const std::tuple<R...>& r)
    -> std::tuple<decltype(result_tensor(std::declval<const R&>()))...> {
  return std::apply([](const auto&... x) { return std::tuple{result_tensor(x)...}; }, r);
}

template <class... N>
constexpr auto result_tensors(const named_outputs<N...>& r)
    -> std::tuple<decltype(result_tensor(std::declval<const typename N::type&>()))...> {
  return std::apply([](const auto&... x) { return std::tuple{result_tensor(x.value)...}; }, r.all);
}

template <class R>
struct result_names {
  using type = output_names<>;
};
template <class... N>
struct result_names<named_outputs<N...>> {
  using type = output_names<N...>;
};

template <class... T>
inline constexpr bool are_outputs = sizeof...(T) >= 1 && (tensor<T> && ...);

// Results that can be outputs; `type` is an empty tuple where they cannot.
template <class R>
struct results_of {
  using type = std::tuple<>;
  using element = float;
};
template <class R>
  requires requires(const R& r) { result_tensors(r); }
struct results_of<R> {
  template <class T>
  struct check;
  template <class... T>
  struct check<std::tuple<T...>> {
    static constexpr bool good = are_outputs<T...>;
  };
  template <class T, bool Good>
  struct output {
    using type = std::tuple<>;
    using element = float;
  };
  template <class T, class... More>
  struct output<std::tuple<T, More...>, true> {
    using type = std::tuple<T, More...>;
    using element = element_t<T::sp.type>;
  };
  using given = decltype(result_tensors(std::declval<const R&>()));
  using type = typename output<given, check<given>::good>::type;
  using element = typename output<given, check<given>::good>::element;
};

template <class F, class Mesh, class Inputs>
using function_results = results_of<typename function_result<F, Mesh, Inputs>::type>;

// The graph of F: its inputs, and output k its k-th result. With Sum a further node sums output 0 over all its dims.
template <class F, class Mesh, class Inputs, bool Sum = false>
struct traced_function {
  using mesh_type = Mesh;
  using results = typename function_results<F, Mesh, Inputs>::type;
  static constexpr int result_count = static_cast<int>(std::tuple_size_v<results>);
  static constexpr int capacity_of_results =
      result_count > 0 ? result_count : 1;  // one that was refused has a constant in its place
  static constexpr problem wrong_results = result_count == 0 ? problem::function_outputs : problem::none;
  static_assert(raise<wrong_results, F, typename function_result<F, Mesh, Inputs>::type>::ok);
  using output_names = typename result_names<typename function_result<F, Mesh, Inputs>::type>::type;
  static_assert(raise<(output_names::distinct() ? problem::none : problem::output_named_twice), F>::ok);
  static constexpr int parameters = 0, buffers = 0;
  static constexpr parameter_table<0> params{};

 private:
  template <class Graph>
  struct recording {
    Graph g{};
    int root = 0;
    bool complete = false, again = false;  // with builder::own_values
    bool resolved = true;
    refusal refused{};
    int nodes = 0, specs = 0;
  };

  template <class... In, std::size_t... I>
  static constexpr auto call(builder& b, inputs<In...>, std::index_sequence<I...>) {
    // a braced list keeps inputs in their order
    std::tuple<decltype(record_input<Mesh, In>(b, 0))...> in{record_input<Mesh, In>(b, static_cast<int>(I))...};
    return result_tensors(std::apply([](const auto&... x) { return F{}(x...); }, in));
  }

  template <class R, class X>
  static constexpr void keep(R& r, builder& b, const X& x) {
    int id = -1;
    if constexpr (resolved<X>) {
      id = x.id;
    } else {  // F does not compile: a constant stands for its result
      node n = empty_node;
      n.op = op_code::fill;
      n.spec = b.intern(mesh_spec<Mesh>(dtype::f32));
      id = b.append(n);
      r.resolved = false;
    }
    r.g.outputs[r.g.output_count++] = id;
  }

  template <class R, class X>
  static constexpr void sum_up(R& r, const X& x) {
    const auto total = sum(x);
    if constexpr (resolved<std::remove_const_t<decltype(total)>>) r.root = total.id;
    else r.root = r.g.outputs[0];
  }

  template <int N, int S, bool Own>
  static constexpr auto record() {
    recording<graph<N, S, 1, capacity_of_results>> r;
    builder b = r.g.edit();
    b.own_values = Own;
    if constexpr (result_count == 0) {
      keep(r, b, unresolved<Mesh>{});
    } else {
      const auto out = call(b, Inputs{}, std::make_index_sequence<Inputs::count>{});
      std::apply([&](const auto&... x) { (keep(r, b, x), ...); }, out);
      if constexpr (Sum) sum_up(r, std::get<0>(out));
    }
    r.complete = !b.overflowed();
    r.again = !Own && b.last_write >= 0 && b.same_values;
    r.refused = b.refused;
    r.nodes = b.node_count;
    r.specs = b.spec_count;
    r.g.finish(b);
    return r;
  }

  static constexpr int guess = 64;
  template <int N, int S, bool Own>
  static constexpr auto recorded = record<N, S, Own>();
  template <bool Own>
  static constexpr const auto& complete_trace() {
    if constexpr (recorded<guess, guess, Own>.complete) return recorded<guess, guess, Own>;
    else return recorded<recorded<guess, guess, Own>.nodes, recorded<guess, guess, Own>.specs, Own>;
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
    using with = function_result<F, Mesh, Inputs, Report>;
  };

 public:
  static constexpr auto value = [] {
#if !SHARDWISE_DEVICE_PASS
    if constexpr (!all.resolved || all.refused.what != problem::none) static_assert(say_refusal<found, once_more>::ok);
#endif
    graph<all.nodes, all.specs, 1, capacity_of_results> r;
    copy_into(r, all.g);
    return r;
  }();
  static constexpr int root = all.root;
};

// The wanted inputs must be there and have gradients.
template <class Mesh, class... In>
constexpr problem gradient_problem(inputs<In...>, std::initializer_list<int> wanted) {
  const spec specs[] = {In::template spec_type<Mesh>::value..., spec{}};
  for (const int k : wanted) {
    if (k < 0 || k >= static_cast<int>(sizeof...(In))) return problem::gradient_input;
    const spec& s = specs[k];
    if (!is_floating(s.type)) return problem::gradient_input;
    for (const placement& p : s.place)
      if (p.is_partial() && p == dual(p)) return problem::gradient_input;
  }
  return problem::none;
}

template <class F, class Mesh, class Inputs, class Wrt>
struct gradient_trace;
template <class F, class Mesh, class Inputs, int... W>
struct gradient_trace<F, Mesh, Inputs, wrt<W...>> : traced_function<F, Mesh, Inputs, true> {
  using base = traced_function<F, Mesh, Inputs, true>;
  static constexpr bool wants_input(std::int64_t i) { return ((i == W) || ...); }
};

// The joint graph; its outputs are the function's and then the cotangents of the wanted inputs, densely stored.
template <class Trace, class Wrt>
struct gradient_outputs;
template <class Trace, int... W>
struct gradient_outputs<Trace, wrt<W...>> {
  static constexpr auto value = [] {
    using joint = staged<autodiff::grad, Trace>;
    const auto state = joint::value;
    using state_graph = std::remove_cvref_t<decltype(state.g)>;
    constexpr int wants = static_cast<int>(sizeof...(W));
    graph<state_graph::node_capacity + wants, state_graph::spec_capacity + wants, state_graph::scope_capacity,
          state_graph::output_capacity + wants>
        g;
    copy_into(g, state.g);
    builder b = g.edit();
    const int wanted[] = {W..., -1};
    int found[sizeof...(W) + 1]{};
    for (std::size_t k = 0; k < sizeof...(W); ++k) {
      int id = -1;
      for (int i = 0; i < b.node_count; ++i)
        if (b.nodes[i].op == op_code::input && attributes_of<leaf_attributes>(b.nodes[i].a).index == wanted[k]) {
          id = state.cotangent[i];
          break;
        }
      if (id < 0) {
        if (!b.error) {
          b.error = {problem::gradient_unused, wanted[k]};
          b.error.base = static_cast<int>(op_code::input);  // inputs are recorded in their order
          b.error.number = wanted[k];
        }
        id = g.outputs[0];
      } else if (const spec s = b.specs[b.nodes[id].spec]; !is_contiguous(s)) {
        node n = empty_node;
        n.op = op_code::contiguous;
        n.inputs = 1;
        n.in[0] = id;
        n.spec = b.intern(contiguous(s));
        id = b.append(n);
      }
      found[k] = id;
    }
    g.finish(b);
    for (std::size_t k = 0; k < sizeof...(W); ++k) g.outputs[g.output_count++] = found[k];
    return g;
  }();
};

template <class F, class Mesh, class Inputs, class Pipeline>
struct function_graph {
  using trace_type = functional<traced_function<F, Mesh, Inputs>, false>;
#if !SHARDWISE_DEVICE_PASS
  static_assert(low_sums_within<trace_type, default_reduction_bound, Mesh>::ok);
#endif
  using source = passes::eliminate_dead<typename run_pipeline<trace_type, Pipeline>::type>;
};
template <class F, class Mesh, class Inputs, class Wrt, class Pipeline>
struct gradient_graph {
  using trace_type = functional<gradient_trace<F, Mesh, Inputs, Wrt>, true>;
  using joint = writes_at_end<trace_type, gradient_outputs<trace_type, Wrt>>;
#if !SHARDWISE_DEVICE_PASS
  static_assert(low_sums_within<joint, default_reduction_bound, Mesh>::ok);
#endif
  using source = passes::eliminate_dead<typename run_pipeline<joint, Pipeline>::type>;
};

template <class Mesh, class Inputs, class Pipeline, class Backend>
using function_arguments = program_arguments<Inputs, plan<>, Mesh, adam<>, Pipeline, float, Backend>;

template <class F, class Mesh, class Inputs>
struct function_element {
  using type = float;
};
template <class F, is_mesh Mesh, class Inputs>
  requires is_inputs<Inputs>
struct function_element<F, Mesh, Inputs> {
  using type = typename function_results<F, Mesh, Inputs>::element;
};

// Whether a gradient can be asked for: said before anything is traced, so that it is the only error.
template <class Arguments, class F, class Mesh, class Inputs, class Wrt>
struct gradient_arguments;
template <class Arguments, class F, class Mesh, class Inputs, int... W>
struct gradient_arguments<Arguments, F, Mesh, Inputs, wrt<W...>> {
  static constexpr bool ok = [] {
    if constexpr (!Arguments::ok) return false;
    else {
      constexpr problem wrong = gradient_problem<Mesh>(Inputs{}, {W...});
      return raise<wrong, F, wrt<W...>>::ok && wrong == problem::none;
    }
  }();
};

}  // namespace detail

// A function as a program: F has `constexpr auto operator()(const auto&... tensors) const` and returns one tensor, a
// std::tuple of them or outputs(named<"sum">(x), ...), which become the program's outputs as they are placed.
template <class F, class Mesh, class Inputs, class Pipeline = pipeline<>, class Backend = host_backend>
struct function_step
    : detail::program_or_refused<detail::function_arguments<Mesh, Inputs, Pipeline, Backend>::ok, detail::program_base, Mesh,
                                 Backend, detail::function_graph<F, Mesh, Inputs, Pipeline>>::type {
  using element = typename detail::function_element<F, Mesh, Inputs>::type;
};

// The function's outputs, and then the gradients of the sum of output 0 with respect to the inputs Wrt = wrt<...>. A
// gradient has its input's extents and the dual of its placements.
template <class F, class Mesh, class Inputs, class Wrt, class Pipeline = pipeline<>, class Backend = host_backend>
struct gradient_step
    : detail::program_or_refused<
          detail::gradient_arguments<detail::function_arguments<Mesh, Inputs, Pipeline, Backend>, F, Mesh, Inputs, Wrt>::ok,
          detail::program_base, Mesh, Backend, detail::gradient_graph<F, Mesh, Inputs, Wrt, Pipeline>>::type {
  using element = typename detail::function_element<F, Mesh, Inputs>::type;
};

template <class F, class Mesh, class Inputs, class Pipeline, class Backend>
struct program_traits<function_step<F, Mesh, Inputs, Pipeline, Backend>> {
  using mesh_type = typename detail::mesh_or_one<Mesh>::type;
  using element = typename detail::function_element<F, Mesh, Inputs>::type;
  using param_groups = group_names<>;
  using low_elements = typename detail::elements_stated<F>::type;
  static constexpr bool has_expressions = writes_expressions<Pipeline>;
};
template <class F, class Mesh, class Inputs, class Wrt, class Pipeline, class Backend>
struct program_traits<gradient_step<F, Mesh, Inputs, Wrt, Pipeline, Backend>> {
  using mesh_type = typename detail::mesh_or_one<Mesh>::type;
  using element = typename detail::function_element<F, Mesh, Inputs>::type;
  using param_groups = group_names<>;
  using low_elements = typename detail::elements_stated<F>::type;
  static constexpr bool has_expressions = writes_expressions<Pipeline>;
};

// F of eager tensors and the gradients of the sum of its first result with respect to operands Wrt, computed at once: a
// tuple of the results and then the gradients. Differentiation is that of gradient_step, node by node.
template <class F, int... Wrt, tensor X, tensor... More>
auto value_and_grad(const X& x, const More&... more) {
  using mesh_type = typename X::mesh_type;
  using program = gradient_step<F, mesh_type, inputs<input_like<X>, input_like<More>...>, wrt<Wrt...>>;
  return X::template run<program>(x, more...);
}

}  // namespace shardwise::inline v0_1
