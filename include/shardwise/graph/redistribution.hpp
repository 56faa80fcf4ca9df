// SPDX-License-Identifier: Apache-2.0
// From one list of placements to another: the planner's steps, recorded or computed in order; their collectives and
// bytes as constants.
#pragma once

#include <shardwise/graph/tensor.hpp>
#include <shardwise/propagation/planner.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <problem P, class... Facts>
constexpr bool refuse() {
  return raise<P, Facts...>::ok;
}

template <class P>
constexpr placement normal_placement(int rank) {
  placement p = placement_of<P>::value;
  if (p.is_shard() && p.dim < 0) p = split_along(p.dim + rank, p);
  return p;
}

constexpr problem problem_of(redistribution_obstacle o) {
  switch (o) {
    case redistribution_obstacle::tensors_differ: return problem::redistribute_tensors_differ;
    case redistribution_obstacle::meshes_differ: return problem::meshes_differ;
    case redistribution_obstacle::bad_placement: return problem::shard_dim_out_of_range;
    case redistribution_obstacle::shard_to_partial: return problem::redistribute_shard_to_partial;
    case redistribution_obstacle::partial_op_changes: return problem::redistribute_partial_op_changes;
    case redistribution_obstacle::whole_to_partial: return problem::redistribute_whole_to_partial;
    case redistribution_obstacle::no_strided_shards: return problem::redistribute_no_strided;
    case redistribution_obstacle::mixed_partials: return problem::redistribute_mixed_partials;
    case redistribution_obstacle::none: break;
  }
  return problem::none;
}

// `x` with the placements named; the other axes keep theirs.
template <class Mesh, class P>
constexpr void replace_on(spec_outcome& r, unsigned& seen) {
  constexpr int a = Mesh::template index_of<typename P::axis>;
  if constexpr (!P::in_order) {
    return;
  } else if constexpr (a < 0) {
    if (!r.error) r.error = {problem::axis_not_in_mesh};
  } else {
    const placement p = normal_placement<typename P::placement>(r.out.rank);
    const bool known = p.is_shard() && p.dim >= 0 && p.dim < r.out.rank;
    if (((seen >> a) & 1U) && !r.error) r.error = {problem::placement_axis_twice, 0, -1, a};
    if (placement_of<typename P::placement>::even && known && r.out.extent[p.dim] % r.out.axis_size[a] != 0 && !r.error)
      r.error = {problem::uneven_shard, 0, p.dim, a, r.out.extent[p.dim], r.out.axis_size[a]};
    seen |= 1U << a;
    r.out.place[a] = p;
  }
}
template <class Mesh, class... P>
constexpr spec_outcome replaced(const spec& x) {
  spec_outcome r{{}, x};
  unsigned seen = 0;
  (replace_on<Mesh, P>(r, seen), ...);
  if (!r.error) r.error = check_placements(r.out);
  if (r.error) r.out = x;
  else normalise(r.out);
  return r;
}

// What a redistribution of X to the placements named is, and why there is none.
template <redistribution_policy Policy, class Mesh, spec X, class... P>
struct redistribution_target {
  static constexpr spec_outcome target = replaced<Mesh, P...>(X);
  static constexpr problem what =
      target.error ? target.error.what : problem_of(plan_redistribution(X, target.out, Policy).obstacle);
  static constexpr spec out = target.out;
};

// x as a tensor of its own, which writes to x do not change, nor writes to it x: at once a copy that is made when one of
// them is written, in a program nothing unless one is.
template <class X>
constexpr auto owned(const X& x) {
  return apply<op_code::redistribute, attributes<redistribute_attributes>(0, pack(X::sp.place[0]))>(0, x);
}

// Whether the result is as its operand is stored. Says nothing of the axis' size: what is a view of the result must not
// depend on it.
constexpr bool keeps_storage(placement from, placement to) { return transition_of(from, to, 2) == transition::none; }

template <spec From, spec To, redistribution_policy Policy = redistribution_policy::late>
struct planned_steps {
  static constexpr redistribution_plan plan = plan_redistribution(From, To, Policy);
  static constexpr int count = plan.steps.count;

  // Steps K and later of a tensor that has done those before.
  template <int K = 0, class X>
  static constexpr auto from(const X& x) {
    if constexpr (K == count || !resolved<X>) return x;
    else if constexpr (!keeps_storage(X::sp.place[plan.steps.item[K].axis], plan.steps.item[K].to) && !is_contiguous(X::sp))
      return from<K>(apply<op_code::contiguous, op_attr{}>(0, x));
    else if constexpr (divisor<K> > 1) return from<K + 1>(shares<K>(apply<op_code::scale, op_attr{}>(1.0 / divisor<K>, x)));
    else return from<K + 1>(apply<op_code::redistribute, attr<K>>(0, x));
  }

 private:
  template <int K>
  static constexpr int divisor = plan.steps.item[K].divisor;
  template <int K>
  static constexpr op_attr attr = attributes<redistribute_attributes>(plan.steps.item[K].axis, pack(plan.steps.item[K].to));

  // The ranks' equal values under the name of shares. Backward, each share's cotangent is a summand of the value's.
  template <int K>
  static constexpr spec renamed(spec x) {
    x.place[plan.steps.item[K].axis] = plan.steps.item[K].to;
    return x;
  }
  template <int K>
  static constexpr op_attr labels(const spec& x) {
    relabel_attributes r{};
    for (int a = 0; a < x.axes; ++a)
      r.cotangent[a] = pack(a == plan.steps.item[K].axis ? partial_value() : dual(x.place[a]));
    return pack_attributes(r);
  }
  template <int K, class X>
  static constexpr auto shares(const X& x) {
    if constexpr (!resolved<X>) return x;
    else return X::template apply<op_code::relabel, labels<K>(X::sp), renamed<K>(X::sp)>(0, x);
  }
};

}  // namespace detail

struct redistribution_collective {
  transition kind = transition::none;
  int axis = 0;
  std::int64_t bytes = 0;  // payload that the busiest rank sends
};
using redistribution_collectives = static_vector<redistribution_collective, 2 * max_axes>;

namespace detail {

constexpr redistribution_collectives collectives_of(const redistribution_plan& plan) {
  redistribution_collectives r;
  for (const redistribution_step& s : plan.steps)
    if (communicates(s.kind)) r.push_back({s.kind, s.axis, s.bytes});
  return r;
}
constexpr std::int64_t bytes_of(const redistribution_plan& plan, const int* c, int axis) {
  std::int64_t total = 0;
  for (int k = 0; k < plan.steps.size(); ++k)
    if (axis < 0 || plan.steps[k].axis == axis) total += bytes_sent(plan, k, c);
  return total;
}
template <class Mesh>
constexpr std::int64_t most_bytes(const redistribution_plan& plan) {
  std::int64_t most = 0;
  for (int r = 0; r < Mesh::size; ++r) {
    const std::int64_t sent = bytes_of(plan, Mesh::coordinate(r).data(), -1);
    most = sent > most ? sent : most;
  }
  return most;
}

}  // namespace detail

// What it takes to have a From as a To, two tensors that differ in placements alone: redistribution<X, Y>::bytes.
template <tensor From, tensor To, redistribution_policy Policy = redistribution_policy::late>
struct redistribution {
  static constexpr bool one_mesh = std::is_same_v<typename From::mesh_type, typename To::mesh_type>;
  static constexpr redistribution_plan plan = plan_redistribution(From::sp, To::sp, Policy);
  static constexpr problem what = one_mesh ? detail::problem_of(plan.obstacle) : problem::meshes_differ;
  static_assert(detail::refuse<what, operand_t<From::sp>, operand_t<To::sp>>());

  // In order; all ranks run the same.
  static constexpr redistribution_collectives collectives = detail::collectives_of(plan);
  // That a rank sends on mesh axis number `axis`; on all axes: -1. A dyn dim counts at its bound.
  static constexpr std::int64_t bytes_of(int rank, int axis = -1) {
    return detail::bytes_of(plan, From::mesh_type::coordinate(rank).data(), axis);
  }
  // Of the busiest rank.
  static constexpr std::int64_t bytes = detail::most_bytes<typename From::mesh_type>(plan);
};

}  // namespace shardwise::inline v0_1
