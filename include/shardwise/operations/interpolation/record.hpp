// SPDX-License-Identifier: Apache-2.0
// Records of images at another height and width, made of the nearest pixels or of the four around, and of the adjoint.
#pragma once

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

// Linear; each channel of each image by itself. Kernels read either memory format and write either.
constexpr operation interpolation_record(operation::shape_rule shape) {
  operation o = linear_in(linearity::each, by_rows(
                                               shape,
                                               [](const operation&, const op_attr&, const spec*, int, const spec&) {
                                                 using namespace rows;
                                                 rule_rows t;
                                                 for (const placement p : {R, U, S(0), S(1), P})
                                                   t.push_back(rows::all(p, p));
                                                 return t;
                                               },
                                               &refuse_with<problem::pool_placements>));
  o.strided = true;
  return o;
}
inline constexpr operation interpolated = interpolation_record(&shape_of_interpolation);
inline constexpr operation interpolated_dx = interpolation_record(&shape_of_interpolation_dx);

}  // namespace operations

}  // namespace shardwise::inline v0_1
