// SPDX-License-Identifier: Apache-2.0
// A mask beside documents.
// expect: scaled_dot_product_attention: these operands do not go together

#include <shardwise/graph/functions/attention.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using q = typed<float, sw::shape<2, 4, 8, 16>, mesh>;
using ids = typed<std::int32_t, sw::shape<2, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using further = typed<std::int32_t, sw::shape<8, 8>, mesh>;
#else
using further = typed<float, sw::shape<8, 8>, mesh>;
#endif
using y = decltype(sw::scaled_dot_product_attention(q{}, q{}, q{}, further{}, sw::documents(ids{})));
