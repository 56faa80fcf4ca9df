// SPDX-License-Identifier: Apache-2.0
// Laws of transitions: the table and its adjoint, what may change when axes share a dim, and the bytes that ranks send.

#include "rules.hpp"

namespace {

using namespace rules_test;
using sw::op_code;
using sw::placement;
using sw::problem;
using sw::transition;

// --- the table -------------------------------------------------------------------------------------------------------

constexpr auto none = transition::none, gather = transition::all_gather, reduce = transition::all_reduce;
constexpr auto scatter = transition::reduce_scatter, exchange = transition::all_to_all, chunk = transition::take_chunk;
constexpr auto zeros = transition::to_partial, placed = transition::place_chunk;
constexpr transition expected[5][5] = {
    // to R, U, P, S(0), S(1)
    {none, none, zeros, chunk, chunk},         // from R
    {none, none, zeros, chunk, chunk},         // U
    {reduce, reduce, none, scatter, scatter},  // P
    {gather, gather, placed, none, exchange},  // S(0)
    {gather, gather, placed, exchange, none},  // S(1)
};
constexpr bool table_law() {
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 5; ++j) {
      if (sw::transition_of(kinds[i], kinds[j], 3) != expected[i][j]) return false;
      if (sw::transition_of(kinds[i], kinds[j], 1) != transition::none) return false;  // one rank holds all there is
    }
  return true;
}
static_assert(table_law());

// The gradient of a -> b goes from dual b to dual a; what the table calls one way it calls the other way back.
constexpr transition adjoint(placement a, placement b) { return sw::transition_of(sw::dual(b), sw::dual(a), 2); }
static_assert(adjoint(R, U) == transition::all_reduce && adjoint(P, R) == transition::none &&
              adjoint(P, U) == transition::all_reduce);
static_assert(adjoint(S(0), R) == transition::take_chunk && adjoint(S(0), U) == transition::reduce_scatter);
static_assert(adjoint(P, S(0)) == transition::all_gather && adjoint(U, S(0)) == transition::place_chunk);
static_assert(adjoint(R, S(0)) == transition::all_gather && adjoint(S(0), S(1)) == transition::all_to_all);

static_assert(sw::communicates(transition::all_reduce) && sw::communicates(transition::all_to_all) &&
              !sw::communicates(transition::take_chunk) && !sw::communicates(transition::to_partial) &&
              !sw::communicates(transition::place_chunk) && !sw::communicates(transition::none));

// A placement survives as a word: every kind, with the least and the largest of each field, refused ones, too.
constexpr bool survives(placement p) { return sw::unpack_placement(sw::pack(p)) == p; }
constexpr std::int32_t numbers[] = {INT32_MIN, -1, 0, 1, 2, 1 << 20, INT32_MAX};
constexpr bool packs() {
  bool all = survives(R) && survives(U);
  for (const int dim : {-127, -1, 0, 4, 127})
    for (const int factor : {0, 1, 2, 128, sw::max_factor})
      for (const std::int32_t block : numbers) all = all && survives(sw::strided_shard_value(dim, factor, block));
  for (int op = 0; op <= static_cast<int>(sw::reduction::norm); ++op)
    all = all && survives(sw::partial_value(static_cast<sw::reduction>(op)));
  for (const std::int32_t order : numbers) all = all && survives(sw::partial_norm_value(order));
  return all;
}
static_assert(packs());

// --- redistribute ----------------------------------------------------------------------------------------------------

constexpr sw::outcome moved(const sw::spec& x, int axis, placement to) {
  return apply(op_code::redistribute, {{axis, sw::pack(to), 0, 0, 0, 0}}, x);
}
using matrix = sw::shape<4, 6>;
constexpr bool every_pair() {
  for (const auto& p : kinds)
    for (const auto& q : kinds) {
      const sw::spec x = on_line<matrix>(p);
      const sw::outcome there = moved(x, 0, q);
      if (!gives(there, q)) return false;
      if (moved(there.out, 0, p).out != x) return false;  // there and back is the same spec
    }
  return true;
}
static_assert(every_pair());
static_assert(refuses(moved(on_line<matrix>(R), 0, S(2)), problem::shard_dim_out_of_range));
static_assert(refuses(moved(on_line<matrix>(R), 0, sw::shard_value(0, 3)), problem::shard_block_does_not_divide));

// Every reduction arrives: in the whole, in parts; a share of it is made where one exists.
constexpr bool reductions() {
  using enum sw::reduction;
  for (sw::reduction op : {sum, avg, product, max, min}) {
    const placement p = sw::partial_value(op);
    if (!gives(moved(on_line<matrix>(p), 0, R), R) || !gives(moved(on_line<matrix>(p), 0, S(1)), S(1))) return false;
    if (sw::transition_of(p, R, 2) != reduce || sw::transition_of(p, S(0), 2) != scatter) return false;
    if (op == sum) continue;
    const sw::outcome share = moved(on_line<matrix>(R), 0, p);
    if (!(op == product ? refuses(share, problem::redistribute_whole_to_partial) : gives(share, p))) return false;
    if (sw::transition_of(R, p, 2) != none || sw::transition_of(U, p, 2) != none) return false;
    if (!refuses(moved(on_line<matrix>(S(0)), 0, p), problem::redistribute_shard_to_partial)) return false;
    if (!refuses(moved(on_line<matrix>(p), 0, P), problem::redistribute_partial_op_changes)) return false;
    if (!refuses(moved(on_line<matrix>(P), 0, p), problem::redistribute_partial_op_changes)) return false;
  }
  return true;
}
static_assert(reductions());
constexpr bool norms() {
  const placement p = sw::partial_norm_value(2);
  return gives(moved(on_line<matrix>(p), 0, R), R) && gives(moved(on_line<matrix>(p), 0, S(1)), S(1)) &&
         sw::transition_of(p, R, 2) == reduce && sw::transition_of(p, S(0), 2) == scatter &&
         refuses(moved(on_line<matrix>(R), 0, p), problem::redistribute_whole_to_partial) &&
         refuses(moved(on_line<matrix>(S(0)), 0, p), problem::redistribute_shard_to_partial) &&
         refuses(moved(on_line<matrix>(p), 0, P), problem::redistribute_partial_op_changes) &&
         refuses(moved(on_line<matrix>(p), 0, sw::partial_norm_value(3)), problem::redistribute_partial_op_changes);
}
static_assert(norms());

// Two axes on one dim come apart from the last to the first.
struct dp : sw::axis<2> {};
struct tp : sw::axis<3> {};
struct one : sw::axis<1> {};
constexpr sw::spec nested = sw::spec_of<float, sw::shape<12>, sw::mesh<dp, tp>, sw::shard<0>, sw::shard<0>>::value;
static_assert(refuses(moved(nested, 0, R), problem::redistribute_nested) && moved(nested, 0, R).error.axis == 1);
static_assert(!moved(nested, 1, R).error && !moved(moved(nested, 1, R).out, 0, R).error);
// nor may an outer axis be put around one that shards already; an axis of one rank moves nothing
static_assert(refuses(moved(sw::spec_of<float, sw::shape<12>, sw::mesh<dp, tp>, sw::replicate, sw::shard<0>>::value, 0,
                            S(0)),
                      problem::redistribute_nested));
static_assert(
    !moved(sw::spec_of<float, sw::shape<12>, sw::mesh<one, tp>, sw::replicate, sw::shard<0>>::value, 0, S(0)).error);

// A strided shard is the last to split its dim, so it changes first; and it may be put around what shards already.
using dp_after = sw::strided_shard<0, 3>;
constexpr sw::spec strided = sw::spec_of<float, sw::shape<12>, sw::mesh<dp, tp>, dp_after, sw::shard<0>>::value;
static_assert(refuses(moved(strided, 1, R), problem::redistribute_nested) && moved(strided, 1, R).error.axis == 0);
static_assert(!moved(strided, 0, R).error && !moved(moved(strided, 0, R).out, 1, R).error);
static_assert(moved(moved(strided, 0, R).out, 0, sw::placement_v<dp_after>).out == strided);
static_assert(refuses(moved(moved(strided, 0, R).out, 0, sw::strided_shard_value(0, 2)), problem::strided_shard_factor));
static_assert(refuses(moved(strided, 0, S(0)), problem::redistribute_nested));  // another order is another plan

// --- bytes -----------------------------------------------------------------------------------------------------------

template <int N>
struct ranks : sw::axis<N> {};
template <int N, class Shape, class T = float>
constexpr std::int64_t sent(placement from, placement to, int c) {
  return sw::bytes_sent(on_line<Shape, T, ranks<N>>(from), on_line<Shape, T, ranks<N>>(to), 0, &c);
}
template <int N, class Shape>
constexpr std::int64_t total(placement from, placement to) {
  std::int64_t n = 0;
  for (int c = 0; c < N; ++c) n += sent<N, Shape>(from, to, c);
  return n;
}

// even: B bytes over N ranks cost (N-1)/N B for each half of an all-reduce
static_assert(sent<4, sw::shape<8, 16>>(P, R, 0) == 2 * 3 * 512 / 4 &&
              sent<4, sw::shape<8, 16>>(P, R, 3) == 2 * 3 * 512 / 4);
static_assert(sent<4, sw::shape<8, 16>>(P, S(0), 1) == 3 * 512 / 4 && sent<4, sw::shape<8, 16>>(S(1), R, 2) == 3 * 512 / 4);
static_assert(sent<4, sw::shape<8, 16>>(S(0), S(1), 2) == 3 * 512 / 16);  // own rows, the others' columns
static_assert(sent<4, sw::shape<8, 16>, double>(P, U, 0) == 2 * 3 * 1024 / 4);
static_assert(sent<4, sw::shape<8, 16>>(R, S(0), 0) == 0 && sent<4, sw::shape<8, 16>>(S(0), P, 0) == 0 &&
              sent<4, sw::shape<8, 16>>(R, P, 0) == 0 && sent<4, sw::shape<8, 16>>(R, U, 0) == 0);
static_assert(sent<1, sw::shape<8, 16>>(P, R, 0) == 0);

// uneven: 5 rows over 4 ranks are 2, 2, 1, 0
using five = sw::shape<5, 3>;
static_assert(sent<4, five>(S(0), R, 0) == 3 * 24 && sent<4, five>(S(0), R, 2) == 3 * 12 && sent<4, five>(S(0), R, 3) == 0);
static_assert(sent<4, five>(P, S(0), 0) == 60 - 24 && sent<4, five>(P, S(0), 3) == 60);
// an all-reduce cuts the 15 elements flat: 4, 4, 4, 3; others' parts out, then the own sum to everyone
static_assert(sent<4, five>(P, R, 0) == 4 * (15 - 4 + 3 * 4) && sent<4, five>(P, R, 3) == 4 * (15 - 3 + 3 * 3));
// rank 3 has no row and sends nothing; rank 0 has 2 rows and keeps its 1 of 3 columns
static_assert(sent<4, five>(S(0), S(1), 3) == 0 && sent<4, five>(S(0), S(1), 0) == 4 * 2 * (3 - 1));

// summed over the ranks: every byte reaches all other ranks once, however uneven the shards
template <int N, class Shape>
constexpr bool conserved = total<N, Shape>(S(0), R) == (N - 1) * 4 * sw::numel(on_line<Shape>(R)) &&
                           total<N, Shape>(P, S(0)) == (N - 1) * 4 * sw::numel(on_line<Shape>(R)) &&
                           total<N, Shape>(P, R) == 2 * (N - 1) * 4 * sw::numel(on_line<Shape>(R));
static_assert(conserved<2, five> && conserved<3, five> && conserved<4, five> && conserved<8, five> &&
              conserved<4, sw::shape<8, 16>>);
static_assert(conserved<5, sw::shape<1, 7>>);

}  // namespace
