// SPDX-License-Identifier: Apache-2.0
// Records of images at another height and width, made of the nearest pixels or of the four around, and of the adjoint.
#pragma once

#include <numeric>

#include <shardwise/propagation/halo.hpp>
#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1 {

enum class interpolation : std::int32_t { nearest, bilinear };

struct interpolation_attributes {
  interpolation mode = interpolation::nearest;
  std::int32_t corners = 0;                    // of bilinear: corners' centres lie on corners' centres
  std::int32_t size[2] = {1, 1};               // (h, w) of the result, or of an adjoint's operand
  std::int32_t extent[2] = {0, 0};             // (h, w) of an adjoint's result
  std::int32_t step[2][2] = {{1, 1}, {1, 1}};  // pixels of the image for one of the result: numerator and denominator

  constexpr bool halves() const { return mode == interpolation::bilinear && corners == 0; }
};

namespace operations {

// Twice a step's multiple is below 2^63.
inline constexpr std::int64_t most_pixels = INT32_MAX / 2;

// image: the smaller or larger one that is given, not made.
constexpr finding interpolation_finding(const interpolation_attributes& a, const spec& image) {
  if (image.rank != 4) return {problem::pool_rank, 0, -1, -1, image.rank, 4};
  for (int d = 2; d < 4; ++d)
    if (is_dyn(image, d)) return {problem::pool_dyn, 0, d};
  const auto pixels = [](std::int64_t n) { return n >= 1 && n <= most_pixels; };
  for (int d = 0; d < 2; ++d)
    if (!pixels(image.extent[2 + d]) || !pixels(a.size[d]) || a.step[d][0] < 0 || a.step[d][0] > most_pixels ||
        !pixels(a.step[d][1]))
      return {problem::interpolation_options, 0, 2 + d};
  if (a.corners != 0 && a.mode != interpolation::bilinear) return {problem::interpolation_options};
  return {};
}
constexpr outcome shape_of_interpolation(const op_attr& v, const spec* in, int) {
  const auto a = attributes_of<interpolation_attributes>(v);
  if (const finding f = interpolation_finding(a, in[0])) return {f, in[0]};
  outcome r{{}, shardwise::contiguous(in[0])};
  for (int d = 0; d < 2; ++d) r.out.extent[2 + d] = a.size[d];
  make_contiguous(r.out);
  return r;
}
constexpr outcome shape_of_interpolation_dx(const op_attr& v, const spec* in, int) {
  const auto a = attributes_of<interpolation_attributes>(v);
  if (const finding f = interpolation_finding(a, in[0])) return {f, in[0]};
  outcome r{{}, shardwise::contiguous(in[0])};
  for (int d = 0; d < 2; ++d) {
    if (in[0].extent[2 + d] != a.size[d] || a.extent[d] < 1) return fail(problem::interpolation_options, in[0], 0, 2 + d);
    r.out.extent[2 + d] = a.extent[d];
  }
  make_contiguous(r.out);
  return r;
}

// Along height (0) or width (1), where a pixel of the smaller image is a whole number `by.step` of pixels of the larger one: a pixel r of the
// smaller one and pixels r step - before to r step + behind of the larger one are made of each other. Else the step is 0.
struct pixel_windows {
  bool enlarges = false;
  sliding by{.step = 0};

  // Of what is read, placed so that a rank makes its share of `count` pixels. back: in the adjoint.
  constexpr placement read(bool back, int dim, std::int64_t count) const {
    if (enlarges == back) return by.windows(dim, count);
    // `readers` rounds down where first of all windows begins
    return sliding{by.step, by.before, by.behind - (by.step - 1)}.readers(dim, count);
  }
  constexpr bool has_halo(std::int64_t count) const { return by.step > 0 && by.has_halo(count); }
};
// With centres on centres, pixel t of a larger image lies at ((2 t + 1) / step - 1) / 2 of the smaller one and is made of its neighbours
// less than 1 from there; of a smaller image pixel t lies at t step + (step - 1) / 2.
constexpr pixel_windows pixel_windows_of(const interpolation_attributes& a, int d) {
  const std::int64_t divisor = std::gcd(a.step[d][0], a.step[d][1]);
  if (divisor == 0) return {};
  const std::int64_t up = a.step[d][0] / divisor, down = a.step[d][1] / divisor;
  const bool nearest = a.mode == interpolation::nearest;
  if (up == 1) {  // 1 in `down`
    if (nearest) return {true, {down, 0, down - 1}};
    if (!a.halves()) return {true, {down, down - 1, down - 1}};
    return {true, {down, down / 2, down - 1 + down / 2}};
  }
  if (down != 1) return {};
  if (!a.halves()) return {false, {up, 0, 0}};
  return {false, {up, -((up - 1) / 2), up / 2}};
}
// Whether each rank's own part of a dim that one axis cuts is all that it reads.
constexpr bool reads_its_own(const spec& x, int dim, const placement& read) {
  const int axis = halo_axis(x, dim);
  if (axis < 0) return false;
  const std::int64_t n = x.extent[dim];
  const int ranks = x.axis_size[axis];
  for (int r = 0; r < ranks; ++r) {
    const interval own = split({0, n}, 1, ranks, r), needs = overlapping(read, n, ranks, r);
    if (needs.size > 0 && (needs.begin < own.begin || needs.begin + needs.size > own.begin + own.size)) return false;
  }
  return true;
}

// Linear; each channel of each image by itself. Height and width are cut where one image's pixels are whole steps of the other's. Kernels
// read either memory format and write either.
template <bool Back>
constexpr rule_rows interpolation_rows(const operation&, const op_attr& v, const spec* in, int, const spec& out) {
  using namespace rows;
  rule_rows t;
  for (const placement p : {R, U, S(0), S(1), P}) t.push_back(rows::all(p, p));
  for (int dim = 2; dim < 4; ++dim) {
    const pixel_windows w = pixel_windows_of(attributes_of<interpolation_attributes>(v), dim - 2);
    if (!w.has_halo(out.extent[dim])) continue;
    const placement read = w.read(Back, dim, out.extent[dim]);
    if (reads_its_own(in[0], dim, read)) t.push_back({{S(dim)}, S(dim)});
    else if (any_overlaps(in[0], dim)) t.push_back({{read}, S(dim)});
  }
  return t;
}
template <bool Back>
constexpr operation interpolation_record(operation::shape_rule shape) {
  operation o =
      linear_in(linearity::each, by_rows(shape, &interpolation_rows<Back>, &refuse_with<problem::interpolation_placements>));
  o.strided = true;
  return o;
}
inline constexpr operation interpolated = interpolation_record<false>(&shape_of_interpolation);
inline constexpr operation interpolated_dx = interpolation_record<true>(&shape_of_interpolation_dx);

}  // namespace operations

}  // namespace shardwise::inline v0_1
