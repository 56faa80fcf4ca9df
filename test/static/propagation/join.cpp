// SPDX-License-Identifier: Apache-2.0
// Rules of joins, indexing, paddings and masks as values; and DTensor's merges of joined placements in implicit mode.
#include <shardwise/operations/strategy.hpp>

#include "rules.hpp"

namespace {

using namespace rules_test;
using sw::op_code;
using sw::placement;
using sw::problem;

constexpr sw::op_attr at(std::int64_t a, std::int64_t b = 0) { return {{a, b, 0, 0, 0, 0}}; }
using matrix = sw::shape<4, 4>;

// --- cat -------------------------------------------------------------------------------------------------------------

static_assert(gives(apply(op_code::cat, at(1), on_line<matrix>(S(0)), on_line<matrix>(S(0))), S(0)));
static_assert(gives(apply(op_code::cat, at(1), on_line<matrix>(R), on_line<matrix>(R)), R));
static_assert(gives(apply(op_code::cat, at(1), on_line<matrix>(U), on_line<matrix>(U)), U));
constexpr bool partials_join() {
  for (const sw::reduction op :
       {sw::reduction::sum, sw::reduction::avg, sw::reduction::product, sw::reduction::max, sw::reduction::min}) {
    const placement p = sw::partial_value(op);
    if (!gives(apply(op_code::cat, at(0), on_line<matrix>(p), on_line<matrix>(p)), p)) return false;
  }
  return true;
}
static_assert(partials_join());
static_assert(refuses(apply(op_code::cat, at(0), on_line<matrix>(S(0)), on_line<matrix>(S(0))), problem::cat_dim_sharded));
static_assert(refuses(apply(op_code::cat, at(1), on_line<matrix>(S(0)), on_line<matrix>(R)), problem::cat_placements));
static_assert(refuses(apply(op_code::cat, at(1), on_line<matrix>(R), on_line<matrix>(U)), problem::cat_placements));
static_assert(refuses(apply(op_code::cat, at(1), on_line<matrix>(P), on_line<matrix>(sw::partial_value(sw::reduction::max))),
                      problem::cat_placements));
static_assert(refuses(apply(op_code::cat, at(1), on_line<matrix>(R), on_line<sw::shape<3, 4>>(R)), problem::cat_shapes));
static_assert(refuses(apply(op_code::cat, at(1), on_line<matrix>(R), on_line<sw::shape<4>>(R)), problem::cat_shapes));
static_assert(refuses(apply(op_code::cat, at(2), on_line<matrix>(R)), problem::dim_out_of_range));
static_assert(apply(op_code::cat, at(0), on_line<matrix>(R), on_line<sw::shape<0, 4>>(R), on_line<sw::shape<3, 4>>(R)).out ==
              on_line<sw::shape<7, 4>>(R));
static_assert(gives(apply(op_code::cat, at(0), on_line<matrix, std::int32_t>(S(1)), on_line<matrix, std::int32_t>(S(1))),
                    S(1)));
// other dims may have run-time extents, the joined one not
using some_rows = sw::shape<sw::dyn<8>, 4>;
static_assert(gives(apply(op_code::cat, at(1), on_line<some_rows>(S(0)), on_line<some_rows>(S(0))), S(0)));
static_assert(refuses(apply(op_code::cat, at(0), on_line<some_rows>(R), on_line<some_rows>(R)), problem::dyn_dim_changed));
static_assert(refuses(apply(op_code::cat, at(1), on_line<some_rows>(R), on_line<sw::shape<8, 4>>(R)), problem::cat_shapes));

// DTensor's merges, axis by axis: what each pair becomes, and the strategy places both operands there.
constexpr placement merged(int dim, placement a, placement b) {
  const sw::spec in[] = {on_line<matrix>(a), on_line<matrix>(b)};
  const sw::strategy s = sw::choose_strategy(op_code::cat, at(dim), in, 2);
  if (!s.found || s.target[0].place[0] != s.target[1].place[0]) return sw::partial_value(sw::reduction::min);
  return sw::infer(op_code::cat, at(dim), s.target, 2).out.place[0];
}
static_assert(merged(1, S(0), S(0)) == S(0) && merged(1, S(0), R) == S(0) && merged(1, R, S(0)) == S(0));
static_assert(merged(1, S(0), S(1)) == R && merged(0, S(0), S(0)) == R && merged(0, S(0), R) == R);
static_assert(merged(1, P, S(0)) == S(0) && merged(1, S(0), P) == S(0));
static_assert(merged(0, P, R) == P && merged(0, R, P) == P && merged(0, P, P) == P);
static_assert(merged(0, P, sw::partial_value(sw::reduction::max)) == R);
static_assert(merged(0, R, U) == R && merged(0, U, U) == U && merged(1, U, S(0)) == S(0));
// from left to right: two shards that differ are whole, and a later shard takes that along
static_assert([] {
  const sw::spec in[] = {on_line<sw::shape<4, 4, 4>>(S(0)), on_line<sw::shape<4, 4, 4>>(S(1)),
                         on_line<sw::shape<4, 4, 4>>(S(0))};
  const sw::strategy s = sw::choose_strategy(op_code::cat, at(2), in, 3);
  return s.found && s.target[1].place[0] == S(0) && s.target[2].place[0] == S(0);
}());

// --- broadcast -------------------------------------------------------------------------------------------------------

template <std::int64_t... E>
constexpr sw::op_attr to() {
  const std::int64_t e[] = {E..., 0};
  return sw::pack_extents(e, static_cast<int>(sizeof...(E)));
}
static_assert(gives(apply(op_code::broadcast, to<3, 4>(), on_line<sw::shape<1, 4>>(S(1))), S(1)));
static_assert(gives(apply(op_code::broadcast, to<3, 1, 4>(), on_line<sw::shape<1, 4>>(S(0))), S(1)));
static_assert(gives(apply(op_code::broadcast, to<2, 4, 4>(), on_line<matrix>(S(0))), S(1)));
static_assert(gives(apply(op_code::broadcast, to<2, 4, 4>(), on_line<matrix>(P)), P));
static_assert([] {
  const sw::spec o = apply(op_code::broadcast, to<2, 3, 4>(), on_line<sw::shape<1, 4>>(R)).out;
  return o.stride[0] == 0 && o.stride[1] == 0 && o.stride[2] == 1 && !sw::is_contiguous(o);
}());
static_assert(refuses(apply(op_code::broadcast, to<3, 4>(), on_line<sw::shape<1, 4>>(S(0))), problem::expand_dim_sharded));
static_assert(refuses(apply(op_code::broadcast, to<8, 4>(), on_line<matrix>(R)), problem::expand_extents));
static_assert(refuses(apply(op_code::broadcast, to<4>(), on_line<matrix>(R)), problem::expand_extents));
static_assert(gives(apply(op_code::broadcast, to<3, -8, 4>(), on_line<some_rows>(S(0))), S(1)));

// --- indexing ----------------------------------------------------------------------------------------------------------

using ids = sw::shape<4, 3>;
constexpr sw::spec index(placement p) { return on_line<ids, std::int32_t>(p); }
constexpr sw::spec list(placement p) { return on_line<sw::shape<3>, std::int32_t>(p); }
static_assert(gives(apply(op_code::gather, at(1), on_line<matrix>(S(0)), index(S(0))), S(0)));
static_assert(gives(apply(op_code::gather, at(1), on_line<matrix>(P), index(R)), P));
static_assert(gives(apply(op_code::gather, at(1), on_line<matrix>(U), index(S(1))), S(1)));
static_assert(gives(apply(op_code::gather, at(1), on_line<matrix>(U), index(U)), U));
static_assert(refuses(apply(op_code::gather, at(1), on_line<matrix>(R), index(S(1))), problem::index_placements));
static_assert(refuses(apply(op_code::gather, at(1), on_line<matrix>(S(1)), index(S(1))), problem::index_dim_sharded));
static_assert(refuses(apply(op_code::gather, at(1), on_line<matrix>(S(0)), index(R)), problem::index_placements));
static_assert(refuses(apply(op_code::gather, at(0), on_line<matrix>(R), index(R)), problem::index_shape));
static_assert(refuses(apply(op_code::gather, at(1), on_line<matrix>(R), on_line<ids>(R)), problem::needs_integers));
static_assert(gives(apply(op_code::scatter_add, at(1, 9), on_line<ids>(S(1)), index(S(1))), P));
static_assert(gives(apply(op_code::scatter_add, at(1, 9), on_line<ids>(S(0)), index(S(0))), S(0)));
static_assert(apply(op_code::scatter_add, at(1, 9), on_line<ids>(R), index(R)).out == on_line<sw::shape<4, 9>>(R));
static_assert(gives(apply(op_code::index_select, at(1), on_line<matrix>(S(0)), list(R)), S(0)));
static_assert(gives(apply(op_code::index_select, at(1), on_line<matrix>(U), list(S(0))), S(1)));
static_assert(gives(apply(op_code::index_select, at(0), on_line<matrix>(P), list(R)), P));
static_assert(refuses(apply(op_code::index_select, at(0), on_line<matrix>(S(0)), list(R)), problem::index_dim_sharded));
static_assert(refuses(apply(op_code::index_select, at(0), on_line<matrix>(R), index(R)), problem::index_rank));
static_assert(gives(apply(op_code::index_add, at(1, 7), on_line<ids>(S(1)), list(S(0))), P));
static_assert(gives(apply(op_code::scatter, at(1), on_line<matrix>(P), index(R), on_line<ids>(P)), P));
static_assert(gives(apply(op_code::scatter, at(1), on_line<matrix>(S(0)), index(S(0)), on_line<ids>(S(0))), S(0)));
static_assert(refuses(apply(op_code::scatter, at(1), on_line<matrix>(U), index(S(1)), on_line<ids>(S(1))),
                      problem::index_dim_sharded));
static_assert(refuses(apply(op_code::scatter, at(1), on_line<matrix>(P), index(R)), problem::index_placements));  // a number
static_assert(gives(apply(op_code::scatter, at(1, 1), on_line<matrix>(P), index(R)), P));                         // zero
// which write was the last is known only where the whole line is
static_assert(refuses(apply(op_code::scatter_dsrc, at(1), on_line<matrix>(U), index(S(1))), problem::index_placements));
static_assert(gives(apply(op_code::one_hot, at(5), index(S(1))), S(1)));

// the rows of an operation and of its adjoint are each other's, with duals
constexpr bool adjoint_rows() {
  const sw::spec x = on_line<sw::shape<4, 5, 6>>(R);
  const sw::rule_rows pairs[][2] = {{sw::rules::gather_rows(at(1), x), sw::rules::scatter_add_rows(at(1), x)},
                                    {sw::rules::index_select_rows(at(2), x), sw::rules::index_add_rows(at(2), x)}};
  for (const auto& pair : pairs)
    for (const sw::rule_row& row : pair[0]) {
      bool found = false;
      for (const sw::rule_row& back : pair[1])
        found = found || (back.in[0] == sw::dual(row.out) && back.in[1] == row.in[1] && back.out == sw::dual(row.in[0]));
      if (!found) return false;
    }
  return true;
}
static_assert(adjoint_rows());

// --- frames, triangles, bernoulli --------------------------------------------------------------------------------------

constexpr sw::op_attr frame(std::int64_t before, std::int64_t after, bool zero) {
  return {{0, before | after << 32, 0, 0, 0, zero ? 1 : 0}};
}
static_assert(apply(op_code::constant_pad, frame(1, 2, true), on_line<matrix>(S(0))).out == on_line<sw::shape<4, 7>>(S(0)));
static_assert(gives(apply(op_code::constant_pad, frame(1, 2, true), on_line<matrix>(P)), P));
static_assert(refuses(apply(op_code::constant_pad, frame(1, 2, false), on_line<matrix>(P)), problem::partial_nonlinear));
static_assert(refuses(apply(op_code::constant_pad, frame(1, 2, true), on_line<matrix>(S(1))), problem::pad_dim_sharded));
static_assert(gives(apply(op_code::triangle, {}, on_line<matrix>(S(1))), S(1)));
static_assert(gives(apply(op_code::triangle, {}, on_line<matrix>(P)), P));
static_assert(refuses(apply(op_code::triangle, {}, on_line<sw::shape<4>>(R)), problem::triangle_rank));
static_assert(gives(apply(op_code::bernoulli, {}, on_line<matrix>(S(1))), S(1)));
static_assert(refuses(apply(op_code::bernoulli, {}, on_line<matrix>(P)), problem::random_partial));

// --- what implicit mode moves ------------------------------------------------------------------------------------------

constexpr placement moved(op_code op, const sw::op_attr& a, const sw::spec& x) {
  const sw::strategy s = sw::choose_strategy(op, a, &x, 1);
  return s.found ? s.target[0].place[0] : sw::partial_value(sw::reduction::min);
}
static_assert(moved(op_code::constant_pad, frame(0, 1, true), on_line<matrix>(S(1))) == R);
static_assert(moved(op_code::constant_pad, frame(0, 1, false), on_line<matrix>(P)) == R);
static_assert(moved(op_code::broadcast, to<3, 4>(), on_line<sw::shape<1, 4>>(S(0))) == R);
constexpr bool indices_follow() {
  const sw::spec in[] = {on_line<matrix>(S(0)), index(R)};
  const sw::strategy s = sw::choose_strategy(op_code::gather, at(1), in, 2);
  const sw::spec cut[] = {on_line<sw::shape<1, 4>>(S(1)), on_line<sw::shape<1, 3>, std::int32_t>(R)};
  const sw::strategy w = sw::choose_strategy(op_code::gather, at(1), cut, 2);
  const sw::spec spread[] = {on_line<matrix>(R), list(S(0))};
  const sw::strategy u = sw::choose_strategy(op_code::index_select, at(0), spread, 2);
  return s.found && s.cost == 0 && s.target[1].place[0] == S(0) && w.found && !w.target[0].place[0].is_shard(1) && u.found &&
         u.cost == 0 && u.target[0].place[0] == U;
}
static_assert(indices_follow());

}  // namespace
