// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of rows that lie side by side: rows of a channel with zeros around them, which many places read in one run.
#pragma once

#include <shardwise/operations/convolution/host_products.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace depthwise_detail {

// Images of fewer places have more zeros around them than elements.
inline constexpr std::int64_t few_places_of_plane = 32;

// Rows of one channel as all taps read them, for some rows of places. Elements a stride apart lie side by side, a part for each phase of
// both strides, so that place (u, t) of the band is number u pitch + t of a run, and a tap reads a run as long from where it begins. Places
// behind a row's last one are computed and not written.
template <class T>
class padded_planes {
 public:
  static constexpr std::int64_t room = 4096, at_once = 256 / std::int64_t{sizeof(T)}, most_taps = 64;

  padded_planes(const convolution_taps& rows, const convolution_taps& columns)
      : rows_(rows), columns_(columns), of_rows_(rows), of_columns_(columns) {
    pitch_ = columns.places + of_columns_.last / columns.step;
    most_ = room / (rows.step * columns.step * pitch_) - of_rows_.last / rows.step;
    if (most_ > rows.places) most_ = rows.places;
    for (std::int64_t p = 0; p < rows.count && fits(); ++p)
      for (std::int64_t q = 0; q < columns.count; ++q) {
        const std::int64_t r = of_rows_.from(p), s = of_columns_.from(q);
        begin_[p * columns.count + q] = part(r % rows.step, s % columns.step) + r / rows.step * pitch_ + s / columns.step;
      }
  }
  // Whether a row of places has room, and its taps.
  bool fits() const { return most_ > 0 && rows_.count * columns_.count <= most_taps; }
  std::int64_t rows_at_once() const { return most_; }
  std::int64_t pitch() const { return pitch_; }

  // What places of rows [u, u + count) read of a plane whose elements lie so far apart.
  void read(const T* plane, std::int64_t of_row, std::int64_t of_column, std::int64_t u, std::int64_t count) {
    const std::int64_t top = rows_.read(u, 0) - of_rows_.from(0), left = columns_.read(0, 0) - of_columns_.from(0);
    for (std::int64_t y = 0; y <= (count - 1) * rows_.step + of_rows_.last; ++y)
      for (std::int64_t phase = 0; phase < columns_.step; ++phase)
        read_row(rows_.is_inside(top + y) ? plane + (top + y) * of_row : nullptr, of_column, left + phase,
                 at_ + part(y % rows_.step, phase) + y / rows_.step * pitch_);
  }
  // to[i] = the sum over taps of weight[tap] times what place i of the run reads, tap by tap, for `size` of them and up to a vector more.
  void sum(const T* weight, std::int64_t size, T* to) const {
    typedef T vec __attribute__((vector_size(64)));
    constexpr std::int64_t lanes = 64 / std::int64_t{sizeof(T)};
    static_assert(at_once == 4 * lanes);
    const std::int64_t taps = rows_.count * columns_.count;
    for (std::int64_t i = 0; i < size; i += at_once) {
      vec a{}, b{}, c{}, d{};
      for (std::int64_t k = 0; k < taps; ++k) {
        const T* const x = at_ + begin_[k] + i;
        const T w = weight[k];
        vec e, f, g, h;
        __builtin_memcpy(&e, x, 64);
        __builtin_memcpy(&f, x + lanes, 64);
        __builtin_memcpy(&g, x + 2 * lanes, 64);
        __builtin_memcpy(&h, x + 3 * lanes, 64);
        a = a + e * w;
        b = b + f * w;
        c = c + g * w;
        d = d + h * w;
      }
      __builtin_memcpy(to + i, &a, 64);
      __builtin_memcpy(to + i + lanes, &b, 64);
      __builtin_memcpy(to + i + 2 * lanes, &c, 64);
      __builtin_memcpy(to + i + 3 * lanes, &d, 64);
    }
  }

 private:
  // From the first element that any tap reads for the first place to tap j's, and to the last one's.
  struct reach {
    std::int64_t by, first, last;
    explicit reach(const convolution_taps& t)
        : by(t.by), first(t.by < 0 ? -(t.count - 1) * t.by : 0), last((t.count - 1) * (t.by < 0 ? -t.by : t.by)) {}
    std::int64_t from(std::int64_t j) const { return first + j * by; }
  };

  std::int64_t part(std::int64_t row_phase, std::int64_t column_phase) const {
    return (row_phase * columns_.step + column_phase) * (most_ + of_rows_.last / rows_.step) * pitch_;
  }
  // Elements x, x + step, ... of a row; zeros of none.
  void read_row(const T* row, std::int64_t apart, std::int64_t x, T* to) {
    const std::int64_t step = columns_.step, extent = row ? columns_.extent : 0;
    std::int64_t begin = x < 0 ? (-x + step - 1) / step : 0, end = extent > x ? (extent - 1 - x) / step + 1 : 0;
    if (begin > pitch_) begin = pitch_;
    if (end > pitch_) end = pitch_;
    if (end < begin) end = begin;
    for (std::int64_t i = 0; i < begin; ++i) to[i] = T(0);
    const T* const from = row ? row + (x + begin * step) * apart : nullptr;
    if (apart == 1 && step == 1)
      for (std::int64_t i = begin; i < end; ++i) to[i] = from[i - begin];
    else
      for (std::int64_t i = begin; i < end; ++i) to[i] = from[(i - begin) * step * apart];
    for (std::int64_t i = end; i < pitch_; ++i) to[i] = T(0);
  }

  const convolution_taps &rows_, &columns_;
  reach of_rows_, of_columns_;
  std::int64_t pitch_ = 0, most_ = 0;
  std::int64_t begin_[most_taps];
  alignas(64) T at_[room + at_once]{};  // whole vectors are read behind the last run
};

// Groups of one input, of any strides; false: a row of places is too wide, and nothing is written. Zeros outside add nothing: a sum that
// begins at 0 is never -0.
template <class T>
bool along_planes(const convolution_product<T>& c, interval places) {
  const convolution_taps &rows = c.in.rows, &columns = c.in.columns;
  padded_planes<T> x(rows, columns);
  if (!x.fits()) return false;
  alignas(64) T run[padded_planes<T>::room + padded_planes<T>::at_once];
  T weight[padded_planes<T>::most_taps];
  const std::int64_t w = columns.places, end = places.begin + places.size;
  for (std::int64_t at = places.begin; at < end;) {
    const std::int64_t image = at / c.in.places_of_image(), u = at / w % rows.places, first = at % w;
    const std::int64_t rest = (end - at + first + w - 1) / w,
                       count = gemm_panels::smaller(gemm_panels::smaller(x.rows_at_once(), rows.places - u), rest);
    const std::int64_t size = gemm_panels::smaller(count * w - first, end - at);
    for (std::int64_t o = 0; o < c.groups * c.outputs; ++o) {
      const std::int64_t g = o / c.outputs;
      if (o % c.outputs == 0)
        x.read(c.in.data + c.in.stride(image, g, 0, 0), c.in.stride.of[2], c.in.stride.of[3], u, count);
      const T* const from = c.at(g, o % c.outputs);
      for (std::int64_t k = 0; k < rows.count * columns.count; ++k)
        weight[k] = from[k / columns.count * c.of_row + k % columns.count * c.of_column];
      x.sum(weight, (count - 1) * x.pitch() + w, run);
      for (std::int64_t done = 0, row = 0, t = first; done < size; ++row, t = 0) {
        const std::int64_t n = gemm_panels::smaller(w - t, size - done);
        T* const to = c.out + c.stored(image, o, u + row, t);
        const T* const sum = run + row * x.pitch() + t;
        if (c.stored.of[3] == 1)
          for (std::int64_t i = 0; i < n; ++i) to[i] = sum[i];
        else
          for (std::int64_t i = 0; i < n; ++i) to[i * c.stored.of[3]] = sum[i];
        done += n;
      }
    }
    at += size;
  }
  return true;
}

}  // namespace depthwise_detail

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

SHARDWISE_UNFUSED_END
