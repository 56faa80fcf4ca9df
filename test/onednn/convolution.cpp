// SPDX-License-Identifier: Apache-2.0
// Convolutions by oneDNN: within what rounding allows of the exact sums, in every format and share; the same bits from run to run; what it
// does not take has the built-in kernel's bits, and the report says why; one plan for each problem, and a bound on how many.
#include <doctest/doctest.h>

#include <convolving.hpp>
#include <filesystem>
#include <shardwise/runtime/host/convolution_library.hpp>
#include <string>
#include <thread>

namespace {

using namespace convolving;
namespace runtime = sw::runtime;

constexpr which passes[] = {which::forward, which::dx, which::dw};

// Without a library while it lives.
struct built_in {
  const runtime::convolution_library* const before = runtime::used_convolution_library();
  built_in() { runtime::use_convolution_library(nullptr); }
  ~built_in() { runtime::use_convolution_library(before); }
};
bool says(const std::string& text) { return runtime::convolution_report().find(text) != std::string::npos; }

std::int64_t summands(const sizes& s, which k) {
  if (k == which::forward) return s.c / s.a.groups * s.kh * s.kw;
  if (k == which::dx) return s.o / s.a.groups * s.kh * s.kw;
  return s.n * s.y()[2] * s.y()[3];
}

// Law: a sum of n products in float, in any order, is within n u / (1 - n u) of the exact one, in units of the sum of the products'
// magnitudes; u is half of epsilon, and products of floats are exact in double.
double worst_share(const sizes& s, which k, const std::vector<float>& a, const std::vector<float>& b,
                   const std::vector<float>& got) {
  const std::vector<double> x(a.begin(), a.end()), y(b.begin(), b.end());
  std::vector<double> ax, ay;
  for (const double v : x) ax.push_back(std::abs(v));
  for (const double v : y) ay.push_back(std::abs(v));
  const auto exact = computed<double>(s, k, x, y, plain, 1, true),
             magnitude = computed<double>(s, k, ax, ay, plain, 1, true);
  const double nu = static_cast<double>(summands(s, k)) * static_cast<double>(std::numeric_limits<float>::epsilon()) / 2;
  REQUIRE(got.size() == exact.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(static_cast<double>(got[i]) - exact[i]), allowed = nu / (1 - nu) * magnitude[i];
    if (!(off <= allowed * worst)) worst = allowed > 0 ? off / allowed : off > 0 ? 1e9 : worst;
  }
  return worst;
}

int taken = 0, refused = 0;

void check(const sizes& s) {
  for (const which k : passes) {
    const auto e = operands_of(s, k);
    const auto x = some<float>(count(e[0]), 0), y = some<float>(count(e[1]), 1);
    for (const format f : each) {
      CAPTURE(static_cast<int>(k));
      CAPTURE(static_cast<int>(f));
      CAPTURE(runtime::convolution_report());
      runtime::clear_convolution_report();
      const auto got = computed<float>(s, k, x, y, {f, f, f});
      (says("oneDNN ") ? taken : refused) += 1;
      CHECK(worst_share(s, k, x, y, got) <= 1);
      CHECK(same_bits(got, computed<float>(s, k, x, y, {f, f, f})));
      for (const int shares : {2, 3, 7}) {
        const auto cut = computed<float>(s, k, x, y, {f, f, f}, shares);
        CHECK(worst_share(s, k, x, y, cut) <= 1);
        CHECK(same_bits(cut, computed<float>(s, k, x, y, {f, f, f}, shares)));
      }
    }
    for (const format f : {format::contiguous, format::channels_last}) {  // operands of different formats
      CHECK(worst_share(s, k, x, y, computed<float>(s, k, x, y, {f, format::contiguous, format::channels_last})) <= 1);
      CHECK(worst_share(s, k, x, y, computed<float>(s, k, x, y, {format::channels_last, f, format::contiguous})) <= 1);
    }
  }
}

TEST_CASE("a program that links shardwise::onednn has it registered, and it says its version") {
  REQUIRE(runtime::used_convolution_library());
  CHECK(runtime::used_convolution_library()->name().find("oneDNN ") == 0);
}
TEST_CASE("oneDNN's convolutions are within rounding of the exact sums, in every format and share") {
  taken = refused = 0;
  SUBCASE("strides, paddings and dilations") {
    check({2, 3, 7, 6, 5, 3, 3, with(1, 1)});
    check({2, 5, 8, 9, 4, 3, 2, with(2, 1)});
    check({1, 4, 9, 8, 3, 2, 3, with(3, 2, 2)});
    check({2, 3, 6, 5, 4, 3, 3, with(2, 3, 4)});
    check({1, 2, 5, 4, 3, 2, 4, with(1, 0, 1, 1, 1)});
    check({1, 2, 4, 4, 3, 3, 3, with(2, 4)});  // windows that see no element
  }
  SUBCASE("one by one kernels, whole images, single places and channels") {
    check({3, 6, 5, 4, 7, 1, 1, with(1, 0)});
    check({2, 32, 5, 4, 16, 1, 1, with(2, 0)});
    check({2, 6, 5, 4, 7, 1, 1, with(1, 1)});
    check({3, 4, 3, 3, 5, 3, 3, with(1, 0)});
    check({2, 4, 1, 6, 5, 1, 3, with(1, 0)});
    check({1, 1, 5, 5, 1, 3, 3, with(1, 1)});
  }
  SUBCASE("groups and depthwise") {
    check({2, 8, 5, 19, 8, 3, 3, with(1, 1, 1, 2)});
    check({2, 64, 7, 6, 32, 3, 3, with(2, 1, 1, 2)});
    check({2, 6, 5, 20, 9, 3, 3, with(1, 1, 1, 3)});
    check({1, 12, 5, 6, 24, 3, 2, with(1, 1, 1, 6)});
    check({2, 5, 6, 21, 5, 3, 3, with(1, 1, 1, 5)});
    check({2, 37, 6, 7, 37, 3, 3, with(2, 1, 1, 37)});
    check({1, 81, 9, 11, 81, 5, 5, with(1, 4, 2, 81)});
    check({2, 64, 14, 15, 64, 7, 7, with(1, 3, 1, 64)});
    check({2, 6, 6, 7, 12, 3, 3, with(2, 1, 1, 6)});
    check({2, 12, 6, 7, 6, 3, 3, with(1, 1, 1, 6)});
  }
  SUBCASE("many channels and places") {
    check({2, 70, 5, 6, 35, 3, 3, with(1, 1)});
    check({3, 4, 14, 15, 5, 3, 3, with(1, 1)});
    check({2, 64, 14, 14, 64, 3, 3, with(1, 1)});
    check({2, 3, 32, 33, 64, 7, 7, with(2, 3)});
  }
  CHECK(taken > 0);
  MESSAGE(taken << " by oneDNN, " << refused << " by the built-in kernel");
}

TEST_CASE("what oneDNN does not take has the bits of the built-in kernel, and the report says why") {
  const sizes s{2, 4, 5, 6, 4, 3, 3, with(1, 1)};
  const auto both = [&]<class T>(const sizes& of, which k, std::vector<T> x, std::vector<T> y, format f) {
    const auto got = computed<T>(of, k, x, y, {f, f, f}), cut = computed<T>(of, k, x, y, {f, f, f}, 3);
    const built_in none;
    const auto want = computed<T>(of, k, x, y, {f, f, f});
    const auto is = [](const std::vector<T>& a, const std::vector<T>& b) {
      return a.size() == b.size() && (a.empty() || same_bits(a, b));
    };
    return is(got, want) && is(cut, want);
  };
  runtime::clear_convolution_report();
  for (const which k : passes)
    for (const format f : each) {
      const auto e = operands_of(s, k);
      CHECK(both(s, k, some<double>(count(e[0]), 0), some<double>(count(e[1]), 1), f));
      auto x = some<float>(count(e[0]), 0), y = some<float>(count(e[1]), 1);
      (k == which::dw ? x : y)[2] = std::numeric_limits<float>::infinity();
      CHECK(both(s, k, x, y, f));
      const sizes empty{0, 4, 5, 6, 4, 3, 3, with(1, 1)};
      const auto n = operands_of(empty, k);
      CHECK(both(empty, k, some<float>(count(n[0]), 0), some<float>(count(n[1]), 1), f));
    }
  CHECK(says(
      "forward of double, image 2 4 5 6, kernel 4 4 3 3, padding 1 1 1 1: built-in kernel (elements of float alone are taken), 1 call\n"));
  CHECK(says("not one piece of finite numbers"));
  CHECK(says(
      "gradient of the weight of float, image 0 4 5 6, kernel 4 4 3 3, padding 1 1 1 1: built-in kernel (a block is empty)"));
}

TEST_CASE("a convolution is planned once, and of more than are kept the first is dropped") {
  runtime::clear_convolution_report();
  const auto forward = [](std::int64_t width) {
    const sizes s{1, 1, 1, width, 1, 1, 1, with(1, 0)};
    computed<float>(s, which::forward, some<float>(width, 0), some<float>(1, 1), plain);
  };
  for (int i = 0; i < 3; ++i) forward(5);
  CHECK(says("forward of float, image 1 1 1 5, kernel 1 1 1 1: "));
  CHECK(says(", 3 calls\n"));
  for (std::int64_t w = 1; w <= 1026; ++w) forward(w);
  CHECK(!says("image 1 1 1 5,"));  // met first
  CHECK(says("image 1 1 1 1026,"));
  CHECK(says("and 2 that were dropped from the 1024 that are kept\n"));
  runtime::clear_convolution_report();
  CHECK(runtime::convolution_report().empty());
}

std::size_t threads() {
  std::size_t n = 0;
  for (const auto& e : std::filesystem::directory_iterator("/proc/self/task")) n += e.is_directory() ? 1 : 0;
  return n;
}
TEST_CASE("ranks that compute by oneDNN at once get their own bits, and start no threads") {
  const sizes s{2, 32, 28, 28, 32, 3, 3, with(1, 1)};
  std::vector<float> want[3];
  const auto compute = [&](which k) {
    const auto e = operands_of(s, k);
    return computed<float>(s, k, some<float>(count(e[0]), 0), some<float>(count(e[1]), 1), plain);
  };
  runtime::clear_convolution_report();
  for (const which k : passes) want[static_cast<int>(k)] = compute(k);
  const std::size_t before = threads();
  std::vector<std::thread> ranks;
  std::size_t seen[4]{};
  bool same[4]{};
  for (int r = 0; r < 4; ++r)
    ranks.emplace_back([&, r] {
      same[r] = true;
      for (int again = 0; again < 5; ++again)
        for (const which k : passes) {
          same[r] = same[r] && same_bits(compute(k), want[static_cast<int>(k)]);
          seen[r] = std::max(seen[r], threads());
        }
    });
  for (std::thread& t : ranks) t.join();
  for (int r = 0; r < 4; ++r) {
    CHECK(same[r]);
    CHECK(seen[r] <= before + 4);
  }
}

}  // namespace
