// SPDX-License-Identifier: Apache-2.0
// opaque: a function of blocks that tracing records as one call and does not look into.
#pragma once

#include <span>
#include <utility>

#include <shardwise/graph/functions/functions.hpp>
#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class F, class T, std::size_t... I>
constexpr void call_blocks(const opaque_block* b, std::index_sequence<I...>) {
  F{}(std::span<T>(static_cast<T*>(b[0].data), static_cast<std::size_t>(b[0].size)),
      std::span<const T>(static_cast<const T*>(b[I + 1].data), static_cast<std::size_t>(b[I + 1].size))...);
}
// F on blocks of T, Operands of them.
template <class F, class T, int Operands>
void call_opaque(const opaque_block* blocks) {
  call_blocks<F, T>(blocks, std::make_index_sequence<static_cast<std::size_t>(Operands)>{});
}

template <class X, class... More>
constexpr problem opaque_problem() {
  if (!(std::is_same_v<typename X::mesh_type, typename More::mesh_type> && ...)) return problem::meshes_differ;
  if (((X::sp.type != More::sp.type) || ...)) return problem::types_differ;
  const spec* const all[] = {&X::sp, &More::sp...};
  for (const spec* s : all)
    for (int a = 0; a < s->axes; ++a)
      if (s->place[a].is_partial()) return problem::partial_nonlinear;
  for (const spec* s : all)
    if (!placed_as_one(X::sp, *s)) return problem::opaque_placements;
  return problem::none;
}

}  // namespace detail

// F{}(std::span<T> result, std::span<const T> operands...) runs on every rank, on its own blocks, stored row-major; the
// result has the extents and placements of the first operand. On each mesh axis either all operands are whole, so that all
// ranks compute the same, or all are the same shard: what is replicate comes out equal on all ranks if F is a function of
// its operands alone. No gradient passes through it.
template <class F, tensor X, tensor... More>
constexpr auto opaque(const X& x, const More&... more) {
  static_assert(sizeof...(More) < max_inputs, "shardwise: opaque: at most 8 operands.");
  if constexpr (detail::is_implicit<X> || (detail::is_implicit<More> || ...)) {
    return detail::as_implicit(opaque<F>(detail::as_strict(x), detail::as_strict(more)...));
  } else if constexpr (!detail::resolved<X, More...>) {
    return detail::unresolved<typename X::mesh_type>{};
  } else {
    constexpr problem wrong = detail::opaque_problem<X, More...>();
    using element = element_t<X::sp.type>;
    if constexpr (wrong != problem::none) {
      return detail::refused<wrong, op_code::opaque, operand_t<X::sp>, operand_t<More::sp>...>(x, more...);
    } else {
      constexpr spec out = contiguous(spec(X::sp));
      constexpr int operands = 1 + static_cast<int>(sizeof...(More));
      return decltype(contiguous(x))::template apply_opaque<&detail::call_opaque<F, element, operands>, out>(
          contiguous(x), contiguous(more)...);
    }
  }
}

}  // namespace shardwise::inline v0_1
