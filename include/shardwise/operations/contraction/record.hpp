// SPDX-License-Identifier: Apache-2.0
// The record of products that sum over common labels: matrix products, batched and with any order of dims.
#pragma once

#include <shardwise/operations/contraction/scratch.hpp>
#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1::operations {

inline constexpr operation einsum = [] {
  operation o =
      by_rows([](const op_attr& a, const spec* in, int) { return rules::einsum_shape(a, in); },
              [](const operation&, const op_attr& a, const spec* in, int, const spec&) { return rules::einsum_rows(a, in); },
              [](finding& f, bool, const operation&, const op_attr& a, const spec* in, int, const spec&, bool cuts_differ) {
                f.what = rules::einsum_problem(a, in, f.axis, cuts_differ);
              });
  o.choice = operand_choice::contracted;
  o.arithmetic = true;
  o.linear = linearity::each;
  // 2 for each multiplication: elements of the result times extents of the contracted labels
  o.flops = [](const op_attr& a, const spec* const* in, const spec& out) {
    constexpr int origin[max_axes]{};
    const auto labels = attributes_of<einsum_attributes>(a);
    double flops = 2.0 * static_cast<double>(local_numel(out, origin));
    for (int d = 0; d < in[0]->rank; ++d)
      if (rules::find_label(labels.out, out.rank, rules::label(labels.lhs, d)) < 0)
        flops *= static_cast<double>(local_interval(*in[0], d, origin).size);
    return flops;
  };
  o.host_scratch = &einsum_host_scratch;
  o.device_scratch = &einsum_device_scratch;
  return o;
}();

}  // namespace shardwise::inline v0_1::operations
