// SPDX-License-Identifier: Apache-2.0
// Laws of the contraction rule: the complete table of matmul, and that it is closed under differentiation.

#include "rules.hpp"

namespace {

using namespace rules_test;
using sw::op_code;
using sw::placement;
using sw::problem;

// labels: 1 rows, 2 inner, 3 columns; dim 0 lowest
constexpr sw::op_attr matmul{{0x21, 0x32, 0x31, 0, 0, 0}};
using lhs = sw::shape<4, 8>;
using rhs = sw::shape<8, 6>;

struct row {
  placement a, b, c;
};
constexpr row table[] = {{R, R, R}, {U, U, U}, {S(0), U, S(0)}, {U, S(1), S(1)}, {S(1), S(0), P}, {P, U, P}, {U, P, P}};

constexpr bool table_law() {
  for (const auto& p : kinds)
    for (const auto& q : kinds) {
      const sw::outcome o = apply(op_code::einsum, matmul, on_line<lhs>(p), on_line<rhs>(q));
      bool admitted = false;
      for (const row& r : table)
        if (r.a == p && r.b == q) {
          admitted = true;
          if (!gives(o, r.c) || o.out.extent[0] != 4 || o.out.extent[1] != 6) return false;
        }
      if (!admitted && !o.error) return false;
    }
  return true;
}
static_assert(table_law());

// If (a, b) -> c then (dual c, b) -> dual a and (a, dual c) -> dual b: the gradient of a product is a product.
constexpr bool closed(const sw::op_attr& f, const sw::spec& a, const sw::spec& b) {
  const sw::outcome c = apply(op_code::einsum, f, a, b);
  if (c.error) return true;
  const sw::spec dc = sw::dual(c.out);
  const sw::outcome da = apply(op_code::einsum, {{f.v[2], f.v[1], f.v[0], 0, 0, 0}}, dc, b);
  const sw::outcome db = apply(op_code::einsum, {{f.v[2], f.v[0], f.v[1], 0, 0, 0}}, dc, a);
  return !da.error && !db.error && da.out == sw::dual(a) && db.out == sw::dual(b);
}
constexpr placement every[] = {R, U, P, S(0), S(1), S(2), S(3)};
template <class A, class B>
constexpr bool all_closed(const sw::op_attr& f) {
  int admitted = 0;
  for (const auto& p : every)
    for (const auto& q : every) {
      if ((p.is_shard() && p.dim >= A::rank) || (q.is_shard() && q.dim >= B::rank)) continue;
      if (!closed(f, on_line<A>(p), on_line<B>(q))) return false;
      admitted += apply(op_code::einsum, f, on_line<A>(p), on_line<B>(q)).error ? 0 : 1;
    }
  return admitted >= 7;
}
static_assert(all_closed<lhs, rhs>(matmul));
// linear: x (batch, time, in), weight (out, in)
static_assert(all_closed<sw::shape<2, 4, 8>, sw::shape<6, 8>>({{0x321, 0x34, 0x421, 0, 0, 0}}));
// attention scores: (batch, heads, query, size) with (batch, heads, key, size)
static_assert(all_closed<sw::shape<2, 4, 6, 8>, sw::shape<2, 4, 6, 8>>({{0x5321, 0x5421, 0x4321, 0, 0, 0}}));

// a batch dim is sharded on both sides
constexpr sw::op_attr batched{{0x321, 0x431, 0x421, 0, 0, 0}};
using cube = sw::shape<2, 4, 4>;
static_assert(gives(apply(op_code::einsum, batched, on_line<cube>(S(0)), on_line<cube>(S(0))), S(0)));
static_assert(refuses(apply(op_code::einsum, batched, on_line<cube>(S(0)), on_line<cube>(R)),
                      problem::contraction_placements));

// --- the sentences ---------------------------------------------------------------------------------------------------

constexpr problem of(placement p, placement q) {
  return apply(op_code::einsum, matmul, on_line<lhs>(p), on_line<rhs>(q)).error.what;
}
static_assert(of(S(1), R) == problem::contraction_one_sided && of(R, S(0)) == problem::contraction_one_sided);
static_assert(of(S(1), U) == problem::contraction_one_sided && of(S(1), P) == problem::contraction_one_sided);
static_assert(of(S(0), R) == problem::contraction_needs_reduced && of(R, S(1)) == problem::contraction_needs_reduced);
static_assert(of(P, P) == problem::contraction_placements && of(R, U) == problem::contraction_placements);

static_assert(refuses(apply(op_code::einsum, matmul, on_line<lhs>(R), on_line<lhs>(R)), problem::contraction_extents));
static_assert(refuses(apply(op_code::einsum, batched, on_line<cube>(R), on_line<sw::shape<3, 4, 4>>(R)),
                      problem::contraction_batch));

// --- boundaries ------------------------------------------------------------------------------------------------------

struct three : sw::axis<3> {};
constexpr sw::spec flat = on_line<sw::shape<4, 64>, float, three>(S(1));
constexpr sw::spec heads = on_line<sw::shape<4, 64>, float, three>(sw::shard_value(1, 16));
constexpr sw::spec weight = on_line<sw::shape<64, 6>, float, three>(sw::shard_value(0, 16));
static_assert(gives(apply(op_code::einsum, matmul, heads, weight), P));
static_assert(refuses(apply(op_code::einsum, matmul, flat, weight), problem::contraction_split));
// a free dim hands its boundaries on
static_assert(apply(op_code::einsum, matmul, on_line<lhs, float, three>(U),
                    on_line<sw::shape<8, 64>, float, three>(sw::shard_value(1, 16)))
                  .out.place[0] == sw::shard_value(1, 32));

}  // namespace
