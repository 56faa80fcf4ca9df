// SPDX-License-Identifier: Apache-2.0
// Gradients of the weights of groups of few channels: loops along rows, or along channels where those lie side by side.
#pragma once

#include <type_traits>

#include <shardwise/operations/convolution/host_depthwise.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

// The law. The products of each row of places are added in eight lanes, and the rows' sums in double, one by one: the same bits in every
// memory format.
namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace depthwise_detail {

inline constexpr int partial_sums = 8;
template <class T>
T sum_of_lanes(const T* lane, std::int64_t apart) {
  const auto of = [=](int i) { return lane[i * apart]; };
  return ((of(0) + of(4)) + (of(2) + of(6))) + ((of(1) + of(5)) + (of(3) + of(7)));
}

// f(image, u, r, tap, v, q): each row of places of each image, and each tap that reads one of its rows: row r of the operand, and the
// places v of the row at which column q of the window lies inside.
template <class T, class F>
void each_row_of_products(const convolution_weights_product<T>& c, const places_of_taps& inside, F f) {
  const convolution_taps &rows = c.in.rows, &columns = c.in.columns;
  for (std::int64_t image = 0; image < c.images; ++image)
    for (std::int64_t u = 0; u < rows.places; ++u)
      for (std::int64_t p = 0; p < rows.count; ++p) {
        const std::int64_t r = rows.read(u, p);
        if (!rows.is_inside(r)) continue;
        for (std::int64_t q = 0; q < columns.count; ++q)
          if (const interval v = inside(q); v.size > 0) f(image, u, r, p * columns.count + q, v, q);
      }
}

// Gradients of the weights of channels [begin, begin + size), of one channel a group, which lie side by side.
template <class T>
void weights_along_channels(const convolution_weights_product<T>& c, interval channels, double* total) {
  const convolution_taps &rows = c.in.rows, &columns = c.in.columns;
  const std::int64_t taps = rows.count * columns.count;
  const places_of_taps inside(columns, 0, columns.places);
  const auto each = [&](std::int64_t first, auto count) {
    const int n = count;
    for (std::int64_t i = 0; i < taps * lanes<T>; ++i) total[i] = 0;
    each_row_of_products(
        c, inside, [&](std::int64_t image, std::int64_t u, std::int64_t r, std::int64_t tap, interval v, std::int64_t q) {
          T lane[partial_sums][lanes<T>]{};
          const T* x = c.in.data + c.in.stride(image, first, r, columns.read(v.begin, q));
          const T* y = c.dy.data + c.dy.stride(image, first, u, v.begin);
          const std::int64_t dx = columns.step * c.in.stride.of[3], dy = c.dy.stride.of[3];
          std::int64_t t = 0;
          for (; t + partial_sums <= v.size; t += partial_sums)
            for (int l = 0; l < partial_sums; ++l)
              for (int i = 0; i < n; ++i) lane[l][i] = lane[l][i] + y[(t + l) * dy + i] * x[(t + l) * dx + i];
          for (int l = 0; t + l < v.size; ++l)
            for (int i = 0; i < n; ++i) lane[l][i] = lane[l][i] + y[(t + l) * dy + i] * x[(t + l) * dx + i];
          double* const to = total + tap * lanes<T>;
          for (int i = 0; i < n; ++i) to[i] = to[i] + static_cast<double>(sum_of_lanes<T>(&lane[0][i], lanes<T>));
        });
    for (std::int64_t e = 0; e < taps; ++e)
      for (int i = 0; i < n; ++i)
        c.out[c.stored(first + i, 0, e / columns.count, e % columns.count)] = static_cast<T>(total[e * lanes<T> + i]);
  };
  for (std::int64_t at = channels.begin, end = channels.begin + channels.size; at < end; at += lanes<T>)
    if (end - at >= lanes<T>) each(at, std::integral_constant<int, lanes<T>>{});
    else each(at, static_cast<int>(end - at));
}

// The products of one row of places, four outputs with Inputs channels of floats: sum[i][j][m], in lane i.
template <int Inputs>
struct four_outputs {
  typedef float four __attribute__((vector_size(16)));
  static constexpr int at_once = 4;  // lanes whose sums stay in registers

  // Of lanes [first, first + at_once).
  template <class T>
  static void add_lanes(const T* x, std::int64_t dx, const T* y, std::int64_t dy, std::int64_t places, int first, T* lanes,
                        std::int64_t apart) {
    four sum[at_once][Inputs]{};
    const auto add = [&](std::int64_t t, int i) {
      four of_outputs;
      __builtin_memcpy(&of_outputs, y + t * dy, sizeof of_outputs);
      for (int j = 0; j < Inputs; ++j) sum[i][j] = sum[i][j] + of_outputs * x[t * dx + j];
    };
    std::int64_t t = first;
    for (; t + at_once <= places; t += partial_sums)
      for (int i = 0; i < at_once; ++i) add(t + i, i);
    for (int i = 0; t + i < places && i < at_once; ++i) add(t + i, i);
    for (int i = 0; i < at_once; ++i) __builtin_memcpy(lanes + (first + i) * apart, sum[i], sizeof sum[i]);
  }
  template <class T>
  static void add(const T* x, std::int64_t dx, const T* y, std::int64_t dy, std::int64_t places, T* lanes,
                  std::int64_t apart) {
    for (int first = 0; first < partial_sums; first += at_once) add_lanes(x, dx, y, dy, places, first, lanes, apart);
  }
};

// The same of outputs [begin, begin + size), M in a group that reads several channels, or several outputs of one.
template <class T, class M>
void weights_along_groups(const convolution_weights_product<T>& c, interval of, double* total, M of_group) {
  const std::int64_t outputs = of_group;
  constexpr int most = convolution_panels::sums;
  const convolution_taps &rows = c.in.rows, &columns = c.in.columns;
  const std::int64_t taps = rows.count * columns.count, inputs = c.in.channels;
  const std::int64_t dx = columns.step * c.in.stride.of[3], dy = c.dy.stride.of[3];
  const places_of_taps inside(columns, 0, columns.places);
  for (std::int64_t g = of.begin / outputs; g * outputs < of.begin + of.size; ++g) {
    for (std::int64_t i = 0; i < taps * most; ++i) total[i] = 0;
    each_row_of_products(
        c, inside, [&](std::int64_t image, std::int64_t u, std::int64_t r, std::int64_t tap, interval v, std::int64_t q) {
          T lane[partial_sums][most]{};
          const T* x = c.in.data + c.in.stride(image, g * inputs, r, columns.read(v.begin, q));
          const T* y = c.dy.data + c.dy.stride(image, g * outputs, u, v.begin);
          const bool in_vectors = std::is_same_v<T, float> && outputs == 4 && inputs == 4;
          if constexpr (std::is_same_v<T, float>)
            if (in_vectors) four_outputs<4>::add(x, dx, y, dy, v.size, &lane[0][0], most);
          for (std::int64_t t = 0; t < v.size && !in_vectors; ++t, x += dx, y += dy) {
            T* const to = lane[t % partial_sums];
            for (std::int64_t j = 0; j < inputs; ++j)
              for (std::int64_t m = 0; m < outputs; ++m) to[j * outputs + m] = to[j * outputs + m] + y[m] * x[j];
          }
          double* const to = total + tap * most;
          for (std::int64_t i = 0; i < inputs * outputs; ++i)
            to[i] = to[i] + static_cast<double>(sum_of_lanes<T>(&lane[0][i], most));
        });
    for (std::int64_t e = 0; e < taps; ++e)
      for (std::int64_t j = 0; j < inputs; ++j)
        for (std::int64_t m = 0; m < outputs; ++m)
          if (const std::int64_t o = g * outputs + m; o >= of.begin && o < of.begin + of.size)
            c.out[c.stored(o, j, e / columns.count, e % columns.count)] = static_cast<T>(total[e * most + j * outputs + m]);
  }
}

// Of outputs [begin, begin + size) of all groups, of any strides.
template <class T>
void weights_along_rows(const convolution_weights_product<T>& c, interval of, double* total) {
  const convolution_taps &rows = c.in.rows, &columns = c.in.columns;
  const std::int64_t taps = rows.count * columns.count;
  const std::int64_t dx = columns.step * c.in.stride.of[3], dy = c.dy.stride.of[3];
  const places_of_taps inside(columns, 0, columns.places);
  for (std::int64_t o = of.begin; o < of.begin + of.size; ++o)
    for (std::int64_t j = 0; j < c.in.channels; ++j) {
      for (std::int64_t i = 0; i < taps; ++i) total[i] = 0;
      const T* const of_x = c.in.data + (o / c.outputs * c.in.channels + j) * c.in.stride.of[1];
      const T* const of_y = c.dy.data + o * c.dy.stride.of[1];
      each_row_of_products(
          c, inside, [&](std::int64_t image, std::int64_t u, std::int64_t r, std::int64_t tap, interval v, std::int64_t q) {
            const T* const x = of_x + c.in.stride(image, 0, r, columns.read(v.begin, q));
            const T* const y = of_y + c.dy.stride(image, 0, u, v.begin);
            T lane[partial_sums]{};
            std::int64_t t = 0;
            if (dx == 1 && dy == 1)
              for (; t + partial_sums <= v.size; t += partial_sums)
                for (int l = 0; l < partial_sums; ++l) lane[l] = lane[l] + y[t + l] * x[t + l];
            else
              for (; t + partial_sums <= v.size; t += partial_sums)
                for (int l = 0; l < partial_sums; ++l) lane[l] = lane[l] + y[(t + l) * dy] * x[(t + l) * dx];
            for (int l = 0; t + l < v.size; ++l) lane[l] = lane[l] + y[(t + l) * dy] * x[(t + l) * dx];
            total[tap] = total[tap] + static_cast<double>(sum_of_lanes<T>(lane, 1));
          });
      for (std::int64_t e = 0; e < taps; ++e)
        c.out[c.stored(o, j, e / columns.count, e % columns.count)] = static_cast<T>(total[e]);
    }
}

}  // namespace depthwise_detail

template <class T>
bool is_depthwise(const convolution_weights_product<T>& c, std::int64_t groups) {
  return groups > 1 && c.in.channels * c.outputs <= depthwise_detail::few_of_weights;
}

template <class T>
void convolve_depthwise(const convolution_weights_product<T>& c, interval outputs, const convolution_space<T>& w) {
  namespace d = depthwise_detail;
  double* const total = static_cast<double*>(w.taps);
  d::compiled_widely([&] {
    if (c.in.stride.of[1] != 1 || c.dy.stride.of[1] != 1) d::weights_along_rows(c, outputs, total);
    else if (c.in.channels == 1 && c.outputs == 1) d::weights_along_channels(c, outputs, total);
    else if (c.outputs == 4) d::weights_along_groups(c, outputs, total, std::integral_constant<int, 4>{});
    else d::weights_along_groups(c, outputs, total, static_cast<int>(c.outputs));
  });
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

SHARDWISE_UNFUSED_END
