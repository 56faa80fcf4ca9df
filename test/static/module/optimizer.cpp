// SPDX-License-Identifier: Apache-2.0
// What an update asks of a parameter and its gradient, placement by placement; what sgd is told of momentum.
#include <shardwise/module/optimizer.hpp>
#include <shardwise/module/optimizers.hpp>

#include "typed.hpp"

namespace {

// --- a parameter and its gradient -----------------------------------------------------------------------------------------------

struct dp : sw::axis<2> {};
struct tp : sw::axis<3> {};
using mesh = sw::mesh<dp, tp>;
using sw::problem;
constexpr sw::placement R = sw::replicate_value(), U = sw::reduced_value(), P = sw::partial_value();

template <class T = float, std::int64_t Rows = 5>
constexpr sw::spec placed(sw::placement on_dp, sw::placement on_tp) {
  sw::spec s = sw::spec_of<T, sw::shape<Rows, 4>, mesh>::value;
  s.place[0] = on_dp;
  s.place[1] = on_tp;
  return s;
}
constexpr bool finds(const sw::spec& p, const sw::spec& g, problem what, int axis = -1) {
  const sw::finding f = sw::check_update(p, g);
  return f.what == what && f.axis == axis && (what == problem::none || f.operand == 1);
}

// Of all pairs of placements those are taken whose gradient is summed, and sharded exactly as the parameter is.
constexpr bool law() {
  const sw::placement kinds[] = {R, U, P, sw::shard_value(0), sw::shard_value(1), sw::shard_value(1, 2)};
  for (const sw::placement p : kinds)
    for (const sw::placement g : kinds) {
      const problem want = g == P         ? problem::gradient_unreduced
                           : p.is_shard() ? (g == p ? problem::none : problem::gradient_placement)
                           : g.is_shard() ? problem::gradient_placement
                                          : problem::none;
      for (int a = 0; a < 2; ++a)
        if (!finds(a == 0 ? placed(p, R) : placed(R, p), a == 0 ? placed(g, R) : placed(R, g), want,
                   want == problem::none ? -1 : a))
          return false;
    }
  return true;
}
static_assert(law());
// The first axis that is wrong is named.
static_assert(finds(placed(R, R), placed(sw::shard_value(0), P), problem::gradient_placement, 0));
// Extents and elements come first; the dim and both extents are said.
static_assert(finds(placed(R, R), placed<float, 6>(P, R), problem::gradient_shape));
static_assert([] {
  const sw::finding f = sw::check_update(placed(R, R), placed<float, 6>(R, R));
  return f.dim == 0 && f.have == 6 && f.want == 5;
}());
static_assert([] {
  sw::spec g = placed(R, R);
  g.rank = 1;
  return finds(placed(R, R), g, problem::gradient_shape);
}());
static_assert(finds(placed<double>(R, R), placed(R, R), problem::gradient_shape) &&
              finds(placed(R, R), placed<double>(R, R), problem::gradient_shape));
// Of floats the gradient may be of two bytes, of nothing else.
static_assert(finds(placed(R, R), placed<sw::bf16>(R, R), problem::none) &&
              finds(placed(R, R), placed<sw::f16>(R, R), problem::none) &&
              finds(placed<double>(R, R), placed<sw::bf16>(R, R), problem::gradient_shape) &&
              finds(placed<sw::f16>(R, R), placed<sw::bf16>(R, R), problem::gradient_shape) &&
              finds(placed<sw::bf16>(R, R), placed(R, R), problem::gradient_shape));

// --- momentum or none -----------------------------------------------------------------------------------------------------------

constexpr bool is(sw::momentum_choice given, bool on, bool number) { return given.on == on && given.is_number == number; }
static_assert(is(true, true, false) && is(false, false, false));
static_assert(is(0.9, false, true) && is(0, false, true) && is(1, false, true) && is(0.0F, false, true));
static_assert(is({true, false}, true, false) && is({false, true}, false, true));
static_assert(sw::sgd<>::states == 0 && sw::sgd<false>::states == 0 && sw::sgd<true>::states == 1);
static_assert(sw::detail::problem_of(0.9, sw::sgd_form::plain) == problem::sgd_momentum &&
              sw::detail::problem_of(true, sw::sgd_form::plain) == problem::none);

}  // namespace
