// SPDX-License-Identifier: Apache-2.0
// An operation of one's own with three results of different extents and types, whose adjoint reads one of them; and what mistakes
// look like.
#pragma once

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/runtime/host/custom.hpp>

// Of x (..., n): its exponentials, the sums of its rows, and where the largest element of each row stands, of equals the first.
namespace described {

namespace sw = shardwise;

constexpr sw::outcome shape(const sw::op_attr&, const sw::spec* in, int, int result) {
  if (in[0].rank < 1) return sw::fail(sw::problem::dim_out_of_range, in[0]);
  sw::outcome r{{}, sw::contiguous(in[0])};
  if (result > 0) {
    r.out.rank = static_cast<std::uint8_t>(r.out.rank - 1);
    sw::set_extent(r.out, r.out.rank, 0);
    r.out.stride[r.out.rank] = 0;
    sw::make_contiguous(r.out);
  }
  if (result == 2) r.out.type = sw::dtype::i32;
  return r;
}
constexpr sw::results_rows rows(const sw::operation&, const sw::op_attr&, const sw::spec* in, int, const sw::spec&) {
  using namespace sw::rows;
  sw::results_rows t;
  t.push_back({{R}, {R, R, R}});
  t.push_back({{U}, {U, U, U}});
  for (int d = 0; d + 1 < in[0].rank; ++d) t.push_back({{S(d)}, {S(d), S(d), S(d)}});
  return t;
}
constexpr sw::operation record(sw::operation::row_rule by) {
  return sw::operations::by_rows(&shape, by, &sw::operations::refuse_with<sw::problem::custom_placements>, -1,
                                 sw::element_rule::real, sw::operand_choice::kept, sw::recomputing::cheap, 3);
}

// dx = exp(x) dy0 + dy1, of each row.
inline constexpr sw::autodiff::adjoint_rule adjoint = sw::autodiff::pulled<2>([](sw::autodiff::pullback& p) {
  if (p.has(0)) p.give(0, p.make(sw::op_code::mul, p.cotangent(0), p.result(0)));
  if (p.has(1))
    p.give(0,
           p.emit(sw::op_code::expand, {{std::int64_t{1} << (p.operand(0).rank - 1), 0, 0, 0, 0, 0}}, 0, 0, p.cotangent(1)));
});
inline constexpr sw::custom_operation lines{.name = "lines", .operands = 1, .record = record(&rows), .adjoint = &adjoint};

template <bool Asks, class T>
constexpr void run(const sw::kernel_arguments<T>& k) {
  using m = sw::host::math<T>;
  std::int64_t count = 1;
  for (int d = 0; d + 1 < k.rank(0); ++d) count *= k.extent(0, d);
  const std::int64_t n = k.extent(0, k.rank(0) - 1);
  for (std::int64_t r = 0; r < count; ++r) {
    const T* const x = k.in(0) + r * n;
    T sum = T(0);
    std::int64_t largest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (!Asks || k.wanted(0)) k.out(0)[r * n + i] = m::exp(x[i]);
      sum = sum + x[i];
      if (m::less(x[largest], x[i])) largest = i;
    }
    if (k.wanted(1)) k.out(1)[r] = sum;
    if (k.wanted(2)) k.index_out(2)[r] = static_cast<std::int32_t>(largest);
  }
}

// Mistakes: a kernel that writes what nobody wants, sums that are taken for whole where the rows are cut, an adjoint that forgets
// the sums.
inline constexpr sw::custom_operation forgetful{
    .name = "forgetful", .operands = 1, .record = record(&rows), .adjoint = &sw::autodiff::unknown};
constexpr sw::results_rows wrong_rows(const sw::operation& o, const sw::op_attr& a, const sw::spec* in, int n,
                                      const sw::spec& out) {
  sw::results_rows t = rows(o, a, in, n, out);
  t.push_back({{sw::rows::S(in[0].rank - 1)}, {sw::rows::S(in[0].rank - 1), sw::rows::R, sw::rows::R}});
  return t;
}
inline constexpr sw::custom_operation wrong_row{
    .name = "wrong_row", .operands = 1, .record = record(&wrong_rows), .adjoint = &sw::autodiff::unknown};

}  // namespace described

// y = x w, row by row, of x (rows, n) and w (n), whose adjoint is one operation with both gradients as results.
namespace fused_back {

namespace sw = shardwise;

constexpr sw::outcome shape(const sw::op_attr&, const sw::spec* in, int n) {
  if (in[0].rank != 2 || in[1].rank != 1 || in[n - 2].extent[in[n - 2].rank - 1] != in[n - 1].extent[0])
    return sw::fail(sw::problem::contraction_extents, in[0], n - 1, 0, in[n - 1].extent[0], in[0].extent[1]);
  return {{}, sw::contiguous(in[0])};
}
constexpr sw::rule_rows rows(const sw::operation&, const sw::op_attr&, const sw::spec*, int, const sw::spec&) {
  using namespace sw::rows;
  sw::rule_rows t;
  t.push_back({{R, R}, R});
  t.push_back({{U, U}, U});
  t.push_back({{S(0), U}, S(0)});
  t.push_back({{S(1), S(0)}, S(1)});
  return t;
}
// (dy, x, w): the gradients of x and w.
constexpr sw::outcome shape_back(const sw::op_attr&, const sw::spec* in, int, int result) {
  return {{}, sw::contiguous(in[1 + result])};
}
constexpr sw::results_rows rows_back(const sw::operation&, const sw::op_attr&, const sw::spec*, int, const sw::spec&) {
  using namespace sw::rows;
  sw::results_rows t;
  t.push_back({{R, R, R}, {R, R}});
  t.push_back({{P, U, U}, {P, P}});
  t.push_back({{S(0), S(0), U}, {S(0), P}});
  t.push_back({{S(1), S(1), S(0)}, {S(1), S(0)}});
  return t;
}
inline constexpr sw::custom_operation scale_back{
    .name = "scale_back",
    .operands = 3,
    .record = sw::operations::by_rows(&shape_back, &rows_back, &sw::operations::refuse_with<sw::problem::custom_placements>,
                                      -1, sw::element_rule::real, sw::operand_choice::cheapest, sw::recomputing::never, 2),
    .adjoint = &sw::autodiff::unknown};
inline constexpr sw::autodiff::adjoint_rule scale_adjoint = sw::autodiff::pulled<3>([](sw::autodiff::pullback& p) {
  const int both = p.make(scale_back, {}, 0, p.dy, p.n.in[0], p.n.in[1]);
  for (int k = 0; k < 2; ++k)
    if (p.wants(k)) p.give(k, p.result_of(both, k));
});
inline constexpr sw::custom_operation scale{
    .name = "scale_rows",
    .operands = 2,
    .record = sw::operations::by_rows(&shape, &rows, &sw::operations::refuse_with<sw::problem::custom_placements>),
    .adjoint = &scale_adjoint};

}  // namespace fused_back

template <>
struct shardwise::host_kernel<fused_back::scale> {
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const std::int64_t n = k.extent(1);
    for (std::int64_t i = 0; i < k.size(); ++i) k.out()[i] = k.in(0)[i] * k.in(1)[i % n];
  }
};
template <>
struct shardwise::host_kernel<fused_back::scale_back> {
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const std::int64_t n = k.extent(2, 0);
    for (std::int64_t i = 0; k.wanted(1) && i < n; ++i) k.out(1)[i] = T(0);
    for (std::int64_t i = 0; i < k.size(0); ++i) {
      if (k.wanted(0)) k.out(0)[i] = k.in(0)[i] * k.in(2)[i % n];
      if (k.wanted(1)) k.out(1)[i % n] = k.out(1)[i % n] + k.in(0)[i] * k.in(1)[i];
    }
  }
};

template <>
struct shardwise::host_kernel<described::lines> {
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    described::run<true>(k);
  }
};
template <>
struct shardwise::host_kernel<described::forgetful> {
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    described::run<false>(k);
  }
};
template <>
struct shardwise::host_kernel<described::wrong_row> : shardwise::host_kernel<described::lines> {};
