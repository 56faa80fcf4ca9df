// SPDX-License-Identifier: Apache-2.0
// along: operations whose kernels work on the last dim, applied along any dim through a view of its storage.
#pragma once

#include <shardwise/graph/functions/implicit.hpp>

namespace shardwise::inline v0_1::detail {

// Exchanges dim `d` and the last one; applied twice it is the identity.
constexpr op_attr exchange_with_last(int rank, int d) {
  std::int64_t dims = 0;
  for (int k = 0; k < rank; ++k) {
    const int from = k == d ? rank - 1 : k == rank - 1 ? d : k;
    dims |= std::int64_t{from} << (4 * k);
  }
  return attributes<permute_attributes>(dims);
}

template <int Dim, tensor X>
struct along {
  static constexpr int rank = X::sp.rank;
  static constexpr int dim = Dim < 0 ? Dim + rank : Dim;
  static constexpr bool wrong = resolved<X> && (dim < 0 || dim >= rank);
  static constexpr problem what = wrong ? problem::dim_out_of_range : problem::none;

  // x with the dim last, and back.
  template <tensor Y>
  static constexpr auto exchange(const Y& y) {
    if constexpr (wrong) return refused<what, op_code::permute, operand_t<X::sp>>(y);
    else if constexpr (dim == rank - 1 || !resolved<Y>) return y;
    else return apply<op_code::permute, exchange_with_last(rank, dim)>(0, y);
  }
  template <op_code Op, op_attr A>
  static constexpr auto run(double f, const X& x) {
    return exchange(apply<Op, A>(f, exchange(x)));
  }
};

}  // namespace shardwise::inline v0_1::detail
