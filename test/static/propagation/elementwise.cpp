// SPDX-License-Identifier: Apache-2.0
// Laws of the rules of elementwise functions, reductions other than sums, rows of sharded classes and searches;
// DTensor's reductions beside ours.

#include <shardwise/operations/strategy.hpp>

#include "rules.hpp"

namespace {

using namespace rules_test;
using sw::op_code;
using sw::placement;
using sw::problem;
using sw::reduction;

constexpr sw::op_attr none{};
constexpr sw::op_attr dims(std::int64_t mask) { return {{mask, 0, 0, 0, 0, 0}}; }
using matrix = sw::shape<4, 8>;

// --- elementwise -----------------------------------------------------------------------------------------------------

// a function that is not linear keeps every placement but a partial one
constexpr bool function_law(op_code op) {
  for (const auto& p : kinds) {
    const sw::outcome o = apply(op, none, on_line<matrix>(p));
    if (p == P ? !refuses(o, problem::partial_nonlinear) : !gives(o, p)) return false;
  }
  return sw::is_elementwise(op) && !sw::is_comparison(op);
}
template <op_code... Op>
constexpr bool function_laws = (function_law(Op) && ...);
static_assert(function_laws<op_code::abs, op_code::sign, op_code::exp, op_code::log, op_code::sqrt, op_code::rsqrt,
                            op_code::reciprocal, op_code::sigmoid, op_code::sin, op_code::cos, op_code::pow,
                            op_code::clamp_min, op_code::clamp_max>);

// two operands placed alike; the dividend alone may be partial, over a reduced divisor
constexpr bool pair_law(op_code op, bool divides) {
  for (const auto& p : kinds)
    for (const auto& q : kinds) {
      const sw::outcome o = apply(op, none, on_line<matrix>(p), on_line<matrix>(q));
      if (divides && p == P && q == U ? !gives(o, P) : p == q && p != P ? !gives(o, p) : !o.error) return false;
      if (p == P && q == P && !refuses(o, problem::partial_nonlinear)) return false;
    }
  return true;
}
static_assert(pair_law(op_code::div, true) && pair_law(op_code::maximum, false) && pair_law(op_code::minimum, false) &&
              pair_law(op_code::wins, false) && pair_law(op_code::keeps, false));
static_assert(refuses(apply(op_code::div, none, on_line<matrix>(P), on_line<matrix>(R)), problem::pointwise_placements));
static_assert(refuses(apply(op_code::div, none, on_line<matrix>(R), on_line<matrix>(P)), problem::partial_nonlinear));

// comparisons give int32, of either type, whole or sharded as their operands
constexpr bool comparison_law(op_code op) {
  for (const auto& p : kinds) {
    const sw::outcome o = apply(op, none, on_line<matrix>(p), on_line<matrix>(p));
    if (p == P ? !refuses(o, problem::partial_nonlinear) : !gives(o, p) || o.out.type != sw::dtype::i32) return false;
    const sw::outcome i = apply(op, none, on_line<matrix, std::int32_t>(R), on_line<matrix, std::int32_t>(U));
    if (!gives(i, R)) return false;  // integers have no gradient
  }
  return true;
}
static_assert(comparison_law(op_code::eq) && comparison_law(op_code::ne) && comparison_law(op_code::lt) &&
              comparison_law(op_code::le) && comparison_law(op_code::gt) && comparison_law(op_code::ge));
static_assert(refuses(apply(op_code::lt, none, on_line<matrix>(R), on_line<matrix, double>(R)), problem::types_differ));

// where is linear in its two values together, under a mask that is whole or sharded with them
constexpr sw::outcome chosen(placement m, placement a, placement b) {
  return apply(op_code::where, none, on_line<matrix, std::int32_t>(m), on_line<matrix>(a), on_line<matrix>(b));
}
constexpr bool where_law() {
  for (const auto& m : {R, U, S(0), S(1)})
    for (const auto& a : kinds)
      for (const auto& b : kinds) {
        const sw::outcome o = chosen(m, a, b);
        const bool mask_fits = a.is_shard() ? m == a : m.is_whole();
        if (a == b && mask_fits ? !gives(o, a) || o.out.type != sw::dtype::f32 : !o.error) return false;
        if ((a == P) != (b == P) && !refuses(o, problem::where_partial)) return false;
      }
  return true;
}
static_assert(where_law());
static_assert(refuses(apply(op_code::where, none, on_line<matrix>(R), on_line<matrix>(R), on_line<matrix>(R)),
                      problem::needs_integers));
static_assert(gives(apply(op_code::mask_keep, none, on_line<matrix>(P), on_line<sw::shape<8>, std::int32_t>(R)), P));

// --- reductions: DTensor's for (4, 4) on two ranks
// ---------------------------------------------------------------------

using square = sw::shape<4, 4>;
constexpr placement Pmax = sw::partial_value(reduction::max), Pmin = sw::partial_value(reduction::min),
                    Pproduct = sw::partial_value(reduction::product);

// sum(0) -> P, sum(1) -> S(0), sum() -> P, keepdim (1, 4); of S(1), sum(0) -> S(0)
static_assert(gives(apply(op_code::sum, dims(1), on_line<square>(S(0))), P));
static_assert(gives(apply(op_code::sum, dims(2), on_line<square>(S(0))), S(0)));
static_assert(gives(apply(op_code::sum, dims(3), on_line<square>(S(0))), P));
static_assert(gives(apply(op_code::sum, dims(1), on_line<square>(S(1))), S(0)));
// mean() -> partial<> where DTensor has partial<avg>: the ranks' sums over the global number, exact for uneven shards
// too
static_assert(gives(apply(op_code::sum, {{3, 0, 1, 0, 0, 0}}, on_line<square>(S(0))), P));

// a factor keeps a partial sum alone: a negative one would turn the largest into the smallest, and a number added to a
// mean's or an extreme's shares is refused like one added to a sum's (DTensor admits both)
static_assert(refuses(apply(op_code::scale, none, on_line<square>(Pmax)), problem::partial_nonlinear) &&
              refuses(apply(op_code::scale, none, on_line<square>(sw::partial_value(reduction::avg))),
                      problem::partial_nonlinear) &&
              refuses(apply(op_code::add, none, on_line<square>(Pmax), on_line<sw::shape<>>(R)), problem::partial_add));
// largest of two partial largest: right, and admitted by DTensor; here it is refused like any partial operand
static_assert(refuses(apply(op_code::maximum, none, on_line<square>(Pmax), on_line<square>(Pmax)),
                      problem::partial_nonlinear));

constexpr bool extreme_law(op_code op, placement part) {
  for (const auto& p : {R, U, S(0), S(1), P, Pmax, Pmin, Pproduct}) {
    const sw::outcome rows = apply(op, dims(1), on_line<square>(p)), all = apply(op, dims(3), on_line<square>(p));
    const bool other = p.is_partial() && p != part;
    if (other ? !refuses(rows, problem::partial_other_reduction) : !gives(rows, p == S(0) ? part : p)) return false;
    if (other ? !all.error : !gives(all, p.is_shard() ? part : p)) return false;
    if (!other && (rows.out.rank != 2 || rows.out.extent[0] != 1 || rows.out.extent[1] != 4)) return false;
  }
  return refuses(apply(op, dims(4), on_line<square>(R)), problem::dim_out_of_range);
}
static_assert(extreme_law(op_code::amax, Pmax) && extreme_law(op_code::amin, Pmin) && extreme_law(op_code::prod, Pproduct));

// --- rows of sharded classes
// ---------------------------------------------------------------------------------------------

using vector = sw::shape<4>;
constexpr sw::outcome nll(placement x, placement norm, placement t) {
  return apply(op_code::nll, none, on_line<matrix>(x), on_line<vector>(norm), on_line<vector, std::int32_t>(t));
}
static_assert(gives(nll(S(1), U, R), P) && gives(nll(S(1), U, U), P) && gives(nll(S(0), S(0), S(0)), S(0)));
static_assert(refuses(nll(S(1), R, R), problem::loss_target_placement) && nll(S(1), U, S(0)).error);
static_assert(gives(apply(op_code::exp_sum, none, on_line<matrix>(S(1)), on_line<vector>(U)), P));
static_assert(gives(apply(op_code::exp_sum, none, on_line<matrix>(S(0)), on_line<vector>(S(0))), S(0)));
static_assert(gives(apply(op_code::nll_dx, none, on_line<vector>(U), on_line<matrix>(S(1)), on_line<vector>(U),
                          on_line<vector, std::int32_t>(R)),
                    S(1)));

// --- searches
// ------------------------------------------------------------------------------------------------------------

constexpr sw::outcome top(placement p, int k) { return apply(op_code::topk, dims(k), on_line<matrix>(p)); }
static_assert(gives(top(S(0), 3), S(0)) && top(R, 3).out.type == sw::dtype::i32 && top(R, 3).out.extent[1] == 3);
static_assert(refuses(top(S(1), 3), problem::topk_dim_sharded) && refuses(top(P, 3), problem::partial_nonlinear) &&
              refuses(top(R, 9), problem::topk_count) && refuses(top(R, 0), problem::topk_count));
static_assert(gives(apply(op_code::take, none, on_line<matrix>(P), on_line<sw::shape<4, 2>, std::int32_t>(R)), P));

// --- implicit mode: what the rules refuse is moved, what they admit stays
// -------------------------------------------------

template <class... Spec>
constexpr placement moved(op_code op, const sw::op_attr& a, int k, const Spec&... s) {
  const sw::spec in[] = {s...};
  const sw::strategy t = sw::choose_strategy(op, a, in, static_cast<int>(sizeof...(Spec)));
  return t.found && !sw::infer(op, a, t.target, t.operands).error ? t.target[k].place[0] : Pproduct;
}
static_assert(moved(op_code::exp, none, 0, on_line<matrix>(P)) == R &&
              moved(op_code::exp, none, 0, on_line<matrix>(S(1))) == S(1));
static_assert(moved(op_code::amax, dims(1), 0, on_line<matrix>(S(0))) == S(0) &&
              moved(op_code::amax, dims(2), 0, on_line<matrix>(P)).is_partial() == false);
static_assert(moved(op_code::log_softmax, none, 0, on_line<matrix>(S(0))) == S(0) &&
              moved(op_code::log_softmax, none, 0, on_line<matrix>(S(1))) == R);
static_assert(moved(op_code::topk, dims(2), 0, on_line<matrix>(S(1))) == R &&
              moved(op_code::topk, dims(2), 0, on_line<matrix>(P)) == R);
constexpr placement where_operand(int k, placement m, placement a, placement b) {
  return moved(op_code::where, none, k, on_line<matrix, std::int32_t>(m), on_line<matrix>(a), on_line<matrix>(b));
}
static_assert(where_operand(0, R, P, P) == R && where_operand(1, R, P, P) == P);
static_assert(where_operand(2, R, P, R) == P && where_operand(1, R, P, R) == P);  // shares of a whole value, as in sums
static_assert(where_operand(0, R, S(0), R) == S(0) && where_operand(2, R, S(0), R) == S(0));
static_assert(where_operand(1, S(1), R, P) == S(1) && where_operand(2, S(1), R, P) == S(1));
static_assert(moved(op_code::lt, none, 1, on_line<matrix>(S(1)), on_line<sw::shape<8>>(R)) == S(0));
static_assert(moved(op_code::div, none, 0, on_line<matrix>(P), on_line<matrix>(R)) == R);

}  // namespace
