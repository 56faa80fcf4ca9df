// SPDX-License-Identifier: Apache-2.0
// An operation of one's own whose kernels keep running sums in scratch: what stands up to an element minus what stands behind it,
// along the last dim.
#pragma once

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/operations/row/record.hpp>
#include <shardwise/runtime/host/custom.hpp>

namespace balances {

namespace sw = shardwise;

// A row of running sums.
constexpr std::int64_t row_bytes(const sw::op_attr&, const sw::spec* const* in, int, const sw::spec& out) {
  const sw::spec& x = *in[0];
  return sw::operations::largest_block(x).extent[x.rank - 1] * static_cast<std::int64_t>(sw::size_of(out.type));
}
// The last dim stays whole.
constexpr sw::rule_rows rows_of(const sw::operation&, const sw::op_attr&, const sw::spec* in, int, const sw::spec&) {
  sw::rule_rows t;
  for (const sw::placement p : {sw::rows::R, sw::rows::U, sw::rows::P}) t.push_back(sw::rows::all(p, p));
  for (int d = 0; d + 1 < in[0].rank; ++d) t.push_back(sw::rows::all(sw::rows::S(d), sw::rows::S(d)));
  return t;
}
constexpr sw::operation record = sw::operations::with_scratch(
    &row_bytes, &row_bytes,
    sw::operations::linear_in(sw::linearity::first,
                              sw::operations::by_rows(&sw::operations::shape_of_rows, &rows_of,
                                                      &sw::operations::refuse_with<sw::problem::custom_placements>)));

// Attribute 0: 1 for the same from the end, which is the adjoint of that from the beginning.
extern const sw::custom_operation balance;
constexpr void pull(sw::autodiff::pullback& p);
inline constexpr sw::autodiff::adjoint_rule adjoint = sw::autodiff::pulled<1>(&pull);
inline constexpr sw::custom_operation balance{.name = "balance", .operands = 1, .record = record, .adjoint = &adjoint};
constexpr void pull(sw::autodiff::pullback& p) { p.give(0, p.make(balance, {{1 - p.n.a.v[0], 0, 0, 0, 0, 0}}, 0, p.dy)); }

// The same of a record that asks for none.
inline constexpr sw::custom_operation unasked{.name = "unasked",
                                              .operands = 1,
                                              .record = sw::operations::with_scratch(sw::no_scratch, sw::no_scratch, record),
                                              .adjoint = &sw::autodiff::unknown};

// `n` elements from the first one on, a step apart.
template <class T>
constexpr void one_row(const T* x, T* out, T* sums, std::int64_t n, bool from_end) {
  T sum = T(0);
  for (std::int64_t i = 0; i < n; ++i) sums[i] = sum = sum + x[from_end ? n - 1 - i : i];
  for (std::int64_t i = 0; i < n; ++i) out[from_end ? n - 1 - i : i] = sums[i] - (sum - sums[i]);
}

}  // namespace balances

template <>
struct shardwise::host_kernel<balances::balance> {
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const std::int64_t n = k.extent(k.rank() - 1), rows = n > 0 ? k.size() / n : 0;
    T* const sums = k.scratch();
    for (std::int64_t r = 0; r < rows; ++r)
      balances::one_row(k.in(0) + r * n, k.out() + r * n, sums, n, k.attribute(0) != 0);
  }
};
template <>
struct shardwise::host_kernel<balances::unasked> : shardwise::host_kernel<balances::balance> {};
