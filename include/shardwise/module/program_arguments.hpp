// SPDX-License-Identifier: Apache-2.0
// program_arguments: what train_step and its like are given, checked argument by argument before anything is traced.
#pragma once

#include <concepts>

#include <shardwise/module/trace.hpp>
#include <shardwise/pass/analysis/communication.hpp>
#include <shardwise/pass/memory/memory_breakdown.hpp>
#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/pass/framework/program_traits.hpp>
#include <shardwise/vocabulary/fp32_precision.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class T>
inline constexpr bool is_plan = false;
template <class... Entries>
inline constexpr bool is_plan<plan<Entries...>> = true;
template <class T>
inline constexpr bool is_pipeline = false;
template <class... Passes>
inline constexpr bool is_pipeline<pipeline<Passes...>> = true;
template <class T>
inline constexpr bool is_inputs = false;
template <class... In>
inline constexpr bool is_inputs<inputs<In...>> =
    (true && ... && requires { typename In::template spec_type<mesh<axis<1>>>; });
// What apply_optimizer reads of one.
template <class T>
concept optimizer_type = requires {
  T::op;
  T::states;
  T::clips;
};
// Memory is planned by it: bytes of scratch that any kernel of a program needs at most. Source: a type with a graph as `value`.
template <class T>
concept backend_type = requires {
  { T::template workspace_bytes<void>() } -> std::same_as<std::int64_t>;
};

// Passes that decide by times which a device was measured with say by `tf32` whether its products rounded factors to TF32: the backend
// must do as they did, if elements are float: others are never rounded. The first pass for which it does not; void: none. A backend without products of its own on devices suits all.
template <class Backend, class... P>
struct other_factors {
  using type = void;
};
template <class Backend, class First, class... More>
struct other_factors<Backend, First, More...> : other_factors<Backend, More...> {};
template <class Backend, class First, class... More>
  requires requires { requires First::tf32 != (Backend::precision == fp32_precision::tf32); }
struct other_factors<Backend, First, More...> {
  using type = First;
};
template <class Backend, class Pipeline>
struct pass_of_other_factors;
template <class Backend, class... P>
struct pass_of_other_factors<Backend, pipeline<P...>> : other_factors<Backend, P...> {};

// One argument: the sentence names what was given in its place.
template <bool Good, problem Wrong, class... Given>
struct program_argument {
  static_assert(raise<(Good ? problem::none : Wrong), Given...>::ok);
  static constexpr bool good = Good;
};

// The first argument that is not of its kind is the only error. Those that a program does not take are given as they
// should be.
template <class Inputs, class Plan, class Mesh, class Optimizer, class Pipeline, class T, class Backend>
struct program_arguments {
  static constexpr bool ok = [] {
    if constexpr (!is_plan<Plan>) return program_argument<false, problem::program_plan, Plan>::good;
    else if constexpr (!is_mesh<Mesh>) return program_argument<false, problem::program_mesh, Mesh>::good;
    else if constexpr (!optimizer_type<Optimizer>)
      return program_argument<false, problem::program_optimizer, Optimizer>::good;
    else if constexpr (!is_pipeline<Pipeline>) return program_argument<false, problem::program_pipeline, Pipeline>::good;
    else if constexpr (is_floating_element<T> && !std::is_floating_point_v<T>)
      return program_argument<false, problem::program_low_precision, T>::good;
    else if constexpr (!std::is_floating_point_v<T> || !is_element<T>)
      return program_argument<false, problem::program_element, T>::good;
    else if constexpr (!backend_type<Backend>) return program_argument<false, problem::program_backend, Backend>::good;
    else if constexpr (std::is_same_v<T, float> && !std::is_void_v<typename pass_of_other_factors<Backend, Pipeline>::type>)
      return program_argument<false, problem::tuned_factors, typename pass_of_other_factors<Backend, Pipeline>::type,
                              Backend>::good;
    else return program_argument<is_inputs<Inputs>, problem::program_inputs, Inputs>::good;
  }();
};

// The list that a task declares; of one that declares none, the task itself.
template <class Task>
struct inputs_of_task {
  using type = Task;
};
template <class Task>
  requires requires { typename Task::inputs; }
struct inputs_of_task<Task> {
  using type = typename Task::inputs;
};

// What stands for a mesh that is none, so that the sentence about it is the only error.
template <class Mesh>
struct mesh_or_one {
  using type = mesh<axis<1>>;
};
template <is_mesh Mesh>
struct mesh_or_one<Mesh> {
  using type = Mesh;
};

// A program whose arguments were refused: it has every member, and does nothing.
template <class Mesh>
struct empty_program {
  using mesh_type = typename mesh_or_one<Mesh>::type;
  using backend = void;

  static constexpr graph<1, 1> program{};
  static constexpr parameter_table<0> parameters{};
  static constexpr int parameter_total = 0, buffer_total = 0;
  static constexpr std::int64_t peak_bytes = 0, padding_bytes = 0;
  static constexpr dyn_bounds dyn_bound{};
  static constexpr unsigned dyn_not_empty = 0;
  struct memory {
    static constexpr passes::memory_plan<1> value{};
  };
  static constexpr passes::traffic_list<1> traffic{};
  template <class, int = -1>
  static constexpr std::int64_t comm_bytes = 0;
  template <class>
  static constexpr std::int64_t comm_bytes_of(transition, program_phase = program_phase::count, int = -1) {
    return 0;
  }
  template <class>
  static constexpr std::int64_t comm_bytes_of(program_part, int = -1) {
    return 0;
  }
  static constexpr std::int64_t total_comm_bytes(int = -1) { return 0; }
};

// Base<Mesh, Backend, trace, graph> of the graphs that Graphs makes, if the arguments are good.
template <bool Good, template <class, class, class, class> class Base, class Mesh, class Backend, class Graphs>
struct program_or_refused {
  using type = empty_program<Mesh>;
};
template <template <class, class, class, class> class Base, class Mesh, class Backend, class Graphs>
struct program_or_refused<true, Base, Mesh, Backend, Graphs> {
  using type = Base<Mesh, Backend, typename Graphs::trace_type, typename Graphs::source>;
};

}  // namespace detail

}  // namespace shardwise::inline v0_1
