// SPDX-License-Identifier: Apache-2.0
// redistribute and its relatives: what users write to change placements.
#pragma once

#include <shardwise/graph/functions/view_functions.hpp>

namespace shardwise::inline v0_1 {

// The only operation that communicates. The result is a tensor of its own, never an alias of its operand, even if nothing
// moves: see mutating_functions.hpp. Its gradient is redistributed from the dual of the target to the dual of the
// source: replicate -> reduced is free forward and an all-reduce backward; partial -> replicate the other way round.
// redistribute<tp, reduced, reduce_dtype<float>>(x): the gradient of a tensor of two bytes is summed, and sent, as floats.
template <class Axis, class To, class Reduce = void, tensor A>
  requires(!detail::is_on<Axis>::value && detail::reduction_type<Reduce> >= 0)
constexpr auto redistribute(const A& a) {
  using mesh_type = typename A::mesh_type;
  constexpr bool in_order = detail::is_axis<Axis> && detail::is_placement<To>;
  using target = std::conditional_t<in_order, To, replicate>;
  constexpr int axis = mesh_type::template index_of<Axis>;
  constexpr placement to = detail::normal_placement<target>(A::sp.rank);
  constexpr bool even = detail::placement_of<target>::even && detail::resolved<A> && to.dim >= 0 && to.dim < A::sp.rank;
  constexpr problem wrong = !in_order  ? problem::axis_then_placement
                            : axis < 0 ? problem::axis_not_in_mesh
                            : even && A::sp.extent[even ? to.dim : 0] % detail::ranks_of<Axis>() != 0 ? problem::uneven_shard
                                                                                                      : problem::none;
  if constexpr (wrong != problem::none) {
    return detail::refused<wrong, op_code::redistribute, on<Axis, To>, mesh_type, operand_t<A::sp>>(a);
  } else if constexpr (!detail::resolved<A>) {
    return a;
  } else {
    // nvcc crashes on the attributes as a local constant
    if constexpr (detail::keeps_storage(A::sp.place[axis], to))
      return detail::apply<op_code::redistribute,
                           attributes<redistribute_attributes>(axis, pack(to), 0, 0, detail::reduction_type<Reduce>)>(0, a);
    else
      return detail::apply<op_code::redistribute,
                           attributes<redistribute_attributes>(axis, pack(to), 0, 0, detail::reduction_type<Reduce>)>(
          0, contiguous(a));
  }
}

// To several placements at once: redistribute<on<dp, shard<0>>, on<tp, replicate>>(x); axes that are not named keep
// theirs. The steps, one axis each, are the planner's, so that the order in which axes shard one dim is never in the way:
// redistribution<X, Y> knows their collectives and bytes. Their gradient goes back step by step.
template <redistribution_policy Policy, class... To, tensor A>
  requires(sizeof...(To) > 0 && (detail::is_on<To>::value && ...))
constexpr auto redistribute(const A& a) {
  if constexpr (detail::is_implicit<A>) {
    return detail::as_implicit(redistribute<Policy, To...>(a.strict));
  } else if constexpr (!detail::resolved<A>) {
    return a;
  } else {
    using checked = detail::redistribution_target<Policy, typename A::mesh_type, A::sp, To...>;
    using steps = detail::planned_steps<A::sp, checked::out, Policy>;
    if constexpr (checked::what != problem::none)
      return detail::refused<checked::what, op_code::redistribute, typename A::mesh_type, operand_t<A::sp>, To...,
                             typename detail::finding_facts<checked::target.error, typename A::mesh_type>::type>(a);
    else if constexpr (steps::count == 0) return detail::owned(a);
    else return steps::from(a);
  }
}
template <class... To, tensor A>
  requires(sizeof...(To) > 0 && (detail::is_on<To>::value && ...))
constexpr auto redistribute(const A& a) {
  return redistribute<redistribution_policy::late, To...>(a);
}

// shard without its dim.
template <class Axis, template <int, std::int64_t> class To, tensor A>
constexpr auto redistribute(const A& a) {
  return redistribute<Axis, To<detail::no_dim, 1>>(a);
}
// Neither axis nor placement, or one without the other.
template <tensor A>
constexpr auto redistribute(const A& a) {
  return detail::refused<problem::redistribute_target_missing, op_code::redistribute, operand_t<A::sp>>(a);
}
template <class AxisOrPlacement, tensor A>
  requires(!detail::is_on<AxisOrPlacement>::value)
constexpr auto redistribute(const A& a) {
  return detail::refused<problem::redistribute_target_missing, op_code::redistribute, operand_t<A::sp>, AxisOrPlacement>(a);
}

// To a shard of a dim that the axis does not divide, as transports without uneven collectives do it: the dim is padded
// with zeros to full chunks, exchanged, and cut. Every rank's block lies in storage of a full chunk, so that strides are
// equal on all ranks; where the axis divides the dim, and to other placements, it is redistribute.
template <class Axis, class To, tensor A>
constexpr auto redistribute_padded(const A& a) {
  constexpr placement to = detail::normal_placement<To>(A::sp.rank);
  constexpr bool valid = detail::resolved<A> && to.is_shard() && to.block == 1 && to.dim >= 0 && to.dim < A::sp.rank;
  constexpr int d = valid ? to.dim : 0;
  constexpr std::int64_t extent = A::sp.extent[d], full = ceil_div(extent, Axis::size) * Axis::size;
  if constexpr (!valid || full == extent || !A::mesh_type::template has<Axis>) {
    return redistribute<Axis, To>(a);
  } else {
    const auto padded = detail::apply<op_code::pad, attributes<slice_attributes>(d, 0, full)>(0, a);
    return slice<d, 0, extent>(redistribute<Axis, To>(padded));
  }
}

// The gradient of a parameter that is reduced on Axis arrives partial there; this sums it over the axis, once.
template <class Axis, tensor G>
constexpr auto reduce_gradient(const G& g) {
  constexpr int axis = G::mesh_type::template index_of<Axis>;
  constexpr problem wrong = axis < 0 ? problem::axis_not_in_mesh
                            : !detail::resolved<G> || G::sp.place[axis < 0 ? 0 : axis].is_partial()
                                ? problem::none
                                : problem::gradient_reduced_twice;
  if constexpr (wrong == problem::none) return redistribute<Axis, replicate>(g);
  else return detail::refused<wrong, op_code::redistribute, Axis, operand_t<G::sp>>(g);
}

}  // namespace shardwise::inline v0_1
