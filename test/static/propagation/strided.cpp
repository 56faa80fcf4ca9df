// SPDX-License-Identifier: Apache-2.0
// Strided shards and norms in rules, plans and strategies: a split order survives where the dim's split does, and nowhere
// is one taken for another.

#include <shardwise/operations/strategy.hpp>

#include "rules.hpp"

namespace {

using namespace rules_test;
using sw::op_code;
using sw::placement;
using sw::problem;
using sw::strided_shard;
using sw::transition;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using square = sw::mesh<dp, tp>;
template <class Shape, class A, class B, class T = float>
constexpr sw::spec at = sw::spec_of<T, Shape, square, A, B>::value;
template <int D>
using shards = sw::shard<D>;
using whole = sw::replicate;
using owed = sw::reduced;

constexpr placement after(int d) { return sw::strided_shard_value(d, 2); }
constexpr bool placed(const sw::outcome& o, placement p, placement q) {
  return !o.error && o.out.place[0] == p && o.out.place[1] == q;
}

// --- rows ------------------------------------------------------------------------------------------------------------

using matrix = sw::shape<8, 4>;
constexpr sw::spec x = at<matrix, strided_shard<0, 2>, shards<0>>, plain = at<matrix, shards<0>, shards<0>>;

static_assert(placed(apply(op_code::relu, {}, x), after(0), S(0)));
static_assert(placed(apply(op_code::add, {}, x, x), after(0), S(0)));
static_assert(placed(apply(op_code::mul, {}, x, at<sw::shape<4>, owed, owed>), after(0), S(0)));
static_assert(refuses(apply(op_code::add, {}, x, plain), problem::pointwise_placements));
static_assert(refuses(apply(op_code::mul, {}, plain, x), problem::pointwise_placements));
// a broadcast operand has the split at a dim of its own
static_assert(placed(apply(op_code::mul, {}, at<sw::shape<3, 8>, strided_shard<1, 2>, shards<1>>,
                           at<sw::shape<8>, strided_shard<0, 2>, shards<0>>),
                     after(1), S(1)));
// rows of a product, then its contracted dim: ij, kj -> ik
constexpr sw::op_attr product{{0x21, 0x23, 0x31, 0, 0, 0}};
static_assert(placed(apply(op_code::einsum, product, x, at<sw::shape<6, 4>, owed, owed>), after(0), S(0)));
static_assert(placed(apply(op_code::einsum, product, at<sw::shape<6, 4>, owed, owed>, x), after(1), S(1)));
constexpr sw::spec columns = at<sw::shape<4, 8>, strided_shard<1, 2>, shards<1>>;
static_assert(placed(apply(op_code::einsum, product, columns, columns), P, P));
static_assert(refuses(apply(op_code::einsum, product, columns, at<sw::shape<4, 8>, shards<1>, shards<1>>),
                      problem::contraction_split));
static_assert(placed(apply(op_code::sum, {{1, 0, 0, 0, 0, 0}}, x), P, P));
static_assert(placed(apply(op_code::sum, {{2, 0, 0, 0, 0, 0}}, x), after(0), S(0)));
static_assert(placed(apply(op_code::sum, {{1, 0, 0, 0, 0, 0}}, columns), after(0), S(0)));
static_assert(placed(apply(op_code::softmax, {}, x), after(0), S(0)));
static_assert(placed(apply(op_code::embedding, {}, at<sw::shape<9, 4>, owed, owed>,
                           at<sw::shape<8>, strided_shard<0, 2>, shards<0>, std::int32_t>),
                     after(0), S(0)));

// --- views -----------------------------------------------------------------------------------------------------------

template <std::int64_t... E>
constexpr sw::op_attr to_extents() {
  const std::int64_t e[] = {E...};
  return sw::pack_extents(e, static_cast<int>(sizeof...(E)));
}
static_assert(placed(apply(op_code::permute, {{0x01, 0, 0, 0, 0, 0}}, x), after(1), S(1)));
static_assert(placed(apply(op_code::reshape, to_extents<32>(), x), after(0), S(0)));
static_assert(placed(apply(op_code::reshape, to_extents<8, 2, 2>(), x), after(0), S(0)));
static_assert(placed(apply(op_code::reshape, to_extents<4, 2, 4>(), x), after(0), S(0)));
static_assert(refuses(apply(op_code::reshape, to_extents<2, 4, 4>(), x), problem::reshape_crosses_shard));
static_assert(refuses(apply(op_code::slice, {{0, 0, 7, 0, 0, 0}}, x), problem::slice_dim_sharded));

// --- plans -----------------------------------------------------------------------------------------------------------

constexpr bool steps(const sw::redistribution_plan& p, std::initializer_list<std::pair<int, transition>> expected) {
  if (!p || p.steps.size() != static_cast<int>(expected.size())) return false;
  int k = 0;
  for (const auto& [axis, kind] : expected) {
    if (p.steps[k].axis != axis || p.steps[k].kind != kind) return false;
    ++k;
  }
  return true;
}
template <class A, class B>
constexpr sw::spec to = at<matrix, A, B>;
constexpr auto gather = transition::all_gather, chunk = transition::take_chunk, scatter = transition::reduce_scatter;
// a sharded parameter of a tensor parallel layer: gathered for use, its gradient scattered back, by one step each
static_assert(steps(plan_redistribution(x, to<whole, shards<0>>), {{0, gather}}));
static_assert(steps(plan_redistribution(to<sw::partial<>, shards<0>>, x), {{0, scatter}}));
static_assert(plan_redistribution(x, to<whole, shards<0>>).steps[0].bytes == 2 * 4 * 4);
// its plain twin would have to gather both
static_assert(steps(plan_redistribution(plain, to<whole, shards<0>>), {{1, gather}, {0, gather}, {1, chunk}}));
static_assert(steps(plan_redistribution(x, to<shards<0>, whole>), {{0, gather}, {1, gather}, {0, chunk}}));
static_assert(steps(plan_redistribution(x, plain), {{0, gather}, {1, gather}, {0, chunk}, {1, chunk}}));
static_assert(steps(plan_redistribution(plain, x), {{1, gather}, {0, gather}, {1, chunk}, {0, chunk}}));
static_assert(steps(plan_redistribution(x, x), {}));
static_assert(steps(plan_redistribution(x, to<whole, whole>), {{0, gather}, {1, gather}}));
static_assert(steps(plan_redistribution(to<whole, whole>, x), {{1, chunk}, {0, chunk}}));
// the strided axis leaves the dim at once; the other follows it
static_assert(steps(plan_redistribution(x, to<shards<1>, shards<0>>), {{0, transition::all_to_all}}));
static_assert(steps(plan_redistribution(x, to<strided_shard<1, 2>, shards<1>>),
                    {{0, gather}, {1, transition::all_to_all}, {0, chunk}}));
static_assert(plan_redistribution(x, plain, sw::redistribution_policy::seed_era).obstacle ==
              sw::redistribution_obstacle::no_strided_shards);
static_assert(plan_redistribution(x, plain).cost > 0 && plan_redistribution(x, to<whole, shards<0>>).cost > 0);

// --- strategies ------------------------------------------------------------------------------------------------------

constexpr bool finds(op_code op, const sw::op_attr& a, const sw::spec& l, const sw::spec& r) {
  const sw::spec in[] = {l, r};
  const sw::strategy s = sw::choose_strategy(op, a, in, 2);
  return s.found && !sw::infer(op, a, s.target, 2).error;
}
static_assert(finds(op_code::add, {}, x, plain) && finds(op_code::mul, {}, plain, x) &&
              finds(op_code::mul, {}, x, to<whole, shards<0>>));
static_assert(finds(op_code::einsum, product, columns, at<sw::shape<4, 8>, shards<1>, shards<1>>));
static_assert(finds(op_code::einsum, product, x, at<sw::shape<6, 4>, shards<1>, whole>));

// --- norms -----------------------------------------------------------------------------------------------------------

constexpr sw::spec norms = at<matrix, sw::partial_norm<2>, whole>;
static_assert(refuses(apply(op_code::add, {}, norms, norms), problem::partial_nonlinear));
static_assert(refuses(apply(op_code::scale, {}, norms), problem::partial_nonlinear));
static_assert(steps(plan_redistribution(norms, to<whole, whole>), {{0, transition::all_reduce}}));
static_assert(steps(plan_redistribution(norms, to<shards<0>, whole>), {{0, scatter}}));
constexpr auto obstacle(const sw::spec& from, const sw::spec& target) { return plan_redistribution(from, target).obstacle; }
static_assert(obstacle(to<whole, whole>, norms) == sw::redistribution_obstacle::whole_to_partial);
static_assert(obstacle(norms, to<sw::partial_norm<3>, whole>) == sw::redistribution_obstacle::partial_op_changes);
static_assert(obstacle(norms, to<sw::partial<>, whole>) == sw::redistribution_obstacle::partial_op_changes);
static_assert(obstacle(to<sw::partial_norm<2>, sw::partial_norm<3>>, to<whole, whole>) ==
              sw::redistribution_obstacle::mixed_partials);
static_assert(obstacle(to<sw::partial_norm<2>, sw::partial<>>, to<whole, whole>) ==
              sw::redistribution_obstacle::mixed_partials);
static_assert(steps(plan_redistribution(to<sw::partial_norm<2>, sw::partial_norm<2>>, to<whole, whole>),
                    {{0, transition::all_reduce}, {1, transition::all_reduce}}));

}  // namespace
