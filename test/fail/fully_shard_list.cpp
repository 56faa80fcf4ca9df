// SPDX-License-Identifier: Apache-2.0
// A list of modules as a group, which has no forward of its own.
// expect: fully_shard: the path names a list of modules, which has no forward of its own
// expect(g++): plan_entry<
// expect(clang): plan_entry<
// expect(text): plan_entry: at<"layers", fully_shard<dp>>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
template <class Bound>
using layer = one_linear<Bound>;
template <class Bound = sw::unbound>
struct stack : sw::module<stack<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<2, layer>, layers));
  constexpr auto forward(const auto& x) const { return layers(x); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"layers", sw::fully_shard<dp>>>;
#else
using plan = sw::plan<sw::at<"layers.*", sw::fully_shard<dp>>>;
#endif
using bound = sw::bind<stack, plan, mesh>;
constexpr auto members = sizeof(bound);
