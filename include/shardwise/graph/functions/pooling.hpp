// SPDX-License-Identifier: Apache-2.0
// max_pool2d and avg_pool2d: windows of images, with PyTorch's names and conventions; operations made like a user's own.
#pragma once

#include <shardwise/graph/functions/convolution.hpp>
#include <shardwise/graph/functions/ranking_functions.hpp>
#include <shardwise/operations/pooling/record.hpp>

namespace shardwise::inline v0_1 {

// As torch.nn.functional's: a stride of 0 is the kernel; padding on both sides, of at most half of a window. count_include_pad: a mean
// counts what is outside, as zeros, to the padding's end. ceil_mode: extents are rounded up, if the last window begins in the image or the
// padding in front of it; else down. dilation: of max_pool2d alone, elements of a window lie so far apart. divisor_override: of avg_pool2d
// alone, sums are divided by it; 0: by how many are counted.
struct pool_options {
  convolution_pair kernel = 1;
  convolution_pair stride = 0;
  convolution_pair padding = 0;
  bool count_include_pad = true;
  bool ceil_mode = false;
  convolution_pair dilation = 1;
  int divisor_override = 0;
};

namespace detail {

template <pool_options O>
inline constexpr op_attr pool_attr = pack_attributes(pool_attributes{
    {O.kernel.height, O.kernel.width},
    {O.stride.height != 0 ? O.stride.height : O.kernel.height, O.stride.width != 0 ? O.stride.width : O.kernel.width},
    {O.padding.height, O.padding.width},
    {O.dilation.height, O.dilation.width},
    std::int16_t{O.count_include_pad},
    std::int16_t{O.ceil_mode},
    O.divisor_override,
    {0, 0}});

template <op_attr A, spec X>
struct pool_windows {
  static constexpr image_halo of(int d) {
    const auto a = attributes_of<pool_attributes>(A);
    if (operations::pool_finding(a, X)) return {};
    return image_halo_of(X, d, operations::sliding_of(a, d), operations::pooled_extent(a, d, X.extent[2 + d]));
  }
};
// An adjoint's: itself, the results that it reads if the trace has not, a copy of each of two operands, and what brings their halos.
constexpr int pool_nodes(int, const spec& x, const spec& y) {
  return 5 + (cuts_image(x) || cuts_image(y) ? 2 * halo_nodes : 0);
}
// What windows of an image x made, for the gradient of x: with the halos that x had.
constexpr int with_pool_readers(autodiff::pullback& p, int y, const spec& x) {
  const auto a = attributes_of<pool_attributes>(p.n.a);
  return halo_node(p, y, x, [&](int d) { return operations::sliding_of(a, d).readers(2 + d, x.extent[2 + d]); });
}
// An image whose windows y came of: with what they read.
constexpr int with_pool_windows(autodiff::pullback& p, int x, const spec& y) {
  const auto a = attributes_of<pool_attributes>(p.n.a);
  return halo_node(p, x, y, [&](int d) { return operations::sliding_of(a, d).windows(2 + d, y.extent[2 + d]); });
}
constexpr op_attr pool_back(const op_attr& v, const spec& x) {
  auto a = attributes_of<pool_attributes>(v);
  for (int d = 0; d < 2; ++d) a.extent[d] = x.extent[2 + d];
  return pack_attributes(a);
}

}  // namespace detail

// Two pairs of operations, each the other's adjoint: sums over the windows that an element is in, and means of windows; sums over the
// windows whose largest element an element is, and the elements at the windows' positions. The largest elements' own adjoint is the
// first of the second pair.
namespace custom {

constexpr void pull_max_pool2d(autodiff::pullback& p);
constexpr void pull_max_pool2d_dx(autodiff::pullback& p);
constexpr void pull_max_pool2d_at(autodiff::pullback& p);
constexpr void pull_avg_pool2d(autodiff::pullback& p);
constexpr void pull_avg_pool2d_dx(autodiff::pullback& p);
inline constexpr autodiff::adjoint_rule max_pool2d_adjoint = autodiff::pulled(&detail::pool_nodes, &pull_max_pool2d);
inline constexpr autodiff::adjoint_rule max_pool2d_dx_adjoint =
    autodiff::pulled(&detail::pool_nodes, &pull_max_pool2d_dx, 1U);
inline constexpr autodiff::adjoint_rule max_pool2d_at_adjoint =
    autodiff::pulled(&detail::pool_nodes, &pull_max_pool2d_at, 1U);
inline constexpr autodiff::adjoint_rule avg_pool2d_adjoint = autodiff::pulled(&detail::pool_nodes, &pull_avg_pool2d);
inline constexpr autodiff::adjoint_rule avg_pool2d_dx_adjoint = autodiff::pulled(&detail::pool_nodes, &pull_avg_pool2d_dx);
inline constexpr custom_operation max_pool2d{
    .name = "max_pool2d", .operands = 1, .record = operations::max_pool, .adjoint = &max_pool2d_adjoint};
inline constexpr custom_operation max_pool2d_dx{
    .name = "max_pool2d_dx", .operands = 2, .record = operations::max_pool_dx, .adjoint = &max_pool2d_dx_adjoint};
inline constexpr custom_operation max_pool2d_at{
    .name = "max_pool2d_at", .operands = 2, .record = operations::max_pool_at, .adjoint = &max_pool2d_at_adjoint};
inline constexpr custom_operation avg_pool2d{
    .name = "avg_pool2d", .operands = 1, .record = operations::mean_pool, .adjoint = &avg_pool2d_adjoint};
inline constexpr custom_operation avg_pool2d_dx{
    .name = "avg_pool2d_dx", .operands = 1, .record = operations::mean_pool_dx, .adjoint = &avg_pool2d_dx_adjoint};

constexpr void pull_max_pool2d(autodiff::pullback& p) {
  if (!p.has(0)) return;
  const spec& x = p.operand(0);
  const int dy = detail::with_pool_readers(p, p.cotangent(0), x), places = detail::with_pool_readers(p, p.result(1), x);
  p.give(0, p.make(max_pool2d_dx, detail::pool_back(p.n.a, x), 0, dy, places));
}
// Of (dy, positions), whose result is x's gradient.
constexpr void pull_max_pool2d_dx(autodiff::pullback& p) {
  const int x = detail::with_pool_windows(p, p.dy, p.operand(0));
  p.give(0, p.make(max_pool2d_at, p.n.a, 0, x, detail::without_halo(p, p.n.in[1])));
}
// Of (x, positions).
constexpr void pull_max_pool2d_at(autodiff::pullback& p) {
  const spec& x = p.operand(0);
  const int dy = detail::with_pool_readers(p, p.dy, x), places = detail::with_pool_readers(p, p.n.in[1], x);
  p.give(0, p.make(max_pool2d_dx, detail::pool_back(p.n.a, x), 0, dy, places));
}
constexpr void pull_avg_pool2d(autodiff::pullback& p) {
  const spec& x = p.operand(0);
  p.give(0, p.make(avg_pool2d_dx, detail::pool_back(p.n.a, x), 0, detail::with_pool_readers(p, p.dy, x)));
}
constexpr void pull_avg_pool2d_dx(autodiff::pullback& p) {
  p.give(0, p.make(avg_pool2d, p.n.a, 0, detail::with_pool_windows(p, p.dy, p.operand(0))));
}

}  // namespace custom

// x (n, channels, height, width): the largest element of each window; a NaN wins. Cut along n, channels, and, in
// equal shards each by one axis, height and width.
template <pool_options Options, tensor X>
constexpr auto max_pool2d(const X& x) {
  return std::get<0>(call<custom::max_pool2d, detail::pool_attr<Options>>(
      detail::with_image_halo<detail::pool_windows<detail::pool_attr<Options>, spec(X::sp)>>(x)));
}
// With its position in the image's plane, row times width and column, int32: of equals the first.
template <pool_options Options, tensor X>
constexpr auto max_pool2d_with_indices(const X& x) {
  const auto both = call<custom::max_pool2d, detail::pool_attr<Options>>(
      detail::with_image_halo<detail::pool_windows<detail::pool_attr<Options>, spec(X::sp)>>(x));
  const auto& [values, indices] = both;
  return ranked<std::remove_cvref_t<decltype(values)>, std::remove_cvref_t<decltype(indices)>>{values, indices};
}
// The mean of each window.
template <pool_options Options, tensor X>
constexpr auto avg_pool2d(const X& x) {
  return call<custom::avg_pool2d, detail::pool_attr<Options>>(
      detail::with_image_halo<detail::pool_windows<detail::pool_attr<Options>, spec(X::sp)>>(x));
}

}  // namespace shardwise::inline v0_1
