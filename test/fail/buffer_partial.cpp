// SPDX-License-Identifier: Apache-2.0
// A style of the user's that makes a buffer partial: its initial value would count once a rank.
// expect: style: a buffer would be partial on a mesh axis
// expect(g++): member_named<shardwise::fixed_string<8>{"running"}>.*plan_entry<shardwise::at<
// expect(clang): member_named<shardwise::fixed_string<8>{"running"}>.*plan_entry<shardwise::at<
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::buffer<sw::shape<6>, sw::init::zeros>, running));
  constexpr auto forward(const auto& x) const { return x + running; }
};
#ifdef SHARDWISE_FAIL
inline constexpr sw::placement placed = sw::partial_value();
#else
inline constexpr sw::placement placed = sw::shard_value(0);
#endif
template <class Axis>
struct own_style : sw::detail::style_base {
  using axis = Axis;
  static constexpr bool accepts(sw::module_kind) { return true; }
  static constexpr sw::detail::maybe_placement parameter(sw::module_kind, std::string_view, int) { return {true, placed}; }
};
using bound = sw::bind<model, sw::plan<sw::at<"", own_style<tp>>>, mesh>;
static_assert(sizeof(bound) > 0);
