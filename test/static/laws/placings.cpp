// SPDX-License-Identifier: Apache-2.0
// Which placements a proof goes over: all that a rule admits, each once, and pairs of them on two axes.
#include <shardwise/laws/placings.hpp>

namespace {

namespace sw = shardwise;
namespace laws = sw::laws;
using laws::tensor_of;
using sw::op_code;
constexpr sw::placement R = sw::replicate_value(), U = sw::reduced_value(), P = sw::partial_value(), S0 = sw::shard_value(0),
                        S1 = sw::shard_value(1);
constexpr laws::ranks_of two{1, {2, 1, 1, 1}};

constexpr bool has(const laws::placings& all, sw::placement x, sw::placement y) {
  int n = 0;
  for (int i = 0; i < all.count; ++i) n += all.item[i].at[0][0] == x && all.item[i].at[1][0] == y ? 1 : 0;
  return n == 1;
}
constexpr laws::program sum = laws::apply(op_code::add, {tensor_of({5, 3}), tensor_of({5, 3})}),
                        product = laws::apply(op_code::mul, {tensor_of({5, 3}), tensor_of({5, 3})});

// --- place: the specs of all nodes, or that they are refused ---------------------------------------------------------------------

constexpr laws::placing on_axis(sw::placement x, sw::placement y) {
  laws::placing at;
  at.at[0][0] = x;
  at.at[1][0] = y;
  return at;
}
constexpr bool placed(const laws::program& p, sw::placement x, sw::placement y, sw::placement result) {
  sw::spec s[laws::max_leaves + 4]{};
  return laws::place(p, on_axis(x, y), two, s) && s[0].place[0] == x && s[1].place[0] == y && s[2].place[0] == result &&
         s[2].rank == 2 && s[2].extent[0] == 5 && s[2].extent[1] == 3;
}
constexpr bool refused(const laws::program& p, sw::placement x, sw::placement y) {
  sw::spec s[laws::max_leaves + 4]{};
  return !laws::place(p, on_axis(x, y), two, s);
}
static_assert(placed(sum, S0, S0, S0) && placed(sum, P, P, P) && placed(product, P, U, P) && refused(sum, S0, S1) &&
              refused(product, P, P) && refused(sum, P, R));
static_assert(refused(sum, sw::shard_value(2), R));  // no such dim

// --- all that the rule admits, and nothing else ----------------------------------------------------------------------------------

// Of these placements of both operands: listed once where the rule takes them, and not where it does not.
constexpr bool complete(const laws::program& p) {
  const laws::placings all = laws::placings_of(p, 2);
  const sw::placement kinds[] = {R, U, P, S0, S1};
  int admitted = 0;
  for (const sw::placement x : kinds)
    for (const sw::placement y : kinds) {
      if (refused(p, x, y)) continue;
      ++admitted;
      if (!has(all, x, y)) return false;
    }
  int plain = 0;  // partial maxima and the like are not among the kinds above
  for (int i = 0; i < all.count; ++i)
    plain += all.item[i].at[0][0].op == sw::reduction::sum && all.item[i].at[1][0].op == sw::reduction::sum ? 1 : 0;
  return plain == admitted && admitted > 3;
}
static_assert(complete(sum) && complete(product));
// With a block that moves a boundary, shards come again with it.
constexpr int shards_of(const laws::program& p, std::int32_t block) {
  const laws::placings all = laws::placings_of(p, 2);
  int n = 0;
  for (int i = 0; i < all.count; ++i) n += all.item[i].at[0][0] == sw::shard_value(0, block) ? 1 : 0;
  return n;
}
constexpr laws::program in_pairs = laws::apply(op_code::add, {tensor_of({6, 4}), tensor_of({6, 4})}).blocks(2);
static_assert(shards_of(in_pairs, 1) == 1 && shards_of(in_pairs, 2) == 1 && shards_of(sum, 2) == 0);
// A view's placements are those that its function takes, operand by operand.
constexpr laws::placings turned = laws::placings_of(laws::apply(op_code::permute, {tensor_of({5, 3})}, {{1, 0}}), 2);
static_assert(turned.count == 5);

// --- two axes --------------------------------------------------------------------------------------------------------------------

constexpr laws::placing both = laws::both_axes(on_axis(S0, R), on_axis(P, U));
static_assert(both.at[0][0] == S0 && both.at[1][0] == R && both.at[0][1] == P && both.at[1][1] == U && !both.promises);
static_assert([] {
  laws::placing first = on_axis(S0, S0), second = on_axis(S1, S1);
  first.promises = second.promises = true;  // of a mesh of one axis alone
  const laws::placing r = laws::both_axes(first, second);
  return !r.promises && r.at[0][0] == S0 && r.at[0][1] == S1;
}());

}  // namespace
