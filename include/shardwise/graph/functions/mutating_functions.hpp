// SPDX-License-Identifier: Apache-2.0
// Operations in place, under PyTorch's names: those with an underscore. They write their result over their first operand,
// a tensor or a view of one, and return that tensor; whatever shares its storage sees it, on eager tensors at once, in a
// traced program in program order.
//
// The result must have the operand's extents, element type and placements: nothing is redistributed in place. implicit(x)
// moves the other operands, never x. A parameter, or an input that a gradient is asked for, is not written where gradients
// are computed; programs that write inputs, or buffers of modules, copy them back at their end. A traced write is one node,
// copy_, which names what it writes; functionalise (pass/functionalise/functionalise.hpp) ends all of them before a program
// is differentiated or lowered.
//
// What shares storage: views (view, permute, transpose, narrow, slice, select, expand, ...), wait(x) of an input, and
// to_local and from_local between tensors that every axis shards. Nothing else does: reshape, flatten and contiguous of a
// tensor that is not stored densely are copies; a redistribution is a tensor of its own whether or not it moves anything
// (equal placements, an axis of one rank), and so is what is made of redistributions: full_tensor, to_local of a tensor
// that some axis does not shard, what a plan's style hands to a module and takes from it, views of implicit tensors. A
// pending tensor is what its source was when it was issued. So no mesh, placement or mode changes what a write is seen in.
//
// Price: none where nothing is written. A traced program copies what is written and read as it was. At once, what a
// redistribution did not move is copied as a whole when it or its operand is written and both still exist (or when
// pointers to both are asked for); a write to the source of a pending tensor waits until that has been read.
#pragma once

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/graph/functions/fills.hpp>
#include <shardwise/graph/functions/pointwise_functions.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class A, class V>
constexpr auto written(const A& a, const V& value) {
  constexpr bool own = requires { requires A::is_view; };
  if constexpr (own) refused<problem::mutation_implicit_view, op_code::copy_, operand_t<A::sp>>(a);
  else if constexpr (resolved<A, V>) apply<op_code::copy_, no_attr>(0, a, value);
  return a;
}

template <class A, class B>
constexpr bool equal_extents() {
  bool same = A::sp.rank == B::sp.rank;
  for (int d = 0; same && d < A::sp.rank; ++d) same = A::sp.extent[d] == B::sp.extent[d];
  return same;
}

template <class A, class B>
constexpr bool same_stored() {
  return std::is_same_v<typename A::mesh_type, typename B::mesh_type> &&
         contiguous(spec(A::sp)) == contiguous(spec(B::sp)) && is_contiguous(A::sp) == is_contiguous(B::sp);
}

}  // namespace detail

// b over a, broadcast to its extents.
template <tensor A, tensor B>
constexpr auto copy_(const A& a, const B& b) {
  if constexpr (detail::resolved<A, B> && !detail::equal_extents<A, B>()) return detail::written(a, expand_as(b, a));
  else return detail::written(a, b);
}
// a gets b's storage: a is b from here on, nothing is copied, and what shared a's storage (views made before) keeps it. a and b have
// equal extents, element types and placements. At once, a is a tensor that is not const. In a program a is an input of it, and b is
// computed by it for this alone; behind a run the input is the block that b was computed in, and the storage that it had is what the
// next run computes in. Neither may be written afterwards in the same program. PyTorch's fsdp.set_.
template <tensor A, tensor B>
constexpr void set_(A& a, const B& b) {
  if constexpr (!detail::resolved<A, B>) {
  } else if constexpr (!detail::same_stored<A, B>()) {
    detail::refused<problem::set_other, op_code::copy_, operand_t<A::sp>, operand_t<B::sp>>(a, b);
  } else if constexpr (requires { a.set_storage(b); }) {
    a.set_storage(b);
  } else if constexpr (requires(std::remove_const_t<A>& changing) { changing.set_storage(b); }) {
    detail::refused<problem::set_const, op_code::copy_, operand_t<A::sp>>(a, b);
  } else {
    detail::apply<op_code::copy_, attributes<copy_attributes>(1)>(0, a, b);
  }
}
// A partial tensor takes no number but 0: every rank would hold it, and they would be added up.
template <tensor A>
constexpr auto fill_(const A& a, double number) {
  return detail::written(a, full_like(a, number));
}
template <tensor A>
constexpr auto zero_(const A& a) {
  if constexpr (!detail::resolved<A>) return a;
  else return detail::written(a, detail::leaf_like<op_code::fill, contiguous(A::sp), detail::no_attr>(a, 0));
}

#define SHARDWISE_X(name)               \
  template <tensor A>                   \
  constexpr auto name##_(const A& a) {  \
    return detail::written(a, name(a)); \
  }
SHARDWISE_FUNCTIONS_OF_ONE(SHARDWISE_X)
SHARDWISE_X(neg)
SHARDWISE_X(square)
SHARDWISE_X(silu)
#undef SHARDWISE_X

template <gelu_form Form = gelu_form::erf, tensor A>
constexpr auto gelu_(const A& a) {
  return detail::written(a, gelu<Form>(a));
}

// With a number: pow_(a, 2), clamp_min_(a, 0), dropout_(a, 0.1).
#define SHARDWISE_X(name)                             \
  template <tensor A>                                 \
  constexpr auto name##_(const A& a, double number) { \
    return detail::written(a, name(a, number));       \
  }
SHARDWISE_FUNCTIONS_WITH_NUMBER(SHARDWISE_X)
SHARDWISE_X(dropout)
#undef SHARDWISE_X

// With a tensor, which broadcasts, or a number.
#define SHARDWISE_X(name, sign)                       \
  template <tensor A, tensor B>                       \
  constexpr auto name##_(const A& a, const B& b) {    \
    return detail::written(a, name(a, b));            \
  }                                                   \
  template <tensor A>                                 \
  constexpr auto name##_(const A& a, double number) { \
    return detail::written(a, a sign number);         \
  }
SHARDWISE_X(add, +)
SHARDWISE_X(sub, -)
SHARDWISE_X(mul, *)
SHARDWISE_X(div, /)
#undef SHARDWISE_X

template <tensor A>
constexpr auto clamp_(const A& a, double low, double high) {
  return detail::written(a, clamp(a, low, high));
}
template <tensor A, tensor M>
constexpr auto masked_fill_(const A& a, const M& mask, double number) {
  return detail::written(a, masked_fill(a, mask, number));
}
template <tensor A, tensor B>
constexpr auto lerp_(const A& a, const B& b, double weight) {
  return detail::written(a, lerp(a, b, weight));
}
template <int Diagonal = 0, tensor A>
constexpr auto tril_(const A& a) {
  return detail::written(a, tril<Diagonal>(a));
}
template <int Diagonal = 0, tensor A>
constexpr auto triu_(const A& a) {
  return detail::written(a, triu<Diagonal>(a));
}

// A custom operation's result over its first operand.
template <const custom_operation& Op, op_attr At, tensor A, tensor... More>
constexpr auto call_(double number, const A& a, const More&... more) {
  return detail::written(a, call<Op, At>(number, a, more...));
}
template <const custom_operation& Op, op_attr At, tensor A, tensor... More>
constexpr auto call_(const A& a, const More&... more) {
  return detail::written(a, call<Op, At>(a, more...));
}
template <const custom_operation& Op, std::int64_t... At, tensor A, tensor... More>
constexpr auto call_(double number, const A& a, const More&... more) {
  return detail::written(a, call<Op, At...>(number, a, more...));
}
template <const custom_operation& Op, std::int64_t... At, tensor A, tensor... More>
constexpr auto call_(const A& a, const More&... more) {
  return detail::written(a, call<Op, At...>(a, more...));
}

}  // namespace shardwise::inline v0_1
