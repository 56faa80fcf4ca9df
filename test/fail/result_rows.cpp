// SPDX-License-Identifier: Apache-2.0
// A row that places one of two results.
// expect: call: a row of the custom operation's record does not place as many results as it has
// expect(types): where<shardwise::detail::custom_tag<(own::)?halves>
// expect(text): operation: halves

#include <shardwise/graph/functions/custom.hpp>

#include "typed.hpp"

namespace own {
constexpr sw::outcome shape(const sw::op_attr&, const sw::spec* in, int, int) { return {{}, sw::contiguous(in[0])}; }
constexpr sw::results_rows rows(const sw::operation&, const sw::op_attr&, const sw::spec*, int, const sw::spec&) {
  using namespace sw::rows;
  sw::results_rows t;
#ifdef SHARDWISE_FAIL
  t.push_back({{S(0)}, {S(0)}});
#else
  t.push_back({{S(0)}, {S(0), S(0)}});
#endif
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
