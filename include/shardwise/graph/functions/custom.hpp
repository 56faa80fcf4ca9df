// SPDX-License-Identifier: Apache-2.0
// call: a user's own operation on tensors, eager, traced and implicit alike.
//
// An operation of your own is one constant, and a kernel found by it:
//
//   inline constexpr sw::autodiff::adjoint_rule swiglu_adjoint = sw::autodiff::pulled<2>([](sw::autodiff::pullback& p) { ... });
//   inline constexpr sw::custom_operation swiglu{
//       .name = "swiglu", .operands = 2, .record = sw::operations::pointwise(sw::linearity::none), .adjoint = &swiglu_adjoint};
//   template <>
//   struct sw::formula<swiglu> {                            // one formula for the host and for devices
//     template <class m, class T>
//     static constexpr T value(T gate, T up) { return gate / (T(1) + m::exp(T(0) - gate)) * up; }
//   };
//   ... sw::call<swiglu>(gate, up)
//
//   record   shape, rows of placements, cost: by operations::pointwise or operations::by_rows (propagation/operation.hpp),
//            field by field where those do not fit; operations::refuse_with<problem::custom_placements> is its sentence for
//            placements that no row admits
//   attributes   of a class of integers and sw::real, by name: call<op, pack_attributes(limits{.low = 0.5, .high = 2})>(x), read by
//            attributes_of<limits>(a) in rules and adjoints and by a formula that has `using attributes = limits;` as its last
//            argument
//   results  several, of different extents and types: `results` of by_rows says how many, `shape` takes the number of the one that
//            it is asked for, and a row, {{operands...}, {results...}}, places all of them. `call` then gives a std::tuple; an adjoint
//            asks has(k), cotangent(k) and result(k) (dy is the cotangent of a single result), and a kernel wanted(k) before it
//            writes out(k). Results after the first may be int32. sw::max of graph/functions/extremes.hpp is made so
//   adjoint  `pulled` with a function that gives operands their cotangents (pullback in graph/tape.hpp), written with other
//            operations, custom ones too; or &autodiff::no_derivative, &autodiff::unknown (a gradient through it is refused)
//   kernel   formula<Op> for what is elementwise; else host_kernel<Op> (runtime/host/custom.hpp) and, for GPUs,
//            device_kernel<Op> (runtime/cuda/device/custom.cuh)
//   proof    laws::holds (laws/cases.hpp) runs this very kernel on simulated ranks under every placement that the rows
//            admit, forward and adjoint; gradcheck (laws/gradcheck.hpp) compares the adjoint with differences
//
// examples/08_own_operation/ does all of it.
#pragma once

#include <shardwise/graph/functions/functions.hpp>
#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// What the library does with a custom operation, it must not say otherwise of itself.
constexpr bool is_custom_record(const operation& o) {
  return (o.kind == operation_kind::computed || (o.kind == operation_kind::pointwise && o.indices < 0)) && !o.random &&
         (o.elements == element_rule::real || o.elements == element_rule::any) && o.writes.value(op_attr{}) == 0;
}
// Of several results: kernels that broadcast and overwrite operands, as pointwise ones do, have one.
constexpr bool is_results_record(const operation& o) {
  const bool several = o.results > 1;
  return o.results >= 1 && o.results <= max_results && o.shape.value.several() == several &&
         (!several || o.kind == operation_kind::computed) && (!o.tabled || o.rows.value.several() == several);
}

template <std::int64_t... A>
constexpr op_attr listed_attributes() {
  static_assert(sizeof...(A) <= 5, "shardwise: call: an operation has at most 5 attributes.");
  op_attr a{};
  int i = 0;
  ((i < 5 ? void(a.v[i++] = A) : void()), ...);
  return a;
}

// Operands that its kernel can read; others are copied.
template <const custom_operation& Op, tensor X>
constexpr auto custom_operand(const X& x) {
  if constexpr (!resolved<X>) return x;
  else if constexpr (autodiff::reads(Op.record, spec(X::sp))) return x;
  else return contiguous(x);
}

}  // namespace detail

// Op on x, more...; A are its attributes, `number` its real parameter. Gives its result, or a std::tuple of its results. Refused as
// any operation: where no row of the record fits the operands' placements, where their extents do not fit.
template <const custom_operation& Op, op_attr A, tensor X, tensor... More>
constexpr auto call(double number, const X& x, const More&... more) {
  static_assert(A.v[5] == 0, "shardwise: call: an operation has at most 5 attributes.");
  constexpr problem wrong = !is_custom_name(Op.name)                               ? problem::custom_name
                            : !detail::is_custom_record(Op.record)                 ? problem::custom_record
                            : !detail::is_results_record(Op.record)                ? problem::result_record
                            : Op.operands < 1 || Op.operands > max_inputs          ? problem::custom_operand_count
                            : Op.operands != 1 + static_cast<int>(sizeof...(More)) ? problem::custom_operands
                                                                                   : problem::none;
  constexpr int results = wrong == problem::result_record ? 1 : Op.record.results.value;
  if constexpr (wrong != problem::none)
    return detail::as_results<results>(
        detail::refused<wrong, op_code::custom, detail::custom_tag<Op>, operand_t<X::sp>, operand_t<More::sp>...>(x,
                                                                                                                  more...));
  else
    return detail::as_results<results>(
        detail::apply<&Op, A>(number, detail::custom_operand<Op>(x), detail::custom_operand<Op>(more)...));
}
template <const custom_operation& Op, op_attr A, tensor X, tensor... More>
constexpr auto call(const X& x, const More&... more) {
  return call<Op, A>(0.0, x, more...);
}
// The same with up to five attributes given as numbers, in their order.
template <const custom_operation& Op, std::int64_t... A, tensor X, tensor... More>
constexpr auto call(double number, const X& x, const More&... more) {
  return call<Op, detail::listed_attributes<A...>()>(number, x, more...);
}
template <const custom_operation& Op, std::int64_t... A, tensor X, tensor... More>
constexpr auto call(const X& x, const More&... more) {
  return call<Op, detail::listed_attributes<A...>()>(0.0, x, more...);
}

}  // namespace shardwise::inline v0_1
