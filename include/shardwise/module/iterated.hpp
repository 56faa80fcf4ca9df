// SPDX-License-Identifier: Apache-2.0
// iterated: a train step whose parts run in different iterations, as three programs over one arena.
#pragma once

#include <shardwise/module/train_step.hpp>
#include <shardwise/pass/iteration/iter_move.hpp>

namespace shardwise::inline v0_1 {

// The last of the moves: nothing moves any more, and the passes P run on the main graph alone, which is the one that is run
// again and again: finalize<partial_lower<>>. They come after the passes of the step and the moves, under one law.
template <class... P>
struct finalize {
  using shardwise_pass = void;
  using main_passes = pipeline<P...>;
  template <class Source>
  struct run {
    static constexpr const auto& value = Source::value;
  };
};

namespace detail {

template <class... Moves>
struct main_passes_of {
  using type = pipeline<>;
};
template <class Move, class... Moves>
struct main_passes_of<Move, Moves...> : main_passes_of<Moves...> {};
template <class... P, class... Moves>
struct main_passes_of<finalize<P...>, Moves...> {
  using type = pipeline<P...>;
};

template <class Step>
struct passes_of;
template <template <class> class Model, class Task, class Plan, class Mesh, class Optimizer, class... P, class T,
          class Backend>
struct passes_of<train_step<Model, Task, Plan, Mesh, Optimizer, pipeline<P...>, T, Backend>> {
  using type = passes_list<P...>;
};

template <class Step>
struct step_program {
  static constexpr const auto& value = Step::program;
};

// The moves in order, each on those before it.
template <class Source>
struct no_moves {
  static constexpr iteration_moves<graph_type_of<Source>::node_capacity> value{};
};
template <class Source, class Before, class... Moves>
struct marked_after {
  static constexpr const auto& value = Before::value;
};
template <class Source, class Before, class Move>
struct one_marked {
  static constexpr const auto& value = staged<passes::mark_staged<Before, Move>, Source>::value.moves;
};
template <class Before>
struct frozen_after {
  static constexpr auto value = [] {
    auto m = Before::value;
    if (m.frozen && !m.error) m.error = {problem::move_frozen};
    m.frozen = true;
    return m;
  }();
};
template <class Source, class Before, class Move, class... Rest>
struct marked_after<Source, Before, Move, Rest...> : marked_after<Source, one_marked<Source, Before, Move>, Rest...> {};
template <class Source, class Before, class... P, class... Rest>
struct marked_after<Source, Before, finalize<P...>, Rest...> : marked_after<Source, frozen_after<Before>, Rest...> {};
template <class Source, class... Moves>
using marked_moves = marked_after<Source, no_moves<Source>, Moves...>;

template <class M>
inline constexpr bool is_move = requires(const graph<1, 1>& g) { M::request(g); };
template <class... P>
inline constexpr bool is_move<finalize<P...>> = true;

// Moves, and the passes that run over each of the three graphs.
template <class Moves, class After, class... Rest>
struct moves_and_passes {
  using moves = Moves;
  using after = After;
};
template <class... M, class... P, class First, class... Rest>
struct moves_and_passes<passes_list<M...>, passes_list<P...>, First, Rest...>
    : std::conditional_t<is_move<First>, moves_and_passes<passes_list<M..., First>, passes_list<P...>, Rest...>,
                         moves_and_passes<passes_list<M...>, passes_list<P..., First>, Rest...>> {};

template <class List>
struct as_pipeline;
template <class... M>
struct as_pipeline<passes_list<M...>> {
  using type = pipeline<M...>;
  template <class Source>
  using marked = marked_moves<Source, M...>;
};

// The three graphs of a step.
template <class Step, class... Moves>
struct iteration_graphs {
  using lists = moves_and_passes<passes_list<>, passes_list<>, Moves...>;
  using move_list = as_pipeline<typename lists::moves>;
  using every_pass = typename as_pipeline<typename lists::after>::type;
  using main_passes = typename main_passes_of<Moves...>::type;
  using prepared = typename run_pipeline<step_program<Step>, typename move_list::type, typename passes_of<Step>::type>::type;
  using moves = typename move_list::template marked<prepared>;
#if !SHARDWISE_DEVICE_PASS
  static_assert(refused_at<moves::value.error.what, moves::value.error.have, moves::value.error.want, prepared,
                           moves::value.error.operand, Moves...>::ok);
#endif
  using moved = typename joined<typename passes_of<Step>::type, typename lists::moves>::type;
  using applied = typename joined<moved, typename lists::after>::type;

  template <iteration_phase Phase, class = void>
  struct graph_in {
    using type = typename run_pipeline<iterated_graph<prepared, moves, Phase>, every_pass, moved>::type;
  };
  template <class T>
  struct graph_in<iteration_phase::main, T> {
    using every = typename run_pipeline<iterated_graph<prepared, moves, iteration_phase::main>, every_pass, moved>::type;
    using type = typename run_pipeline<every, main_passes, applied>::type;
  };
  template <iteration_phase Phase>
  using graph_at = typename graph_in<Phase>::type;

  template <class Backend>
  static constexpr std::int64_t workspace = [] {
    const std::int64_t all[] = {Backend::template workspace_bytes<graph_at<iteration_phase::setup>>(),
                                Backend::template workspace_bytes<graph_at<iteration_phase::main>>(),
                                Backend::template workspace_bytes<graph_at<iteration_phase::cleanup>>()};
    return all[0] > all[1] ? (all[0] > all[2] ? all[0] : all[2]) : (all[1] > all[2] ? all[1] : all[2]);
  }();

  // With the workspace that leaves room for all three, their leaves lie at the same offsets.
  template <iteration_phase Phase>
  struct source {
    static constexpr const auto& value = graph_at<Phase>::value;
    template <class Backend>
    static constexpr std::int64_t least_workspace = workspace<Backend>;
#if !SHARDWISE_DEVICE_PASS
    static constexpr finding found = staged<verify_stages<>, graph_at<Phase>>::value.found;
    static_assert(raise_at<found.what, graph_at<Phase>, found.operand, Moves...>::ok);
#endif
  };
};

template <class A, class B>
constexpr bool same_leaves() {
  constexpr const auto& g = A::program;  // one by one: the three graphs need not be of one type
  constexpr const auto& h = B::program;
  constexpr const auto& p = A::memory::value;
  constexpr const auto& q = B::memory::value;
  int j = 0;
  for (int i = 0; i < g.node_count; ++i) {
    if (!is_leaf(g.nodes[i].op)) continue;
    while (j < h.node_count && !is_leaf(h.nodes[j].op)) ++j;
    if (j == h.node_count) return false;
    const node &x = g.nodes[i], &y = h.nodes[j];
    const bool named_alike =
        x.op == y.op && attributes_of<leaf_attributes>(x.a).index == attributes_of<leaf_attributes>(y.a).index;
    if (!named_alike || p.offset[i] != q.offset[j]) return false;
    ++j;
  }
  return p.persistent_end == q.persistent_end;
}

}  // namespace detail

// One of the three programs.
template <iteration_phase Phase, class Step, class... Moves>
struct step_phase : detail::program_base<typename Step::mesh_type, typename Step::backend, typename Step::trace_type,
                                         typename detail::iteration_graphs<Step, Moves...>::template source<Phase>> {
  using element = typename Step::element;
};
template <iteration_phase Phase, class Step, class... Moves>
struct program_traits<step_phase<Phase, Step, Moves...>> {
  using mesh_type = typename program_traits<Step>::mesh_type;
  using element = typename program_traits<Step>::element;
  using param_groups = typename program_traits<Step>::param_groups;
  using low_elements = typename program_traits<Step>::low_elements;
  static constexpr bool has_expressions =
      program_traits<Step>::has_expressions ||
      writes_expressions<typename detail::as_pipeline<
          typename detail::moves_and_passes<passes_list<>, passes_list<>, Moves...>::after>::type> ||
      (Phase == iteration_phase::main && writes_expressions<typename detail::main_passes_of<Moves...>::type>);
};

// Step is a train_step; Moves are iter_move_grads_and_optimizers or move_descendants, and finalize at the end, under the law
// of the step's own pipeline. A move that would let a stale parameter be read does not compile. Passes among them run over
// each of the three graphs: with raise_comms and sink_waits, collectives that were moved start with the iteration and are
// waited for where their updates stand. They may not change the order of leaves.
template <class Step, class... Moves>
struct iterated {
  static_assert(raise<(keeps_gradients(Step::program) ? problem::keep_gradients_iterated : problem::none), Step>::ok);
  static_assert(
      raise<(detail::has_flat<typename Step::trace_type> ? problem::flat_parameters_iterated : problem::none), Step>::ok);
  using step = Step;
  using param_groups = typename program_traits<Step>::param_groups;
  using mesh_type = typename Step::mesh_type;
  using element = typename Step::element;
  using setup = step_phase<iteration_phase::setup, Step, Moves...>;
  using main = step_phase<iteration_phase::main, Step, Moves...>;
  using cleanup = step_phase<iteration_phase::cleanup, Step, Moves...>;
  static_assert(detail::same_leaves<setup, main>() && detail::same_leaves<main, cleanup>());

  // Values that one iteration keeps for the next.
  static constexpr int kept_values = [] {
    int n = 0;
    for (int i = 0; i < main::program.node_count; ++i) {
      const node& x = main::program.nodes[i];
      n += x.op == op_code::state && attributes_of<leaf_attributes>(x.a).which == kept_value ? 1 : 0;
    }
    return n;
  }();
  static constexpr std::int64_t peak_bytes = [] {
    constexpr std::int64_t a = setup::peak_bytes, b = main::peak_bytes, c = cleanup::peak_bytes;
    return a > b ? (a > c ? a : c) : (b > c ? b : c);
  }();
};

}  // namespace shardwise::inline v0_1
