// SPDX-License-Identifier: Apache-2.0
// program_traits: a program's mesh and element type without completing the program, whose members are its constants.
#pragma once

#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise::inline v0_1 {

// Of what is no program: one rank, and the sentence that says so.
template <class Step>
struct program_traits {
  static_assert(raise<problem::program_expected, Step>::ok);
  using mesh_type = mesh<axis<1>>;
  using element = float;
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
