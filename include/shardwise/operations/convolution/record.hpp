// SPDX-License-Identifier: Apache-2.0
// Records of the convolution in two dims and of its two adjoints: y (n, o, oh, ow) of x (n, c, h, w) and a weight (o, c / groups,
// kh, kw), y = sum over i, p, q of weight(o, i, p, q) x(n, i, oh stride - padding + p dilation, ow ...), zero outside of x.
#pragma once

#include <shardwise/operations/convolution/library_bytes.hpp>
#include <shardwise/operations/convolution/scratch.hpp>
#include <shardwise/propagation/halo.hpp>
#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1 {

struct convolution_attributes {
  std::int16_t stride[2] = {1, 1};
  std::int16_t padding[2] = {0, 0};  // before the first row or column, and as much behind the last one
  std::int16_t dilation[2] = {1, 1};
  std::int32_t groups = 1;
  std::int64_t extent[2] = {0, 0};   // of an adjoint's result, which its operands do not tell: (h, w) or (kh, kw)
  std::int32_t further[2] = {0, 0};  // padding behind the last row or column beyond the one before: "same" of even kernels
};

namespace operations {

constexpr std::int64_t padded_extent(const convolution_attributes& a, int d, std::int64_t n) {
  return n + 2 * a.padding[d] + a.further[d];
}
// Elements of y along a dim of x with n, of a kernel with k; less than 1: the kernel does not fit.
constexpr std::int64_t convolved_extent(const convolution_attributes& a, int d, std::int64_t n, std::int64_t k) {
  const std::int64_t last = padded_extent(a, d, n) - a.dilation[d] * (k - 1) - 1;
  return last < 0 ? 0 : last / a.stride[d] + 1;
}

constexpr problem convolution_problem(const convolution_attributes& a) {
  bool fit = a.groups >= 1;
  for (int d = 0; d < 2; ++d) fit = fit && a.stride[d] >= 1 && a.padding[d] >= 0 && a.further[d] >= 0 && a.dilation[d] >= 1;
  return fit ? problem::none : problem::convolution_options;
}
// Of x and the weight; run-time extents may be those of the batch alone.
constexpr finding convolution_finding(const convolution_attributes& a, const spec& x, const spec& weight) {
  if (const problem p = convolution_problem(a); p != problem::none) return {p};
  if (x.rank != 4) return {problem::convolution_rank, 0, -1, -1, x.rank, 4};
  if (weight.rank != 4) return {problem::convolution_rank, 1, -1, -1, weight.rank, 4};
  for (int d = 1; d < 4; ++d)
    if (is_dyn(x, d)) return {problem::convolution_dyn, 0, d};
  if (weight.dyn != 0) return {problem::convolution_dyn, 1};
  if (x.extent[1] != weight.extent[1] * a.groups)
    return {problem::convolution_channels, 0, 1, -1, x.extent[1], weight.extent[1] * a.groups};
  if (weight.extent[0] % a.groups != 0) return {problem::convolution_groups, 1, 0, -1, weight.extent[0], a.groups};
  for (int d = 0; d < 2; ++d)
    if (convolved_extent(a, d, x.extent[2 + d], weight.extent[2 + d]) < 1)
      return {problem::convolution_kernel,         1, 2 + d, -1, a.dilation[d] * (weight.extent[2 + d] - 1) + 1,
              padded_extent(a, d, x.extent[2 + d])};
  return {};
}

constexpr spec four_dims(const spec& like, int batch_of, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  spec s = scalar_like(like);
  s.rank = 4;
  const std::int64_t extent[] = {a, b, c, d};
  for (int k = 0; k < 4; ++k) s.extent[k] = extent[k];
  if (batch_of >= 0 && is_dyn(like, 0)) copy_extent(s, 0, like, 0);
  make_contiguous(s);
  return s;
}

constexpr outcome shape_of_convolution(const op_attr& v, const spec* in, int) {
  const auto a = attributes_of<convolution_attributes>(v);
  const spec &x = in[0], &w = in[1];
  if (const finding f = convolution_finding(a, x, w)) return {f, x};
  return {{},
          four_dims(x, 0, x.extent[0], w.extent[0], convolved_extent(a, 0, x.extent[2], w.extent[2]),
                    convolved_extent(a, 1, x.extent[3], w.extent[3]))};
}
// (dy, weight): the gradient of x.
constexpr outcome shape_of_convolution_dx(const op_attr& v, const spec* in, int) {
  const auto a = attributes_of<convolution_attributes>(v);
  const spec &dy = in[0], &w = in[1];
  if (dy.rank != 4 || w.rank != 4)
    return fail(problem::convolution_rank, dy, dy.rank != 4 ? 0 : 1, -1, dy.rank != 4 ? dy.rank : w.rank, 4);
  const spec x = four_dims(dy, 0, dy.extent[0], w.extent[1] * a.groups, a.extent[0], a.extent[1]);
  if (const finding f = convolution_finding(a, x, w)) return {f, dy};
  return {{}, x};
}
// (dy, x): the gradient of the weight.
constexpr outcome shape_of_convolution_dw(const op_attr& v, const spec* in, int) {
  const auto a = attributes_of<convolution_attributes>(v);
  const spec &dy = in[0], &x = in[1];
  if (dy.rank != 4 || x.rank != 4)
    return fail(problem::convolution_rank, dy, dy.rank != 4 ? 0 : 1, -1, dy.rank != 4 ? dy.rank : x.rank, 4);
  if (a.groups < 1) return fail(problem::convolution_options, dy);
  const spec w = four_dims(dy, -1, dy.extent[1], x.extent[1] / a.groups, a.extent[0], a.extent[1]);
  if (const finding f = convolution_finding(a, x, w)) return {f, dy};
  return {{}, w};
}

// Of windows in height (0) or width (1).
constexpr sliding sliding_of(const convolution_attributes& a, int d, std::int64_t kernel) {
  return {a.stride[d], a.padding[d], a.dilation[d] * (kernel - 1) - a.padding[d]};
}

// Dims that the two operands and the result name alike: cut where all have it, summed where the result does not. Of several
// groups channels are not cut: a rank's inputs would have to be its outputs' groups.
constexpr rule_rows convolution_rows(const op_attr& v, rule_row batch, rule_row first, rule_row second) {
  rule_rows t;
  t.push_back(rows::all(rows::R, rows::R));
  t.push_back(rows::all(rows::U, rows::U));
  t.push_back(batch);
  if (attributes_of<convolution_attributes>(v).groups == 1) {
    t.push_back(first);
    t.push_back(second);
  }
  t.push_back({{rows::P, rows::U}, rows::P});
  t.push_back({{rows::U, rows::P}, rows::P});
  return t;
}

constexpr operation convolution_record(operation::shape_rule shape, operation::row_rule rows) {
  operation o = by_rows(shape, rows, &refuse_with<problem::convolution_placements>);
  o.linear = linearity::each;
  o.arithmetic = true;
  o.strided = true;
  return o;
}

// 2 for each product of y's elements with the kernel's.
constexpr double convolution_flops(const spec& y, const spec& weight) {
  constexpr int origin[max_axes]{};
  double n = 2.0 * static_cast<double>(local_numel(y, origin));
  for (int d = 1; d < 4; ++d) n *= static_cast<double>(local_interval(weight, d, origin).size);
  return n;
}

// Of kernels on hosts, whose blocks are those of results at `places` or of gradients of weights.
template <class F>
constexpr std::int64_t convolution_scratch(dtype type, const F& panels) {
  return type == dtype::f64 ? panels(double{}).bytes() : panels(float{}).bytes();
}
constexpr std::int64_t scratch_of_convolution(const op_attr& v, const spec* const* in, int, const spec& out) {
  const largest_block w(*in[1]), y(out);
  const std::int64_t groups = attributes_of<convolution_attributes>(v).groups, taps = w.extent[2] * w.extent[3];
  return convolution_scratch(out.type, [&]<class T>(T) {
    return convolution_panels::of_places<T>(w.extent[0] / groups, y.extent[0] * y.extent[2] * y.extent[3], w.extent[1],
                                            taps);
  });
}
constexpr std::int64_t scratch_of_convolution_dx(const op_attr& v, const spec* const* in, int, const spec& out) {
  const largest_block w(*in[1]), x(out);
  const std::int64_t groups = attributes_of<convolution_attributes>(v).groups, taps = w.extent[2] * w.extent[3];
  return convolution_scratch(out.type, [&]<class T>(T) {
    return convolution_panels::of_places<T>(w.extent[1], x.extent[0] * x.extent[2] * x.extent[3], w.extent[0] / groups,
                                            taps);
  });
}
constexpr std::int64_t scratch_of_convolution_dw(const op_attr& v, const spec* const* in, int, const spec& out) {
  const largest_block y(*in[0]), w(out);
  const std::int64_t groups = attributes_of<convolution_attributes>(v).groups, taps = w.extent[2] * w.extent[3];
  return convolution_scratch(out.type, [&]<class T>(T) {
    return convolution_panels::of_weights<T>(w.extent[0] / groups, w.extent[1], y.extent[0] * y.extent[2] * y.extent[3],
                                             taps);
  });
}

// Of a library's kernels (runtime/cuda/convolution_library.hpp), linked or not, since a plan knows no linker. It is the same for
// the three: which of the blocks is the weight, Weight says, -1 that it is the result.
template <int Weight>
constexpr std::int64_t device_scratch_of_convolution(const op_attr&, const spec* const* in, int, const spec& out) {
  const auto elements = [](const spec& s) {
    const largest_block b(s);
    return b.extent[0] * b.extent[1] * b.extent[2] * b.extent[3];
  };
  const std::int64_t weight = elements(Weight < 0 ? out : *in[1]);
  return convolution_library_bytes(out.type, elements(*in[0]), weight, elements(Weight < 0 ? *in[1] : out));
}

// Height and width of images are cut, too, where ranks have the halos of their shares. Halo: the first operand's or the second's.
enum class halo_of : std::uint8_t { image, cotangent, second_image };
template <halo_of Halo>
constexpr rule_rows with_halo_rows(rule_rows t, const op_attr& v, const spec* in, const spec& out) {
  using namespace rows;
  const auto a = attributes_of<convolution_attributes>(v);
  const spec& kernel = Halo == halo_of::second_image ? out : in[1];
  for (int d = 0; d < 2; ++d) {
    const int dim = 2 + d;
    const sliding s = sliding_of(a, d, kernel.extent[dim]);
    if constexpr (Halo == halo_of::second_image) {
      if (s.is_alone()) t.push_back({{S(dim), S(dim)}, P});
      if (any_overlaps(in[1], dim) && halo_axis(in[0], dim) >= 0)
        t.push_back({{S(dim), s.windows(dim, in[0].extent[dim])}, P});
    } else {
      if (s.is_alone()) t.push_back({{S(dim), U}, S(dim)});
      if (any_overlaps(in[0], dim))
        t.push_back(
            {{Halo == halo_of::image ? s.windows(dim, out.extent[dim]) : s.readers(dim, out.extent[dim]), U}, S(dim)});
    }
  }
  return t;
}

inline constexpr operation convolution = [] {
  operation o = convolution_record(
      &shape_of_convolution, [](const operation&, const op_attr& v, const spec* in, int, const spec& out) {
        using namespace rows;
        return with_halo_rows<halo_of::image>(convolution_rows(v, {{S(0), U}, S(0)}, {{U, S(0)}, S(1)}, {{S(1), S(1)}, P}),
                                              v, in, out);
      });
  o.flops = [](const op_attr&, const spec* const* in, const spec& out) { return convolution_flops(out, *in[1]); };
  o.host_scratch = &scratch_of_convolution;
  o.device_scratch = &device_scratch_of_convolution<1>;
  return o;
}();
inline constexpr operation convolution_dx = [] {
  operation o = convolution_record(
      &shape_of_convolution_dx, [](const operation&, const op_attr& v, const spec* in, int, const spec& out) {
        using namespace rows;
        return with_halo_rows<halo_of::cotangent>(
            convolution_rows(v, {{S(0), U}, S(0)}, {{S(1), S(0)}, P}, {{U, S(1)}, S(1)}), v, in, out);
      });
  o.flops = [](const op_attr&, const spec* const* in, const spec&) { return convolution_flops(*in[0], *in[1]); };
  o.host_scratch = &scratch_of_convolution_dx;
  o.device_scratch = &device_scratch_of_convolution<1>;
  return o;
}();
inline constexpr operation convolution_dw = [] {
  operation o = convolution_record(
      &shape_of_convolution_dw, [](const operation&, const op_attr& v, const spec* in, int, const spec& out) {
        using namespace rows;
        return with_halo_rows<halo_of::second_image>(
            convolution_rows(v, {{S(0), S(0)}, P}, {{S(1), U}, S(0)}, {{U, S(1)}, S(1)}), v, in, out);
      });
  o.flops = [](const op_attr&, const spec* const* in, const spec& out) { return convolution_flops(*in[0], out); };
  o.host_scratch = &scratch_of_convolution_dw;
  o.device_scratch = &device_scratch_of_convolution<-1>;
  return o;
}();

}  // namespace operations

}  // namespace shardwise::inline v0_1
