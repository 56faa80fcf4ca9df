// SPDX-License-Identifier: Apache-2.0
// planned: a tensor taken from one list of placements to another: the planner's steps, recorded or computed in order.
#pragma once

#include <shardwise/graph/tensor.hpp>
#include <shardwise/propagation/planner.hpp>

namespace shardwise::detail {

template <spec From, spec To, redistribution_policy Policy = redistribution_policy::late>
struct planned_steps {
  static constexpr redistribution_plan plan = plan_redistribution(From, To, Policy);
  static constexpr int count = plan.steps.count;

  // Steps K and later of a tensor that has done those before.
  template <int K = 0, class X>
  static constexpr auto from(const X& x) {
    if constexpr (K == count || !resolved<X>)
      return x;
    else if constexpr (local<K> || is_contiguous(X::sp))
      return from<K + 1>(apply<op_code::redistribute, attr<K>>(0, x));
    else
      return from<K + 1>(apply<op_code::redistribute, attr<K>>(0, apply<op_code::contiguous, op_attr{}>(0, x)));
  }

 private:
  template <int K>
  static constexpr bool local = plan.steps.item[K].kind == transition::none;
  template <int K>
  static constexpr op_attr attr{{plan.steps.item[K].axis, pack(plan.steps.item[K].to), 0, 0, 0, 0}};
};

}  // namespace shardwise::detail
