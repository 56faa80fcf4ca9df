// SPDX-License-Identifier: Apache-2.0
// Simulated ranks: what they are given makes up the tensor, what a collective leaves does so, and what is wrong with blocks is found.
#include <shardwise/laws/proof.hpp>

namespace {

namespace sw = shardwise;
namespace laws = sw::laws;
using laws::failure;
using laws::modp;
using sw::reduction;
constexpr sw::placement R = sw::replicate_value(), U = sw::reduced_value();

constexpr modp of(std::uint64_t n) { return laws::reduced_to(n); }

// --- what two parts make ---------------------------------------------------------------------------------------------------------

using math = sw::host::math<modp>;
static_assert(laws::combine(reduction::sum, of(5), of(7)) == of(12) &&
              laws::combine(reduction::avg, of(5), of(7)) == of(12) &&
              laws::combine(reduction::product, of(5), of(7)) == of(35));
// In the order of the proofs, which is not that of numbers.
constexpr bool chooses(modp a, modp b) {
  const modp more = math::less(a, b) ? b : a, less = math::less(a, b) ? a : b;
  return laws::combine(reduction::max, a, b) == more && laws::combine(reduction::max, b, a) == more &&
         laws::combine(reduction::min, a, b) == less && laws::combine(reduction::min, b, a) == less;
}
static_assert(chooses(of(5), of(7)) && chooses(of(7), of(2000000000)) && chooses(of(44488), of(44489)) &&
              chooses(of(3), of(3)));

// --- a tensor of 5 by 3 on two axes of 2 and 3 ranks -----------------------------------------------------------------------------

constexpr laws::ranks_of mesh{2, {2, 3, 1, 1}};
constexpr sw::spec placed(sw::placement first, sw::placement second) {
  sw::spec s = sw::empty_spec(sw::dtype::f32, 2, mesh.size, sw::device_kind::host);
  s.rank = 2;
  s.extent[0] = 5;
  s.extent[1] = 3;
  sw::make_contiguous(s);
  s.place[0] = first;
  s.place[1] = second;
  return s;
}
struct tensor {
  modp element[15]{};
  constexpr tensor() {
    for (std::uint64_t i = 0; i < 15; ++i) element[i] = of(laws::scramble(i, 11));
  }
};
constexpr tensor whole;

// Blocks as they are given, changed by `change`, and what is found then.
template <class Change>
constexpr failure found(const sw::spec& s, Change change) {
  laws::memory m;
  laws::cell x[laws::max_ranks];
  for (int r = 0; r < mesh.count(); ++r) {
    int c[sw::max_axes]{};
    mesh.coordinate(r, c);
    laws::distribute(whole.element, s, c, 5, x[r], m);
  }
  change(x);
  return laws::compare(x, s, mesh, whole.element, failure::value);
}
constexpr auto unchanged = [](laws::cell*) {};
constexpr sw::placement kinds[] = {R,
                                   U,
                                   sw::shard_value(0),
                                   sw::shard_value(1),
                                   sw::partial_value(),
                                   sw::partial_value(reduction::avg),
                                   sw::partial_value(reduction::product),
                                   sw::partial_value(reduction::max),
                                   sw::partial_value(reduction::min)};
// Whatever the placements, if reductions are not mixed.
constexpr bool all_are_given() {
  for (const sw::placement first : kinds)
    for (const sw::placement second : kinds) {
      if (first.is_partial() && second.is_partial() && first.op != second.op) continue;
      if (found(placed(first, second), unchanged) != failure::none) return false;
    }
  return true;
}
static_assert(all_are_given());
// One wrong number is found on every rank, in every copy and every part.
constexpr bool each_rank_counts(const sw::spec& s) {
  for (int r = 0; r < mesh.count(); ++r)
    if (found(s, [&](laws::cell* x) {
          if (x[r].l.numel() > 0) x[r].p[0] = x[r].p[0] + of(1);
        }) != failure::value)
      return false;
  return true;
}
static_assert(each_rank_counts(placed(R, U)) && each_rank_counts(placed(sw::shard_value(0), R)) &&
              each_rank_counts(placed(sw::shard_value(0), sw::shard_value(1))) &&
              each_rank_counts(placed(sw::partial_value(), sw::shard_value(1))) &&
              each_rank_counts(placed(sw::partial_value(), sw::partial_value())));
// So is a block of other extents, and one that lies elsewhere.
static_assert(found(placed(sw::shard_value(0), R), [](laws::cell* x) { x[5].l.ext[0] = 1; }) == failure::block_layout &&
              found(placed(sw::shard_value(0), R), [](laws::cell* x) { x[0].l.origin[0] = 1; }) == failure::block_layout);

// --- collectives -----------------------------------------------------------------------------------------------------------------

// Along one axis, from one placement to another: what is left makes up the tensor.
constexpr failure moved(const sw::spec& from, const sw::spec& to, int axis) {
  laws::memory m;
  laws::cell x[laws::max_ranks], y[laws::max_ranks];
  for (int r = 0; r < mesh.count(); ++r) {
    int c[sw::max_axes]{};
    mesh.coordinate(r, c);
    laws::distribute(whole.element, from, c, 5, x[r], m);
  }
  for (int r = 0; r < mesh.count(); ++r) {
    int c[sw::max_axes]{};
    mesh.coordinate(r, c);
    laws::communicate(x, from, to, axis, mesh, c, y[r], m);
  }
  return laws::compare(y, to, mesh, whole.element, failure::value);
}
// Beside another axis's placement.
constexpr bool all_move(sw::placement other, int axis) {
  for (const sw::placement from : kinds)
    for (const sw::placement to : {R, sw::shard_value(0), sw::shard_value(1)}) {
      const bool mixed = from.is_partial() && other.is_partial() && from.op != other.op;
      const bool twice = other.is_shard() && (from.is_shard(other.dim) || to.is_shard(other.dim));  // split in two orders
      if (mixed || twice || from.is_whole()) continue;  // of a whole tensor nothing is sent
      if ((axis == 0 ? moved(placed(from, other), placed(to, other), 0)
                     : moved(placed(other, from), placed(other, to), 1)) != failure::none)
        return false;
    }
  return true;
}
static_assert(all_move(R, 0) && all_move(sw::shard_value(1), 0));
static_assert(all_move(sw::partial_value(), 0));
static_assert(all_move(R, 1) && all_move(sw::shard_value(1), 1));
static_assert(all_move(sw::partial_value(), 1));
// A sum that is made along the wrong axis is none.
static_assert(moved(placed(sw::partial_value(), R), placed(R, R), 1) == failure::value);

// --- a node on every rank --------------------------------------------------------------------------------------------------------

// x x of a tensor that is cut: on each rank the squares of its block; a custom operation that nobody names has no kernel.
constexpr bool executes() {
  sw::graph<4, 4> g;
  sw::builder b = g.edit();
  const sw::spec s = placed(sw::shard_value(0), sw::shard_value(1));
  sw::node leaf = sw::empty_node, square = sw::empty_node;
  leaf.op = sw::op_code::input;
  leaf.spec = b.intern(s);
  square.op = sw::op_code::mul;
  square.inputs = 2;
  square.in[0] = square.in[1] = b.append(leaf);
  square.spec = leaf.spec;
  b.append(square);
  g.finish(b);
  laws::memory m;
  laws::cell x[2 * laws::max_ranks];
  tensor squares;
  for (modp& e : squares.element) e = e * e;
  for (int r = 0; r < mesh.count(); ++r) {
    int c[sw::max_axes]{};
    mesh.coordinate(r, c);
    laws::distribute(whole.element, s, c, 5, x[r], m);
  }
  return laws::execute(g, 1, mesh, x, m) &&
         laws::compare(x + laws::max_ranks, s, mesh, squares.element, failure::value) == failure::none &&
         laws::compare(x + laws::max_ranks, s, mesh, whole.element, failure::value) == failure::value;
}
static_assert(executes());

}  // namespace
