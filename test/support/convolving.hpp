// SPDX-License-Identifier: Apache-2.0
// Convolutions of blocks that lie in any order: the kernels of the host run on them by hand, the plain loops, and what is read back.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <shardwise/operations/convolution/host.hpp>
#include <shardwise/shardwise.hpp>
#include <vector>

namespace convolving {

namespace sw = shardwise;
using sw::runtime::call;
using sw::runtime::layout;
using sw::runtime::result;

enum class format { contiguous, channels_last, spread };
using extents = std::array<std::int64_t, 4>;

inline layout laid(const extents& e, format f) {
  layout l;
  l.rank = 4;
  for (int d = 0; d < 4; ++d) l.ext[d] = l.global[d] = e[static_cast<std::size_t>(d)];
  const std::int64_t last[] = {l.ext[1] * l.ext[2] * l.ext[3], 1, l.ext[3] * l.ext[1], l.ext[1]};
  if (f == format::channels_last) l.make_dense_as(last);
  else l.make_dense();
  if (f == format::spread) {  // neighbours are nowhere side by side, and rows no multiples of them
    l.str[3] = 2;
    l.str[2] = 2 * l.ext[3] + 1;
    l.str[1] = l.ext[2] * l.str[2] + 3;
    l.str[0] = l.ext[1] * l.str[1] + 5;
  }
  return l;
}

// A convolution: what x, the weight and y are.
struct sizes {
  std::int64_t n, c, h, w, o, kh, kw;
  sw::convolution_attributes a{};

  extents x() const { return {n, c, h, w}; }
  extents weight() const { return {o, c / a.groups, kh, kw}; }
  extents y() const {
    return {n, o, sw::operations::convolved_extent(a, 0, h, kh), sw::operations::convolved_extent(a, 1, w, kw)};
  }
};

enum class which { forward, dx, dw };
inline std::array<extents, 3> operands_of(const sizes& s, which k) {  // two operands, the result
  if (k == which::forward) return {s.x(), s.weight(), s.y()};
  if (k == which::dx) return {s.y(), s.weight(), s.x()};
  return {s.y(), s.x(), s.weight()};
}
inline const sw::operation& record_of(which k) {
  return k == which::forward ? sw::operations::convolution
         : k == which::dx    ? sw::operations::convolution_dx
                             : sw::operations::convolution_dw;
}

inline std::int64_t count(const extents& e) { return e[0] * e[1] * e[2] * e[3]; }

// Values in row-major order, stored as a layout says.
template <class T>
std::vector<T> stored(const std::vector<T>& values, const layout& l) {
  std::vector<T> all(l.span(), std::numeric_limits<T>::quiet_NaN());
  std::size_t i = 0;
  for (std::int64_t a = 0; a < l.ext[0]; ++a)
    for (std::int64_t b = 0; b < l.ext[1]; ++b)
      for (std::int64_t c = 0; c < l.ext[2]; ++c)
        for (std::int64_t d = 0; d < l.ext[3]; ++d)
          all[static_cast<std::size_t>(a * l.str[0] + b * l.str[1] + c * l.str[2] + d * l.str[3])] = values[i++];
  return all;
}
template <class T>
std::vector<T> read(const T* p, const layout& l) {
  std::vector<T> values;
  for (std::int64_t a = 0; a < l.ext[0]; ++a)
    for (std::int64_t b = 0; b < l.ext[1]; ++b)
      for (std::int64_t c = 0; c < l.ext[2]; ++c)
        for (std::int64_t d = 0; d < l.ext[3]; ++d)
          values.push_back(p[a * l.str[0] + b * l.str[1] + c * l.str[2] + d * l.str[3]]);
  return values;
}
template <class T>
std::vector<T> some(std::int64_t n, int salt) {
  std::vector<T> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(static_cast<T>((i * 7919 + salt * 131 + i / 17) % 401) / T(100) - T(2));
  return x;
}

// Runs the kernel in `shares` over blocks that begin at p and lie as l says.
template <class T>
void run(const sizes& s, which k, T* const (&p)[3], const layout (&l)[3], int shares = 1, bool plainly = false) {
  sw::spec specs[3]{};
  for (int i = 0; i < 3; ++i) {
    specs[i].rank = 4;
    specs[i].type = sw::dtype_v<T>;
    for (int d = 0; d < 4; ++d) specs[i].extent[d] = l[i].ext[d];
  }
  const sw::spec* const in[] = {&specs[0], &specs[1]};
  const std::int64_t bytes = record_of(k).host_scratch.value(sw::pack_attributes(s.a), in, 2, specs[2]);
  constexpr std::size_t margin = 4096;
  std::vector<T> memory((static_cast<std::size_t>(bytes) + 2 * margin) / sizeof(T) + 64, T(-77));
  std::byte* scratch = reinterpret_cast<std::byte*>(memory.data()) + margin;
  scratch += 64 - reinterpret_cast<std::uintptr_t>(scratch) % 64;
  const auto before = memory;
  for (int share = 0; share < shares; ++share) {
    call c;
    c.a = sw::pack_attributes(s.a);
    c.inputs = c.all_inputs = 2;
    c.share = share;
    c.shares = shares;
    sw::host::operands<T> q;
    for (int i = 0; i < 3; ++i) {
      c.l[i < 2 ? i : result] = l[i];
      q.p[i < 2 ? i : result] = p[i];
    }
    q.scratch = reinterpret_cast<T*>(scratch);
    q.has_scratch = true;
    const sw::kernel_arguments<T> arguments(c, q);
    using namespace sw::host;
    if (plainly && k == which::forward) convolve_plainly<convolution_result>(arguments, blocks_of(arguments, 0, 1, -1));
    else if (plainly && k == which::dx) convolve_plainly<convolution_dx_result>(arguments, blocks_of(arguments, -1, 1, 0));
    else if (plainly) convolve_plainly<convolution_dw_result>(arguments, blocks_of(arguments, 1, -1, 0));
    else if (k == which::forward) sw::host_kernel<sw::custom::conv2d>::run(arguments);
    else if (k == which::dx) sw::host_kernel<sw::custom::conv2d_dx>::run(arguments);
    else sw::host_kernel<sw::custom::conv2d_dw>::run(arguments);
  }
  const std::size_t first = static_cast<std::size_t>(scratch - reinterpret_cast<std::byte*>(memory.data()));
  const auto untouched = [&](std::size_t from, std::size_t to) {
    return std::memcmp(reinterpret_cast<const std::byte*>(memory.data()) + from,
                       reinterpret_cast<const std::byte*>(before.data()) + from, to - from) == 0;
  };
  CHECK(untouched(0, first));
  CHECK(untouched(first + static_cast<std::size_t>(bytes), memory.size() * sizeof(T)));
}

// The result of whole operands, in row-major order.
template <class T>
std::vector<T> computed(const sizes& s, which k, const std::vector<T>& x, const std::vector<T>& y, const format (&f)[3],
                        int shares = 1, bool plainly = false) {
  const auto e = operands_of(s, k);
  const layout l[] = {laid(e[0], f[0]), laid(e[1], f[1]), laid(e[2], f[2])};
  auto a = stored(x, l[0]), b = stored(y, l[1]);
  std::vector<T> out(l[2].span(), T(-99));
  T* const p[] = {a.data(), b.data(), out.data()};
  run(s, k, p, l, shares, plainly);
  return read(out.data(), l[2]);
}
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}
template <class T>
double apart(const std::vector<T>& a, const std::vector<T>& b) {
  double worst = 0, largest = 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::isinf(a[i]) && a[i] == b[i]) continue;
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(d <= worst)) worst = d;
  }
  return worst / largest;
}

inline sw::convolution_attributes with(std::int16_t stride, std::int16_t padding, std::int16_t dilation = 1,
                                       std::int32_t groups = 1, std::int32_t further = 0) {
  return {{stride, stride}, {padding, padding}, {dilation, dilation}, groups, {0, 0}, {further, further}};
}

inline constexpr format each[] = {format::contiguous, format::channels_last, format::spread};
inline constexpr format plain[] = {format::contiguous, format::contiguous, format::contiguous};

}  // namespace convolving
