// SPDX-License-Identifier: Apache-2.0
// An update applied as if it were a function of tensors.
// expect: this operation has no rule that places its result
// expect: shardwise::op::assign

#include <shardwise/graph/functions/functions.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
constexpr sw::op_code op = sw::op_code::assign;
#else
constexpr sw::op_code op = sw::op_code::add;
#endif
using x = real<sw::shape<4, 8>, sw::shard<0>>;
using y = decltype(sw::detail::apply<op, sw::detail::no_attr>(0, x{}, x{}));
