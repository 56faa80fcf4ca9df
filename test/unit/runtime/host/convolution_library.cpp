// SPDX-License-Identifier: Apache-2.0
// Convolutions by a registered library: it is asked with what the kernel would compute, whole and in the parts of threads, what it refuses
// has the built-in kernel's bits, and the report is the library's.
#include <doctest/doctest.h>

#include <convolving.hpp>
#include <string>

namespace {

using namespace convolving;
namespace runtime = sw::runtime;

int runs = 0;
bool takes_odd_ones = false;  // of images, outputs and channels

// A library that computes each element of what it takes by the plain formula.
bool compute(const runtime::convolution_request& r, const runtime::convolution_pointers& p) {
  if (r.type != sw::dtype::f32 || !r.finite || (!takes_odd_ones && (r.n + r.o + r.c) % 2 != 0)) return false;
  ++runs;
  sw::host::convolution_blocks b;
  b.n = r.n;
  b.c = r.c;
  b.h = r.h;
  b.w = r.w;
  b.o = r.o;
  b.i = r.i;
  b.kh = r.kh;
  b.kw = r.kw;
  b.oh = r.oh;
  b.ow = r.ow;
  b.a.groups = static_cast<std::int32_t>(r.groups);
  for (int d = 0; d < 2; ++d) {
    b.a.stride[d] = static_cast<std::int16_t>(r.stride[d]);
    b.a.padding[d] = static_cast<std::int16_t>(r.before[d]);
    b.a.dilation[d] = static_cast<std::int16_t>(r.dilation[d]);
  }
  for (int d = 0; d < 4; ++d) {
    b.x.of[d] = r.image[d];
    b.weight.of[d] = r.weight[d];
    b.y.of[d] = r.result[d];
  }
  float* const image = static_cast<float*>(p.image);
  float* const weight = static_cast<float*>(p.weight);
  float* const result = static_cast<float*>(p.result);
  using sum = sw::host::math<float>::accumulator;
  const auto each = [](std::int64_t k, std::int64_t l, std::int64_t m, std::int64_t n, const auto& f) {
    for (std::int64_t at = 0; at < k * l * m * n; ++at) f(at / (l * m * n), at / (m * n) % l, at / n % m, at % n);
  };
  if (r.pass == runtime::convolution_pass::forward)
    each(b.n, b.o, b.oh, b.ow, [&](auto n, auto o, auto u, auto v) {
      result[b.y(n, o, u, v)] = sw::host::convolution_result::at<sum>(b, image, weight, n, o, u, v);
    });
  else if (r.pass == runtime::convolution_pass::image_gradient)
    each(b.n, b.c, b.h, b.w, [&](auto n, auto c, auto u, auto v) {
      image[b.x(n, c, u, v)] = sw::host::convolution_dx_result::at<sum>(b, result, weight, n, c, u, v);
    });
  else
    each(b.o, b.i, b.kh, b.kw, [&](auto o, auto i, auto u, auto v) {
      weight[b.weight(o, i, u, v)] = sw::host::convolution_dw_result::at<sum>(b, result, image, o, i, u, v);
    });
  return true;
}
constexpr runtime::convolution_library plain_loops{[] { return std::string("plain 1.0"); }, &compute,
                                                   [] { return std::to_string(runs) + " runs\n"; }, [] { runs = 0; }};

struct registered {
  const runtime::convolution_library* const before = runtime::used_convolution_library();
  explicit registered(const runtime::convolution_library* l) { runtime::use_convolution_library(l); }
  ~registered() { runtime::use_convolution_library(before); }
};

// A share that is refused is the built-in kernel's, and no element is left out or written by two.
void check(const sizes& s) {
  for (const which k : {which::forward, which::dx, which::dw}) {
    const auto e = operands_of(s, k);
    const auto x = some<float>(count(e[0]), 0), y = some<float>(count(e[1]), 1);
    const auto loops = computed<float>(s, k, x, y, plain, 1, true);
    for (const format f : each)
      for (const int shares : {1, 2, 3, 7}) {
        CAPTURE(static_cast<int>(k));
        CAPTURE(shares);
        const registered library(&plain_loops);
        takes_odd_ones = true;
        runs = 0;
        const auto got = computed<float>(s, k, x, y, {f, f, f}, shares);
        const bool is_finite =
            f != format::spread || (s.a.padding[0] == 0 && s.a.further[0] == 0);  // a spread one is no piece
        CHECK((runs > 0) == is_finite);
        CHECK((is_finite ? same_bits(got, loops) : apart(got, loops) < 1e-5));
        CHECK(runtime::convolution_report() == std::to_string(runs) + " runs\n");
        takes_odd_ones = false;
        CHECK(apart(computed<float>(s, k, x, y, {f, f, f}, shares), loops) < 1e-5);
        const auto xs = some<double>(count(e[0]), 0), ys = some<double>(count(e[1]), 1);
        const auto by_parts = computed<double>(s, k, xs, ys, {f, f, f}, shares);
        const registered none(nullptr);
        CHECK(same_bits(by_parts, computed<double>(s, k, xs, ys, plain)));
      }
  }
}
TEST_CASE("a registered library of convolutions computes what it takes, whole and in threads' parts") {
  check({2, 3, 7, 6, 5, 3, 3, with(1, 1)});
  check({5, 4, 8, 9, 6, 3, 2, with(2, 0)});
  check({1, 6, 6, 5, 9, 3, 3, with(1, 1, 1, 3)});
  check({1, 5, 6, 21, 10, 3, 3, with(2, 1, 1, 5)});
  check({1, 2, 5, 4, 3, 2, 4, with(1, 0, 1, 1, 1)});
}
TEST_CASE("a library of convolutions is not given factors that are no finite numbers beside padding") {
  takes_odd_ones = true;
  for (const which k : {which::forward, which::dx, which::dw})
    for (const int padding : {0, 1}) {
      const sizes s{2, 4, 5, 6, 4, 3, 3, with(1, static_cast<std::int16_t>(padding))};
      const auto e = operands_of(s, k);
      auto x = some<float>(count(e[0]), 0), y = some<float>(count(e[1]), 1);
      (k == which::dw ? x : y)[3] = std::numeric_limits<float>::infinity();
      const registered library(&plain_loops);
      runs = 0;
      computed<float>(s, k, x, y, plain);
      CHECK(runs == (padding == 0 ? 1 : 0));
    }
}
TEST_CASE("without a library of convolutions the report names what to link") {
  const registered none(nullptr);
  CHECK(runtime::convolution_report() ==
        "no library is linked (shardwise::onednn): convolutions run by the built-in kernels\n");
}

}  // namespace
