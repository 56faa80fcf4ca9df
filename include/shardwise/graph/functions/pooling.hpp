// SPDX-License-Identifier: Apache-2.0
// max_pool2d and avg_pool2d: windows of images, with PyTorch's names and conventions; operations made like a user's own.
#pragma once

#include <shardwise/graph/functions/convolution.hpp>
#include <shardwise/graph/functions/ranking_functions.hpp>
#include <shardwise/operations/pooling/record.hpp>

namespace shardwise::inline v0_1 {

// As torch.nn.functional's: a stride of 0 is the kernel; padding on both sides, of at most half the kernel. count_include_pad: a mean
// counts what is outside, as zeros. Extents are rounded down.
struct pool_options {
  convolution_pair kernel = 1;
  convolution_pair stride = 0;
  convolution_pair padding = 0;
  bool count_include_pad = true;
};

namespace detail {

template <pool_options O>
inline constexpr op_attr pool_attr = pack_attributes(pool_attributes{
    {O.kernel.height, O.kernel.width},
    {O.stride.height != 0 ? O.stride.height : O.kernel.height, O.stride.width != 0 ? O.stride.width : O.kernel.width},
    {O.padding.height, O.padding.width},
    O.count_include_pad ? 1 : 0,
    {0, 0}});

}  // namespace detail

namespace custom {

// Cotangents go to the elements that were taken: positions within a plane, so planes are lines for as long.
inline constexpr autodiff::adjoint_rule max_pool2d_adjoint = autodiff::pulled<5>([](autodiff::pullback& p) {
  if (!p.has(0)) return;
  const spec &x = p.operand(0), &y = p.t.spec_at(p.cotangent(0));
  const auto as_lines = [&](int id) {
    spec s = p.t.spec_at(id);
    s.rank = 3;
    s.extent[2] = y.extent[2] * y.extent[3];
    return autodiff::derive(p.t, op_code::reshape, pack_extents(s), 0, p.n.scope, id);
  };
  const std::int64_t plane = x.extent[2] * x.extent[3];
  const op_attr along = attributes<index_attributes>(2, plane);
  const int lines = as_lines(autodiff::contiguous_node(p.t, p.cotangent(0), p.n.scope)), places = as_lines(p.result(1));
  const spec in[] = {p.t.spec_at(lines), p.t.spec_at(places)};
  const int sums = p.t.b.emit(op_code::scatter_add, along, 0, p.t.intern(infer(op_code::scatter_add, along, in, 2)),
                              p.n.scope, lines, places);
  p.give(0, p.emit(op_code::reshape, pack_extents(x), 0, 0, sums));
});

constexpr void pull_avg_pool2d(autodiff::pullback& p);
constexpr void pull_avg_pool2d_dx(autodiff::pullback& p);
inline constexpr autodiff::adjoint_rule avg_pool2d_adjoint = autodiff::pulled<2>(&pull_avg_pool2d);
inline constexpr autodiff::adjoint_rule avg_pool2d_dx_adjoint = autodiff::pulled<2>(&pull_avg_pool2d_dx);
inline constexpr custom_operation max_pool2d{
    .name = "max_pool2d", .operands = 1, .record = operations::max_pool, .adjoint = &max_pool2d_adjoint};
inline constexpr custom_operation avg_pool2d{
    .name = "avg_pool2d", .operands = 1, .record = operations::mean_pool, .adjoint = &avg_pool2d_adjoint};
inline constexpr custom_operation avg_pool2d_dx{
    .name = "avg_pool2d_dx", .operands = 1, .record = operations::mean_pool_dx, .adjoint = &avg_pool2d_dx_adjoint};

constexpr void pull_avg_pool2d(autodiff::pullback& p) {
  auto a = attributes_of<pool_attributes>(p.n.a);
  for (int d = 0; d < 2; ++d) a.extent[d] = p.operand(0).extent[2 + d];
  p.give(0, p.make(avg_pool2d_dx, pack_attributes(a), 0, p.dy));
}
constexpr void pull_avg_pool2d_dx(autodiff::pullback& p) { p.give(0, p.make(avg_pool2d, p.n.a, 0, p.dy)); }

}  // namespace custom

// x (n, channels, height, width): the largest element of each window; a NaN wins. Cut along n or channels.
template <pool_options Options, tensor X>
constexpr auto max_pool2d(const X& x) {
  return std::get<0>(call<custom::max_pool2d, detail::pool_attr<Options>>(x));
}
// With its position in the image's plane, row times width and column, int32: of equals the first.
template <pool_options Options, tensor X>
constexpr auto max_pool2d_with_indices(const X& x) {
  const auto both = call<custom::max_pool2d, detail::pool_attr<Options>>(x);
  const auto& [values, indices] = both;
  return ranked<std::remove_cvref_t<decltype(values)>, std::remove_cvref_t<decltype(indices)>>{values, indices};
}
// The mean of each window.
template <pool_options Options, tensor X>
constexpr auto avg_pool2d(const X& x) {
  return call<custom::avg_pool2d, detail::pool_attr<Options>>(x);
}

}  // namespace shardwise::inline v0_1
