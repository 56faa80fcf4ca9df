// SPDX-License-Identifier: Apache-2.0
// Convolutions of groups of few channels, depthwise ones above all: loops along rows, or along channels where those lie side by side.
#pragma once

#include <shardwise/operations/convolution/host_planes.hpp>
#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

// The law. An element adds its products one by one, by row, column and channel of its window, whichever way is walked: the same bits in
// every memory format.
namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace depthwise_detail {

// Groups of more products of an input and an output than these are a matrix product: of results, and of weights' gradients.
inline constexpr std::int64_t few = 64, few_of_weights = convolution_panels::sums;

template <class T>
inline constexpr int lanes = convolution_panels::lane_bytes / static_cast<int>(sizeof(T));

inline std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// Outputs [first, first + size) of whole groups: their weights side by side for each tap and each input of a group.
template <class T>
void gather_weights(const convolution_product<T>& c, std::int64_t first, std::int64_t size, T* w) {
  constexpr std::int64_t wide = convolution_panels::channels;
  const std::int64_t q = c.in.columns.count;
  for (std::int64_t tap = 0; tap < c.in.rows.count * q; ++tap)
    for (std::int64_t j = 0; j < c.in.channels; ++j)
      for (std::int64_t i = 0; i < size; ++i)
        w[(tap * c.in.channels + j) * wide + i] = c.at(
            (first + i) / c.outputs, (first + i) % c.outputs)[tap / q * c.of_row + tap % q * c.of_column + j * c.of_channel];
}
// f(image, row, column) for places [begin, begin + size).
template <class F>
void each_place(const convolution_taps& rows, const convolution_taps& columns, interval places, const F& f) {
  std::int64_t t = places.begin % columns.places, u = places.begin / columns.places % rows.places,
               image = places.begin / columns.places / rows.places;
  for (std::int64_t i = 0; i < places.size; ++i) {
    f(image, u, t);
    if (++t < columns.places) continue;
    t = 0;
    if (++u == rows.places) u = 0, ++image;
  }
}
// f(tap, row, column) of what place (u, t) reads.
template <class F>
void each_tap(const convolution_taps& rows, const convolution_taps& columns, std::int64_t u, std::int64_t t, const F& f) {
  for (std::int64_t p = 0; p < rows.count; ++p) {
    const std::int64_t r = rows.read(u, p);
    if (!rows.is_inside(r)) continue;
    for (std::int64_t q = 0; q < columns.count; ++q)
      if (const std::int64_t s = columns.read(t, q); columns.is_inside(s)) f(p * columns.count + q, r, s);
  }
}

// n results of neighbouring channels.
template <class T>
void put(T* to, std::int64_t apart, const T* sum, std::int64_t n) {
  if (apart == 1)
    for (std::int64_t i = 0; i < n; ++i) to[i] = sum[i];
  else
    for (std::int64_t i = 0; i < n; ++i) to[i * apart] = sum[i];
}

// Inputs that lie side by side, of one channel a group: vectors of them at a time, wherever their outputs lie.
template <class T>
void along_channels(const convolution_product<T>& c, interval places, T* w) {
  constexpr std::int64_t wide = convolution_panels::channels;
  const convolution_taps &rows = c.in.rows, &columns = c.in.columns;
  for (std::int64_t first = 0; first < c.groups; first += wide) {
    const std::int64_t size = least(c.groups - first, wide);
    gather_weights(c, first, size, w);
    each_place(rows, columns, places, [&](std::int64_t image, std::int64_t u, std::int64_t t) {
      T* const o = c.out + c.stored(image, first, u, t);
      const auto each = [&](std::int64_t from, auto count) {
        const int n = count;
        T sum[lanes<T>]{};
        each_tap(rows, columns, u, t, [&](std::int64_t tap, std::int64_t r, std::int64_t s) {
          const T* const x = c.in.data + c.in.stride(image, first + from, r, s);
          const T* const y = w + tap * wide + from;
          for (int i = 0; i < n; ++i) sum[i] = sum[i] + x[i] * y[i];
        });
        put(o + from * c.stored.of[1], c.stored.of[1], sum, n);
      };
      std::int64_t from = 0;
      for (; from + lanes<T> <= size; from += lanes<T>) each(from, std::integral_constant<int, lanes<T>>{});
      if (from < size) each(from, static_cast<int>(size - from));
    });
  }
}
// The same of groups of several: each input is multiplied with the weights of all outputs of its group, M of them.
template <class T, class M>
void along_groups(const convolution_product<T>& c, interval places, T* w, M of_group) {
  const std::int64_t outputs = of_group;
  constexpr std::int64_t wide = convolution_panels::channels;
  const convolution_taps &rows = c.in.rows, &columns = c.in.columns;
  const std::int64_t all = c.groups * outputs, block = wide / outputs * outputs, inputs = c.in.channels;
  for (std::int64_t first = 0; first < all; first += block) {
    const std::int64_t size = least(all - first, block), group = first / outputs;
    gather_weights(c, first, size, w);
    each_place(rows, columns, places, [&](std::int64_t image, std::int64_t u, std::int64_t t) {
      T sum[wide]{};
      each_tap(rows, columns, u, t, [&](std::int64_t tap, std::int64_t r, std::int64_t s) {
        const T* x = c.in.data + c.in.stride(image, group * inputs, r, s);
        for (std::int64_t at = 0; at < size; at += outputs, x += inputs)
          for (std::int64_t j = 0; j < inputs; ++j) {
            const T* const y = w + (tap * inputs + j) * wide + at;
            for (std::int64_t m = 0; m < outputs; ++m) sum[at + m] = sum[at + m] + x[j] * y[m];
          }
      });
      T* const o = c.out + c.stored(image, first, u, t);
      put(o, c.stored.of[1], sum, size);
    });
  }
}

// Of each tap of a row the places that it is inside of, worked out once.
class places_of_taps {
 public:
  places_of_taps(const convolution_taps& columns, std::int64_t begin, std::int64_t end)
      : c_(columns), begin_(begin), end_(end) {
    for (std::int64_t q = 0; q < least(c_.count, most); ++q) known_[q] = c_.inside(q, begin, end);
  }
  interval operator()(std::int64_t q) const { return q < most ? known_[q] : c_.inside(q, begin_, end_); }

 private:
  static constexpr std::int64_t most = 16;
  const convolution_taps& c_;
  std::int64_t begin_, end_;
  interval known_[most];
};

// to[i] = to[i] + weight[0] x[0][i step] + ..., from the left.
template <int N, class T, class Step>
void add_products(T* to, std::int64_t n, const T* weight, const T* const* x, Step step) {
  const T w0 = weight[0], w1 = weight[N > 1 ? 1 : 0], w2 = weight[N > 2 ? 2 : 0], w3 = weight[N > 3 ? 3 : 0];
  const T *const x0 = x[0], *const x1 = x[N > 1 ? 1 : 0], *const x2 = x[N > 2 ? 2 : 0], *const x3 = x[N > 3 ? 3 : 0];
  SHARDWISE_IVDEP
  for (std::int64_t i = 0; i < n; ++i) {
    T sum = to[i] + w0 * x0[i * step];
    if constexpr (N > 1) sum = sum + w1 * x1[i * step];
    if constexpr (N > 2) sum = sum + w2 * x2[i * step];
    if constexpr (N > 3) sum = sum + w3 * x3[i * step];
    to[i] = sum;
  }
}
// Products of up to four inputs at one run of places.
template <class T>
struct pending_products {
  T* to;
  std::int64_t size, step;
  int count = 0;
  T weight[4]{};
  const T* x[4]{};

  void add(T w, const T* from) {
    weight[count] = w;
    x[count] = from;
    if (++count == 4) flush();
  }
  void flush() {
    if (step == 1) flush_by(unit_stride{});
    else flush_by(step);
    count = 0;
  }

 private:
  template <class Step>
  void flush_by(Step by) {
    if (count == 1) add_products<1>(to, size, weight, x, by);
    if (count == 2) add_products<2>(to, size, weight, x, by);
    if (count == 3) add_products<3>(to, size, weight, x, by);
    if (count == 4) add_products<4>(to, size, weight, x, by);
  }
};

// Part of a row of what is read, neighbours side by side, with zeros where there is nothing.
template <class T>
struct padded_row {
  static constexpr std::int64_t most = 1024;
  alignas(64) T at[most];

  // Elements first, first + 1, ... of a row of `extent` that lie `apart`.
  void read(const T* row, std::int64_t apart, std::int64_t extent, std::int64_t first, std::int64_t size) {
    const std::int64_t begin = first < 0 ? least(-first, size) : 0, end = first + size > extent ? extent - first : size;
    for (std::int64_t i = 0; i < begin; ++i) at[i] = T(0);
    const T* const from = row + (first + begin) * apart;
    if (apart == 1)
      for (std::int64_t i = begin; i < end; ++i) at[i] = from[i - begin];
    else
      for (std::int64_t i = begin; i < end; ++i) at[i] = from[(i - begin) * apart];
    for (std::int64_t i = end > begin ? end : begin; i < size; ++i) at[i] = T(0);
  }
};

// Of any strides: part of a row of the result after the other. Zeros outside add nothing: a sum that begins at 0 is never -0.
template <class T>
void along_rows(const convolution_product<T>& c, interval places) {
  constexpr std::int64_t most = 128;
  const convolution_taps &rows = c.in.rows, &columns = c.in.columns;
  const std::int64_t step = columns.step * c.in.stride.of[3], inputs = c.in.channels;
  const std::int64_t reach = (columns.count - 1) * (columns.by < 0 ? -columns.by : columns.by);
  alignas(64) T sum[most];  // vectors that cross lines cost half as much again
  padded_row<T> row;
  for (std::int64_t at = places.begin, end = places.begin + places.size; at < end;) {
    const std::int64_t t = at % columns.places, u = at / columns.places % rows.places, image = at / c.in.places_of_image();
    const std::int64_t size = least(least(columns.places - t, end - at), most);
    const std::int64_t span = (size - 1) * columns.step + reach + 1,
                       lowest = columns.read(t, columns.by < 0 ? columns.count - 1 : 0);
    const places_of_taps inside(columns, t, t + size);
    for (std::int64_t o = 0; o < c.groups * c.outputs; ++o) {
      const std::int64_t g = o / c.outputs;
      const T* const w = c.at(g, o % c.outputs);
      for (std::int64_t i = 0; i < size; ++i) sum[i] = T(0);
      for (std::int64_t p = 0; p < rows.count; ++p) {
        const std::int64_t r = rows.read(u, p);
        if (!rows.is_inside(r)) continue;
        const T* const weight = w + p * c.of_row;
        const T* const from = c.in.data + c.in.stride(image, g * inputs, r, 0);
        if (inputs == 1 && span <= padded_row<T>::most) {
          row.read(from, c.in.stride.of[3], columns.extent, lowest, span);
          pending_products<T> together{sum, size, columns.step};
          for (std::int64_t q = 0; q < columns.count; ++q)
            together.add(weight[q * c.of_column], row.at + (columns.read(t, q) - lowest));
          together.flush();
          continue;
        }
        for (std::int64_t q = 0; q < columns.count; ++q) {
          const interval v = inside(q);
          if (v.size == 0) continue;
          pending_products<T> together{sum + (v.begin - t), v.size, step};
          for (std::int64_t j = 0; j < inputs; ++j)
            together.add(weight[q * c.of_column + j * c.of_channel],
                         from + j * c.in.stride.of[1] + columns.read(v.begin, q) * c.in.stride.of[3]);
          together.flush();
        }
      }
      T* const to = c.out + c.stored(image, o, u, t);
      if (c.stored.of[3] == 1)
        for (std::int64_t i = 0; i < size; ++i) to[i] = sum[i];
      else
        for (std::int64_t i = 0; i < size; ++i) to[i * c.stored.of[3]] = sum[i];
    }
    at += size;
  }
}

template <class F>
void compiled_widely(const F& f) {
  if (!try_widest(f)) run_plainly(f);
}

}  // namespace depthwise_detail

// Of few channels a group. Where ranks cut channels there is one group, so this is said alike on all.
template <class T>
bool is_depthwise(const convolution_product<T>& c) {
  return c.groups > 1 && c.in.channels * c.outputs <= depthwise_detail::few;
}
template <class T>
void convolve_depthwise(const convolution_product<T>& c, interval places, const convolution_space<T>& w) {
  namespace d = depthwise_detail;
  T* const taps = static_cast<T*>(w.taps);
  if (c.in.stride.of[1] != 1) {  // by itself: what is compiled together is not all inlined
    bool taken = false;
    if (c.in.channels == 1 && c.in.places_of_image() >= d::few_places_of_plane)
      d::compiled_widely([&] { taken = d::along_planes(c, places); });
    if (!taken) d::compiled_widely([&] { d::along_rows(c, places); });
    return;
  }
  d::compiled_widely([&] {
    if (c.in.channels == 1 && c.outputs == 1) d::along_channels(c, places, taps);
    else if (c.outputs == 4) d::along_groups(c, places, taps, std::integral_constant<int, 4>{});
    else if (c.outputs == 8) d::along_groups(c, places, taps, std::integral_constant<int, 8>{});
    else d::along_groups(c, places, taps, static_cast<int>(c.outputs));
  });
}
}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

SHARDWISE_UNFUSED_END
