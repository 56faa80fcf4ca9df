// SPDX-License-Identifier: Apache-2.0
// program_traits: a program's mesh, element type and groups of parameters without completing the program, whose members are its
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
}  // namespace detail

// Of what is no program: one rank, and the sentence that says so.
template <class Step>
struct program_traits {
  static_assert(raise<problem::program_expected, Step>::ok);
  using mesh_type = mesh<axis<1>>;
  using element = float;
  using param_groups = group_names<>;
  static constexpr bool has_expressions = false;
};
template <class Step>
  requires requires {
    typename Step::mesh_type;
    typename Step::element;
  }
struct program_traits<Step> {
  using mesh_type = typename Step::mesh_type;
  using element = typename Step::element;
  using param_groups = typename detail::param_groups_of<Step>::type;
  static constexpr bool has_expressions = false;
};

// Whether passes write fused nodes: kernels then depend on the program, and nvcc's device pass reads it too.
template <class P>
concept expression_writer = requires { typename P::writes_expressions; };
template <class Pipeline>
inline constexpr bool writes_expressions = false;
template <template <class...> class Pipeline, class... P>
inline constexpr bool writes_expressions<Pipeline<P...>> = (false || ... || expression_writer<P>);

}  // namespace shardwise::inline v0_1
