// SPDX-License-Identifier: Apache-2.0
// program_traits: a program's mesh, element types and groups of parameters without completing the program, whose members are its
// constants.
#pragma once

#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/mesh.hpp>
#include <shardwise/vocabulary/param_groups.hpp>

namespace shardwise::inline v0_1 {

namespace detail {
// Of a program that names none: none.
template <class Step>
struct param_groups_of {
  using type = group_names<>;
};
template <class Step>
  requires requires { typename Step::param_groups; }
struct param_groups_of<Step> {
  using type = typename Step::param_groups;
};

// Element types that a plan's entries, a task or a function bring into a program beside the program's own: each says its
// `low_element`. A device's executor compiles the kernels of these; see also SHARDWISE_DEVICE_ELEMENTS.
template <class X>
struct elements_stated {
  using type = type_list<>;
};
template <class X>
  requires requires { typename X::low_element; }
struct elements_stated<X> {
  using type = type_list<typename X::low_element>;
};
template <class... Entry>
struct elements_of_entries {
  using type = type_list<>;
};
template <class Entry, class... More>
struct elements_of_entries<Entry, More...> {
  using type =
      typename joined_lists<typename elements_stated<Entry>::type, typename elements_of_entries<More...>::type>::type;
};
// By its member, not by at<Path, ...>: nvcc 13 matches no specialisation through a string.
template <class Listed, class... More>
struct elements_of_listed;
template <template <class...> class List, class... Entry, class... More>
struct elements_of_listed<List<Entry...>, More...> : elements_of_entries<Entry..., More...> {};
template <class Entry, class... More>
  requires requires { typename Entry::shardwise_entry; }
struct elements_of_entries<Entry, More...> : elements_of_listed<typename Entry::shardwise_entry, More...> {};
template <class Plan>
struct elements_of_plan {
  using type = type_list<>;
};
template <template <class...> class Plan, class... Entry>
struct elements_of_plan<Plan<Entry...>> : elements_of_entries<Entry...> {};
template <class Plan, class Task>
using elements_of = typename joined_lists<typename elements_of_plan<Plan>::type, typename elements_stated<Task>::type>::type;

// Of what is no program: one rank, and the sentence that says so.
template <class Step>
struct traits_of_members {
  static_assert(raise<problem::program_expected, Step>::ok);
  using mesh_type = mesh<axis<1>>;
  using element = float;
  using param_groups = group_names<>;
  using low_elements = type_list<>;
  static constexpr bool has_expressions = false;
};
template <class Step>
  requires requires {
    typename Step::mesh_type;
    typename Step::element;
  }
struct traits_of_members<Step> {
  using mesh_type = typename Step::mesh_type;
  using element = typename Step::element;
  using param_groups = typename param_groups_of<Step>::type;
  using low_elements = typename elements_stated<Step>::type;
  static constexpr bool has_expressions = false;
};
}  // namespace detail

// Programs of the library are matched by their arguments. Any other type's members are asked for here and not by a specialisation with a
// constraint: to see whether that one matches, a compiler would complete every program.
template <class Step>
struct program_traits : detail::traits_of_members<Step> {};

// Whether passes write fused nodes: kernels then depend on the program, and nvcc's device pass reads it too.
template <class P>
concept expression_writer = requires { typename P::writes_expressions; };
template <class Pipeline>
inline constexpr bool writes_expressions = false;
template <template <class...> class Pipeline, class... P>
inline constexpr bool writes_expressions<Pipeline<P...>> = (false || ... || expression_writer<P>);

}  // namespace shardwise::inline v0_1
