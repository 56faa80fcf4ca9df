// SPDX-License-Identifier: Apache-2.0
// Laws of sums and of the row operations: softmax, norms, cross entropy, embedding.

#include "rules.hpp"

namespace {

using namespace rules_test;
using sw::op_code;
using sw::placement;
using sw::problem;

using matrix = sw::shape<4, 4>;
constexpr sw::op_attr dims(std::int64_t mask, std::int64_t kept = 0, std::int64_t mean = 0) {
  return {{mask, kept, mean, 0, 0, 0}};
}

// --- sums ------------------------------------------------------------------------------------------------------------

constexpr bool sums_to(placement p, const sw::op_attr& a, placement q, int rank) {
  const sw::outcome o = apply(op_code::sum, a, on_line<matrix>(p));
  return gives(o, q) && o.out.rank == rank;
}
static_assert(sums_to(S(0), dims(0b01), P, 1));     // over the sharded dim: partial sums
static_assert(sums_to(S(0), dims(0b10), S(0), 1));  // over another dim: still sharded
static_assert(sums_to(S(1), dims(0b01), S(0), 1));  // dims move up
static_assert(sums_to(S(0), dims(0b11), P, 0));
static_assert(sums_to(S(0), dims(0b11, 0, 1), P, 0));  // a mean divides by the global count: partial sums too
static_assert(sums_to(S(0), dims(0b01, 0b01), P, 2));  // kept with extent 1
static_assert(sums_to(S(1), dims(0b01, 0b01), S(1), 2));
static_assert(sums_to(R, dims(0b01), R, 1) && sums_to(U, dims(0b01), U, 1) && sums_to(P, dims(0b01), P, 1));
static_assert(refuses(apply(op_code::sum, dims(0b100), on_line<matrix>(R)), problem::dim_out_of_range));

// a sum of squares is no sum of partial squares
static_assert(gives(apply(op_code::sumsq, dims(0b11), on_line<matrix>(S(1))), P));
static_assert(refuses(apply(op_code::sumsq, dims(0b11), on_line<matrix>(P)), problem::partial_nonlinear));

// --- along the last dim ----------------------------------------------------------------------------------------------

constexpr sw::op_attr none{};

// every dim but the last may be sharded
constexpr bool row_law(op_code op, problem sharded) {
  for (const auto& p : kinds) {
    const sw::outcome o = apply(op, none, on_line<matrix>(p));
    if (p == P) {
      if (!refuses(o, problem::partial_nonlinear)) return false;
    } else if (p == S(1)) {
      if (!refuses(o, sharded)) return false;
    } else if (!gives(o, p)) {
      return false;
    }
  }
  return true;
}
static_assert(row_law(op_code::softmax, problem::softmax_dim_sharded));
static_assert(row_law(op_code::norm_stats, problem::norm_dim_sharded));
static_assert(row_law(op_code::lse, problem::loss_class_dim_sharded));
static_assert(apply(op_code::norm_stats, none, on_line<matrix>(S(0))).out.extent[1] == 2);  // mean and 1 / sigma
static_assert(apply(op_code::lse, none, on_line<matrix>(S(0))).out.rank == 1);
static_assert(gives(apply(op_code::softmax_dx, none, on_line<matrix>(P), on_line<matrix>(U)), P));
static_assert(refuses(apply(op_code::softmax, {{1, 0, 0, 0, 0, 0}}, on_line<sw::shape<4>>(R)), problem::causal_rank));

// norms: x, statistics, weight, bias; parameters are reduced where rows are sharded, else replicate with the rest
using vector = sw::shape<4>;
using pairs = sw::shape<4, 2>;
constexpr sw::outcome norm(placement x, placement w) {
  return apply(op_code::norm_apply, {{0, 1, 0, 0, 0, 0}}, on_line<matrix>(x), on_line<pairs>(x), on_line<vector>(w),
               on_line<vector>(w));
}
static_assert(gives(norm(S(0), U), S(0)) && gives(norm(R, R), R) && gives(norm(U, U), U));
static_assert(refuses(norm(S(0), R), problem::norm_weight_placement) && refuses(norm(R, U), problem::norm_weight_placement));

// the gradient of the weight is partial where rows are sharded
constexpr sw::outcome norm_dw(placement x) {
  return apply(op_code::norm_dw, none, on_line<matrix>(x), on_line<matrix>(x), on_line<pairs>(x));
}
static_assert(gives(norm_dw(S(0)), P) && gives(norm_dw(R), R) && norm_dw(R).out.rank == 1);

// --- indices ---------------------------------------------------------------------------------------------------------

using table = sw::shape<100, 8>;
using ids = sw::shape<2, 6>;
constexpr sw::outcome embed(placement t, placement i) {
  return apply(op_code::embedding, none, on_line<table>(t), on_line<ids, std::int32_t>(i));
}
static_assert(gives(embed(R, R), R) && gives(embed(U, R), U) && gives(embed(S(1), R), S(2)));
static_assert(gives(embed(U, S(0)), S(0)) && gives(embed(U, S(1)), S(1)));
static_assert(gives(embed(U, U), U));  // indices have no gradient: reduced says no more than replicate
static_assert(gives(embed(S(0), R), P) && gives(embed(S(0), U), P));  // each rank the rows that it owns
static_assert(refuses(embed(S(0), S(0)), problem::embedding_placements) &&
              refuses(embed(R, S(0)), problem::embedding_placements) && refuses(embed(P, R), problem::embedding_placements));
static_assert(embed(R, R).out.rank == 3 && embed(R, R).out.extent[2] == 8);

// the gradient of a table sharded by features is sharded by features; of one whose rows meet sharded indices, partial
constexpr sw::outcome embed_dw(placement dy, placement i) {
  return apply(op_code::embedding_dw, {{100, 0, 0, 0, 0, 0}}, on_line<sw::shape<2, 6, 8>>(dy),
               on_line<ids, std::int32_t>(i));
}
static_assert(gives(embed_dw(S(2), R), S(1)) && gives(embed_dw(S(0), S(0)), P) && gives(embed_dw(R, R), R) &&
              gives(embed_dw(P, R), P));

// of one sharded by rows, sharded likewise: in what blocks, the attributes tell
static_assert(gives(embed_dw(U, R), S(0)));
constexpr placement blocks = sw::shard_value(0, 20);  // 60 and 40 rows
static_assert(gives(apply(op_code::embedding_dw, sw::rules::embedding_dw_attr(on_line<table>(blocks)),
                          on_line<sw::shape<2, 6, 8>>(U), on_line<ids, std::int32_t>(R)),
                    blocks));

// norms: parts of a norm are a partial norm, and a norm of summands is none
constexpr sw::outcome norm(placement p, std::int64_t mask, int order) {
  return apply(op_code::vector_norm, {{mask, 0, order, 0, 0, 0}}, on_line<sw::shape<6, 4>>(p));
}
static_assert(gives(norm(S(0), 1, 2), sw::partial_norm_value(2)) && gives(norm(S(0), 3, 3), sw::partial_norm_value(3)) &&
              gives(norm(S(1), 1, 2), S(0)) && gives(norm(S(0), 2, 1), S(0)) && gives(norm(R, 3, 2), R) &&
              gives(norm(U, 1, 2), U));
static_assert(refuses(norm(P, 1, 2), problem::partial_nonlinear) && refuses(norm(R, 4, 2), problem::dim_out_of_range) &&
              refuses(norm(R, 1, 0), problem::norm_order));
static_assert(refuses(norm(sw::partial_norm_value(2), 1, 2), problem::partial_nonlinear));

// cross entropy: logits, their log-sum-exp, targets
constexpr sw::outcome nll(placement x, placement t) {
  return apply(op_code::nll, none, on_line<sw::shape<4, 10>>(x), on_line<vector>(x), on_line<vector, std::int32_t>(t));
}
static_assert(gives(nll(S(0), S(0)), S(0)) && gives(nll(R, R), R) && gives(nll(U, R), U));
static_assert(refuses(nll(S(0), R), problem::loss_target_placement) &&
              refuses(nll(R, S(0)), problem::loss_target_placement));

}  // namespace
