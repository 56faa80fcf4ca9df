// SPDX-License-Identifier: Apache-2.0
// A linear layer of 8 features is called with 6.
// expect: module: the input's last dim differs from the module's number of input features
// expect: shardwise::operand<float, shardwise::shape<4L?, 6L?>, shardwise::replicate ?>.*linear<8, 6
// expect(text): operand: float[4, 6] (
// expect(text): linear<8, 6>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using plan = sw::plan<>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 6>, mesh>;
#else
using x = typed<float, sw::shape<4, 8>, mesh>;
#endif
using bound = sw::bind<one_linear, plan, mesh>;
using y = decltype(bound{}(x{}));
