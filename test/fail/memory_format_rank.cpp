// SPDX-License-Identifier: Apache-2.0
// Three dims stored channels-last.
// expect: contiguous: the format channels_last is of tensors with 4 dims
// expect: where<shardwise::op::contiguous,

#include <shardwise/graph/functions/views.hpp>

#include "typed_tp.hpp"

using image = real<sw::shape<3, 5, 5>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::contiguous<sw::memory_format::channels_last>(image{}));
#else
using y = decltype(sw::contiguous<sw::memory_format::channels_last>(sw::unsqueeze<0>(image{})));
#endif
