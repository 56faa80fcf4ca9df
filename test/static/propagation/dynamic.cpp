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
  if ((s.dyn >> (sw::max_dyn_sizes * s.rank)) != 0 || sw::dyn_sizes(s) != s.dyn_bound.sizes()) return false;
  for (int d = 0; d < s.rank; ++d)
    if (s.extent[d] % sw::product_of(s.dyn_bound, sw::dyn_sizes(s, d)) != 0) return false;
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
static_assert(is<4, dyn<6>>(apply(op_code::take_dx, op_attr{{dyn<6>, 6}}, real<4, 1>, whole_numbers<4, 1>)));
static_assert(is<4, 6>(apply(op_code::take_dx, op_attr{{6}}, real<4, 1>, whole_numbers<4, 1>)));
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
static_assert(sw::rules::dims_of_extremes(op_code::topk, op_attr{{1}}, 2) == 0b10 &&
              sw::rules::dims_of_extremes(op_code::amax, op_attr{{0b01}}, 2) == 0b01 &&
              sw::rules::dims_of_extremes(op_code::sum, op_attr{{0b01}}, 2) == 0);
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

// --- several sizes -------------------------------------------------------------------------------------------------------

constexpr std::int64_t batch = dyn<4>, length = dyn<6, 1>, both = sw::extent_product(batch, length);
template <std::int64_t... E>
constexpr op_attr extents = [] {
  const std::int64_t e[] = {E..., 0};
  return sw::pack_extents(e, static_cast<int>(sizeof...(E)));
}();

static_assert(sw::sizes_in(both) == 3 && sw::bound_of(both) == 24 && sw::extent_product(batch, batch) == -1);
static_assert(sw::extent_product(2, batch) == 2 * batch && sw::extent_product(3, 5) == 15);
static_assert(is<batch, 6>(apply(op_code::einsum, op_attr{{0x21, 0x32, 0x31}}, real<batch, length>, real<length, 6>)));
static_assert(meets(apply(op_code::add, none, real<4, dyn<6>>, real<4, length>)));
static_assert(is<batch, length>(apply(op_code::add, none, real<batch, 1>, real<length>)));
static_assert(is<length, 3, batch>(apply(op_code::permute, op_attr{{0x021}}, real<batch, length, 3>)));
static_assert(is<length>(apply(op_code::sum, op_attr{{0b01}}, real<batch, length>)));
static_assert(refuses(apply(op_code::cat, op_attr{{1}}, real<dyn<6>, 4>, real<length, 4>), problem::cat_shapes));
static_assert(is<4, length>(apply(op_code::take_dx, op_attr{{length, 0, 6}}, real<4, 1>, whole_numbers<4, 1>)));

// A reshape's extents scale with the sizes of the dims that they are made of, each once.
template <std::int64_t... E>
constexpr outcome reshaped(const spec& x) {
  return apply(op_code::reshape, extents<E...>, x);
}
// The result's extents as they are spelled; bounds are the operand's.
template <std::int64_t... E>
constexpr bool scales(const outcome& o) {
  const std::int64_t want[] = {E..., 0};
  bool same = !o.error && consistent(o.out) && o.out.rank == sizeof...(E);
  for (int d = 0; same && d < o.out.rank; ++d) same = sw::spelled(o.out, d) == want[d];
  return same;
}
constexpr spec sentences = real<batch, length, 5>;
constexpr spec rows = reshaped<both, 5>(sentences).out;
static_assert(scales<both, 5>(reshaped<both, 5>(sentences)) && scales<batch, length, 5>(reshaped<batch, length, 5>(rows)));
static_assert(scales<batch, sw::extent_product(5, length)>(reshaped<batch, sw::extent_product(5, length)>(sentences)));
static_assert(scales<5 * batch>(reshaped<5 * batch>(real<5, batch>)));  // the size stands behind
static_assert(scales<batch, 5>(reshaped<batch, 5>(real<5, batch>)));
static_assert(scales<both, 1>(reshaped<both, 1>(real<length, batch>)));
static_assert(scales<length, batch>(reshaped<length, batch>(real<batch, length>)));  // one group, equally many
static_assert(refuses(reshaped<24>(real<batch, length>), problem::dyn_product));
static_assert(refuses(reshaped<sw::extent_product(dyn<8>, 2)>(real<batch, dyn<4>>), problem::dyn_square));
static_assert(refuses(reshaped<6, 4>(real<batch, 6>), problem::reshape_dyn));  // 6 is no multiple of 4
static_assert(refuses(reshaped<dyn<24, 1>>(real<batch, 6>), problem::reshape_dyn));
static_assert(refuses(reshaped<dyn<4>, 6>(real<4, 6>), problem::reshape_dyn));
static_assert(refuses(reshaped<batch, dyn<8>>(real<batch, 8>),
                      problem::reshape_dyn));  // of 2 * 8 elements it would see 2 * 4
static_assert(sw::extent_at(real<batch, length>, 0, {2, 5}) == 2 && sw::extent_at(real<batch, length>, 1, {2, 5}) == 5);
static_assert(sw::extent_at(rows, 0, {2, 5}) == 10 && sw::extent_at(rows, 0, {2, 0}) == 0 &&
              sw::extent_at(rows, 0, {}) == 24);
static_assert(refuses(reshaped<sw::extent_product(dyn<2>, dyn<3, 1>), 4>(real<batch, length>), problem::reshape_dyn));

// Law: at every size every rank has the same elements before and after, those of a range of rows.
constexpr bool keeps_elements(const spec& x, const spec& y) {
  for (std::int64_t n0 = 0; n0 <= 4; ++n0)
    for (std::int64_t n1 = 0; n1 <= 6; ++n1)
      for (int r = 0; r < x.axis_size[0]; ++r) {
        const sw::run_sizes n(n0, n1);
        std::int64_t begin[2]{}, count[2]{};
        for (int k = 0; k < 2; ++k) {
          const spec& s = k == 0 ? x : y;
          std::int64_t inner = 1;
          for (int d = s.rank - 1; d > s.place[0].dim; --d) inner *= sw::extent_at(s, d, n);
          const sw::interval v = sw::local_interval(s, s.place[0].dim, &r, n);
          begin[k] = v.begin * inner;
          count[k] = v.size * inner;
        }
        if (count[0] != count[1] || (count[0] != 0 && begin[0] != begin[1])) return false;
      }
  return true;
}
template <int N>
struct ranks : sw::axis<N> {};
template <int Ranks, int D, std::int64_t... E>
constexpr spec split_along = on_line<shape<E...>, double, ranks<Ranks>>(S(D));
template <int Ranks>
constexpr bool all_kept() {
  const spec x = split_along<Ranks, 0, batch, length, 5>;
  const outcome merged = reshaped<both, 5>(x), more = reshaped<sw::extent_product(both, 5)>(x);
  if (merged.error || more.error) return false;
  const outcome back = reshaped<batch, length, 5>(merged.out), far = reshaped<batch, length, 5>(more.out);
  if (back.error || far.error || !(back.out == x) || !(far.out == x)) return false;
  const spec fixed = split_along<Ranks, 0, 3, length>;  // of static extent, before a run-time one
  const outcome flat = reshaped<sw::extent_product(3, length)>(fixed);
  return !flat.error && keeps_elements(x, merged.out) && keeps_elements(x, more.out) && keeps_elements(fixed, flat.out);
}
static_assert(all_kept<1>() && all_kept<2>() && all_kept<3>() && all_kept<4>() && all_kept<8>());
static_assert(refuses(reshaped<both>(split_along<2, 1, batch, length>), problem::reshape_crosses_shard));

}  // namespace
