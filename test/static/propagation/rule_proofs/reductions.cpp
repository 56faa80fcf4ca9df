// SPDX-License-Identifier: Apache-2.0
// Rules of reductions over a rank's elements and of redistributions over ranks, every pair of placements; and what no case
// is: the seed of the reverse sweep, fills, whole steps with an update.
#include <laws/rule_proofs.hpp>

namespace shardwise::laws {

static_assert(proved<family::reductions> > 2 * cases_of<family::reductions>);
static_assert(proved<family::redistributions> > 2 * cases_of<family::redistributions>);

// The constant that starts the reverse sweep.
template <class P, int Ranks>
struct seed {
  static constexpr failure found = prove_seed<P, Ranks>();
  static constexpr int count = proof<op::fill, Ranks, seed, 0, found>::count;
};
static_assert(seed<replicate, 2>::count + seed<reduced, 2>::count + seed<partial<>, 3>::count + seed<reduced, 3>::count ==
              4);

// Fills, whose numbers are functions of the element alone.
template <int I, int Ranks>
struct filled {
  static constexpr int tried = prove_fills(fills[I], Ranks);
  using op = typename shardwise::detail::op_tag<fills[I].op>::type;
  static constexpr int count =
      proof<op, Ranks, filled, 0, (tried == 2 + fills[I].shape.rank ? failure::none : failure::value)>::count;
};
template <int... I>
constexpr int prove_all_fills(std::integer_sequence<int, I...>) {
  return (0 + ... + (filled<I, 2>::count + filled<I, 3>::count));
}
static_assert(prove_all_fills(std::make_integer_sequence<int, sizeof(fills) / sizeof(fills[0])>{}) == 8);

// Whole train steps of one parameter, its gradient partial, sharded or whole, and strided.
template <class Optimizer, class W, class X, int Ranks>
struct update {
  using op = typename shardwise::detail::op_tag<Optimizer::op>::type;
  static constexpr failure found = prove_update<Optimizer, W, X, Ranks>();
  static constexpr int count = proof<op, Ranks, update, 0, found>::count;
};
template <class Optimizer>
inline constexpr int updates =
    update<Optimizer, reduced, shard<0>, 2>::count + update<Optimizer, reduced, reduced, 3>::count +
    update<Optimizer, shard<0>, shard<2>, 3>::count + update<Optimizer, shard<1>, shard<1>, 2>::count;
static_assert(updates<sgd<true>> + updates<adam<>> + updates<clip_norm<adamw<true>>> == 12);
static_assert(updates<sgd<true, sgd_form::dampened>> + updates<clip_value<lion<>>> + updates<maximize<amsgrad<adam<>>>> ==
              12);

}  // namespace shardwise::laws
