// SPDX-License-Identifier: Apache-2.0
// A style of the user's that makes parameters partial: every rank would add the whole gradient to its summand.
// expect: style: a parameter would be partial on a mesh axis
// expect(g++): member_named<shardwise::fixed_string<7>{"weight"}>.*plan_entry<shardwise::at<shardwise::fixed_string<4>{"net"}
// expect(clang): member_named<shardwise::fixed_string<7>{"weight"}>.*plan_entry<shardwise::at<shardwise::fixed_string<4>{"net"}
#include <shardwise/shardwise.hpp>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
inline constexpr sw::placement placed = sw::partial_value();
#else
inline constexpr sw::placement placed = sw::replicate_value();
#endif
template <class Axis>
struct own_style : sw::detail::style_base {
  using axis = Axis;
  static constexpr bool accepts(sw::module_kind) { return true; }
  static constexpr sw::detail::maybe_placement parameter(sw::module_kind, std::string_view, int) { return {true, placed}; }
};
using bound = sw::bind<one_linear, sw::plan<sw::at<"net", own_style<tp>>>, mesh>;
static_assert(sizeof(bound) > 0);
