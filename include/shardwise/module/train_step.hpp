// SPDX-License-Identifier: Apache-2.0
// train_step, forward_step: a model, a task, a plan and a mesh as one program type with its costs as constants.
#pragma once

#include <shardwise/autodiff/turns.hpp>
#include <shardwise/graph/verify/refused.hpp>
#include <shardwise/module/keep_gradients.hpp>
#include <shardwise/module/low_precision.hpp>
#include <shardwise/module/optimizer.hpp>
#include <shardwise/module/plan_passes.hpp>
#include <shardwise/module/program_arguments.hpp>
#include <shardwise/pass/analysis/communication.hpp>
#include <shardwise/pass/functionalise/functionalise.hpp>
#include <shardwise/pass/memory/memory_breakdown.hpp>
#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/pass/framework/program_traits.hpp>
#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// The joint graph with its outputs made whole, for programs without an optimizer.
template <class Source>
struct whole_output {
  static constexpr auto value = [] {
    constexpr int n = Source::value.node_count, s = Source::value.spec_count;
    constexpr int more = Source::value.output_count * (max_axes + 1);
    resized<graph_type_of<Source>, n + more, s + more> g;
    copy_into(g, Source::value);
    builder b = g.edit();
    for (int k = 0; k < g.output_count; ++k) {
      int id = g.outputs[k];
      for (int a = 0; a < b.specs[b.nodes[id].spec].axes; ++a) {
        spec o = b.specs[b.nodes[id].spec];
        if (!o.place[a].is_partial()) continue;
        o.place[a] = replicate_value();
        node r = empty_node;
        r.op = op_code::redistribute;
        r.inputs = 1;
        r.in[0] = id;
        r.a = attributes<redistribute_attributes>(a, pack(replicate_value()));
        r.spec = b.intern(o);
        id = b.append(r);
      }
      g.outputs[k] = id;
    }
    g.finish(b);
    return g;
  }();
};

template <class Source>
struct graph_of {
  static constexpr const auto& value = Source::value.g;
};

template <class Trace>
struct checked_loss {
  static constexpr spec loss = Trace::value.specs[Trace::value.nodes[Trace::value.outputs[0]].spec];
#if !SHARDWISE_DEVICE_PASS
  static_assert(raise_at<loss_problem(loss), Trace, Trace::value.outputs[0], operand_t<loss>>::ok);
#endif
  using type = Trace;
};

// A trace of which something is trained. One without parameters is none of a model's mistakes.
template <class Trace, class Plan>
struct checked_trained {
  static constexpr bool all_frozen = [] {
    if constexpr (plan_traits<Plan>::any_freezes) {
      for (int i = 0; i < Trace::value.node_count; ++i)
        if (Trace::value.nodes[i].op == op_code::param && !is_frozen_parameter(Trace::value.nodes[i])) return false;
      return Trace::parameters > 0;
    } else {
      return false;
    }
  }();
#if !SHARDWISE_DEVICE_PASS
  static_assert(raise<(all_frozen ? problem::all_frozen : problem::none), Plan>::ok);
#endif
  using type = Trace;
};

// The first opaque node of a program whose backend runs none.
template <bool Wrong, class Source, class Backend>
struct opaque_call {
  static constexpr bool ok = true;
};
template <class Source, class Backend>
struct opaque_call<true, Source, Backend> {
  static constexpr int node = [] {
    int i = 0;
    while (i + 1 < Source::value.node_count && Source::value.nodes[i].op != op_code::opaque) ++i;
    return i;
  }();
  static constexpr bool ok = raise_at<problem::opaque_backend, Source, node, Backend>::ok;
};

// The first input that gets other storage, of a program whose backend exchanges none.
template <bool Asked, class Source, class Backend>
struct storage_exchange {
  static constexpr bool ok = true;
};
template <class Source, class Backend>
struct storage_exchange<true, Source, Backend> {
  static constexpr int node = [] {
    for (int i = 0; i < Source::value.node_count; ++i)
      if (exchanged_with(Source::value.nodes[i]) >= 0) return i;
    return -1;
  }();
  static constexpr bool ok =
      raise_at<(node < 0 ? problem::none : problem::set_backend), Source, (node < 0 ? 0 : node), Backend>::ok;
};

// Adds a tensor's bounds of run-time sizes to others; false: one of them is another there.
constexpr bool agrees(dyn_bounds& all, const spec& s) {
  for (int i = 0; i < max_dyn_sizes && s.dyn != 0; ++i) {
    if (s.dyn_bound[i] == 0) continue;
    if (all[i] != 0 && all[i] != s.dyn_bound[i]) return false;
    all[i] = s.dyn_bound[i];
  }
  return true;
}
// The bounds of the graph's run-time sizes.
struct common_bounds {
  dyn_bounds bounds;
  bool agree = true;
};
template <class Graph>
constexpr common_bounds common_bounds_of(const Graph& g) {
  common_bounds r;
  for (int i = 0; i < g.spec_count; ++i) r.agree = agrees(r.bounds, g.specs[i]) && r.agree;
  return r;
}
// The sizes that may not be 0, because an element that is none would be the largest or smallest, a bit for each.
template <class Graph>
constexpr unsigned sizes_of_extremes(const Graph& g) {
  unsigned sizes = 0;
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    if (n.inputs == 0) continue;
    const spec& x = g.specs[g.nodes[n.in[0]].spec];
    if (x.dyn == 0) continue;
    const std::int64_t dims = rules::dims_of_extremes(n.op, n.a, x.rank);
    for (int d = 0; d < x.rank; ++d) sizes |= (dims >> d) & 1 ? dyn_sizes(x, d) : 0U;
  }
  return sizes;
}

// Names the first node whose bound is another one.
template <bool Agree, class Source, class Mesh>
struct bounds_agree {
  static constexpr bool ok = true;
};
template <class Source, class Mesh>
struct bounds_agree<false, Source, Mesh> {
  static constexpr int node = [] {
    dyn_bounds bounds;
    for (int i = 0; i < Source::value.node_count; ++i)
      if (!agrees(bounds, Source::value.specs[Source::value.nodes[i].spec])) return i;
    return -1;
  }();
  static constexpr bool ok = raise_at<problem::dyn_bounds_differ, Source, node, Mesh>::ok;
};

// A program numbers its sizes from 0 and leaves none out.
template <bool InOrder, class Mesh>
struct sizes_in_order {
  static constexpr bool ok = raise<(InOrder ? problem::none : problem::dyn_size_left_out), Mesh>::ok;
};

// Whether a trace's plan has flat_parameters.
template <class Trace>
inline constexpr bool has_flat = [] {
  if constexpr (requires { Trace::flattens; }) return Trace::flattens;
  else return false;
}();
inline constexpr no_flat_table nothing_flat{};
template <class Trace>
constexpr const auto& flat_of() {
  if constexpr (has_flat<Trace>) return Trace::flat;
  else return nothing_flat;
}

// What every program publishes: the final graph and its costs. Derived gives `graph_source` (a type with the graph).
template <class Mesh, class Backend, class Trace, class GraphSource>
struct program_base {
  using mesh_type = Mesh;
  using backend = Backend;
  using trace_type = Trace;
  using output_names = typename Trace::output_names;

  static constexpr const auto& program = GraphSource::value;
  static constexpr const auto& parameters = Trace::params;  // and behind them the buffers
  static constexpr const auto& flat = flat_of<Trace>();     // where the parameters of flat groups lie
  static constexpr int parameter_total = Trace::parameters;
  static constexpr int buffer_total = Trace::buffers;
#if !SHARDWISE_DEVICE_PASS
  static_assert(detail::refused_graph<GraphSource, Mesh>::ok);
  static_assert(detail::no_mutation<GraphSource, Mesh>::ok);
#endif

#if !SHARDWISE_DEVICE_PASS
  static_assert(detail::storage_exchange<(detail::writes_leaves<Trace> && !std::is_same_v<Backend, host_backend>),
                                         GraphSource, Backend>::ok);
#endif

#if !SHARDWISE_DEVICE_PASS
  static_assert(detail::opaque_call<(GraphSource::value.function_count != 0 && !requires { Backend::calls_host_functions; }),
                                    GraphSource, Backend>::ok);
#endif

  // Bounds of the program's run-time sizes, none if every extent is static; and which of them may not be 0, bit by bit.
  static constexpr dyn_bounds dyn_bound = common_bounds_of(GraphSource::value).bounds;
  static constexpr unsigned dyn_not_empty = sizes_of_extremes(GraphSource::value);
#if !SHARDWISE_DEVICE_PASS
  static_assert(detail::bounds_agree<common_bounds_of(GraphSource::value).agree, GraphSource, Mesh>::ok);
  static_assert(detail::sizes_in_order<(dyn_bound.sizes() == (1U << dyn_bound.count()) - 1), Mesh>::ok);
#endif

  using memory = passes::planned_memory<Backend, GraphSource>;

  // Bytes of the arena that one rank needs, everything a step touches included; the highest byte is peak_bytes - 1.
  static constexpr std::int64_t peak_bytes = memory::value.peak;

  // What that memory is for: memory_use::value.kind[...], .phase[...].
  using memory_use = passes::memory_breakdown_of<memory, GraphSource>;

  static constexpr auto traffic = passes::traffic_of<passes::order_of(GraphSource::value).members>(GraphSource::value);

  // Payload bytes that rank R sends in one step on Axis; by default those of the busiest rank.
  template <class Axis, int R = -1>
  static constexpr std::int64_t comm_bytes = [] {
    constexpr int axis = Mesh::template index_of<Axis>;
    static_assert(raise<(axis < 0 ? problem::axis_not_in_mesh : problem::none), Axis, Mesh>::ok);
    return passes::busiest_bytes<Mesh>(GraphSource::value, traffic, axis, R);
  }();
  // The same by kind of collective (none: all) and by phase (count: all): comm_bytes_of<tp>(transition::all_gather).
  template <class Axis>
  static constexpr std::int64_t comm_bytes_of(transition kind, program_phase phase = program_phase::count, int rank = -1) {
    constexpr int axis = Mesh::template index_of<Axis>;
    static_assert(raise<(axis < 0 ? problem::axis_not_in_mesh : problem::none), Axis, Mesh>::ok);
    return passes::busiest_bytes<Mesh>(GraphSource::value, axis, kind, phase, rank);
  }
  // Of a program that keeps gradients (keep_gradients), what one accumulate sends, or one update.
  template <class Axis>
  static constexpr std::int64_t comm_bytes_of(program_part part, int rank = -1) {
    constexpr int axis = Mesh::template index_of<Axis>;
    static_assert(raise<(axis < 0 ? problem::axis_not_in_mesh : problem::none), Axis, Mesh>::ok);
    const int cut = update_begin(GraphSource::value), count = GraphSource::value.node_count;
    const bool updates = part == program_part::update;
    return passes::bytes_between<Mesh>(GraphSource::value, axis, updates ? cut : 0, updates ? count : cut, rank);
  }
  // The same over all axes together.
  static constexpr std::int64_t total_comm_bytes(int rank = -1) {
    return passes::busiest_bytes<Mesh>(GraphSource::value, traffic, -1, rank);
  }
  // Bytes a transport without uneven collectives would add as padding; this library's own exchange adds none.
  static constexpr std::int64_t padding_bytes = 0;
};

// The reverse sweep of all, or of one micro-batch after the other.
template <class Trace, int MicroBatches>
struct joint_graph {
  using swept = staged<autodiff::grad_in_turns<MicroBatches>, Trace>;
  using type = staged<autodiff::in_turns<MicroBatches>, swept>;
};
template <class Trace>
struct joint_graph<Trace, 1> {
  using type = staged<autodiff::grad, Trace>;
};

// What apply_optimizer leaves, without the casts of gradients that it has stepped over: passes would take them for readers.
template <class Source, bool Casts = has_low_precision(Source::value)>
struct without_dead_casts {
  using type = Source;
};
template <class Source>
struct without_dead_casts<Source, true> {
  using type = passes::eliminate_dead<Source>;
};

// An optimizer as it stands under a plan: muon asks for the plan's groups.
template <class Optimizer, class Plan>
struct optimizer_under {
  using type = Optimizer;
};
template <class Optimizer, class Plan>
  requires requires { typename Optimizer::adam_groups; }
struct optimizer_under<Optimizer, Plan> {
  using type = typename Optimizer::template in_groups<Optimizer, typename groups_of_plan<Plan>::type>;
};

template <template <class> class Model, class Task, class Plan, class Mesh, class Optimizer, class Pipeline, class T>
struct step_graph {
  using accumulation = typename accumulation_of<Plan>::type;
  using forward_type = typename checked_loss<traced<Model, Task, Plan, Mesh, T, run_mode::train, accumulation>>::type;
  using trace_type = functional<typename checked_trained<forward_type, Plan>::type, true>;
  using joint = typename joint_graph<trace_type, accumulation::shardwise_micro_batches>::type;
  using kept = typename with_kept_gradients<Plan, Pipeline, joint>::type;
  using updated = staged<apply_optimizer<typename optimizer_under<Optimizer, Plan>::type, trace_type::parameters,
                                         splits_any_states<Plan>, trace_type::loss_scaled, typename trace_type::scaler>,
                         kept>;
#if !SHARDWISE_DEVICE_PASS
  static_assert(raise<(has_flat<trace_type> && Optimizer::matrices_only ? problem::flat_parameters_decay : problem::none),
                      Optimizer>::ok);
  static_assert(raise<(has_flat<trace_type> && requires {
                        typename Optimizer::adam_groups;
                      } ? problem::flat_parameters_muon : problem::none), Optimizer>::ok);
  static_assert(loss_is_scaled<forward_type, Plan>::ok);
  static_assert(low_sums_within<graph_of<updated>, reduction_bound_of<Plan>, Mesh>::ok);
#endif
  using applied = writes_at_end<trace_type, graph_of<updated>>;  // begins with the joint graph's nodes
  using written = typename without_dead_casts<applied>::type;
  using passed = passes::eliminate_dead<
      typename run_pipeline<typename planned<Plan, written>::type, passes_of_step<Plan, Mesh, Pipeline>>::type>;
  using source = typename in_two_parts<Plan, passed>::type;
};

template <template <class> class Model, class Task, class Plan, class Mesh, class Pipeline, class T>
struct forward_graph {
  using trace_type = functional<traced<Model, Task, Plan, Mesh, T, run_mode::eval>, false>;
#if !SHARDWISE_DEVICE_PASS
  static_assert(low_sums_within<whole_output<trace_type>, reduction_bound_of<Plan>, Mesh>::ok);
#endif
  using source = passes::eliminate_dead<
      typename run_pipeline<whole_output<trace_type>, typename with_batches<Plan, Pipeline>::type>::type>;
};

}  // namespace detail

// One training step: forward, backward, gradient reduction, clipping, optimizer. Loss: the task's, summed over the mesh. A
// task that returns outputs(named<"loss">(l), named<"accuracy">(a)) makes a step with metrics: executor::output<"accuracy">.
// Its modules train (run_mode), unless the plan says eval_mode. A plan with accumulate takes the batch in pieces.
template <template <class> class Model, class Task, class Plan, class Mesh, class Optimizer = adam<>,
          class Pipeline = pipeline<>, class T = float, class Backend = host_backend>
struct train_step
    : detail::program_or_refused<
          detail::accumulation_arguments<detail::program_arguments<typename detail::inputs_of_task<Task>::type, Plan, Mesh,
                                                                   Optimizer, Pipeline, T, Backend>,
                                         Task, Plan, Mesh>::ok,
          detail::program_base, Mesh, Backend, detail::step_graph<Model, Task, Plan, Mesh, Optimizer, Pipeline, T>>::type {
  using element = T;
  using optimizer = Optimizer;
};

// The task's results alone (losses, logits), made whole where they are partial. Its modules evaluate (run_mode), unless the plan
// says train_mode.
template <template <class> class Model, class Task, class Plan, class Mesh, class Pipeline = pipeline<>, class T = float,
          class Backend = host_backend>
struct forward_step : detail::program_or_refused<detail::program_arguments<typename detail::inputs_of_task<Task>::type, Plan,
                                                                           Mesh, adam<>, Pipeline, T, Backend>::ok,
                                                 detail::program_base, Mesh, Backend,
                                                 detail::forward_graph<Model, Task, Plan, Mesh, Pipeline, T>>::type {
  using element = T;
};

template <template <class> class Model, class Task, class Plan, class Mesh, class Optimizer, class Pipeline, class T,
          class Backend>
struct program_traits<train_step<Model, Task, Plan, Mesh, Optimizer, Pipeline, T, Backend>> {
  using mesh_type = typename detail::mesh_or_one<Mesh>::type;
  using element = T;
  using param_groups = typename detail::groups_of_plan<Plan>::type;
  using low_elements = detail::elements_of<Plan, Task>;
  static constexpr bool has_expressions = writes_expressions<Pipeline>;
};
template <template <class> class Model, class Task, class Plan, class Mesh, class Pipeline, class T, class Backend>
struct program_traits<forward_step<Model, Task, Plan, Mesh, Pipeline, T, Backend>> {
  using mesh_type = typename detail::mesh_or_one<Mesh>::type;
  using element = T;
  using param_groups = group_names<>;  // nothing is updated
  using low_elements = detail::elements_of<Plan, Task>;
  static constexpr bool has_expressions = writes_expressions<Pipeline>;
};

}  // namespace shardwise::inline v0_1
