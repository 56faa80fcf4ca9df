// SPDX-License-Identifier: Apache-2.0
// Implicit mode's choices: DTensor's table of matrix products, with costs; whom sums follow; rows and views.

#include <shardwise/operations/strategy.hpp>

#include "rules.hpp"

namespace {

using namespace rules_test;
using sw::op_code;
using sw::placement;

constexpr bool near(double a, double b) { return a - b < 0.005 && b - a < 0.005; }

template <int N>
struct ranks : sw::axis<N> {};
using much = sw::shape<4096, 4096>;  // 64 MiB
using tiny = sw::shape<4, 4>;

// --- products of (64, 64) matrices on four ranks: DTensor's table ------------------------------------------------------

enum row { whole, contracting, lhs, rhs };
struct choice {
  row chosen;
  double cost;
};
constexpr placement given[4] = {R, S(0), S(1), P};
constexpr choice table[4][4] = {
    // rhs R, S(0), S(1), P
    {{whole, 0}, {contracting, 0}, {rhs, 0}, {contracting, 8.53}},                   // lhs R
    {{lhs, 0}, {lhs, 8.53}, {lhs, 8.53}, {lhs, 11.10}},                              // S(0)
    {{contracting, 0}, {contracting, 0}, {rhs, 8.53}, {contracting, 8.53}},          // S(1)
    {{contracting, 8.53}, {contracting, 8.53}, {rhs, 11.10}, {contracting, 17.06}},  // P
};

constexpr sw::op_attr product{{0x21, 0x32, 0x31, 0, 0, 0}};
constexpr row chosen_row(const sw::strategy& s) {
  const bool l = s.target[0].place[0].is_shard(), r = s.target[1].place[0].is_shard();
  return l && r ? contracting : l ? lhs : r ? rhs : whole;
}
constexpr bool table_law() {
  using matrix = sw::shape<64, 64>;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const sw::spec in[] = {on_line<matrix, float, ranks<4>>(given[i]), on_line<matrix, float, ranks<4>>(given[j])};
      const sw::strategy s = sw::choose_strategy(op_code::einsum, product, in, 2);
      if (!s.found || chosen_row(s) != table[i][j].chosen || !near(s.cost, table[i][j].cost)) return false;
      if (sw::infer(op_code::einsum, product, s.target, 2).error) return false;
    }
  return true;
}
static_assert(table_law());

// --- elementwise operations follow the operand that most axes shard -----------------------------------------------------

constexpr placement sum_of(placement a, placement b, bool& moves_first, bool& moves_second) {
  const sw::spec in[] = {on_line<tiny>(a), on_line<tiny>(b)};
  const sw::strategy s = sw::choose_strategy(op_code::add, {}, in, 2);
  moves_first = !(s.target[0] == in[0]);
  moves_second = !(s.target[1] == in[1]);
  return sw::infer(op_code::add, {}, s.target, 2).out.place[0];
}
constexpr bool follows(placement a, placement b, placement out, bool first, bool second) {
  bool m0 = false, m1 = false;
  return sum_of(a, b, m0, m1) == out && m0 == first && m1 == second;
}
static_assert(follows(P, P, P, false, false) && follows(P, R, P, false, true) && follows(R, P, R, false, true));
static_assert(follows(P, S(0), S(0), true, false) && follows(S(0), P, S(0), false, true));
// the largest of shares is no sum of them: it is taken first
constexpr placement largest = sw::partial_value(sw::reduction::max);
static_assert(follows(largest, R, R, true, false) && follows(largest, largest, R, true, true) &&
              follows(P, largest, R, true, true));
// a shard has no share of a sum: where one meets a partial tensor on one axis, and shards less on the others, both are whole
struct first : sw::axis<2> {};
struct second : sw::axis<2> {};
constexpr bool no_shares_of_a_shard() {
  sw::spec in[2];
  in[0] = in[1] = sw::spec_of<float, sw::shape<4, 8>, sw::mesh<first, second>>::value;
  in[0].place[0] = P;
  in[0].place[1] = in[1].place[0] = S(0);
  const sw::strategy s = sw::choose_strategy(op_code::add, {}, in, 2);
  return s.found && s.target[0].place[0] == R && s.target[1].place[0] == R && s.target[1].place[1] == S(0);
}
static_assert(no_shares_of_a_shard());
static_assert(follows(S(0), S(1), S(0), false, true) && follows(S(1), R, S(1), false, true));

// --- rows, views ------------------------------------------------------------------------------------------------------

constexpr placement moved(op_code op, const sw::op_attr& a, const sw::spec& x) {
  const sw::spec in[] = {x};
  return sw::choose_strategy(op, a, in, 1).target[0].place[0];
}
static_assert(moved(op_code::softmax, {}, on_line<tiny>(S(0))) == S(0));
static_assert(moved(op_code::softmax, {}, on_line<tiny>(S(1))) == R && moved(op_code::softmax, {}, on_line<tiny>(P)) == R);
static_assert(moved(op_code::norm_stats, {}, on_line<much>(S(1))) == R);  // although an exchange of dims would be cheaper
constexpr sw::op_attr flat{{16, 0, 0, 0, 0, 1}};
static_assert(moved(op_code::reshape, flat, on_line<tiny>(S(0))) == S(0) &&
              moved(op_code::reshape, flat, on_line<tiny>(S(1))) == R);
// what no placement helps is left to the rule to refuse
constexpr bool wrong_extents_are_not_found() {
  const sw::spec in[] = {on_line<tiny>(S(0)), on_line<sw::shape<3, 4>>(R)};
  return !sw::choose_strategy(op_code::add, {}, in, 2).found && !sw::choose_strategy(op_code::einsum, product, in, 2).found;
}
static_assert(wrong_extents_are_not_found());

}  // namespace
