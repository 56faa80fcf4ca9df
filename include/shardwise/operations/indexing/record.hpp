// SPDX-License-Identifier: Apache-2.0
// Records of elements read and written by index along one dim.
#pragma once

#include <shardwise/propagation/operation.hpp>
#include <shardwise/propagation/indexing.hpp>

namespace shardwise::inline v0_1::operations {

template <op_code Op>
constexpr void refuse_index(finding& f, bool, const operation&, const op_attr& a, const spec* in, int n, const spec&, bool) {
  f.what = rules::indexing_problem(Op, a, in, n, f.axis);
}
template <op_code Op>
constexpr outcome shape_of_gather(const op_attr& a, const spec* in, int n) {
  return rules::gather_shape(Op, a, in, n);
}
template <op_code Op>
constexpr outcome shape_of_index_select(const op_attr& a, const spec* in, int) {
  return rules::index_select_shape(Op, a, in);
}

inline constexpr operation gather = linear_in(
    linearity::first,
    by_rows(
        &shape_of_gather<op_code::gather>,
        [](const operation&, const op_attr& a, const spec* in, int, const spec&) { return rules::gather_rows(a, in[0]); },
        &refuse_index<op_code::gather>, 1, element_rule::any));
// On devices, sums of two-byte elements while they grow.
constexpr std::int64_t float_sums(const op_attr&, const spec* const*, int, const spec& out) {
  return device_scratch::align(widened_block::bytes(out));
}
inline constexpr operation scatter_add =
    linear_in(linearity::first, with_scratch(no_scratch, &float_sums,
                                             by_rows(
                                                 &shape_of_gather<op_code::scatter_add>,
                                                 [](const operation&, const op_attr& a, const spec* in, int, const spec&) {
                                                   return rules::scatter_add_rows(a, in[0]);
                                                 },
                                                 &refuse_index<op_code::scatter_add>, 1)));
inline constexpr operation scatter =
    linear_in([](const op_attr& a, int n) { return rules::writes_no_number(a, n) ? linearity::joint : linearity::none; },
              by_rows(
                  &shape_of_gather<op_code::scatter>,
                  [](const operation&, const op_attr& a, const spec* in, int n, const spec&) {
                    return rules::scatter_rows(a, in[0], n);
                  },
                  &refuse_index<op_code::scatter>, 1));
// Which write was the last, no rank knows of its part of the index: gather's last row goes. Scratch: the last writer of each
// place, on hosts of a line at a time.
inline constexpr operation scatter_dsrc = with_scratch(
    [](const op_attr& a, const spec* const* in, int, const spec&) {
      return (largest_block(*in[0]).extent[attributes_of<index_attributes>(a).dim] + 1) *
             static_cast<std::int64_t>(sizeof(std::int32_t));
    },
    [](const op_attr&, const spec* const* in, int, const spec&) {
      constexpr int origin[max_axes]{};
      return device_scratch::align(local_numel(*in[0], origin) * static_cast<std::int64_t>(sizeof(std::int32_t)));
    },
    by_rows(
        &shape_of_gather<op_code::scatter_dsrc>,
        [](const operation&, const op_attr& a, const spec* in, int, const spec&) {
          rule_rows t = rules::gather_rows(a, in[0]);
          --t.count;
          return t;
        },
        &refuse_index<op_code::scatter_dsrc>, 1));
inline constexpr operation index_select =
    linear_in(linearity::first, by_rows(
                                    &shape_of_index_select<op_code::index_select>,
                                    [](const operation&, const op_attr& a, const spec* in, int, const spec&) {
                                      return rules::index_select_rows(a, in[0]);
                                    },
                                    &refuse_index<op_code::index_select>, 1, element_rule::any));
inline constexpr operation index_add =
    linear_in(linearity::first, with_scratch(no_scratch, &float_sums,
                                             by_rows(
                                                 &shape_of_index_select<op_code::index_add>,
                                                 [](const operation&, const op_attr& a, const spec* in, int, const spec&) {
                                                   return rules::index_add_rows(a, in[0]);
                                                 },
                                                 &refuse_index<op_code::index_add>, 1)));
inline constexpr operation one_hot =
    by_rows([](const op_attr& a, const spec* in, int) { return rules::one_hot_shape(a, in[0]); },
            [](const operation&, const op_attr&, const spec* in, int, const spec&) { return rules::one_hot_rows(in[0]); },
            &refuse_pointwise, 0, element_rule::any);

}  // namespace shardwise::inline v0_1::operations
