// SPDX-License-Identifier: Apache-2.0
// Laws of run-time extents: what a rule says of them is consistent, a dim keeps its own through every operation, and it never
// meets a static dim that is as long as its bound.

#include "rules.hpp"

namespace {

using namespace rules_test;
using sw::dyn;
using sw::op_attr;
using sw::op_code;
using sw::outcome;
using sw::problem;
using sw::shape;
using sw::spec;

constexpr op_attr none{};
template <std::int64_t... E>
constexpr spec real = on_line<shape<E...>, double>(R);
template <std::int64_t... E>
constexpr spec whole_numbers = on_line<shape<E...>, std::int32_t>(R);

// Bits of dims that there are, of extents that are multiples of the bound; no bound where nothing is run-time.
constexpr bool consistent(const spec& s) {
  if ((s.dyn >> s.rank) != 0 || (s.dyn == 0) != (s.dyn_bound == 0)) return false;
  for (int d = 0; d < s.rank; ++d)
    if (sw::is_dyn(s, d) && s.extent[d] % s.dyn_bound != 0) return false;
  return true;
}
// The extents of a shape, run-time ones negative: what the result of an operation is to be.
template <std::int64_t... E>
constexpr bool is(const outcome& o) {
  const spec want = real<E...>;
  if (o.error || !consistent(o.out) || o.out.rank != want.rank || o.out.dyn_bound != want.dyn_bound) return false;
  for (int d = 0; d < want.rank; ++d)
    if (!sw::same_extent(o.out, d, want, d)) return false;
  return true;
}

// --- the last dim ends, or becomes a static one --------------------------------------------------------------------------

static_assert(is<4, 2>(apply(op_code::norm_stats, none, real<4, dyn<6>>)));
static_assert(is<dyn<6>, 2>(apply(op_code::norm_stats, none, real<dyn<6>, 4>)));
static_assert(is<4>(apply(op_code::lse, none, real<4, dyn<6>>)));
static_assert(is<dyn<6>>(apply(op_code::lse, none, real<dyn<6>, 4>)));
static_assert(is<4>(apply(op_code::exp_sum, none, real<4, dyn<6>>, real<4>)));
static_assert(is<4>(apply(op_code::nll, none, real<4, dyn<6>>, real<4>, whole_numbers<4>)));
static_assert(is<4, 1>(apply(op_code::topk, op_attr{{1}}, real<4, dyn<6>>)));
static_assert(is<4>(apply(op_code::sum, op_attr{{0b10}}, real<4, dyn<6>>)));
static_assert(is<4, 1>(apply(op_code::amax, op_attr{{0b10}}, real<4, dyn<6>>)));

// --- it stays what it is -------------------------------------------------------------------------------------------------

static_assert(is<4, dyn<6>>(apply(op_code::norm_apply, none, real<4, dyn<6>>, real<4, 2>, real<dyn<6>>)));
static_assert(is<dyn<6>>(apply(op_code::norm_dw, none, real<4, dyn<6>>, real<4, dyn<6>>, real<4, 2>)));
static_assert(is<5, dyn<6>>(apply(op_code::embedding, none, real<3, dyn<6>>, whole_numbers<5>)));
static_assert(is<3, dyn<6>>(apply(op_code::embedding_dw, op_attr{{3}}, real<5, dyn<6>>, whole_numbers<5>)));
static_assert(is<4, 1>(apply(op_code::take, none, real<4, dyn<6>>, whole_numbers<4, 1>)));
static_assert(is<4, dyn<6>>(apply(op_code::take_dx, op_attr{{6, 6}}, real<4, 1>, whole_numbers<4, 1>)));
static_assert(is<4, 6>(apply(op_code::take_dx, op_attr{{6, 0}}, real<4, 1>, whole_numbers<4, 1>)));
static_assert(is<4, dyn<6>>(apply(op_code::add, none, real<4, 1>, real<dyn<6>>)));
static_assert(is<4, 3>(apply(op_code::einsum, op_attr{{0x21, 0x32, 0x31}}, real<4, dyn<6>>, real<dyn<6>, 3>)));

// --- it meets its like alone ---------------------------------------------------------------------------------------------

constexpr bool meets(const outcome& o) { return refuses(o, problem::dyn_meets_static); }
static_assert(meets(apply(op_code::add, none, real<4, dyn<6>>, real<4, 6>)));
static_assert(meets(apply(op_code::mul, none, real<6>, real<4, dyn<6>>)));
static_assert(meets(apply(op_code::where, none, whole_numbers<4, 6>, real<4, dyn<6>>, real<4, dyn<6>>)));
static_assert(meets(apply(op_code::einsum, op_attr{{0x21, 0x32, 0x31}}, real<4, dyn<6>>, real<6, 3>)));
static_assert(meets(apply(op_code::einsum, op_attr{{0x21, 0x32, 0x31}}, real<4, 6>, real<dyn<6>, 3>)));
static_assert(meets(apply(op_code::norm_apply, none, real<4, dyn<6>>, real<4, 2>, real<6>)));
static_assert(meets(apply(op_code::nll, none, real<dyn<6>, 4>, real<dyn<6>>, whole_numbers<6>)));
static_assert(meets(apply(op_code::take, none, real<dyn<6>, 4>, whole_numbers<6, 1>)));
static_assert(refuses(apply(op_code::cat, op_attr{{1}}, real<dyn<6>, 4>, real<6, 4>), problem::cat_shapes));
static_assert(refuses(apply(op_code::gather, op_attr{{1}}, real<dyn<6>, 4>, whole_numbers<6, 2>), problem::index_shape));

// --- as many as there are at the smallest size ---------------------------------------------------------------------------

static_assert(refuses(apply(op_code::topk, op_attr{{2}}, real<4, dyn<6>>), problem::topk_count));
constexpr spec two_each = [] {  // (4, 2 n)
  spec s = real<4, dyn<6>>;
  s.extent[1] = 12;
  make_contiguous(s);
  return s;
}();
static_assert(!apply(op_code::topk, op_attr{{2}}, two_each).error);
static_assert(refuses(apply(op_code::topk, op_attr{{3}}, two_each), problem::topk_count));
static_assert(refuses(apply(op_code::embedding, none, real<dyn<6>, 3>, whole_numbers<5>), problem::dyn_dim_changed));
static_assert(refuses(apply(op_code::pad, op_attr{{0, 0, 8}}, real<dyn<6>, 3>), problem::dyn_dim_changed));

}  // namespace
