// SPDX-License-Identifier: Apache-2.0
// Convolutions on one core: the host's kernels in both memory formats, forward and both gradients, beside the plain loop that computes
// an element at a time, and beside one matrix product of as many multiplications. Turn by turn in one process, after all have given the
// same; processor time, medians. usage: convolution [turns] [words of the shapes' names]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "by_hand.hpp"

namespace {

namespace sw = shardwise;
using by_hand::block;
using by_hand::median;
using by_hand::seconds;

struct shape {
  const char* name;
  std::int64_t n, c, h, w, o, k;
  std::int16_t stride, padding;
  std::int32_t groups;

  sw::convolution_attributes attributes() const {
    return {{stride, stride}, {padding, padding}, {1, 1}, groups, {0, 0}, {0, 0}};
  }
  std::int64_t oh() const { return sw::operations::convolved_extent(attributes(), 0, h, k); }
  std::int64_t ow() const { return sw::operations::convolved_extent(attributes(), 1, w, k); }
  double multiplications() const {
    return static_cast<double>(n * o * oh() * ow()) * static_cast<double>(c / groups * k * k);
  }
};
constexpr shape shapes[] = {{"first 7x7 stride 2", 1, 3, 224, 224, 64, 7, 2, 3, 1},
                            {"3x3 64 channels", 1, 64, 56, 56, 64, 3, 1, 1, 1},
                            {"3x3 128 channels stride 2", 2, 128, 56, 56, 128, 3, 2, 1, 1},
                            {"3x3 256 channels", 2, 256, 14, 14, 256, 3, 1, 1, 1},
                            {"3x3 512 channels", 2, 512, 7, 7, 512, 3, 1, 1, 1},
                            {"1x1 256 to 64", 2, 256, 56, 56, 64, 1, 1, 0, 1},
                            {"3x3 32 groups of 4", 2, 128, 56, 56, 128, 3, 1, 1, 32},
                            {"depthwise 3x3", 4, 128, 56, 56, 128, 3, 1, 1, 128},
                            {"depthwise 3x3 stride 2", 4, 128, 56, 56, 128, 3, 2, 1, 128},
                            {"depthwise 7x7", 2, 128, 28, 28, 128, 7, 1, 3, 128}};

// x, weight and y of one format.
struct run {
  block x, weight, y;
  shape s;

  run(const shape& of, bool channels_last)
      : x({of.n, of.c, of.h, of.w}, channels_last),
        weight({of.o, of.c / of.groups, of.k, of.k}, channels_last),
        y({of.n, of.o, of.oh(), of.ow()}, channels_last),
        s(of) {
    x.fill(1);
    weight.fill(2);
    y.fill(3);
  }
  // 0 forward, 1 the image's gradient, 2 the weight's
  void kernel(int which, block& out) {
    if (which == 0) by_hand::forward(s.attributes(), x, weight, out);
    else if (which == 1) by_hand::image_gradient(s.attributes(), y, weight, out);
    else by_hand::weight_gradient(s.attributes(), y, x, out);
  }
  void plainly(int which, block& out) {
    using namespace sw::host;
    const auto a = s.attributes();
    if (which == 0)
      by_hand::with(sw::operations::convolution, a, x, weight, out,
                    [](const auto& k) { convolve_plainly<convolution_result>(k, blocks_of(k, 0, 1, -1)); });
    else if (which == 1)
      by_hand::with(sw::operations::convolution_dx, a, y, weight, out,
                    [](const auto& k) { convolve_plainly<convolution_dx_result>(k, blocks_of(k, -1, 1, 0)); });
    else
      by_hand::with(sw::operations::convolution_dw, a, y, x, out,
                    [](const auto& k) { convolve_plainly<convolution_dw_result>(k, blocks_of(k, 1, -1, 0)); });
  }
  block result_of(int which) const { return which == 0 ? y : which == 1 ? x : weight; }
};

double apart(block& a, block& b) {
  double worst = 0, largest = 0;
  a.each([&](const std::int64_t* i) {
    largest = std::max(largest, std::abs(static_cast<double>(b.at(i))));
    worst = std::max(worst, std::abs(static_cast<double>(a.at(i)) - static_cast<double>(b.at(i))));
  });
  return worst / largest;
}
// Seconds of a square product of 768, a multiplication.
double of_product() {
  constexpr long n = 768;
  static std::vector<float> a(n * n, 1.0F), b(n * n, 0.5F), c(n * n);
  static std::vector<float> space(sw::host::gemm_workspace_bytes<float>(n, n, n) / sizeof(float) + 16);
  float* w = space.data();
  while (reinterpret_cast<std::uintptr_t>(w) % 64 != 0) ++w;
  const double from = seconds();
  sw::host::gemm<float>(n, n, n, 1, {a.data(), n, 1}, {b.data(), n, 1}, 0, {c.data(), n, 1}, w);
  return (seconds() - from) / (static_cast<double>(n) * n * n);
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 5;
  const char* const only = argc > 2 ? argv[2] : "";
  const char* const names[] = {"forward", "dx", "dw"};
  std::printf(
      "| shape | kernel | plain ms | NCHW ms | NHWC ms | plain / NCHW | plain / NHWC | of a product's rate, NCHW | NHWC |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  double worst = 0;
  for (const shape& s : shapes) {
    if (!std::strstr(s.name, only)) continue;
    run contiguous(s, false), last(s, true);
    for (int which = 0; which < 3; ++which) {
      block want = contiguous.result_of(which), a = want, b = last.result_of(which);
      contiguous.plainly(which, want);
      contiguous.kernel(which, a);
      last.kernel(which, b);
      worst = std::max(worst, apart(a, want));
      double bits = 0;
      a.each([&](const std::int64_t* i) { bits += a.at(i) != b.at(i); });
      if (bits > 0) std::printf("the formats differ in %g elements\n", bits);
      std::vector<double> t[4];
      for (int turn = 0; turn < turns; ++turn) {
        double at = seconds();
        contiguous.plainly(which, want);
        t[0].push_back(seconds() - at);
        for (int again = 0; again < 3; ++again) {  // short ones more often
          at = seconds();
          contiguous.kernel(which, a);
          t[1].push_back(seconds() - at);
          at = seconds();
          last.kernel(which, b);
          t[2].push_back(seconds() - at);
        }
        t[3].push_back(of_product());
      }
      const double plain = median(t[0]), nchw = median(t[1]), nhwc = median(t[2]),
                   product = median(t[3]) * s.multiplications();
      std::printf("| %s | %s | %.1f | %.2f | %.2f | %.1f | %.1f | %.2f | %.2f |\n", s.name, names[which], plain * 1e3,
                  nchw * 1e3, nhwc * 1e3, plain / nchw, plain / nhwc, product / nchw, product / nhwc);
      std::fflush(stdout);
    }
  }
  std::printf("\nlargest difference to the plain loop: %.1e\n", worst);
}
