// SPDX-License-Identifier: Apache-2.0
// An operand that lies elsewhere than the function of blocks says.
// expect: local_map: an operand is not placed as in_placements says
// expect(types): where<shardwise::detail::custom_tag<op>, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 6L?>, shardwise::shard<1(, 1L?)?> ?> ?>
// expect(text): operation: op

#include <shardwise/graph/functions/local_map.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using rows = sw::local_map<mesh, sw::out_placements<sw::on<tp, sw::shard<0>>>, sw::in_placements<sw::on<tp, sw::shard<0>>>>;
inline constexpr sw::custom_operation op{
    .name = "op", .operands = 1, .record = rows::record, .adjoint = &sw::autodiff::unknown};
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 6>, mesh, sw::shard<1>>;
#else
using x = typed<float, sw::shape<4, 6>, mesh, sw::shard<0>>;
#endif
using y = decltype(sw::call<op>(x{}));
