// SPDX-License-Identifier: Apache-2.0
// Indices sharded on the axis whose ranks own the rows of the table: each rank would look up others' rows in vain.
// expect: an embedding's indices must be whole: gather them with the option input
// expect: rowwise<tp.*?> ?, shardwise::operand<int(32_t)?, shardwise::shape<6L?>, shardwise::shard<0(, 1L?)?> ?>

#include <shardwise/module/bind.hpp>
#include <shardwise/module/layers.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::embedding_table<100, 8>, table));
  constexpr auto forward(const auto& x) const { return table(x); }
};
#ifdef SHARDWISE_FAIL
using style = sw::rowwise<tp>;
#else
using style = sw::rowwise<tp, 1, sw::input<sw::shard<0>>>;
#endif
using bound = sw::bind<model, sw::plan<sw::at<"table", style>>, mesh>;
using y = decltype(bound{}(typed<std::int32_t, sw::shape<6>, mesh, sw::on<tp, sw::shard<0>>>{}));
