// SPDX-License-Identifier: Apache-2.0
// conv2d: convolutions of images, with PyTorch's names and conventions; an operation made like a user's own.
#pragma once

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/graph/functions/halo.hpp>
#include <shardwise/graph/functions/views.hpp>
#include <shardwise/operations/convolution/record.hpp>

namespace shardwise::inline v0_1 {

// One number for both dims, or (height, width), of 0 to 32767; any other becomes -1, which conv2d refuses. As padding also "same" and
// "valid".
struct convolution_pair {
  static constexpr std::int16_t same = -2;

  std::int16_t height = 1, width = 1;
  constexpr convolution_pair() = default;
  constexpr convolution_pair(int both) : convolution_pair(both, both) {}
  constexpr convolution_pair(int h, int w) : height(fit(h)), width(fit(w)) {}
  constexpr convolution_pair(std::int16_t h, std::int16_t w)
      : height(h), width(w) {}  // as nvcc writes its value into host code
  template <std::size_t N>
  constexpr convolution_pair(const char (&word)[N]) : height(named(word)), width(named(word)) {}

  constexpr bool is_same() const { return height == same; }

 private:
  static constexpr std::int16_t fit(int n) {
    return n >= 0 && n <= INT16_MAX ? static_cast<std::int16_t>(n) : std::int16_t{-1};
  }
  static constexpr std::int16_t named(const char* word) {
    return is_same_name(word, "same") ? same : is_same_name(word, "valid") ? std::int16_t{0} : std::int16_t{-1};
  }
};
// padding: on both sides; or "same", of strides of 1: as much as keeps height and width, of which an odd one more stands behind; or
// "valid": none.
struct convolution_options {
  convolution_pair stride = 1;
  convolution_pair padding = 0;
  convolution_pair dilation = 1;
  std::int32_t groups = 1;
};

namespace detail {

// An adjoint's: itself, a copy of a cotangent that lies in neither format, and what brings halos.
constexpr int convolution_nodes(int, const spec& x, const spec& y) {
  return 2 + (cuts_image(x) || cuts_image(y) ? halo_nodes : 0);
}

// Of a kernel of such extents.
constexpr convolution_attributes convolution_of(const convolution_options& o, std::int64_t height, std::int64_t width) {
  convolution_attributes a{{o.stride.height, o.stride.width},
                           {o.padding.height, o.padding.width},
                           {o.dilation.height, o.dilation.width},
                           o.groups,
                           {0, 0},
                           {0, 0}};
  const std::int64_t kernel[] = {height, width};
  for (int d = 0; d < 2 && o.padding.is_same(); ++d) {
    const std::int64_t all = a.dilation[d] * (kernel[d] - 1), before = all / 2;
    a.padding[d] = static_cast<std::int16_t>(before <= INT16_MAX ? before : -1);
    a.further[d] = static_cast<std::int32_t>(all - 2 * before);
  }
  return a;
}

constexpr op_attr with_extent(const op_attr& v, const spec& of) {
  auto a = attributes_of<convolution_attributes>(v);
  for (int d = 0; d < 2; ++d) a.extent[d] = of.extent[2 + d];
  return pack_attributes(a);
}

// Ranks with a part of an image's height or width have the weight reduced.
template <op_attr A, spec X, spec W>
struct convolution_windows {
  static constexpr image_halo of(int d) {
    const auto a = attributes_of<convolution_attributes>(A);
    if (operations::convolution_finding(a, X, W)) return {};
    const std::int64_t kernel = W.extent[2 + d];
    const image_halo w = image_halo_of(X, d, operations::sliding_of(a, d, kernel),
                                       operations::convolved_extent(a, d, X.extent[2 + d], kernel));
    return w.on_axis >= 0 && W.place[w.on_axis].is_reduced() ? w : image_halo{};
  }
};
// A cotangent of a convolution of x by w, for the gradient of x: with the halos that x had.
constexpr int with_readers(autodiff::pullback& p, int dy, const spec& x, const spec& w) {
  const auto a = attributes_of<convolution_attributes>(p.n.a);
  return halo_node(p, dy, x,
                   [&](int d) { return operations::sliding_of(a, d, w.extent[2 + d]).readers(2 + d, x.extent[2 + d]); });
}
// An image of a convolution by w whose cotangent was y: with what the windows of y read.
constexpr int with_windows(autodiff::pullback& p, int x, const spec& y, const spec& w) {
  const auto a = attributes_of<convolution_attributes>(p.n.a);
  return halo_node(p, x, y,
                   [&](int d) { return operations::sliding_of(a, d, w.extent[2 + d]).windows(2 + d, y.extent[2 + d]); });
}

}  // namespace detail

// The three are each other's adjoints, so that all derivatives exist.
namespace custom {

constexpr void pull_conv2d(autodiff::pullback& p);
constexpr void pull_conv2d_dx(autodiff::pullback& p);
constexpr void pull_conv2d_dw(autodiff::pullback& p);
inline constexpr autodiff::adjoint_rule conv2d_adjoint = autodiff::pulled(&detail::convolution_nodes, &pull_conv2d);
inline constexpr autodiff::adjoint_rule conv2d_dx_adjoint = autodiff::pulled(&detail::convolution_nodes, &pull_conv2d_dx);
inline constexpr autodiff::adjoint_rule conv2d_dw_adjoint = autodiff::pulled(&detail::convolution_nodes, &pull_conv2d_dw);
inline constexpr custom_operation conv2d{
    .name = "conv2d", .operands = 2, .record = operations::convolution, .adjoint = &conv2d_adjoint};
inline constexpr custom_operation conv2d_dx{
    .name = "conv2d_dx", .operands = 2, .record = operations::convolution_dx, .adjoint = &conv2d_dx_adjoint};
inline constexpr custom_operation conv2d_dw{
    .name = "conv2d_dw", .operands = 2, .record = operations::convolution_dw, .adjoint = &conv2d_dw_adjoint};

constexpr void pull_conv2d(autodiff::pullback& p) {
  const int x = p.n.in[0], w = p.n.in[1];
  if (p.wants(0)) {
    const int dy = detail::with_readers(p, p.dy, p.operand(0), p.operand(1));
    p.give(0, p.make(conv2d_dx, detail::with_extent(p.n.a, p.operand(0)), 0, dy, w));
  }
  if (p.wants(1)) p.give(1, p.make(conv2d_dw, detail::with_extent(p.n.a, p.operand(1)), 0, p.dy, x));
}
// Of (dy, w), whose result is x's gradient.
constexpr void pull_conv2d_dx(autodiff::pullback& p) {
  const int dy = p.n.in[0], w = p.n.in[1];
  const int x = detail::with_windows(p, p.dy, p.operand(0), p.operand(1));
  if (p.wants(0)) p.give(0, p.make(conv2d, p.n.a, 0, x, w));
  if (p.wants(1)) p.give(1, p.make(conv2d_dw, detail::with_extent(p.n.a, p.operand(1)), 0, detail::without_halo(p, dy), x));
}
// Of (dy, x), whose result is the weight's gradient.
constexpr void pull_conv2d_dw(autodiff::pullback& p) {
  const int dy = p.n.in[0], x = p.n.in[1];
  if (p.wants(0)) p.give(0, p.make(conv2d, p.n.a, 0, x, p.dy));
  if (p.wants(1)) {
    const int y = detail::with_readers(p, dy, p.operand(1), p.result());
    p.give(1, p.make(conv2d_dx, detail::with_extent(p.n.a, p.operand(1)), 0, y, p.dy));
  }
}

}  // namespace custom

// x (n, channels, height, width), weight (outputs, channels / groups, kernel height, kernel width): (n, outputs, ...). Placements:
// cut along n, along outputs, or along channels, which gives a partial result (with groups along n alone); along height, width or
// both, each by one axis in equal shards, where every rank gets before, from those that hold them, the elements beyond its own
// that its share of the result reads (exchange_halo), and backward those of the gradient.
template <convolution_options Options = convolution_options{}, tensor X, tensor W>
constexpr auto conv2d(const X& x, const W& weight) {
  if constexpr (Options.padding.is_same() && (Options.stride.height != 1 || Options.stride.width != 1)) {
    return detail::refused<problem::convolution_same, op_code::custom, detail::custom_tag<custom::conv2d>, operand_t<X::sp>,
                           operand_t<W::sp>>(x, weight);
  } else {
    constexpr bool known = detail::resolved<X, W> && W::sp.rank == 4;
    constexpr convolution_attributes a =
        detail::convolution_of(Options, known ? W::sp.extent[2] : 1, known ? W::sp.extent[3] : 1);
    constexpr op_attr packed = pack_attributes(a);
    return call<custom::conv2d, packed>(
        detail::with_image_halo<detail::convolution_windows<packed, spec(X::sp), spec(W::sp)>>(x), weight);
  }
}
// The same with a bias (outputs): one number for each output.
template <convolution_options Options = convolution_options{}, tensor X, tensor W, tensor B>
constexpr auto conv2d(const X& x, const W& weight, const B& bias) {
  return conv2d<Options>(x, weight) + unsqueeze<1>(unsqueeze<1>(bias));
}

}  // namespace shardwise::inline v0_1
