// SPDX-License-Identifier: Apache-2.0
// Kernels of convolutions: the plain formula's values, one element's bits in every memory format, in every share and in blocks of
// outputs, channels and images; no byte beyond the scratch that the record states.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <convolving.hpp>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace convolving;

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
  check({2, 3, 41, 150, 3, 3, 3, with(1, 1, 1, 3)});  // images of more rows than are computed together
  check({1, 3, 41, 150, 6, 3, 2, with(2, 1, 1, 3)});
  check({1, 2, 3, 4500, 2, 1, 3, with(1, 1, 1, 2)});  // a row for which there is no room
  check({1, 2, 12, 12, 2, 9, 9, with(1, 4, 1, 2)});   // more taps than there is room for
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
