// SPDX-License-Identifier: Apache-2.0
// An operation that says it has two results, with the shape and the rows of one.
// expect: call: a custom operation with several results is computed, has 2 to 8 of them
// expect(types): custom_tag<(own::)?halves>
// expect(text): operation: halves

#include <shardwise/graph/functions/custom.hpp>

#include "typed.hpp"

namespace own {
constexpr sw::rule_rows rows(const sw::operation&, const sw::op_attr&, const sw::spec*, int, const sw::spec&) {
  sw::rule_rows t;
  t.push_back(sw::rows::all(sw::rows::S(0), sw::rows::S(0)));
  return t;
}
constexpr sw::operation record = [] {
  sw::operation o = sw::operations::by_rows(&sw::operations::like_first, &rows,
                                            &sw::operations::refuse_with<sw::problem::custom_placements>);
#ifdef SHARDWISE_FAIL
  o.results = 2;
#endif
  return o;
}();
inline constexpr sw::custom_operation halves{
    .name = "halves", .operands = 1, .record = record, .adjoint = &sw::autodiff::unknown};
}  // namespace own
struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4>, sw::mesh<tp>, sw::shard<0>>;
using y = decltype(sw::call<own::halves>(x{}));
