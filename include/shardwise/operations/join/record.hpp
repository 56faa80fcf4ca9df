// SPDX-License-Identifier: Apache-2.0
// The record of tensors put side by side along a dim.
#pragma once

#include <shardwise/propagation/operation.hpp>
#include <shardwise/propagation/join.hpp>

namespace shardwise::inline v0_1::operations {

inline constexpr operation cat = linear_in(
    linearity::joint,
    by_rows([](const op_attr& a, const spec* in, int n) { return rules::cat_shape(a, in, n); },
            [](const operation&, const op_attr& a, const spec* in, int, const spec&) { return rules::cat_rows(a, in[0]); },
            [](finding& f, bool, const operation&, const op_attr& a, const spec* in, int n, const spec&, bool) {
              f.what = rules::cat_problem(a, in, n, f.axis);
            },
            -1, element_rule::any, operand_choice::merged));

}  // namespace shardwise::inline v0_1::operations
