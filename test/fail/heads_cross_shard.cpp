// SPDX-License-Identifier: Apache-2.0
// 64 features over 3 ranks, split flat, are no whole heads of 16.
// expect: reshape: a sharded dim is merged or split so that the new dims would cut across shard boundaries
// expect: where<shardwise::op::reshape, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<2L?, 5L?, 64L?>, shardwise::shard<2(, 1L?)?> ?> ?>
// expect(text): operation: reshape; operand: float[2, 5, 64] (tp: shard<2>); mesh: "tp" of 3; dim: 2; axis: "tp" of 3

#include <shardwise/module/bind.hpp>
#include <shardwise/module/hana.hpp>
#include <shardwise/module/layers.hpp>

#include "typed.hpp"

struct tp : sw::axis<3> {};
using mesh = sw::mesh<tp>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 64, sw::child<Bound, 0>>, query));
  constexpr auto forward(const auto& x) const { return sw::reshape<2, 5, 4, 16>(query(x)); }
};
using x = typed<float, sw::shape<2, 5, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"query", sw::colwise<tp>>>;
#else
using plan = sw::plan<sw::at<"query", sw::colwise<tp, 16>>>;
#endif
using bound = sw::bind<model, plan, mesh>;
using y = decltype(bound{}(x{}));
