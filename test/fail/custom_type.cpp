// SPDX-License-Identifier: Apache-2.0
// A custom operation whose shape rule changes the element type: its kernel would read elements of another type than they are.
// expect: call: a custom operation is pointwise or computed, moves or computes elements of its operands' type
// expect(types): custom_tag<(own::)?wider>
// expect(text): operation: wider

#include <shardwise/graph/functions/custom.hpp>

#include "typed.hpp"

namespace own {
constexpr sw::outcome shape(const sw::op_attr&, const sw::spec* in, int) {
  sw::outcome r{{}, sw::contiguous(in[0])};
#ifdef SHARDWISE_FAIL
  r.out.type = sw::dtype::f64;
#endif
  return r;
}
constexpr sw::rule_rows rows(const sw::operation&, const sw::op_attr&, const sw::spec*, int, const sw::spec&) {
  sw::rule_rows t;
  t.push_back(sw::rows::all(sw::rows::S(0), sw::rows::S(0)));
  return t;
}
inline constexpr sw::custom_operation wider{
    .name = "wider",
    .operands = 1,
    .record = sw::operations::by_rows(&shape, &rows, &sw::operations::refuse_with<sw::problem::custom_placements>),
    .adjoint = &sw::autodiff::unknown};
}  // namespace own
struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4>, sw::mesh<tp>, sw::shard<0>>;
using y = decltype(sw::call<own::wider>(x{}));
