// SPDX-License-Identifier: Apache-2.0
// interpolate: images at another height and width, with PyTorch's names and conventions; an operation made like a user's own. With its
// kernels: operations/interpolation/host.hpp, and device.cuh there in one CUDA source of a program for GPUs.
#pragma once

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/graph/functions/halo.hpp>
#include <shardwise/operations/interpolation/record.hpp>

namespace shardwise::inline v0_1 {

// As torch.nn.functional.interpolate's. nearest: the pixel at floor(i * in / out), in whole numbers, so that none is missed by rounding.
// bilinear: of the four around; align_corners: first and last pixels lie on first and last ones.
struct interpolate_options {
  interpolation mode = interpolation::nearest;
  bool align_corners = false;
};

// A whole number or a fraction, of numbers from 1 to 2^30 - 1.
struct scale_ratio {
  std::int32_t numerator = 1, denominator = 1;
  constexpr scale_ratio(int n, int d = 1) : numerator(n), denominator(d) {}
};
// How many pixels of the result there are for one of the image: scale_factor(2) both ways, scale_factor(scale_ratio(3, 2)) as many and a
// half, scale_factor(2, 3) of height and width. Extents are rounded down, exactly, and pixels lie as far apart as the factor says, not as
// the rounded extents do: PyTorch's recompute_scale_factor=False.
struct scale_factor {
  scale_ratio height, width;
  constexpr explicit scale_factor(scale_ratio both) : height(both), width(both) {}
  constexpr scale_factor(scale_ratio h, scale_ratio w) : height(h), width(w) {}
};

namespace detail {

// What no image can have becomes 0, which the operation refuses.
constexpr std::int32_t as_pixels(std::int64_t n) {
  return n >= 1 && n <= operations::most_pixels ? static_cast<std::int32_t>(n) : 0;
}
// up, down: a factor of 0 is none.
constexpr void resize(interpolation_attributes& a, int d, std::int64_t from, std::int64_t to, std::int64_t up,
                      std::int64_t down) {
  a.size[d] = as_pixels(to);
  a.step[d][0] = as_pixels(up);
  a.step[d][1] = as_pixels(down);
  if (a.corners == 0 || a.size[d] == 0) return;
  a.step[d][0] = a.size[d] > 1 ? as_pixels(from) - 1 : 0;
  a.step[d][1] = a.size[d] > 1 ? a.size[d] - 1 : 1;
}
constexpr interpolation_attributes interpolation_of(const interpolate_options& o) {
  interpolation_attributes a;
  a.mode = o.mode;
  a.corners = o.align_corners ? 1 : 0;
  return a;
}
constexpr op_attr interpolation_to(const interpolate_options& o, std::int64_t h, std::int64_t w, std::int64_t from_h,
                                   std::int64_t from_w) {
  interpolation_attributes a = interpolation_of(o);
  resize(a, 0, from_h, h, from_h, h);
  resize(a, 1, from_w, w, from_w, w);
  return pack_attributes(a);
}
constexpr op_attr interpolation_by(const interpolate_options& o, const scale_factor& f, std::int64_t from_h,
                                   std::int64_t from_w) {
  interpolation_attributes a = interpolation_of(o);
  const scale_ratio by[] = {f.height, f.width};
  const std::int64_t from[] = {as_pixels(from_h), as_pixels(from_w)};
  for (int d = 0; d < 2; ++d) {
    const std::int64_t up = as_pixels(by[d].numerator), down = as_pixels(by[d].denominator);
    resize(a, d, from[d], down > 0 ? from[d] * up / down : 0, down, up);
  }
  return pack_attributes(a);
}

// Not constants of the functions: nvcc (ARCHITECTURE.md).
template <interpolate_options O, std::int64_t H, std::int64_t W, std::int64_t FromH, std::int64_t FromW>
inline constexpr op_attr to_size = interpolation_to(O, H, W, FromH, FromW);
template <interpolate_options O, scale_factor F, std::int64_t FromH, std::int64_t FromW>
inline constexpr op_attr by_factor = interpolation_by(O, F, FromH, FromW);

template <op_attr A, spec X>
struct interpolation_halo {
  static constexpr image_halo of(int d) {
    const auto a = attributes_of<interpolation_attributes>(A);
    if (operations::interpolation_finding(a, X)) return {};
    const operations::pixel_windows w = operations::pixel_windows_of(a, d);
    const int axis = halo_axis(X, 2 + d);
    if (axis < 0 || !w.has_halo(a.size[d])) return {};
    const placement read = w.read(false, 2 + d, a.size[d]);
    return operations::reads_its_own(X, 2 + d, read) ? image_halo{} : image_halo{axis, read};
  }
};
// Where operand or result is cut, a copy and what brings halos.
constexpr int interpolate_nodes(int, const spec& x, const spec& y) {
  return 2 + (cuts_image(x) || cuts_image(y) ? halo_nodes : 0);
}
// `id` with halos where `like`, an operand, has them. back: for the adjoint.
constexpr int with_pixels(autodiff::pullback& p, int id, const spec& like, bool back) {
  const auto a = attributes_of<interpolation_attributes>(p.n.a);
  return halo_node(p, id, like,
                   [&](int d) { return operations::pixel_windows_of(a, d).read(back, 2 + d, like.extent[2 + d]); });
}

}  // namespace detail

// The two are each other's adjoints, so that all derivatives exist.
namespace custom {

constexpr void pull_interpolate(autodiff::pullback& p);
constexpr void pull_interpolate_dx(autodiff::pullback& p);
inline constexpr autodiff::adjoint_rule interpolate_adjoint =
    autodiff::pulled(&detail::interpolate_nodes, &pull_interpolate);
inline constexpr autodiff::adjoint_rule interpolate_dx_adjoint =
    autodiff::pulled(&detail::interpolate_nodes, &pull_interpolate_dx);
inline constexpr custom_operation interpolate{
    .name = "interpolate", .operands = 1, .record = operations::interpolated, .adjoint = &interpolate_adjoint};
inline constexpr custom_operation interpolate_dx{
    .name = "interpolate_dx", .operands = 1, .record = operations::interpolated_dx, .adjoint = &interpolate_dx_adjoint};

constexpr void pull_interpolate(autodiff::pullback& p) {
  auto a = attributes_of<interpolation_attributes>(p.n.a);
  for (int d = 0; d < 2; ++d) a.extent[d] = static_cast<std::int32_t>(p.operand(0).extent[2 + d]);
  const int dy = detail::with_pixels(p, p.dy, p.operand(0), true);
  p.give(0, p.make(interpolate_dx, pack_attributes(a), 0, dy));
}
constexpr void pull_interpolate_dx(autodiff::pullback& p) {
  p.give(0, p.make(interpolate, p.n.a, 0, detail::with_pixels(p, p.dy, p.operand(0), false)));
}

}  // namespace custom

// x (batch, channels, height, width) at height H and width W: interpolate<64, 48, interpolate_options{.mode = interpolation::bilinear}>(x).
// Cut along the batch or the channels, and along height and width, in equal shards each by one axis, if the factor there is a whole number or
// one over a whole number: rows of other ranks that a rank's share is made of are exchanged. Partial tensors give partial ones. A smaller
// result skips pixels: PyTorch's antialias=False.
template <std::int64_t H, std::int64_t W, interpolate_options Options = interpolate_options{}, tensor X>
constexpr auto interpolate(const X& x) {
  constexpr op_attr a = detail::to_size<Options, H, W, X::sp.extent[2], X::sp.extent[3]>;
  return call<custom::interpolate, a>(detail::with_image_halo<detail::interpolation_halo<a, spec(X::sp)>>(x));
}
// The same by a factor: interpolate<scale_factor(2)>(x).
template <scale_factor Factor, interpolate_options Options = interpolate_options{}, tensor X>
constexpr auto interpolate(const X& x) {
  constexpr op_attr a = detail::by_factor<Options, Factor, X::sp.extent[2], X::sp.extent[3]>;
  return call<custom::interpolate, a>(detail::with_image_halo<detail::interpolation_halo<a, spec(X::sp)>>(x));
}

}  // namespace shardwise::inline v0_1
