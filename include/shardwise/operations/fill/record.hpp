// SPDX-License-Identifier: Apache-2.0
// Records of paddings by a number and of masks by position.
#pragma once

#include <shardwise/propagation/operation.hpp>
#include <shardwise/propagation/fill.hpp>

namespace shardwise::inline v0_1::operations {

inline constexpr operation constant_pad =
    linear_in([](const op_attr& a, int) { return rules::pads_zeros(a) ? linearity::joint : linearity::none; },
              by_rows([](const op_attr& a, const spec* in, int) { return rules::constant_pad_shape(a, in[0]); },
                      [](const operation&, const op_attr& a, const spec* in, int, const spec&) {
                        return rules::constant_pad_rows(a, in[0]);
                      },
                      [](finding& f, bool, const operation&, const op_attr&, const spec* in, int, const spec&, bool) {
                        f.what = rules::constant_pad_problem(in[0], f.axis);
                      },
                      -1, element_rule::any, operand_choice::kept));
inline constexpr operation triangle =
    linear_in(linearity::first, by_rows(
                                    [](const op_attr&, const spec* in, int) {
                                      if (in[0].rank < 2) return fail(problem::triangle_rank, in[0], 0, -1, in[0].rank, 2);
                                      return outcome{{}, shardwise::contiguous(in[0])};
                                    },
                                    [](const operation&, const op_attr&, const spec* in, int, const spec&) {
                                      return rules::elementwise_rows(in[0], true);
                                    },
                                    &refuse_pointwise));

}  // namespace shardwise::inline v0_1::operations
