// SPDX-License-Identifier: Apache-2.0
// A style declares an input sharded along the sequence, and a replicate one arrives.
// expect: style: the input is not placed as the style's input<...> option declares
// expect: shardwise::operand<float, shardwise::shape<2L?, 4L?, 8L?>, shardwise::replicate ?>
// expect(text): style: colwise<tp, 1, input<shard<1>>>; operand: float[2, 4, 8] (

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using plan = sw::plan<sw::at<"net", sw::colwise<tp, 1, sw::input<sw::shard<1>>>>>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<2, 4, 8>, mesh>;
#else
using x = typed<float, sw::shape<2, 4, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#endif
using bound = sw::bind<one_linear, plan, mesh>;
using y = decltype(bound{}(x{}));
