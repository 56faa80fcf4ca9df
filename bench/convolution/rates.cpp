// SPDX-License-Identifier: Apache-2.0
// Measures what optimize_layout decides by and prints include/shardwise/pass/layout/rates.hpp: what a multiplication of each of the three
// convolutions takes at many shapes, in both memory formats, by the built-in kernels and by oneDNN; and what an element takes that is copied
// from one format to the other. One core, processor time, the least of the turns, which take turns. Needs shardwise::onednn.
// usage: rates [turns] [words of the kinds] > include/shardwise/pass/layout/rates.hpp
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <shardwise/runtime/host/convolution_library.hpp>
#include <vector>

#include "by_hand.hpp"
#include "rate_shapes.hpp"

namespace {

namespace sw = shardwise;
using by_hand::block;

using rates::kind;
using rates::kinds;
using rates::shape;

double once(int pass, const sw::convolution_attributes& a, block& x, block& w, block& y, int calls) {
  const double from = by_hand::seconds();
  for (int i = 0; i < calls; ++i) {
    if (pass == 0) by_hand::forward(a, x, w, y);
    else if (pass == 1) by_hand::image_gradient(a, y, w, x);
    else by_hand::weight_gradient(a, y, x, w);
  }
  return (by_hand::seconds() - from) / calls;
}

// A pass whose operands lie in one format and its result in one.
struct measured {
  sw::convolution_attributes a;
  int pass, calls;
  block x, w, y;
  double least = 1e30;

  measured(const shape& s, int of, bool operands_last, bool result_last)
      : a{{s.stride, s.stride}, {s.padding, s.padding}, {1, 1}, s.groups, {0, 0}, {0, 0}},
        pass(of),
        x({s.n, s.c, s.side, s.side}, of == 1 ? result_last : operands_last),
        w({s.o, s.c / s.groups, s.k, s.k}, of == 2 ? result_last : operands_last),
        y({s.n, s.o, out(s), out(s)}, of == 0 ? result_last : operands_last) {
    if (of > 0) a.extent[0] = a.extent[1] = of == 1 ? s.side : s.k;
    x.fill(1);
    w.fill(2);
    y.fill(3);
    once(pass, a, x, w, y, 1);
    calls = std::max(1, static_cast<int>(0.003 / once(pass, a, x, w, y, 1)));
  }
  std::int64_t out(const shape& s) const { return sw::operations::convolved_extent(a, 0, s.side, s.k); }
  void turn() { least = std::min(least, once(pass, a, x, w, y, calls)); }
};

void row(const shape& s, int turns, const sw::runtime::convolution_library* library) {
  // forward and image's gradient: all contiguous, all channels-last, channels-last into contiguous; weight's: contiguous, channels-last
  const struct {
    int pass;
    bool operands, result;
  } columns[] = {{0, false, false}, {0, true, true},  {0, true, false},  {1, false, false},
                 {1, true, true},   {1, true, false}, {2, false, false}, {2, true, false}};
  std::printf("    {{%ld, %ld, %ld, %ld, %ld, %d, %d},", static_cast<long>(s.n), static_cast<long>(s.c / s.groups),
              static_cast<long>(s.o / s.groups), static_cast<long>(s.side), static_cast<long>(s.k), s.stride, s.groups);
  for (const bool by_library : {false, true}) {
    sw::runtime::use_convolution_library(by_library ? library : nullptr);
    std::vector<measured> all;
    for (const auto& c : columns) all.emplace_back(s, c.pass, c.operands, c.result);
    for (int turn = 0; turn < turns; ++turn)
      for (measured& m : all) m.turn();
    const std::int64_t out = all[0].out(s);
    const double multiplications =
        static_cast<double>(s.n * s.o * out * out) * static_cast<double>(s.c / s.groups * s.k * s.k);
    std::printf("%s{", by_library ? ", " : "\n     {");
    for (std::size_t k = 0; k < all.size(); ++k) std::printf("%s%.1f", k ? ", " : "", all[k].least / multiplications * 1e12);
    std::printf("}");
  }
  std::printf("}},\n");
  std::fflush(stdout);
}

// Nanoseconds an element, the mean of both directions and of three numbers of channels. Eight blocks take turns, because a program reads
// and writes others before it comes back to one.
double copied(std::int64_t elements, int turns) {
  double sum = 0;
  for (const std::int64_t channels : {16, 64, 256})
    for (const bool last : {false, true}) {
      const std::int64_t side =
          std::max<std::int64_t>(1, std::llround(std::sqrt(static_cast<double>(elements / channels / 2))));
      constexpr std::size_t blocks = 8;
      std::vector<block> b;
      for (std::size_t k = 0; k < 2 * blocks; ++k)
        b.emplace_back(std::array<std::int64_t, 4>{2, channels, side, side}, k % 2 == 0 ? last : !last);
      for (std::size_t k = 0; k < blocks; ++k) b[2 * k].fill(1);
      const double size = static_cast<double>(b[0].values.size());
      const int calls = std::max(1, static_cast<int>(2e6 / size / blocks));
      double least = 1e30;
      for (int turn = 0; turn < turns; ++turn) {
        const double at = by_hand::seconds();
        for (int call = 0; call < calls; ++call)
          for (std::size_t k = 0; k < blocks; ++k) by_hand::copy(b[2 * k], b[2 * k + 1]);
        least = std::min(least, (by_hand::seconds() - at) / (calls * static_cast<double>(blocks)));
      }
      sum += least * 1e9 / size;
    }
  return sum / 6;
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 9;
  const char* const only = argc > 2 ? argv[2] : "";
  const sw::runtime::convolution_library* const library = sw::runtime::used_convolution_library();
  if (!library) {
    std::fprintf(stderr, "rates: this program is linked without shardwise::onednn, whose column would be missing\n");
    return 1;
  }
  std::printf(R"(// SPDX-License-Identifier: Apache-2.0
// What convolutions and copies between memory formats take on hosts, as measured: written by bench/convolution/rates.cpp, which says how.
// %s; the machine, the command and the date stand in bench/results/convolution.md.
#pragma once

#include <cstdint>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace layout_rates {

// A convolution of a square image, and picoseconds for each of its multiplications by the kernels of convolution_kernels, in this order: forward, all
// contiguous, all channels-last, operands channels-last and result contiguous; the image's gradient likewise; the weight's gradient,
// all contiguous, operands channels-last.
struct row {
  std::int64_t shape[7];  // images, inputs and outputs of a group, side, kernel, stride, groups
  double picoseconds[2][8];
};
// clang-format off
inline constexpr row rows[] = {
)",
              library->name().c_str());
  for (const kind& k : kinds)
    if (std::strstr(k.name, only)) {
      std::printf("    // %s\n", k.name);
      for (const shape& s : k.shapes) row(s, turns, library);
    }
  std::printf(R"(};

// Elements of a copy from one format to the other, and nanoseconds for each.
struct copy_row {
  double elements, nanoseconds;
};
inline constexpr copy_row copies[] = {)");
  for (std::int64_t n = std::int64_t{1} << 9; n <= std::int64_t{1} << 23; n *= 4)
    std::printf("%s{%ld, %.2f}", n > 512 ? ", " : "", static_cast<long>(n), copied(n, turns));
  std::printf(R"(};
// clang-format on

}  // namespace layout_rates

}  // namespace shardwise::inline v0_1
)");
}
