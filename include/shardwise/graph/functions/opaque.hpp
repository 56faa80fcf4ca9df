// SPDX-License-Identifier: Apache-2.0
// opaque: a function of blocks that tracing records as one call and does not look into.
//
//   struct square {
//     template <class T>
//     void operator()(std::span<T> y, std::span<const T> x) const { ... }
//     template <int K, class T>                                                  // not needed where no gradient is asked for
//     static void adjoint(std::span<T> dx, std::span<const T> dy, std::span<const T> x) { ... }
//   };
//   ... sw::opaque<square>(x)
//
// It runs on every rank, on its own blocks, stored row-major; the result has element type, extents and placements of the first
// operand. On each mesh axis either all operands are whole, so that all ranks compute the same, or all are the same shard, beside
// which those after the first may be reduced: what is whole comes out equal on all ranks if F is a function of its operands alone.
// Operands have one element type, but those after the first may be of integers or booleans, whatever the first one is.
//
// Adjoint: adjoint<K>(dx, dy, x...) overwrites dx, the cotangent's block of operand K, counted from 0, given the result's
// cotangent and the blocks of all operands. It is called for each operand that a gradient is asked of, as an opaque call of its own
// in the backward pass; the operands' blocks are kept until then. One that is constrained to some K leaves the others without a
// gradient: asking for it is refused. Operands of integers have none. It must be linear in dy, as derivatives are, since dy may be
// this rank's summand of a sum: on an axis where the result is reduced it is, and the operands must be reduced, too. Of a reduced
// operand beside shards each rank's dx is the summand that its shard gives; of one beside a replicate result it is the whole, of
// which one rank keeps it. A program has at most 8 calls of opaque functions; those of adjoints do not count.
#pragma once

#include <span>
#include <type_traits>
#include <utility>

#include <shardwise/graph/functions/functions.hpp>
#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class E>
constexpr std::span<E> block_of(const opaque_block& b) {
  return {static_cast<E*>(b.data), static_cast<std::size_t>(b.size)};
}
template <class F, class Y, class... X, std::size_t... I>
void call_blocks(const opaque_block* b, std::index_sequence<I...>) {
  F{}(block_of<Y>(b[0]), block_of<const X>(b[I + 1])...);
}
// F on blocks, the result's of Y first.
template <class F, class Y, class... X>
void call_opaque(const opaque_block* blocks) {
  call_blocks<F, Y, X...>(blocks, std::index_sequence_for<X...>{});
}

template <class F, int K, class Y, class... X, std::size_t... I>
void cotangent_blocks(const opaque_block* b, std::index_sequence<I...>) {
  F::template adjoint<K>(block_of<Y>(b[0]), block_of<const Y>(b[sizeof...(X) + 1]), block_of<const X>(b[I + 1])...);
}
// The adjoint on blocks: operand K's cotangent, the operands, the result's cotangent.
template <class F, int K, class Y, class... X>
void call_cotangent(const opaque_block* blocks) {
  cotangent_blocks<F, K, Y, X...>(blocks, std::index_sequence_for<X...>{});
}

template <class F, int K, class Y, class... X>
inline constexpr bool adjoint_takes =
    requires(std::span<Y> dx, std::span<const Y> dy, std::span<const X>... x) { F::template adjoint<K>(dx, dy, x...); };
// Whether F's adjoint gives operand K its cotangent.
template <class F, int K, class Y, class... X>
constexpr bool gives_cotangent() {
  constexpr bool real[] = {is_floating_element<X>...};
  if constexpr (K < static_cast<int>(sizeof...(X))) {
    if constexpr (real[K]) return adjoint_takes<F, K, Y, X...>;
    else return false;
  } else {
    return false;
  }
}
template <class F, int K, class Y, class... X>
constexpr opaque_function cotangent_function() {
  if constexpr (gives_cotangent<F, K, Y, X...>()) return &call_cotangent<F, K, Y, X...>;
  else return nullptr;
}
template <class F, class Y, class... X, int... K>
constexpr opaque_operation make_opaque(std::integer_sequence<int, K...>) {
  return {&call_opaque<F, Y, X...>,
          {cotangent_function<F, K, Y, X...>()...},
          ((gives_cotangent<F, K, Y, X...>() ? std::uint32_t{1} << K : std::uint32_t{0}) | ...)};
}
// F with a result of Y and operands of X.
template <class F, class Y, class... X>
inline constexpr opaque_operation opaque_of = make_opaque<F, Y, X...>(std::make_integer_sequence<int, max_inputs>{});

// Whether F has a member of that name, of whatever kind: one beside it is ambiguous then.
struct named_adjoint {
  int adjoint;
};
template <class F>
struct with_named_adjoint : F, named_adjoint {};
template <class F>
constexpr bool names_adjoint() {
  if constexpr (std::is_class_v<F> && !std::is_final_v<F>) return !requires { &with_named_adjoint<F>::adjoint; };
  else return false;
}

template <class F, class X, class... More>
constexpr problem opaque_problem() {
  if (!(std::is_same_v<typename X::mesh_type, typename More::mesh_type> && ...)) return problem::meshes_differ;
  if (((X::sp.type != More::sp.type && is_floating(More::sp.type)) || ...)) return problem::types_differ;
  const spec* const all[] = {&X::sp, &More::sp...};
  for (const spec* s : all)
    for (int a = 0; a < s->axes; ++a) {
      const placement &p = X::sp.place[a], &q = s->place[a];
      if (q.is_partial()) return problem::partial_nonlinear;
      if (p == q || (p.is_whole() && q.is_whole())) continue;
      if (!p.is_shard() || !q.is_whole() || (q.is_replicate() && is_floating(s->type))) return problem::opaque_placements;
    }
  if (is_floating(X::sp.type) && names_adjoint<F>() &&
      opaque_of<F, element_t<X::sp.type>, element_t<X::sp.type>, element_t<More::sp.type>...>.adjoint == 0)
    return problem::opaque_adjoint;
  return problem::none;
}

}  // namespace detail

// F{}(std::span<Y> result, std::span<const X> operands...) as one call; what F says of its adjoint, above. An exception of F's ends
// the run on its rank. On GPUs F runs on the host too, between copies of its blocks, in a thread of CUDA's: it must not call CUDA or wait
// for another rank, whose function the same thread may have to run; what it throws, the executor throws where it next waits or runs.
template <class F, tensor X, tensor... More>
constexpr auto opaque(const X& x, const More&... more) {
  static_assert(sizeof...(More) + (detail::names_adjoint<F>() ? 1 : 0) < max_inputs,
                "shardwise: opaque: at most 8 operands, 7 of a function that has an adjoint.");
  if constexpr (detail::is_implicit<X> || (detail::is_implicit<More> || ...)) {
    return detail::as_implicit(opaque<F>(detail::as_strict(x), detail::as_strict(more)...));
  } else if constexpr (!detail::resolved<X, More...>) {
    return detail::unresolved<typename X::mesh_type>{};
  } else {
    constexpr problem wrong = detail::opaque_problem<F, X, More...>();
    if constexpr (wrong != problem::none) {
      return detail::refused<wrong, op_code::opaque, operand_t<X::sp>, operand_t<More::sp>...>(x, more...);
    } else {
      constexpr spec out = contiguous(spec(X::sp));
      using element = element_t<X::sp.type>;
      return decltype(contiguous(
          x))::template apply_opaque<&detail::opaque_of<F, element, element, element_t<More::sp.type>...>,
                                     out>(contiguous(x), contiguous(more)...);
    }
  }
}

}  // namespace shardwise::inline v0_1
