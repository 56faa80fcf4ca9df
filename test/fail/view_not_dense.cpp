// SPDX-License-Identifier: Apache-2.0
// A view of a transposed tensor.
// expect: view: the tensor is not stored densely in this order
// expect: where<shardwise::op::reshape,

#include <shardwise/graph/functions/views.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::view<32>(sw::transpose<0, 1>(real<sw::shape<4, 8>>{})));
#else
using y = decltype(sw::flatten(sw::transpose<0, 1>(real<sw::shape<4, 8>>{})));
#endif
