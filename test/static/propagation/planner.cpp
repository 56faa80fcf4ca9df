// SPDX-License-Identifier: Apache-2.0
// Redistribution plans against worked examples: steps, padding, bytes, costs; and 200 pairs of specs as types.

#include <shardwise/propagation/planner.hpp>

#include "rules.hpp"
#include "typed.hpp"

namespace {

using namespace rules_test;
using sw::interval;
using sw::placement;
using sw::redistribution_obstacle;
using sw::redistribution_plan;
using sw::redistribution_policy;
using sw::reduction;
using sw::spec;
using sw::transition;

constexpr auto late = redistribution_policy::late, seed_era = redistribution_policy::seed_era;
constexpr auto gather = transition::all_gather, reduce = transition::all_reduce, none = transition::none;
constexpr auto scatter = transition::reduce_scatter, exchange = transition::all_to_all, chunk = transition::take_chunk;
constexpr auto to_partial = transition::to_partial;

template <int Size, int Name = 0>
struct ax : sw::axis<Size> {};
template <int N>
using line_of = sw::mesh<ax<N>>;
using square = sw::mesh<ax<2>, ax<2, 1>>;

template <class Shape, class Mesh, class... P>
constexpr spec at = sw::spec_of<float, Shape, Mesh, P...>::value;
template <int D>
using Sh = sw::shard<D>;
using Re = sw::replicate;
using Pa = sw::partial<>;

struct step {
  int axis;
  transition kind;
};
template <std::size_t N>
constexpr bool steps(const redistribution_plan& p, const step (&expected)[N]) {
  bool same = p && p.steps.size() == static_cast<int>(N);
  for (std::size_t k = 0; k < N && same; ++k)
    same = p.steps[static_cast<int>(k)].axis == expected[k].axis && p.steps[static_cast<int>(k)].kind == expected[k].kind;
  return same;
}
constexpr redistribution_plan plan(const spec& from, const spec& to, redistribution_policy policy = late) {
  return sw::plan_redistribution(from, to, policy);
}

// --- one axis --------------------------------------------------------------------------------------------------------

constexpr bool every_pair_on_one_axis() {
  constexpr transition expected[5][5] = {
      // to R, U, P, S(0), S(1); from shard to partial there is no plan
      {none, none, to_partial, chunk, chunk},    // from R
      {none, none, to_partial, chunk, chunk},    // U
      {reduce, reduce, none, scatter, scatter},  // P
      {gather, gather, none, none, exchange},    // S(0)
      {gather, gather, none, exchange, none},    // S(1)
  };
  for (auto policy : {late, seed_era})
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 5; ++j) {
        const redistribution_plan p = plan(on_line<sw::shape<4, 6>>(kinds[i]), on_line<sw::shape<4, 6>>(kinds[j]), policy);
        if (!p != (i > 2 && j == 2)) return false;
        if (p && !(i == j ? p.steps.size() == 0 : steps(p, {{0, expected[i][j]}}))) return false;
      }
  return true;
}
static_assert(every_pair_on_one_axis());

// What rank r of `ranks` holds after the plan where it held first + 10 r + i before, reduced.
constexpr bool holds(const redistribution_plan& p, reduction op, int r, std::int64_t count, std::int64_t first,
                     std::int64_t more) {
  const int ranks = p.from.axis_size[0];
  const interval mine = sw::local_interval(p.result(), 0, &r);
  for (std::int64_t k = 0; k < mine.size; ++k) {
    const std::int64_t i = mine.begin + k;
    std::int64_t v = op == reduction::min ? 10000 : 0;
    for (int q = 0; q < ranks; ++q) {
      const std::int64_t x = 10 * q + i;
      v = op == reduction::max ? (x > v ? x : v) : op == reduction::min ? (x < v ? x : v) : v + x;
    }
    if (op == reduction::avg) v /= ranks;
    if (v != first + more * k) return false;
  }
  return mine.size == count;
}
constexpr redistribution_plan five = plan(at<sw::shape<5>, line_of<4>, Pa>, at<sw::shape<5>, line_of<4>, Sh<0>>);
static_assert(steps(five, {{0, scatter}}));
static_assert(holds(five, reduction::sum, 0, 2, 60, 4) && holds(five, reduction::sum, 1, 2, 68, 4) &&
              holds(five, reduction::sum, 2, 1, 76, 4) && holds(five, reduction::sum, 3, 0, 0, 0));
template <reduction Op>
constexpr redistribution_plan whole = plan(at<sw::shape<5>, line_of<4>, sw::partial<Op>>, at<sw::shape<5>, line_of<4>, Re>);
template <reduction Op>
constexpr bool is_summed(std::int64_t first, std::int64_t more) {
  bool all = steps(whole<Op>, {{0, reduce}});
  for (int r = 0; r < 4; ++r) all = all && holds(whole<Op>, Op, r, 5, first, more);
  return all;
}
static_assert(is_summed<reduction::sum>(60, 4) && is_summed<reduction::avg>(15, 1) && is_summed<reduction::max>(30, 1) &&
              is_summed<reduction::min>(0, 1));

// replicate to partial: of 8 on 4 ranks each holds 2; here coordinate 0 holds 8 and the others 0, which is exact
constexpr auto share_of = [](redistribution_policy policy, reduction op = reduction::sum) {
  spec to = at<sw::shape<1>, line_of<4>, Re>;
  to.place[0] = sw::partial_value(op);
  return plan(at<sw::shape<1>, line_of<4>, Re>, to, policy);
};
static_assert(share_of(seed_era).steps[0].divisor == 4 && 8 / share_of(seed_era).steps[0].divisor == 2);
static_assert(share_of(late).steps[0].divisor == 1 && share_of(late).steps[0].kind == to_partial);
static_assert(steps(share_of(late, reduction::max), {{0, none}}) && steps(share_of(late, reduction::avg), {{0, none}}));

// --- padding ---------------------------------------------------------------------------------------------------------

template <std::size_t N>
constexpr bool extents(const std::int64_t (&have)[sw::max_rank], const std::int64_t (&want)[N]) {
  for (std::size_t d = 0; d < N; ++d)
    if (have[d] != want[d]) return false;
  return true;
}
constexpr sw::padded_exchange padded(const redistribution_plan& p, int r) {
  return sw::padded_extents(p.before(0), p.result(), 0, &r);
}
constexpr std::int64_t own(const spec& s, int dim, int r) { return sw::local_interval(s, dim, &r).size; }

// (5, 3) from rows to columns on 2 ranks: 3 and 2 rows of 3; padded to (3, 4), (6, 2) arrives; one row and, on rank 1,
// one column are cut off
constexpr redistribution_plan turn = plan(at<sw::shape<5, 3>, line_of<2>, Sh<0>>, at<sw::shape<5, 3>, line_of<2>, Sh<1>>);
static_assert(steps(turn, {{0, exchange}}));
static_assert(own(turn.from, 0, 0) == 3 && own(turn.from, 0, 1) == 2);
static_assert(own(turn.result(), 1, 0) == 2 && own(turn.result(), 1, 1) == 1 && own(turn.result(), 0, 1) == 5);
static_assert(extents(padded(turn, 0).sent, {3, 4}) && extents(padded(turn, 1).sent, {3, 4}));
static_assert(extents(padded(turn, 0).received, {6, 2}) && extents(padded(turn, 1).received, {6, 2}));
static_assert(turn.steps[0].bytes == 4 * 2 * 2 && turn.steps[0].padded_bytes == 4 * 3 * 2);

// 257 columns over 2 ranks: 129 and 128; the second part arrives padded, and is a view into 129 columns
using wide = sw::shape<10, 257, 160>;
constexpr redistribution_plan uneven = plan(at<wide, line_of<2>, Pa>, at<wide, line_of<2>, Sh<1>>);
static_assert(steps(uneven, {{0, scatter}}));
static_assert(extents(padded(uneven, 1).sent, {10, 258, 160}) && extents(padded(uneven, 1).received, {10, 129, 160}));
static_assert(own(uneven.result(), 1, 0) == 129 && own(uneven.result(), 1, 1) == 128);
static_assert(padded(uneven, 1).received[1] * 160 == 20640 && uneven.result().stride[0] == 41120);

// the chunk rule again, as padding: shards of full = ceil(n / N), the tail of n / N shards missing
template <std::int64_t N, int Ranks>
constexpr bool pads(std::int64_t full, std::int64_t tail) {
  const redistribution_plan p = plan(at<sw::shape<N>, line_of<Ranks>, Sh<0>>, at<sw::shape<N>, line_of<Ranks>, Re>);
  for (int r = 0; r < Ranks; ++r)
    if (!extents(padded(p, r).sent, {full}) || !extents(padded(p, r).received, {N + tail})) return false;
  return p.steps[0].padded_bytes == 4 * full * (Ranks - 1) && p.steps[0].bytes == p.steps[0].padded_bytes;
}
static_assert(pads<8, 4>(2, 0) && pads<5, 4>(2, 3) && pads<6, 4>(2, 2) && pads<7, 4>(2, 1) && pads<9, 4>(3, 3));
static_assert(pads<10, 4>(3, 2) && pads<1, 4>(1, 3) && pads<4, 3>(2, 2) && pads<3, 8>(1, 5) && pads<257, 2>(129, 1));

// parameters (5, 2) and (3) over 2 ranks: 3 rows of 2 and 2 elements, one row and one element of it padding on rank 1
constexpr redistribution_plan rows_of = plan(at<sw::shape<5, 2>, line_of<2>, Sh<0>>, at<sw::shape<5, 2>, line_of<2>, Re>);
constexpr redistribution_plan bias_of = plan(at<sw::shape<3>, line_of<2>, Sh<0>>, at<sw::shape<3>, line_of<2>, Re>);
static_assert(extents(padded(rows_of, 1).sent, {3, 2}) && extents(padded(bias_of, 1).sent, {2}));
static_assert(rows_of.steps[0].padded_bytes + bias_of.steps[0].padded_bytes == 4 * 8);
static_assert(own(rows_of.from, 0, 1) == 2 && own(bias_of.from, 0, 1) == 1);
// a group of weights (16, 4), (4, 16) and biases 16, 4 over 2 ranks: 74 elements each, nothing padded
static_assert(sw::chunk_size(16, 1, 2) * 4 + sw::chunk_size(16, 1, 2) + sw::chunk_size(4, 1, 2) * 16 +
                  sw::chunk_size(4, 1, 2) ==
              74);
// class 3 of 4 is the second rank's second
static_assert(sw::split({0, 4}, 1, 2, 1).begin == 2 && sw::split({0, 4}, 1, 2, 1).size == 2);

// --- several axes ----------------------------------------------------------------------------------------------------

template <int N = 8, class... P>
constexpr spec vector(P...) {
  return at<sw::shape<N>, square, P...>;
}
template <class... P>
constexpr spec matrix(P...) {
  return at<sw::shape<5, 3>, square, P...>;
}
constexpr Re re{};
constexpr Pa pa{};
constexpr Sh<0> s0{};
constexpr Sh<1> s1{};

// the inner axis comes off first, and goes back last
constexpr redistribution_plan unnest = plan(vector(s0, s0), vector(re, s0));
static_assert(steps(unnest, {{1, gather}, {0, gather}, {1, chunk}}));
static_assert(steps(plan(vector(s0, s0), vector(re, s0), seed_era), {{1, gather}, {0, gather}, {1, chunk}}));
constexpr bool rows_after(int step, int c0, int c1, std::int64_t begin, std::int64_t size) {
  const int c[] = {c0, c1};
  const interval v = sw::local_interval(step == 0 ? unnest.from : unnest.steps[step - 1].after, 0, c);
  return v.begin == begin && v.size == size;
}
static_assert(rows_after(0, 1, 0, 4, 2) && rows_after(1, 1, 0, 4, 4) && rows_after(2, 1, 0, 0, 8));
static_assert(rows_after(3, 0, 0, 0, 4) && rows_after(3, 1, 0, 0, 4) && rows_after(3, 0, 1, 4, 4) &&
              rows_after(3, 1, 1, 4, 4));
static_assert(unnest.steps[0].bytes == 4 * 2 && unnest.steps[1].bytes == 4 * 4 && unnest.steps[2].bytes == 0);

// rows and columns change places: late exchanges on the outer axis, the seed gathers both
static_assert(steps(plan(matrix(s0, s1), matrix(s1, s0)), {{1, gather}, {0, exchange}, {1, chunk}}));
static_assert(steps(plan(matrix(s0, s1), matrix(s1, s0), seed_era), {{1, gather}, {0, gather}, {0, chunk}, {1, chunk}}));
static_assert(steps(plan(matrix(pa, s0), matrix(s0, re)), {{1, gather}, {0, scatter}}));
static_assert(steps(plan(matrix(pa, s0), matrix(s0, re), seed_era), {{1, gather}, {0, scatter}}));
static_assert(steps(plan(matrix(pa, pa), matrix(s0, s0)), {{0, scatter}, {1, scatter}}));
static_assert(steps(plan(matrix(pa, pa), matrix(s0, s0), seed_era), {{0, scatter}, {1, scatter}}));

// in the seed era a shard that stays is gathered and split again
static_assert(steps(plan(matrix(pa, s1), matrix(re, s1)), {{0, reduce}}));
static_assert(steps(plan(matrix(pa, s1), matrix(re, s1), seed_era), {{1, gather}, {0, reduce}, {1, chunk}}));
static_assert(steps(plan(matrix(re, s0), matrix(re, s1)), {{1, exchange}}));
static_assert(steps(plan(matrix(re, s0), matrix(re, s1), seed_era), {{1, gather}, {1, chunk}}));
static_assert(plan(matrix(s0, s1), matrix(s0, s1), seed_era).steps.size() == 0);

// an axis of one rank moves nothing, whatever it is called
using thin = sw::mesh<ax<1>, ax<3>>;
static_assert(steps(plan(at<sw::shape<5>, thin, Re, Sh<0>>, at<sw::shape<5>, thin, Sh<0>, Sh<0>>), {{0, none}}));
static_assert(steps(plan(at<sw::shape<5>, thin, Sh<0>, Re>, at<sw::shape<5>, thin, Pa, Re>), {{0, none}}));

// other boundaries of an outer split move all that is nested in it; a block that moves none is no step
using heads = sw::shard<0, 4>;
static_assert(steps(plan(at<sw::shape<12>, square, Sh<0>, Sh<0>>, at<sw::shape<12>, square, heads, Sh<0>>),
                    {{1, gather}, {0, exchange}, {1, chunk}}));
static_assert(steps(plan(at<sw::shape<16>, square, heads, Sh<0>>, at<sw::shape<16>, square, Sh<0>, Re>), {{1, gather}}));

// --- no plan ---------------------------------------------------------------------------------------------------------

constexpr bool refuses(const redistribution_plan& p, redistribution_obstacle o, int axis = -1) {
  return !p && p.obstacle == o && p.axis == axis && p.steps.size() == 0 && p.cost == sw::cost_model::infinite;
}
using mx = sw::partial<reduction::max>;
static_assert(refuses(plan(matrix(re, s0), matrix(re, pa)), redistribution_obstacle::shard_to_partial, 1));
static_assert(refuses(plan(matrix(pa, re), matrix(mx{}, re)), redistribution_obstacle::partial_op_changes, 0));
static_assert(refuses(share_of(late, reduction::product), redistribution_obstacle::whole_to_partial, 0));
static_assert(refuses(share_of(seed_era, reduction::max), redistribution_obstacle::whole_to_partial, 0));
static_assert(refuses(plan(matrix(pa, mx{}), matrix(re, re)), redistribution_obstacle::mixed_partials));
static_assert(refuses(plan(matrix(pa, re), matrix(re, mx{})), redistribution_obstacle::mixed_partials));
static_assert(steps(plan(matrix(pa, sw::partial<reduction::avg>{}), matrix(re, re)), {{0, reduce}, {1, reduce}}));
static_assert(refuses(plan(at<sw::shape<8>, line_of<2>, Re>, at<sw::shape<8>, line_of<4>, Re>),
                      redistribution_obstacle::meshes_differ));
static_assert(refuses(plan(at<sw::shape<8>, line_of<2>, Re>, at<sw::shape<6>, line_of<2>, Re>),
                      redistribution_obstacle::tensors_differ));
static_assert(refuses(plan(on_line<sw::shape<8>>(R), on_line<sw::shape<8>>(S(1))), redistribution_obstacle::bad_placement,
                      0));

// --- run-time extents ------------------------------------------------------------------------------------------------

using batch = sw::shape<sw::dyn<8>, 4>;
constexpr redistribution_plan grows = plan(at<batch, line_of<2>, Sh<0>>, at<batch, line_of<2>, Re>);
constexpr int ends[] = {0, 1};
static_assert(grows.steps[0].bytes == 4 * 4 * 4 && sw::bytes_sent(grows, &ends[0]) == 4 * 4 * 4);
static_assert(sw::bytes_sent(grows, &ends[0], sw::run_sizes(5)) == 4 * 4 * 3 &&
              sw::bytes_sent(grows, &ends[1], sw::run_sizes(5)) == 4 * 4 * 2);

// --- cost ------------------------------------------------------------------------------------------------------------

constexpr bool near(double have, double want, double within = 0.0051) {
  return have - want < within && want - have < within;
}
template <std::int64_t Bytes, int N>
constexpr bool costs(double gathered, double reduced, double within) {
  using flat = sw::shape<Bytes / 4>;
  constexpr spec r = at<flat, line_of<N>, Re>, s = at<flat, line_of<N>, Sh<0>>, p = at<flat, line_of<N>, Pa>;
  return near(sw::redistribution_cost(s, r), gathered, within) && near(sw::redistribution_cost(p, r), reduced, within) &&
         sw::redistribution_cost(p, s) == sw::redistribution_cost(s, r) && sw::redistribution_cost(r, s) == 0 &&
         sw::redistribution_cost(r, p) == 0 && sw::redistribution_cost(s, p) == sw::cost_model::infinite;
}
constexpr std::int64_t mib = 1 << 20;
static_assert(costs<mib, 2>(12.77, 25.10, 0.0051) && costs<mib, 4>(16.75, 30.29, 0.0051) &&
              costs<mib, 8>(20.54, 36.48, 0.0051));
static_assert(costs<64 * mib, 2>(363.5, 1077.4, 0.051) && costs<64 * mib, 4>(542.9, 1257.9, 0.051) &&
              costs<64 * mib, 8>(634.4, 1351.8, 0.051));
static_assert(costs<4, 4>(8.40, 10.80, 0.0051));
static_assert(near(sw::redistribution_cost(at<sw::shape<1, 1>, line_of<4>, Sh<0>>, at<sw::shape<1, 1>, line_of<4>, Sh<1>>),
                   9.40));

// an axis that leaves the host of 4: 2.7 a hop, 22 % of the bandwidth
using hosts = sw::mesh<ax<2>, ax<4>>;
template <class... P>
constexpr spec spread = at<sw::shape<mib / 4>, hosts, P...>;
static_assert(near(sw::redistribution_cost(spread<Re, Sh<0>>, spread<Re, Re>, 4), 16.75));
static_assert(near(sw::redistribution_cost(spread<Sh<0>, Re>, spread<Re, Re>, 4),
                   6.6 + 2.7 + 1e6 / 1024 / 2 / (87.7 * 0.22)));
static_assert(near(sw::redistribution_cost(spread<Sh<0>, Re>, spread<Re, Re>), 12.77));
// a second axis pays for what the first has gathered
static_assert(near(sw::redistribution_cost(spread<Sh<0>, Sh<0>>, spread<Re, Re>),
                   16.75 + 6.6 + 0.6 + 1e6 / 1024 / 4 / 2 / 87.7));
// or has less to move once the first has scattered it
static_assert(near(sw::redistribution_cost(spread<Pa, Pa>, spread<Sh<0>, Re>),
                   12.77 + 6.6 + 7 * 0.6 + 1e6 / 1024 / 2 * 7 / 4 / 87.7));
static_assert(plan(spread<Sh<0>, Sh<0>>, spread<Re, Re>).cost ==
              sw::redistribution_cost(spread<Sh<0>, Sh<0>>, spread<Re, Re>));

// (64, 64) times (64, 64) on 4 ranks: what the four strategies cost for every placement of lhs (rows) and rhs
// (columns), and which one is chosen, the first of equals
enum strategy { all_whole, contracting, lhs_free, rhs_free };
struct choice {
  double cost[4];
  strategy best;
};
constexpr placement places[] = {R, S(0), S(1), P};
constexpr choice products[4][4] = {
    {{{0, 0, 0, 0}, all_whole},
     {{8.53, 0, 8.53, 9.43}, contracting},
     {{8.53, 9.43, 8.53, 0}, rhs_free},
     {{11.10, 8.53, 11.10, 8.53}, contracting}},
    {{{8.53, 9.43, 0, 8.53}, lhs_free},
     {{17.06, 9.43, 8.53, 17.96}, lhs_free},
     {{17.06, 18.87, 8.53, 8.53}, lhs_free},
     {{19.64, 17.96, 11.10, 17.06}, lhs_free}},
    {{{8.53, 0, 9.43, 8.53}, contracting},
     {{17.06, 0, 17.96, 17.96}, contracting},
     {{17.06, 9.43, 17.96, 8.53}, rhs_free},
     {{19.64, 8.53, 20.54, 17.06}, contracting}},
    {{{11.10, 8.53, 8.53, 11.10}, contracting},
     {{19.64, 8.53, 17.06, 20.54}, contracting},
     {{19.64, 17.96, 17.06, 11.10}, rhs_free},
     {{22.21, 17.06, 19.64, 19.64}, contracting}},
};
constexpr double strategy_cost(const spec& lhs, const spec& rhs, int k) {
  constexpr placement wanted[4][2] = {{R, R}, {S(1), S(0)}, {S(0), R}, {R, S(1)}};
  spec l = lhs, r = rhs;
  l.place[0] = wanted[k][0];
  r.place[0] = wanted[k][1];
  return sw::redistribution_cost(lhs, l) + sw::redistribution_cost(rhs, r);
}
constexpr int cheapest(const spec& lhs, const spec& rhs) {
  int best = 0;
  for (int k = 1; k < 4; ++k)
    if (strategy_cost(lhs, rhs, k) < strategy_cost(lhs, rhs, best)) best = k;
  return best;
}
constexpr bool products_law() {
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      spec lhs = at<sw::shape<64, 64>, line_of<4>, Re>, rhs = lhs;
      lhs.place[0] = places[i];
      rhs.place[0] = places[j];
      for (int k = 0; k < 4; ++k)
        if (!near(strategy_cost(lhs, rhs, k), products[i][j].cost[k], 0.0101)) return false;
      if (cheapest(lhs, rhs) != products[i][j].best) return false;
    }
  return true;
}
static_assert(products_law());

// (8, 4) S(0) times (4, 8) S(1): gathering either costs the same, and the first such strategy is taken
constexpr spec lhs_of = at<sw::shape<8, 4>, line_of<4>, Sh<0>>, rhs_of = at<sw::shape<4, 8>, line_of<4>, Sh<1>>;
static_assert(near(strategy_cost(lhs_of, rhs_of, all_whole), 2 * 8.401, 0.0011) &&
              near(strategy_cost(lhs_of, rhs_of, contracting), 2 * 9.400, 0.0011) &&
              near(strategy_cost(lhs_of, rhs_of, lhs_free), 8.401, 0.00051));
static_assert(strategy_cost(lhs_of, rhs_of, lhs_free) == strategy_cost(lhs_of, rhs_of, rhs_free));
static_assert(cheapest(lhs_of, rhs_of) == lhs_free);

// --- pairs as types --------------------------------------------------------------------------------------------------

// Every step of a plan is one typed redistribute; the type at the end is the target's.
template <int K>
struct mesh_at;
template <>
struct mesh_at<0> {
  using type = line_of<2>;
};
template <>
struct mesh_at<1> {
  using type = line_of<3>;
};
template <>
struct mesh_at<2> {
  using type = square;
};
template <>
struct mesh_at<3> {
  using type = sw::mesh<ax<2>, ax<3>>;
};
template <>
struct mesh_at<4> {
  using type = sw::mesh<ax<2>, ax<2, 1>, ax<2, 2>>;
};

constexpr std::uint32_t drawn(int i, int k) {
  std::uint32_t x = static_cast<std::uint32_t>(i * 64 + k) * 2654435769U + 77U;
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  x = (x ^ (x >> 15)) * 0x846ca68bU;
  return (x ^ (x >> 16)) >> 4;
}
struct pair_of_lists {
  std::int64_t extent[4]{};
  placement from[sw::max_axes], to[sw::max_axes];
};
constexpr pair_of_lists drawn_pair(int i, int rank, int axes) {
  constexpr std::int64_t some[] = {1, 3, 5, 8, 0};
  pair_of_lists p;
  for (int d = 0; d < rank; ++d) p.extent[d] = some[drawn(i, d) % (i % 8 == 0 ? 5 : 4)];
  for (int a = 0; a < axes; ++a) {
    const auto draw = [&](int k, int n) {
      const int v = static_cast<int>(drawn(i, k) % static_cast<std::uint32_t>(n));
      return v < rank ? S(v) : v == rank ? R : v == rank + 1 ? U : P;
    };
    p.from[a] = draw(8 + a, rank + 3);
    p.to[a] = draw(16 + a, p.from[a].is_shard() ? rank + 2 : rank + 3);
  }
  return p;
}
template <placement Q>
using placement_t = typename sw::detail::placement_type<Q>::type;

template <int I>
struct drawn_types {
  using mesh = typename mesh_at<I % 5>::type;
  static constexpr int rank = 1 + I / 5 % 4;
  static constexpr pair_of_lists lists = drawn_pair(I, rank, mesh::axes);
  template <class D, class A>
  struct specs;
  template <std::size_t... D, std::size_t... A>
  struct specs<std::index_sequence<D...>, std::index_sequence<A...>> {
    using shape = sw::shape<lists.extent[D]...>;
    using from = typed<float, shape, mesh, placement_t<lists.from[A]>...>;
    using to = typed<float, shape, mesh, placement_t<lists.to[A]>...>;
  };
  using both = specs<std::make_index_sequence<rank>, std::make_index_sequence<mesh::axes>>;
  using from = typename both::from;
  using to = typename both::to;
  static constexpr redistribution_plan plan = sw::plan_redistribution(from::sp, to::sp, I % 2 ? seed_era : late);
};

template <class Mesh, int A>
struct axis_of;
template <class First, class... More, int A>
struct axis_of<sw::mesh<First, More...>, A> : axis_of<sw::mesh<More...>, A - 1> {};
template <class First, class... More>
struct axis_of<sw::mesh<First, More...>, 0> {
  using type = First;
};

template <class Pair, int K, class X>
constexpr auto walk(const X& x) {
  static_assert(X::sp == Pair::plan.before(K));
  constexpr int count = Pair::plan.steps.count;
  if constexpr (K == count) {
    return x;
  } else {
    constexpr int axis = Pair::plan.steps.item[K].axis;
    constexpr placement target = Pair::plan.steps.item[K].to;
    return walk<Pair, K + 1>(sw::redistribute<typename axis_of<typename Pair::mesh, axis>::type, placement_t<target>>(x));
  }
}

template <int I>
constexpr bool arrives() {
  using pair = drawn_types<I>;
  return pair::plan && std::is_same_v<decltype(walk<pair, 0>(typename pair::from{})), typename pair::to>;
}
template <std::size_t... I>
constexpr bool all_arrive(std::index_sequence<I...>) {
  return (arrives<static_cast<int>(I)>() && ...);
}
static_assert(all_arrive(std::make_index_sequence<200>{}));

}  // namespace
