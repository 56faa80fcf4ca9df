// SPDX-License-Identifier: Apache-2.0
// An operation on float whose second result is double: its kernel has one element type.
// expect: call: of several results the first has the operands' element type, and each other one has that or is int32
// expect(types): where<shardwise::detail::custom_tag<(own::)?halves>
// expect(text): operation: halves

#include <shardwise/graph/functions/custom.hpp>

#include "typed.hpp"

namespace own {
constexpr sw::outcome shape(const sw::op_attr&, const sw::spec* in, int, int result) {
  sw::outcome r{{}, sw::contiguous(in[0])};
#ifdef SHARDWISE_FAIL
  if (result == 1) r.out.type = sw::dtype::f64;
#else
  if (result == 1) r.out.type = sw::dtype::i32;
#endif
  return r;
}
constexpr sw::results_rows rows(const sw::operation&, const sw::op_attr&, const sw::spec*, int, const sw::spec&) {
  sw::results_rows t;
  t.push_back({{sw::rows::S(0)}, {sw::rows::S(0), sw::rows::S(0)}});
  return t;
}
inline constexpr sw::custom_operation halves{
    .name = "halves",
    .operands = 1,
    .record = sw::operations::by_rows(&shape, &rows, &sw::operations::refuse_with<sw::problem::custom_placements>, -1,
                                      sw::element_rule::real, sw::operand_choice::cheapest, sw::recomputing::never, 2),
    .adjoint = &sw::autodiff::unknown};
}  // namespace own
struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4>, sw::mesh<tp>, sw::shard<0>>;
using y = decltype(sw::call<own::halves>(x{}));
