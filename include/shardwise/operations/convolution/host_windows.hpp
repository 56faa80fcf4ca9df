// SPDX-License-Identifier: Apache-2.0
// Windows of images as the columns of a matrix: which elements a place reads, and blocks of them copied side by side.
#pragma once

#include <shardwise/operations/convolution/host_plain.hpp>
#include <shardwise/operations/convolution/scratch.hpp>
#include <shardwise/runtime/host/gemm.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// One dim of a window: place t of the result and tap j of the kernel meet at t step + offset + j by, which may lie outside.
// Tap j is the kernel's element first + j apart.
struct convolution_taps {
  std::int64_t places = 0, extent = 0;  // of the result, and of what is read
  std::int64_t step = 1, count = 1, first = 0, apart = 1, offset = 0, by = 1;

  std::int64_t read(std::int64_t t, std::int64_t j) const { return t * step + offset + j * by; }
  bool is_inside(std::int64_t r) const { return r >= 0 && r < extent; }
  // Of places begin.. those at which tap j is inside.
  interval inside(std::int64_t j, std::int64_t begin, std::int64_t end) const {
    const std::int64_t o = offset + j * by, last = extent - 1 - o;
    const std::int64_t lo = o < 0 ? (-o + step - 1) / step : 0, hi = last < 0 ? 0 : last / step + 1;
    const std::int64_t from = lo > begin ? lo : begin, to = hi < end ? hi : end;
    return {from, to > from ? to - from : 0};
  }
  // The taps that are inside at place t.
  interval taps(std::int64_t t) const {
    std::int64_t j = 0;
    while (j < count && !is_inside(read(t, j))) ++j;
    std::int64_t end = j;
    while (end < count && is_inside(read(t, end))) ++end;
    return {j, end - j};
  }
  bool is_padded() const {
    if (places == 0 || count == 0) return false;
    const std::int64_t a = read(0, 0), b = read(0, count - 1), c = read(places - 1, 0), d = read(places - 1, count - 1);
    return !is_inside(a) || !is_inside(b) || !is_inside(c) || !is_inside(d);
  }
  bool is_alone() const { return count == 1 && step == 1 && offset == 0 && places == extent; }
};

// The convolution's own dims: y's places read x.
inline convolution_taps taps_of(const convolution_blocks& b, int d) {
  const std::int64_t places[] = {b.oh, b.ow}, extent[] = {b.h, b.w}, kernel[] = {b.kh, b.kw};
  return {places[d], extent[d], b.a.stride[d], kernel[d], 0, 1, -std::int64_t{b.a.padding[d]}, b.a.dilation[d]};
}
// Of the gradient of x: each `stride`-th place, from `phase` on, reads those elements of dy that the same taps bring to it.
inline convolution_taps taps_of_phase(const convolution_blocks& b, int d, std::int64_t phase) {
  const std::int64_t extent[] = {b.h, b.w}, read[] = {b.oh, b.ow}, kernel[] = {b.kh, b.kw};
  const std::int64_t s = b.a.stride[d], dilation = b.a.dilation[d], at = phase + b.a.padding[d];
  convolution_taps t;
  t.places = extent[d] > phase ? (extent[d] - phase + s - 1) / s : 0;
  t.extent = read[d];
  t.apart = s / gcd(s, dilation);
  while (t.first < kernel[d] && (at - t.first * dilation) % s != 0) ++t.first;
  t.count = t.first < kernel[d] ? (kernel[d] - 1 - t.first) / t.apart + 1 : 0;
  t.offset = t.count > 0 ? (at - t.first * dilation) / s : 0;
  t.by = -(t.apart * dilation / s);
  return t;
}

// How far apart neighbouring places lie: in rows, in images, in all of them; 0: not evenly.
struct place_stride {
  std::int64_t in_image = 0, in_all = 0;
  place_stride(std::int64_t images, const convolution_taps& rows, const convolution_taps& columns,
               const convolution_strides& s) {
    const std::int64_t h = rows.places, w = columns.places;
    in_image = w == 1 ? s.of[2] : s.of[3];
    if (w > 1 && h > 1 && s.of[2] != w * s.of[3]) in_image = 0;
    if (h * w == 1) in_image = in_all = s.of[0];
    else if (images == 1 || s.of[0] == h * w * in_image) in_all = in_image;
  }
};

// Windows of one group: element (tap of rows, tap of columns, channel), in this order, of place (image, row, column).
template <class T>
class convolution_windows {
 public:
  const T* data = nullptr;
  convolution_strides stride{};
  convolution_taps rows{}, columns{};
  std::int64_t channels = 0;

  std::int64_t depth() const { return channels * rows.count * columns.count; }
  std::int64_t places_of_image() const { return rows.places * columns.places; }
  // Whether neighbours of a block of windows are a place's elements, not places: where enough of those lie side by side.
  bool by_places() const { return stride.of[1] == 1 && (channels >= 8 || (channels > 1 && is_joined())); }

  // Elements [k, k + depth) of places [at, at + n), n at most 512, as columns of a matrix in `to`, which has room for lines of
  // both. Elements outside are zeros.
  matrix_view<const T> gather(std::int64_t k, std::int64_t depth, std::int64_t at, std::int64_t n, T* to) const {
    segment part[most];
    const int parts = cut(at, n, part);
    if (by_places()) {
      const std::int64_t line = convolution_panels::line(depth);
      for (int i = 0; i < parts; ++i) gather_places(k, depth, part[i], to, line);
      return {to, 1, line};
    }
    const std::int64_t line = convolution_panels::line(n);
    gather_elements(k, depth, part, parts, to, line);
    return {to, line, 1};
  }

 private:
  static constexpr int most = 512;
  // Neighbours in one row of an image.
  struct segment {
    std::int64_t image, row, column, size, at;
  };

  // A row of taps is one piece of memory.
  bool is_joined() const { return columns.by * stride.of[3] == channels; }
  int cut(std::int64_t at, std::int64_t n, segment* part) const {
    int count = 0;
    std::int64_t column = at % columns.places, row = at / columns.places % rows.places, image = at / places_of_image();
    for (std::int64_t done = 0; done < n; ++count) {
      const std::int64_t rest = columns.places - column, size = rest < n - done ? rest : n - done;
      part[count] = {image, row, column, size, done};
      done += size;
      column = 0;
      if (++row == rows.places) row = 0, ++image;
    }
    return count;
  }
  static void clear(T* to, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = T(0);
  }
  // A call of memcpy costs more than so short a run.
  static void copy(T* to, const T* from, std::int64_t n) {
    constexpr std::int64_t side = 16 / std::int64_t{sizeof(T)};
    if (n > 8 * side) {
      __builtin_memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
      return;
    }
    std::int64_t i = 0;
    for (; i + side <= n; i += side) __builtin_memcpy(to + i, from + i, 16);
    if (i < n && n >= side) __builtin_memcpy(to + n - side, from + n - side, 16);
    else
      for (; i < n; ++i) to[i] = from[i];
  }

  // What one tap reads at the places of a block, alike in every channel: runs of neighbours, and zeros elsewhere. Rows of an image that
  // lie as their places do are one run, which brings elements to places that read nothing: zeros are written after all runs.
  struct tap_reads {
    struct run {
      std::int64_t at, size, from;
    };
    struct hole {
      std::int64_t at, size;
    };
    run runs[most];
    hole holes[2 * most];
    std::int64_t single[2 * most];  // holes of one element
    int run_count = 0, hole_count = 0, single_count = 0;

    void add_hole(std::int64_t at, std::int64_t size) {
      if (size == 1) single[single_count++] = at;
      else if (size > 0) holes[hole_count++] = {at, size};
    }
    void add_run(std::int64_t at, std::int64_t size, std::int64_t from, bool joins) {
      run* const last = run_count > 0 ? runs + run_count - 1 : nullptr;
      if (joins && last && from - last->from == at - last->at) last->size = at + size - last->at;
      else runs[run_count++] = {at, size, from};
    }
    void put(const T* plane, std::int64_t step, T* to) const {
      for (int i = 0; i < run_count; ++i) {
        const run& r = runs[i];
        if (step == 1) copy(to + r.at, plane + r.from, r.size);
        else
          for (std::int64_t x = 0; x < r.size; ++x) to[r.at + x] = plane[r.from + x * step];
      }
      for (int i = 0; i < hole_count; ++i) clear(to + holes[i].at, holes[i].size);
      for (int i = 0; i < single_count; ++i) to[single[i]] = T(0);
    }
  };
  void find_reads(std::int64_t p, std::int64_t q, const segment* part, int parts, tap_reads& reads) const {
    // Nothing but the image's own lies between the ends of its rows.
    const bool joins = columns.step * stride.of[3] == 1 && stride.of[2] == columns.extent;
    reads.run_count = reads.hole_count = reads.single_count = 0;
    for (int i = 0; i < parts; ++i) {
      const segment& s = part[i];
      const std::int64_t r = rows.read(s.row, p);
      const interval v = rows.is_inside(r) ? columns.inside(q, s.column, s.column + s.size) : interval{s.column, 0};
      if (v.size == 0) {
        reads.add_hole(s.at, s.size);
        continue;
      }
      const std::int64_t before = v.begin - s.column;
      reads.add_hole(s.at, before);
      reads.add_run(s.at + before, v.size, stride(s.image, 0, r, columns.read(v.begin, q)), joins);
      reads.add_hole(s.at + before + v.size, s.size - before - v.size);
    }
  }
  // Elements [k, k + depth) of the windows at all places, each as a row.
  void gather_elements(std::int64_t k, std::int64_t depth, const segment* part, int parts, T* to, std::int64_t line) const {
    tap_reads reads;
    for (std::int64_t e = k; e < k + depth;) {
      const std::int64_t tap = e / channels, first = e % channels, rest = channels - first,
                         end = first + (rest < k + depth - e ? rest : k + depth - e);
      find_reads(tap / columns.count, tap % columns.count, part, parts, reads);
      for (std::int64_t c = first; c < end; ++c, ++e)
        reads.put(data + c * stride.of[1], columns.step * stride.of[3], to + (e - k) * line);
    }
  }
  // All elements at the places of a segment, a place after the other, channels side by side; with the taps of a row, if those are
  // neighbours.
  void gather_places(std::int64_t k, std::int64_t depth, const segment& s, T* to, std::int64_t line) const {
    const std::int64_t row = channels * columns.count;  // elements of a row of taps
    const bool joined = is_joined();
    for (std::int64_t x = 0; x < s.size; ++x) {
      T* o = to + (s.at + x) * line;
      const interval taps = columns.taps(s.column + x);
      const std::int64_t image = s.image * stride.of[0] + columns.read(s.column + x, 0) * stride.of[3];
      for (std::int64_t p = k / row; p * row < k + depth; ++p) {
        const std::int64_t begin = p * row < k ? k - p * row : 0,
                           end = (p + 1) * row > k + depth ? k + depth - p * row : row;
        const std::int64_t r = rows.read(s.row, p);
        if (!rows.is_inside(r)) {
          clear(o, end - begin);
          o += end - begin;
          continue;
        }
        const std::int64_t from = image + r * stride.of[2];
        const std::int64_t first = within(taps.begin * channels, begin, end),
                           last = within((taps.begin + taps.size) * channels, first, end);
        clear(o, first - begin);
        o += first - begin;
        if (joined && last > first) copy(o, data + (from + first), last - first);
        else
          for (std::int64_t q = taps.begin, i = first; i < last; ++q) {
            const std::int64_t stop = (q + 1) * channels < last ? (q + 1) * channels : last;
            if (stop <= i) continue;
            copy(o + (i - first), data + (from + q * columns.by * stride.of[3] + i - q * channels), stop - i);
            i = stop;
          }
        o += last - first;
        clear(o, end - last);
        o += end - last;
      }
    }
  }
  static std::int64_t within(std::int64_t x, std::int64_t lo, std::int64_t hi) { return x < lo ? lo : x < hi ? x : hi; }
};

// Blocks [at, at + n) of at most `most` places; `in_images`: none has places of two images.
template <class F>
void each_block_of_places(interval places, std::int64_t most, std::int64_t of_image, bool in_images, const F& f) {
  for (std::int64_t at = places.begin, end = places.begin + places.size; at < end;) {
    std::int64_t n = end - at < most ? end - at : most;
    if (in_images && at % of_image + n > of_image) n = of_image - at % of_image;
    f(at, n);
    at += n;
  }
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
