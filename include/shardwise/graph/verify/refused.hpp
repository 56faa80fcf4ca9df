// SPDX-License-Identifier: Apache-2.0
// refused_program: a finding about a whole program as one static_assert, with what the finding counts or names as types.
#pragma once

#include <shardwise/propagation/op.hpp>
#include <shardwise/support/diagnose.hpp>
#include <shardwise/support/facts.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <problem P, long long Have, long long Want, class... Facts>
struct refused_program {
  static constexpr bool ok = raise<P, have<Have>, want<Want>, Facts...>::ok;
};
template <problem P, class... Facts>
struct refused_program<P, 0, 0, Facts...> {
  static constexpr bool ok = raise<P, Facts...>::ok;
};
template <long long Op, class... Facts>
struct refused_program<problem::gradient_missing, Op, 0, Facts...> {
  static constexpr bool ok = raise<problem::gradient_missing, typename op_tag<static_cast<op_code>(Op)>::type, Facts...>::ok;
};

}  // namespace detail

}  // namespace shardwise::inline v0_1
