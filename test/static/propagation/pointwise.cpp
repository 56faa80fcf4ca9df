// SPDX-License-Identifier: Apache-2.0
// Laws of the elementwise rules: every pair of placements against a statement of what is admitted, and broadcasting.

#include "rules.hpp"

namespace {

using namespace rules_test;
using sw::op_code;
using sw::problem;

constexpr sw::op_attr none{};
using matrix = sw::shape<4, 8>;

// add admits equal placements only, sub likewise; the result is placed as the operands
constexpr bool add_law(op_code op) {
  for (const auto& p : kinds)
    for (const auto& q : kinds) {
      const sw::outcome o = apply(op, none, on_line<matrix>(p), on_line<matrix>(q));
      if (p == q ? !gives(o, p) : !o.error) return false;
      if (p != q && (p.is_partial() || q.is_partial()) && !refuses(o, problem::partial_add)) return false;
    }
  return true;
}
static_assert(add_law(op_code::add) && add_law(op_code::sub));

// mul admits equal placements that are not partial, and one partial factor beside a reduced one
constexpr bool mul_law() {
  for (const auto& p : kinds)
    for (const auto& q : kinds) {
      const sw::outcome o = apply(op_code::mul, none, on_line<matrix>(p), on_line<matrix>(q));
      const bool scaled = (p == P && q == U) || (p == U && q == P);
      if (scaled ? !gives(o, P) : p == q && p != P ? !gives(o, p) : !o.error) return false;
    }
  return refuses(apply(op_code::mul, none, on_line<matrix>(P), on_line<matrix>(P)), problem::partial_nonlinear) &&
         refuses(apply(op_code::mul, none, on_line<matrix>(P), on_line<matrix>(R)), problem::pointwise_placements);
}
static_assert(mul_law());

// one operand: linear functions keep every placement, others all but partial
constexpr bool unary_law(op_code op, bool linear) {
  for (const auto& p : kinds) {
    const sw::outcome o = apply(op, none, on_line<matrix>(p));
    if (p == P && !linear ? !refuses(o, problem::partial_nonlinear) : !gives(o, p)) return false;
  }
  return true;
}
static_assert(unary_law(op_code::scale, true) && unary_law(op_code::dropout, true) && unary_law(op_code::contiguous, true));
static_assert(unary_law(op_code::relu, false) && unary_law(op_code::tanh, false) && unary_law(op_code::gelu_tanh, false) &&
              unary_law(op_code::gelu_erf, false));

// adjoints are linear in the cotangent: a partial cotangent meets a reduced operand
constexpr bool adjoint_law(op_code op) {
  for (const auto& p : kinds)
    for (const auto& q : kinds) {
      const sw::outcome o = apply(op, none, on_line<matrix>(p), on_line<matrix>(q));
      if (p == q && p != P ? !gives(o, p) : p == P && q == U ? !gives(o, P) : !o.error) return false;
    }
  return true;
}
static_assert(adjoint_law(op_code::relu_dx) && adjoint_law(op_code::tanh_dx) && adjoint_law(op_code::gelu_tanh_dx) &&
              adjoint_law(op_code::gelu_erf_dx));

// --- broadcasting ----------------------------------------------------------------------------------------------------

template <class A, class B>
constexpr sw::outcome sum_of(sw::placement p, sw::placement q) {
  return apply(op_code::add, none, on_line<A>(p), on_line<B>(q));
}
template <class Shape>
constexpr bool has_extents(const sw::outcome& o) {
  bool same = !o.error && o.out.rank == Shape::rank;
  for (int d = 0; same && d < Shape::rank; ++d) same = o.out.extent[d] == Shape::extent[d];
  return same && sw::is_contiguous(o.out);
}
static_assert(has_extents<sw::shape<4, 8>>(sum_of<sw::shape<4, 8>, sw::shape<8>>(R, R)));
static_assert(has_extents<sw::shape<4, 8>>(sum_of<sw::shape<4, 1>, sw::shape<1, 8>>(R, R)));
static_assert(has_extents<sw::shape<2, 4, 8>>(sum_of<sw::shape<4, 8>, sw::shape<2, 1, 1>>(R, R)));
static_assert(has_extents<sw::shape<4, 8>>(sum_of<sw::shape<>, sw::shape<4, 8>>(R, R)));
static_assert(has_extents<sw::shape<0, 8>>(sum_of<sw::shape<0, 8>, sw::shape<1, 8>>(R, R)));
static_assert(refuses(sum_of<sw::shape<4, 8>, sw::shape<4>>(R, R), problem::broadcast_extents));

// a bias over sharded rows must be reduced; over sharded columns it is sharded alike
static_assert(gives(sum_of<sw::shape<4, 8>, sw::shape<8>>(S(0), U), S(0)));
static_assert(refuses(sum_of<sw::shape<4, 8>, sw::shape<8>>(S(0), R), problem::pointwise_needs_reduced));
static_assert(gives(sum_of<sw::shape<4, 8>, sw::shape<8>>(S(1), S(0)), S(1)));
static_assert(refuses(sum_of<sw::shape<4, 8>, sw::shape<8>>(S(0), S(0)), problem::pointwise_placements));
static_assert(gives(sum_of<sw::shape<4, 8>, sw::shape<1, 8>>(S(0), U), S(0)));
static_assert(refuses(sum_of<sw::shape<4, 8>, sw::shape<8>>(P, R), problem::partial_add));

// --- boundaries, types, several axes ---------------------------------------------------------------------------------

struct three : sw::axis<3> {};
constexpr sw::spec flat = on_line<sw::shape<64>, float, three>(S(0));
constexpr sw::spec heads = on_line<sw::shape<64>, float, three>(sw::shard_value(0, 16));
static_assert(apply(op_code::add, none, heads, heads).out.place[0].block == 32);
static_assert(refuses(apply(op_code::add, none, flat, heads), problem::pointwise_placements));

static_assert(refuses(apply(op_code::add, none, on_line<matrix>(R), on_line<matrix, double>(R)), problem::types_differ));
static_assert(refuses(apply(op_code::relu, none, on_line<matrix, std::int32_t>(R)), problem::needs_floating_point));

// axes are looked up one by one
struct dp : sw::axis<2> {};
struct tp : sw::axis<4> {};
template <class... On>
constexpr sw::spec on_grid = sw::spec_of<float, matrix, sw::mesh<dp, tp>, On...>::value;
constexpr sw::spec both = on_grid<sw::on<dp, sw::shard<0>>, sw::on<tp, sw::shard<1>>>;
static_assert(apply(op_code::mul, none, both, both).out == both);
static_assert(apply(op_code::add, none, both, on_grid<sw::on<dp, sw::shard<0>>>).error.axis == 1);

}  // namespace
