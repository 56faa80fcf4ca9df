// SPDX-License-Identifier: Apache-2.0
// Dropout in percent.
// expect: scaled_dot_product_attention: the window is at least 0, the dropout a probability from 0 to 1

#include <shardwise/graph/functions/attention.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using q = typed<float, sw::shape<2, 4, 8, 16>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::scaled_dot_product_attention<sw::attention_options{.dropout = 10}>(q{}, q{}, q{}));
#else
using y = decltype(sw::scaled_dot_product_attention<sw::attention_options{.dropout = 0.1}>(q{}, q{}, q{}));
#endif
