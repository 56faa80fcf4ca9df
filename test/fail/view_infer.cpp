// SPDX-License-Identifier: Apache-2.0
// Two extents to infer.
// expect: view: more than one extent is -1, or the number of elements is no multiple

#include <shardwise/graph/functions/views.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::view<-1, 4, -1>(real<sw::shape<4, 8>>{}));
#else
using y = decltype(sw::view<2, 4, -1>(real<sw::shape<4, 8>>{}));
#endif
