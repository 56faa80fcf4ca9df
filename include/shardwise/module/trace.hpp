// SPDX-License-Identifier: Apache-2.0
// trace: runs a model's forward and loss on symbolic tensors and keeps the graph as a constant.
#pragma once

#include <shardwise/graph/functions/pending.hpp>
#include <shardwise/module/accumulate.hpp>
#include <shardwise/module/bind.hpp>
#include <shardwise/module/outputs.hpp>
#include <shardwise/module/recorders.hpp>
#include <shardwise/module/refused_trace.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

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
        const auto returned = std::apply([&](const auto&... x) { return Task{}(model, x...); }, in);
        results::each(returned, [&](const auto& x) { keep(r, b, x); });
      }
    }
  }
  // The inputs' pieces K, one after the other.
  template <class Result, class In, std::size_t... K>
  static constexpr void run_pieces(Result& r, builder& b, const model_type& model, const In& in, std::index_sequence<K...>) {
    constexpr auto inputs_of_call = std::make_index_sequence<std::tuple_size_v<In>>{};
    int ids[results::count][micro_batches]{};
    const auto call = [&]<std::size_t Piece>(std::integral_constant<std::size_t, Piece>) {
      const auto returned = call_piece<static_cast<int>(Piece)>(model, in, inputs_of_call);
      int output = 0;
      results::each(returned, [&](const auto& x) {
        if constexpr (detail::resolved<std::remove_cvref_t<decltype(x)>>)
          ids[output][Piece] = b.operand(x.id, op_code::param);
        ++output;
      });
      if constexpr (Piece + 1 == sizeof...(K))
        detail::join_results<results, micro_batches>(returned, ids, [&](const auto& x) { keep(r, b, x); });
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
