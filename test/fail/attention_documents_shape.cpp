// SPDX-License-Identifier: Apache-2.0
// Documents of queries, where the keys are of another time.
// expect: scaled_dot_product_attention: documents are the ids

#include <shardwise/graph/functions/attention.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using q = typed<float, sw::shape<2, 4, 8, 16>, mesh>;
using ids = typed<std::int32_t, sw::shape<2, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using k = typed<float, sw::shape<2, 4, 9, 16>, mesh>;
#else
using k = q;
#endif
using y = decltype(sw::scaled_dot_product_attention(q{}, k{}, k{}, sw::documents(ids{})));
