// SPDX-License-Identifier: Apache-2.0
// conv2d: convolutions of images, with PyTorch's names and conventions; an operation made like a user's own.
#pragma once

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/graph/functions/views.hpp>
#include <shardwise/operations/convolution/record.hpp>

namespace shardwise::inline v0_1 {

// One number for both dims, or (height, width), of 0 to 32767; any other becomes -1, which conv2d refuses.
struct convolution_pair {
  std::int16_t height = 1, width = 1;
  constexpr convolution_pair() = default;
  constexpr convolution_pair(int both) : convolution_pair(both, both) {}
  constexpr convolution_pair(int h, int w) : height(fit(h)), width(fit(w)) {}

 private:
  static constexpr std::int16_t fit(int n) {
    return n >= 0 && n <= INT16_MAX ? static_cast<std::int16_t>(n) : std::int16_t{-1};
  }
};
struct convolution_options {
  convolution_pair stride = 1;
  convolution_pair padding = 0;
  convolution_pair dilation = 1;
  std::int32_t groups = 1;
};

namespace detail {

inline constexpr int convolution_nodes = 3;  // an adjoint's, with copies of operands that are no dense tensors

constexpr op_attr with_extent(const op_attr& v, const spec& of) {
  auto a = attributes_of<convolution_attributes>(v);
  for (int d = 0; d < 2; ++d) a.extent[d] = of.extent[2 + d];
  return pack_attributes(a);
}

}  // namespace detail

// The three are each other's adjoints, so that all derivatives exist.
namespace custom {

constexpr void pull_conv2d(autodiff::pullback& p);
constexpr void pull_conv2d_dx(autodiff::pullback& p);
constexpr void pull_conv2d_dw(autodiff::pullback& p);
inline constexpr autodiff::adjoint_rule conv2d_adjoint = autodiff::pulled<detail::convolution_nodes>(&pull_conv2d);
inline constexpr autodiff::adjoint_rule conv2d_dx_adjoint = autodiff::pulled<detail::convolution_nodes>(&pull_conv2d_dx);
inline constexpr autodiff::adjoint_rule conv2d_dw_adjoint = autodiff::pulled<detail::convolution_nodes>(&pull_conv2d_dw);
inline constexpr custom_operation conv2d{
    .name = "conv2d", .operands = 2, .record = operations::convolution, .adjoint = &conv2d_adjoint};
inline constexpr custom_operation conv2d_dx{
    .name = "conv2d_dx", .operands = 2, .record = operations::convolution_dx, .adjoint = &conv2d_dx_adjoint};
inline constexpr custom_operation conv2d_dw{
    .name = "conv2d_dw", .operands = 2, .record = operations::convolution_dw, .adjoint = &conv2d_dw_adjoint};

constexpr void pull_conv2d(autodiff::pullback& p) {
  const int x = p.n.in[0], w = p.n.in[1];
  if (p.wants(0)) p.give(0, p.make(conv2d_dx, detail::with_extent(p.n.a, p.operand(0)), 0, p.dy, w));
  if (p.wants(1)) p.give(1, p.make(conv2d_dw, detail::with_extent(p.n.a, p.operand(1)), 0, p.dy, x));
}
// Of (dy, w), whose result is x's gradient.
constexpr void pull_conv2d_dx(autodiff::pullback& p) {
  const int dy = p.n.in[0], w = p.n.in[1];
  if (p.wants(0)) p.give(0, p.make(conv2d, p.n.a, 0, p.dy, w));
  if (p.wants(1)) p.give(1, p.make(conv2d_dw, detail::with_extent(p.n.a, p.operand(1)), 0, dy, p.dy));
}
// Of (dy, x), whose result is the weight's gradient.
constexpr void pull_conv2d_dw(autodiff::pullback& p) {
  const int dy = p.n.in[0], x = p.n.in[1];
  if (p.wants(0)) p.give(0, p.make(conv2d, p.n.a, 0, x, p.dy));
  if (p.wants(1)) p.give(1, p.make(conv2d_dx, detail::with_extent(p.n.a, p.operand(1)), 0, dy, p.dy));
}

}  // namespace custom

// x (n, channels, height, width), weight (outputs, channels / groups, kernel height, kernel width): (n, outputs, ...). Placements:
// cut along n, along outputs, or along channels, which gives a partial result (with groups along n alone).
template <convolution_options Options = convolution_options{}, tensor X, tensor W>
constexpr auto conv2d(const X& x, const W& weight) {
  constexpr convolution_attributes a{{Options.stride.height, Options.stride.width},
                                     {Options.padding.height, Options.padding.width},
                                     {Options.dilation.height, Options.dilation.width},
                                     Options.groups,
                                     {0, 0}};
  return call<custom::conv2d, pack_attributes(a)>(x, weight);
}
// The same with a bias for each output.
template <convolution_options Options = convolution_options{}, tensor X, tensor W, tensor B>
constexpr auto conv2d(const X& x, const W& weight, const B& bias) {
  return conv2d<Options>(x, weight) + unsqueeze<1>(unsqueeze<1>(bias));
}

}  // namespace shardwise::inline v0_1
