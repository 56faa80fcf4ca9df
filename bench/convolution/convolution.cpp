// SPDX-License-Identifier: Apache-2.0
// Convolutions on one core: the host's kernels in both memory formats, forward and both gradients, beside the plain loop that computes
// an element at a time, and beside one matrix product of as many multiplications. Turn by turn in one process, after all have given the
// same; processor time, medians. usage: convolution [turns] [words of the shapes' names]
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <shardwise/shardwise.hpp>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::runtime::call;
using sw::runtime::layout;
using sw::runtime::result;

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

double seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct block {
  layout l;
  std::vector<float> values;

  block(const std::array<std::int64_t, 4>& extent, bool channels_last) {
    l.rank = 4;
    for (int d = 0; d < 4; ++d) l.ext[d] = l.global[d] = extent[static_cast<std::size_t>(d)];
    const std::int64_t last[] = {l.ext[1] * l.ext[2] * l.ext[3] + 1, 1, l.ext[3] * l.ext[1], l.ext[1]};
    if (channels_last) l.make_dense_as(last);
    else l.make_dense();
    values.resize(static_cast<std::size_t>(l.numel()));
  }
  float& at(const std::int64_t* i) {
    return values[static_cast<std::size_t>(i[0] * l.str[0] + i[1] * l.str[1] + i[2] * l.str[2] + i[3] * l.str[3])];
  }
  template <class F>
  void each(const F& f) {
    std::int64_t i[4];
    for (i[0] = 0; i[0] < l.ext[0]; ++i[0])
      for (i[1] = 0; i[1] < l.ext[1]; ++i[1])
        for (i[2] = 0; i[2] < l.ext[2]; ++i[2])
          for (i[3] = 0; i[3] < l.ext[3]; ++i[3]) f(i);
  }
  void fill(std::int64_t salt) {
    std::int64_t at_most = salt;
    each([&](const std::int64_t* i) { at(i) = static_cast<float>((at_most += 7919) % 401) / 100.0F - 2.0F; });
  }
};

// x, weight and y of one format, and the three kernels' scratch.
struct run {
  block x, weight, y;
  shape s;
  std::vector<float> scratch;

  run(const shape& of, bool channels_last)
      : x({of.n, of.c, of.h, of.w}, channels_last),
        weight({of.o, of.c / of.groups, of.k, of.k}, channels_last),
        y({of.n, of.o, of.oh(), of.ow()}, channels_last),
        s(of) {
    x.fill(1);
    weight.fill(2);
    y.fill(3);
  }
  template <class F>
  void with(const sw::operation& o, block& a, block& b, block& out, const F& f) {
    sw::spec specs[3]{};
    const block* const all[] = {&a, &b, &out};
    for (int i = 0; i < 3; ++i) {
      specs[i].rank = 4;
      specs[i].type = sw::dtype::f32;
      for (int d = 0; d < 4; ++d) specs[i].extent[d] = all[i]->l.ext[d];
    }
    const sw::spec* const in[] = {&specs[0], &specs[1]};
    call c;
    c.a = sw::pack_attributes(s.attributes());
    c.inputs = c.all_inputs = 2;
    sw::host::operands<float> q;
    for (int i = 0; i < 3; ++i) {
      c.l[i < 2 ? i : result] = all[i]->l;
      q.p[i < 2 ? i : result] = const_cast<float*>(all[i]->values.data());
    }
    scratch.resize(static_cast<std::size_t>(o.host_scratch.value(c.a, in, 2, specs[2])) / sizeof(float) + 16);
    q.scratch = scratch.data();
    while (reinterpret_cast<std::uintptr_t>(q.scratch) % 64 != 0) ++q.scratch;
    q.has_scratch = true;
    f(sw::kernel_arguments<float>(c, q));
  }
  // 0 forward, 1 the image's gradient, 2 the weight's
  void kernel(int which, block& out) {
    if (which == 0)
      with(sw::operations::convolution, x, weight, out, [](const auto& k) { sw::host_kernel<sw::custom::conv2d>::run(k); });
    else if (which == 1)
      with(sw::operations::convolution_dx, y, weight, out,
           [](const auto& k) { sw::host_kernel<sw::custom::conv2d_dx>::run(k); });
    else
      with(sw::operations::convolution_dw, y, x, out, [](const auto& k) { sw::host_kernel<sw::custom::conv2d_dw>::run(k); });
  }
  void plainly(int which, block& out) {
    using namespace sw::host;
    if (which == 0)
      with(sw::operations::convolution, x, weight, out,
           [](const auto& k) { convolve_plainly<convolution_result>(k, blocks_of(k, 0, 1, -1)); });
    else if (which == 1)
      with(sw::operations::convolution_dx, y, weight, out,
           [](const auto& k) { convolve_plainly<convolution_dx_result>(k, blocks_of(k, -1, 1, 0)); });
    else
      with(sw::operations::convolution_dw, y, x, out,
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
double median(std::vector<double> t) {
  std::sort(t.begin(), t.end());
  return t[t.size() / 2];
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
