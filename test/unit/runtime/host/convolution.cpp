// SPDX-License-Identifier: Apache-2.0
// Kernels of convolutions: the plain formula's values, one element's bits in every memory format, in every share and in blocks of
// outputs, channels and images; no byte beyond the scratch that the record states.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <shardwise/operations/convolution/host.hpp>
#include <shardwise/shardwise.hpp>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::runtime::call;
using sw::runtime::layout;
using sw::runtime::result;

enum class format { contiguous, channels_last, spread };
using extents = std::array<std::int64_t, 4>;

layout laid(const extents& e, format f) {
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
std::array<extents, 3> operands_of(const sizes& s, which k) {  // two operands, the result
  if (k == which::forward) return {s.x(), s.weight(), s.y()};
  if (k == which::dx) return {s.y(), s.weight(), s.x()};
  return {s.y(), s.x(), s.weight()};
}
const sw::operation& record_of(which k) {
  return k == which::forward ? sw::operations::convolution
         : k == which::dx    ? sw::operations::convolution_dx
                             : sw::operations::convolution_dw;
}

std::int64_t count(const extents& e) { return e[0] * e[1] * e[2] * e[3]; }

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

constexpr format each[] = {format::contiguous, format::channels_last, format::spread};
constexpr format plain[] = {format::contiguous, format::contiguous, format::contiguous};

// Every element of a block of the result: `dims` of operands and result that are cut where it is, -1: whole.
template <class T>
std::vector<T> block_of(const sizes& s, which k, const std::vector<T>& x, const std::vector<T>& y, const int (&dims)[3],
                        std::int64_t begin, std::int64_t size) {
  const auto e = operands_of(s, k);
  layout l[] = {laid(e[0], format::channels_last), laid(e[1], format::contiguous), laid(e[2], format::channels_last)};
  auto a = stored(x, l[0]), b = stored(y, l[1]);
  std::vector<T> out(l[2].span(), T(-99));
  T* p[] = {a.data(), b.data(), out.data()};
  for (int i = 0; i < 3; ++i)
    if (dims[i] >= 0) {
      p[i] += begin * l[i].str[dims[i]];
      l[i].ext[dims[i]] = size;
    }
  T* const q[] = {p[0], p[1], p[2]};
  run(s, k, q, l);
  return read(p[2], l[2]);
}
template <class T>
std::vector<T> part(const std::vector<T>& values, const extents& e, int dim, std::int64_t begin, std::int64_t size) {
  std::int64_t inner = 1, outer = 1;
  for (int d = 0; d < 4; ++d) (d < dim ? outer : d > dim ? inner : begin) *= d == dim ? 1 : e[static_cast<std::size_t>(d)];
  std::vector<T> r;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < size * inner; ++i)
      r.push_back(values[static_cast<std::size_t>((o * e[static_cast<std::size_t>(dim)] + begin) * inner + i)]);
  return r;
}

template <class T>
void check(const sizes& s, which k) {
  CAPTURE(static_cast<int>(k));
  CAPTURE(sizeof(T));
  const auto e = operands_of(s, k);
  const auto x = some<T>(count(e[0]), 0), y = some<T>(count(e[1]), 1);
  const auto want = computed<T>(s, k, x, y, plain, 1, true);
  const auto got = computed<T>(s, k, x, y, plain);
  CHECK(apart(got, want) < 100 * static_cast<double>(std::numeric_limits<T>::epsilon()));
  for (const format a : each)
    for (const format b : each)
      for (const format c : each) CHECK(same_bits(got, computed<T>(s, k, x, y, {a, b, c})));
  for (const int shares : {2, 3, 7})
    for (const format f : each) CHECK(same_bits(got, computed<T>(s, k, x, y, {f, f, f}, shares)));
  // as ranks cut it: along the batch; outputs and channels, of one group
  const int cuts[3][3][3] = {{{0, -1, 0}, {-1, 0, 1}, {-1, -1, -1}},
                             {{0, -1, 0}, {-1, 1, 1}, {-1, -1, -1}},
                             {{1, -1, 0}, {-1, 1, 1}, {-1, -1, -1}}};
  for (const auto& dims : cuts[static_cast<int>(k)]) {
    if (dims[2] < 0 || (s.a.groups > 1 && (dims[2] != 0 || k == which::dw))) continue;
    const std::int64_t n = e[2][static_cast<std::size_t>(dims[2])];
    if (n < 2) continue;
    CHECK(same_bits(part(got, e[2], dims[2], 1, n - 1), block_of<T>(s, k, x, y, dims, 1, n - 1)));
    CHECK(same_bits(part(got, e[2], dims[2], 0, 1), block_of<T>(s, k, x, y, dims, 0, 1)));
  }
}
void check(const sizes& s) {
  for (const which k : {which::forward, which::dx, which::dw}) {
    check<float>(s, k);
    check<double>(s, k);
  }
}

sw::convolution_attributes with(std::int16_t stride, std::int16_t padding, std::int16_t dilation = 1,
                                std::int32_t groups = 1, std::int32_t further = 0) {
  return {{stride, stride}, {padding, padding}, {dilation, dilation}, groups, {0, 0}, {further, further}};
}

TEST_CASE("convolutions: strides, paddings and dilations") {
  check({2, 3, 7, 6, 5, 3, 3, with(1, 1)});
  check({2, 5, 8, 9, 4, 3, 2, with(2, 1)});
  check({1, 4, 9, 8, 3, 2, 3, with(3, 2, 2)});
  check({2, 3, 6, 5, 4, 3, 3, with(2, 3, 4)});
  check({1, 2, 5, 4, 3, 2, 4, with(1, 0, 1, 1, 1)});  // one more row and column of padding behind
  check({1, 2, 4, 4, 3, 3, 3, with(2, 4)});           // windows that see no element
}
TEST_CASE("convolutions: one by one kernels, whole images and single places") {
  check({3, 6, 5, 4, 7, 1, 1, with(1, 0)});
  check({2, 6, 5, 4, 7, 1, 1, with(2, 0)});
  check({2, 6, 5, 4, 7, 1, 1, with(1, 1)});
  check({3, 4, 3, 3, 5, 3, 3, with(1, 0)});
  check({2, 4, 1, 6, 5, 1, 3, with(1, 0)});
  check({1, 1, 5, 5, 1, 3, 3, with(1, 1)});
}
TEST_CASE("convolutions: groups, few and many channels of each") {
  check({2, 8, 5, 19, 8, 3, 3, with(1, 1, 1, 2)});
  check({2, 40, 3, 6, 40, 2, 3, with(2, 1, 1, 5)});  // eight of each
  check({2, 6, 5, 20, 9, 3, 3, with(1, 1, 1, 3)});   // two inputs, three outputs
  check({2, 8, 5, 6, 6, 3, 3, with(1, 1, 1, 2)});
  check({2, 12, 5, 6, 8, 3, 3, with(2, 1, 1, 4)});
  check({1, 12, 5, 6, 24, 3, 2, with(1, 1, 1, 6)});  // two inputs and four outputs of a group
}
TEST_CASE("convolutions: depthwise, one and more outputs a channel") {
  check({2, 5, 6, 21, 5, 3, 3, with(1, 1, 1, 5)});
  check({2, 37, 6, 7, 37, 3, 3, with(2, 1, 1, 37)});
  check({1, 81, 9, 11, 81, 5, 5, with(1, 4, 2, 81)});
  check({2, 6, 6, 7, 12, 3, 3, with(2, 1, 1, 6)});
  check({2, 6, 6, 300, 6, 1, 7, with(1, 3, 1, 6)});
  check({2, 12, 6, 7, 6, 3, 3, with(1, 1, 1, 6)});
}
TEST_CASE("convolutions: several blocks of a window, of places and of outputs") {
  check({2, 70, 5, 6, 3, 3, 3, with(1, 1)});     // 630 elements of a window
  check({3, 4, 14, 15, 5, 3, 3, with(1, 1)});    // 630 places
  check({1, 3, 6, 5, 261, 3, 3, with(1, 1)});    // outputs
  check({1, 3, 37, 38, 140, 3, 3, with(2, 1)});  // 560 elements of a phase's window, 361 places
  check({1, 261, 4, 4, 2, 2, 2, with(2, 0)});    // channels, as outputs of a gradient
  check({1, 2, 40, 41, 3, 7, 7, with(2, 3)});    // rows of the kernel across a block's end
}

TEST_CASE("convolutions: what is no finite number is seen through elements of the image alone") {
  const double none = std::numeric_limits<double>::infinity();
  for (const auto a : {with(1, 1), with(2, 1), with(1, 1, 1, 4)}) {
    const sizes s{2, 4, 5, 6, 4, 3, 3, a};
    for (const which k : {which::forward, which::dx, which::dw}) {
      const auto e = operands_of(s, k);
      auto x = some<double>(count(e[0]), 0), y = some<double>(count(e[1]), 1);
      (k == which::dw ? x : y)[k == which::dw ? 2 : 1] = none;
      const auto want = computed<double>(s, k, x, y, plain, 1, true);
      for (const format f : each) {
        const auto got = computed<double>(s, k, x, y, {f, f, f});
        int finite = 0;
        for (std::size_t i = 0; i < want.size(); ++i) {
          CHECK(std::isfinite(got[i]) == std::isfinite(want[i]));
          finite += std::isfinite(want[i]);
        }
        CHECK(finite > 0);
        CHECK(finite < static_cast<int>(want.size()));
        CHECK(apart(got, want) < 1e-13);
      }
    }
  }
}

}  // namespace
