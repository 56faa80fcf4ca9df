// SPDX-License-Identifier: Apache-2.0
// Copies between blocks whose dims are stored in any order: every element is where its place says, nothing beside is written, whatever the
// extents and the type.
#include <shardwise/runtime/host/copy_block.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::runtime::layout;
using extents = std::array<std::int64_t, 4>;

// Dims stored in this order, the last one's elements `step` apart, each row `gap` elements longer than it need be.
layout laid(const extents& e, const std::array<int, 4>& order, std::int64_t step, std::int64_t gap) {
  layout l;
  l.rank = 4;
  std::int64_t at = step;
  for (int k = 3; k >= 0; --k) {
    const int d = order[static_cast<std::size_t>(k)];
    l.ext[d] = l.global[d] = e[static_cast<std::size_t>(d)];
    l.str[d] = at;
    at = at * l.ext[d] + gap;
  }
  return l;
}
template <class F>
void each(const extents& e, const F& f) {
  extents i{};
  for (i[0] = 0; i[0] < e[0]; ++i[0])
    for (i[1] = 0; i[1] < e[1]; ++i[1])
      for (i[2] = 0; i[2] < e[2]; ++i[2])
        for (i[3] = 0; i[3] < e[3]; ++i[3]) f(i);
}
std::size_t place(const layout& l, const extents& i) {
  std::int64_t at = 0;
  for (int d = 0; d < 4; ++d) at += i[static_cast<std::size_t>(d)] * l.str[d];
  return static_cast<std::size_t>(at);
}

template <class T>
bool copies(const extents& e, const layout& from, const layout& to) {
  const std::size_t room = place(from, e) + 1, margin = 64;
  std::vector<T> x(room), o(place(to, e) + 1 + 2 * margin, T(1)), want = o;
  for (std::size_t i = 0; i < room; ++i) x[i] = static_cast<T>((i * 7919 + 3) % 30011);
  each(e, [&](const extents& i) { want[margin + place(to, i)] = x[place(from, i)]; });
  const std::int64_t zero[4]{};
  sw::host::copy_block<T>(x.data(), from, zero, o.data() + margin, to, zero, from.ext);
  return o == want;
}

template <class T>
int wrong() {
  int n = 0;
  constexpr extents all[] = {{1, 1, 1, 1},  {2, 3, 5, 7},  {1, 16, 4, 4},  {2, 17, 5, 3}, {3, 33, 2, 16}, {1, 2, 9, 9},
                             {2, 4, 1, 37}, {1, 64, 8, 8}, {2, 31, 31, 1}, {0, 3, 4, 5},  {2, 20, 0, 3},  {1, 5, 1, 1}};
  for (const extents& e : all) {
    std::array<int, 4> a{0, 1, 2, 3};
    do {
      std::array<int, 4> b{0, 1, 2, 3};
      do {
        for (const std::int64_t step : {1, 2})
          for (const std::int64_t gap : {0, 3})
            n += !copies<T>(e, laid(e, a, 1, gap), laid(e, b, step, 0)) +
                 !copies<T>(e, laid(e, a, step, 0), laid(e, b, 1, gap));
      } while (std::next_permutation(b.begin(), b.end()));
    } while (std::next_permutation(a.begin(), a.end()));
  }
  return n;
}
TEST_CASE("copies of blocks: every order of dims to every other, elements of every size") {
  CHECK(wrong<std::uint8_t>() == 0);
  CHECK(wrong<std::int16_t>() == 0);
  CHECK(wrong<float>() == 0);
  CHECK(wrong<std::int32_t>() == 0);
  CHECK(wrong<double>() == 0);
}

TEST_CASE("copies of blocks: an element that stands for a whole dim, and bits that are no number") {
  const extents e{1, 20, 1, 18};
  layout from = laid(e, {0, 1, 2, 3}, 1, 0);
  from.str[1] = 0;
  CHECK(copies<float>(e, from, laid(e, {0, 2, 3, 1}, 1, 0)));
  std::vector<std::uint32_t> bits(16 * 16);
  std::iota(bits.begin(), bits.end(), 0x7F800000U);  // infinity, and signalling ones that are no numbers
  std::vector<float> x(bits.size()), o(bits.size());
  std::memcpy(x.data(), bits.data(), 4 * bits.size());
  const extents square{1, 16, 1, 16};
  const std::int64_t zero[4]{};
  const layout rows = laid(square, {0, 1, 2, 3}, 1, 0), columns = laid(square, {0, 3, 2, 1}, 1, 0);
  sw::host::copy_block<float>(x.data(), rows, zero, o.data(), columns, zero, rows.ext);
  std::vector<std::uint32_t> got(bits.size());
  std::memcpy(got.data(), o.data(), 4 * bits.size());
  int same = 0;
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 16; ++j) same += got[j * 16 + i] == bits[i * 16 + j];
  CHECK(same == 256);
}

// In constants, as proofs copy.
constexpr bool turned() {
  layout from, to;
  from.rank = to.rank = 2;
  from.ext[0] = to.ext[0] = 3;
  from.ext[1] = to.ext[1] = 2;
  from.str[0] = to.str[1] = 2;
  from.str[1] = to.str[0] = 1;
  to.str[1] = 3;
  const int x[] = {1, 2, 3, 4, 5, 6};
  int o[6]{};
  const std::int64_t zero[2]{};
  sw::host::copy_block<int>(x, from, zero, o, to, zero, from.ext);
  const int want[] = {1, 3, 5, 2, 4, 6};
  for (int i = 0; i < 6; ++i)
    if (o[i] != want[i]) return false;
  return true;
}
static_assert(turned());

}  // namespace
