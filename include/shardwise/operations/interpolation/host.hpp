// SPDX-License-Identifier: Apache-2.0
// Plain kernels of interpolate, by one function for hosts and devices: an element of the result of at most four of the image, and one of
// the adjoint's of all those of the cotangent that were made of it, added up in their order, so that equal calls give equal bits.
#pragma once

#include <shardwise/graph/functions/interpolate.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/runtime/host/math.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

struct pixel {
  std::int64_t image, channel, at[2];  // row and column
};
// A rank's block of images and where its elements lie. It begins at `origin` of planes that are `whole`.
struct image_block {
  std::int64_t channels = 0, extent[2] = {0, 0}, stride[4] = {0, 0, 0, 0};
  std::int64_t origin[2] = {0, 0}, whole[2] = {0, 0};

  constexpr std::int64_t place(const pixel& p, std::int64_t row, std::int64_t column) const {
    return p.image * stride[0] + p.channel * stride[1] + row * stride[2] + column * stride[3];
  }
  constexpr std::int64_t place(const pixel& p) const { return place(p, p.at[0], p.at[1]); }
  // Element i, neighbours in storage one after the other.
  constexpr pixel element(std::int64_t i) const {
    const std::int64_t points = extent[0] * extent[1];
    const bool last = stride[1] == 1 && stride[3] != 1;
    const std::int64_t point = last ? i / channels % points : i % points;
    return {i / points / channels, last ? i % channels : i / points % channels, {point / extent[1], point % extent[1]}};
  }
};
// Of what row or column of the result is made: `first` with the weight (of - rest) / of, the next one with rest / of.
struct neighbours {
  std::int64_t first, rest, of;
};
// The image, and the one that is made of it: this rank's blocks of both.
struct resized {
  image_block x, y;
  interpolation_attributes a{};

  // Of rows or columns of the blocks.
  constexpr neighbours made_of(int d, std::int64_t of_block) const {
    const std::int64_t t = of_block + y.origin[d], last = x.whole[d] - 1;
    const std::int64_t up = a.step[d][0], down = a.step[d][1], of = a.halves() ? 2 * down : down;
    std::int64_t position = a.halves() ? (2 * t + 1) * up - down : t * up;
    if (position < 0) position = 0;
    if (position / of >= last) return {last - x.origin[d], 0, of};
    return {position / of - x.origin[d], a.mode == interpolation::nearest ? 0 : position % of, of};
  }
  // Those of the block that row or column r of the image's block is in: some of them, at the ends, with weight 0.
  constexpr interval makes(int d, std::int64_t r) const {
    const std::int64_t at = r + x.origin[d];
    const std::int64_t begin = in_block(d, reaching(d, a.mode == interpolation::nearest ? at : at - 1));
    return {begin, in_block(d, reaching(d, at + 1)) - begin};
  }

 private:
  // The first row or column of the whole result whose `first` is r, of the whole image, or a later one.
  constexpr std::int64_t reaching(int d, std::int64_t r) const {
    if (r <= 0) return 0;
    if (r >= x.whole[d]) return y.whole[d];
    const std::int64_t up = a.step[d][0], down = a.step[d][1];
    const std::int64_t need = a.halves() ? (2 * r + 1) * down - up : r * down, each = a.halves() ? 2 * up : up;
    if (need <= 0) return 0;
    const std::int64_t t = each == 0 ? y.whole[d] : (need + each - 1) / each;
    return t < y.whole[d] ? t : y.whole[d];
  }
  constexpr std::int64_t in_block(int d, std::int64_t t) const {
    const std::int64_t of_block = t - y.origin[d];
    return of_block < 0 ? 0 : of_block < y.extent[d] ? of_block : y.extent[d];
  }
};
template <class T>
constexpr image_block image_of_operand(const kernel_arguments<T>& k) {
  return {k.extent(0, 1),
          {k.extent(0, 2), k.extent(0, 3)},
          {k.stride(0, 0), k.stride(0, 1), k.stride(0, 2), k.stride(0, 3)},
          {k.origin(0, 2), k.origin(0, 3)},
          {k.whole_extent(0, 2), k.whole_extent(0, 3)}};
}
// `whole`: height and width of its planes.
template <class T>
constexpr image_block image_of_result(const kernel_arguments<T>& k, const std::int32_t (&whole)[2]) {
  constexpr int r = runtime::result;
  return {k.extent(1),
          {k.extent(2), k.extent(3)},
          {k.stride(0), k.stride(1), k.stride(2), k.stride(3)},
          {k.origin(r, 2), k.origin(r, 3)},
          {whole[0], whole[1]}};
}
template <bool Back, class T>
constexpr resized resized_of(const kernel_arguments<T>& k) {
  const auto a = k.template attributes<interpolation_attributes>();
  return {Back ? image_of_result(k, a.extent) : image_of_operand(k), Back ? image_of_operand(k) : image_of_result(k, a.size),
          a};
}

// M: the functions of the elements that are computed with.
template <class M>
constexpr auto weight_of(std::int64_t part, std::int64_t of) {
  return M::from(static_cast<double>(part)) / M::from(static_cast<double>(of));
}
// What has no weight is not read: of an infinite neighbour no NaN is made, and an image of the same size keeps its bits.
template <class M, class Sum, class T>
constexpr Sum along_columns(const resized& b, const T* x, const pixel& p, std::int64_t row, const neighbours& c) {
  const Sum first = static_cast<Sum>(x[b.x.place(p, row, c.first)]);
  if (c.rest == 0) return first;
  return first * weight_of<M>(c.of - c.rest, c.of) +
         static_cast<Sum>(x[b.x.place(p, row, c.first + 1)]) * weight_of<M>(c.rest, c.of);
}
template <class M, class Sum, class T>
constexpr void interpolate_element(const resized& b, const T* x, T* y, std::int64_t i) {
  const pixel p = b.y.element(i);
  const neighbours r = b.made_of(0, p.at[0]), c = b.made_of(1, p.at[1]);
  Sum v = along_columns<M, Sum>(b, x, p, r.first, c);
  if (r.rest != 0)
    v = v * weight_of<M>(r.of - r.rest, r.of) + along_columns<M, Sum>(b, x, p, r.first + 1, c) * weight_of<M>(r.rest, r.of);
  y[b.y.place(p)] = static_cast<T>(v);
}
template <class M, class Sum, class T>
constexpr void interpolate_back_element(const resized& b, const T* dy, T* dx, std::int64_t i) {
  const pixel p = b.x.element(i);
  const interval rows = b.makes(0, p.at[0]), columns = b.makes(1, p.at[1]);
  Sum sum = Sum(0);
  for (std::int64_t u = rows.begin; u < rows.begin + rows.size; ++u) {
    const neighbours r = b.made_of(0, u);
    const std::int64_t of_row = r.first == p.at[0] ? r.of - r.rest : r.rest;
    if (of_row == 0) continue;
    Sum row = Sum(0);
    for (std::int64_t v = columns.begin; v < columns.begin + columns.size; ++v) {
      const neighbours c = b.made_of(1, v);
      const std::int64_t of_column = c.first == p.at[1] ? c.of - c.rest : c.rest;
      if (of_column != 0) row = row + static_cast<Sum>(dy[b.y.place(p, u, v)]) * weight_of<M>(of_column, c.of);
    }
    sum = sum + row * weight_of<M>(of_row, r.of);
  }
  dx[b.x.place(p)] = static_cast<T>(sum);
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::interpolate> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    using sum = typename host::math<T>::accumulator;
    const host::resized b = host::resized_of<false>(k);
    const interval of = k.share(k.size());
    for (std::int64_t i = of.begin; i < of.begin + of.size; ++i)
      host::interpolate_element<host::math<sum>, sum>(b, k.in(0), k.out(), i);
  }
};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::interpolate_dx> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    using sum = typename host::math<T>::accumulator;
    const host::resized b = host::resized_of<true>(k);
    const interval of = k.share(k.size());
    for (std::int64_t i = of.begin; i < of.begin + of.size; ++i)
      host::interpolate_back_element<host::math<sum>, sum>(b, k.in(0), k.out(), i);
  }
};

}  // namespace shardwise::inline v0_1
