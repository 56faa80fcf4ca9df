// SPDX-License-Identifier: Apache-2.0
// max_pool2d and avg_pool2d against plain loops over padded images, their gradients against differences, and on meshes.
#include <doctest/doctest.h>

#include <cmath>
#include <figures.hpp>
#include <limits>
#include <shardwise/laws/gradcheck.hpp>
#include <shardwise/shardwise.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using figures::apart;
using figures::some;
using figures::whole;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;

// Over a copy of the image with its padding: minus infinity, or zeros of which some count.
struct sizes {
  int n, c, h, w, kh, kw, stride, padding;
  bool up = false;   // extents are rounded up: as many windows as begin in the image or in front of it
  int dilation = 1;  // of the largest elements' windows
  int oh() const { return of(h, kh); }
  int ow() const { return of(w, kw); }
  int of(int extent, int kernel) const {
    int count = 0;
    for (int at = -padding; at < extent; at += stride) {
      const bool fits = at + dilation * (kernel - 1) < extent + padding;
      const bool before_fits = count > 0 && at - stride + dilation * (kernel - 1) < extent + padding - 1;
      if (fits || (up && before_fits)) ++count;
    }
    return count;
  }
};
struct pooled {
  std::vector<double> largest, place, mean, mean_of_counted;
};
pooled plainly(const sizes& s, const std::vector<double>& x) {
  pooled r;
  const int beyond = s.up ? s.stride : 0;  // behind the padding nothing counts
  const int H = s.h + 2 * s.padding + beyond, W = s.w + 2 * s.padding + beyond;
  for (int plane = 0; plane < s.n * s.c; ++plane) {
    std::vector<double> padded(static_cast<std::size_t>(H * W), std::numeric_limits<double>::infinity());
    for (int i = 0; i < s.h * s.w; ++i)
      padded[static_cast<std::size_t>((i / s.w + s.padding) * W + i % s.w + s.padding)] =
          x[static_cast<std::size_t>(plane * s.h * s.w + i)];
    for (int u = 0; u < s.oh(); ++u)
      for (int v = 0; v < s.ow(); ++v) {
        double best = -std::numeric_limits<double>::infinity(), sum = 0;
        int place = -1, count = 0, padding_too = 0;
        for (int p = 0; p < s.kh * s.kw; ++p) {
          const int row = u * s.stride + p / s.kw * s.dilation, column = v * s.stride + p % s.kw * s.dilation;
          const double e = padded[static_cast<std::size_t>(row * W + column)];
          padding_too += row < H - beyond && column < W - beyond ? 1 : 0;
          if (std::isinf(e)) continue;
          sum += e;
          ++count;
          if (e > best) best = e, place = (row - s.padding) * s.w + column - s.padding;
        }
        r.largest.push_back(best);
        r.place.push_back(place);
        r.mean.push_back(sum / padding_too);
        r.mean_of_counted.push_back(sum / count);
      }
  }
  return r;
}

template <int KH, int KW, int Stride, int Padding, bool Counts, bool Up = false, int Dilation = 1>
constexpr sw::pool_options options_of{.kernel = {KH, KW},
                                      .stride = Stride,
                                      .padding = Padding,
                                      .count_include_pad = Counts,
                                      .ceil_mode = Up,
                                      .dilation = Dilation};

template <int N, int C, int H, int W, int KH, int KW, int Stride, int Padding, int Ranks, class Placement, bool Up = false>
void check() {
  const auto x = some(N * C * H * W, 0);
  const pooled want = plainly({N, C, H, W, KH, KW, Stride, Padding, Up}, x);
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image =
        sw::dtensor_of<double, sw::shape<N, C, H, W>, mesh<Ranks>, sw::on<dp<Ranks>, Placement>>::distribute(e, x);
    const auto [values, indices] = sw::max_pool2d_with_indices<options_of<KH, KW, Stride, Padding, true, Up>>(image);
    const auto places = whole(sw::cast<double>(indices));
    const auto largest = whole(values), alone = whole(sw::max_pool2d<options_of<KH, KW, Stride, Padding, true, Up>>(image));
    const auto mean = whole(sw::avg_pool2d<options_of<KH, KW, Stride, Padding, true, Up>>(image)),
               of_counted = whole(sw::avg_pool2d<options_of<KH, KW, Stride, Padding, false, Up>>(image));
    if (rank.index() != 0) return;
    CHECK(largest == want.largest);
    CHECK(alone == want.largest);
    CHECK(places == want.place);
    CHECK(apart(mean, want.mean) < 1e-14);
    CHECK(apart(of_counted, want.mean_of_counted) < 1e-14);
  });
}

TEST_CASE("pooling: windows, strides and paddings, whole and in shards of batch and channels") {
  check<2, 3, 5, 6, 2, 2, 2, 0, 1, sw::replicate>();
  check<2, 3, 5, 6, 3, 2, 1, 1, 1, sw::replicate>();
  check<3, 2, 7, 7, 3, 3, 2, 1, 2, sw::shard<0>>();
  check<2, 5, 7, 4, 2, 3, 3, 1, 3, sw::shard<1>>();
}
TEST_CASE("pooling: extents rounded up, whole and in shards") {
  check<2, 3, 5, 6, 2, 2, 2, 0, 1, sw::replicate, true>();
  check<2, 1, 9, 8, 3, 3, 2, 1, 1, sw::replicate, true>();
  check<2, 1, 8, 7, 3, 2, 3, 1, 1, sw::replicate, true>();
  check<2, 1, 6, 6, 2, 2, 4, 1, 1, sw::replicate, true>();  // a last window would begin behind the image
  check<3, 2, 7, 5, 3, 3, 2, 0, 2, sw::shard<0>, true>();
  check<2, 2, 9, 6, 2, 3, 2, 1, 3, sw::shard<2>, true>();
  check<1, 2, 5, 11, 4, 4, 3, 2, 4, sw::shard<3>, true>();
}
// Of dilated windows the largest, whole and cut; means have no dilation.
template <int N, int C, int H, int W, int K, int Stride, int Padding, int Dilation, bool Up, int Ranks, class Placement>
void check_dilated() {
  const auto x = some(N * C * H * W, 0);
  const pooled want = plainly({N, C, H, W, K, K, Stride, Padding, Up, Dilation}, x);
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image =
        sw::dtensor_of<double, sw::shape<N, C, H, W>, mesh<Ranks>, sw::on<dp<Ranks>, Placement>>::distribute(e, x);
    const auto [values, indices] = sw::max_pool2d_with_indices<options_of<K, K, Stride, Padding, true, Up, Dilation>>(image);
    CHECK(whole(values) == want.largest);
    CHECK(whole(sw::cast<double>(indices)) == want.place);
  });
}
TEST_CASE("pooling: dilated windows, whole and in shards") {
  check_dilated<2, 2, 7, 8, 2, 1, 0, 2, false, 1, sw::replicate>();
  check_dilated<1, 2, 9, 7, 3, 2, 2, 2, false, 1, sw::replicate>();
  check_dilated<1, 2, 9, 7, 3, 2, 2, 2, true, 1, sw::replicate>();
  check_dilated<1, 2, 8, 9, 3, 1, 3, 3, false, 1, sw::replicate>();
  check_dilated<1, 2, 9, 5, 3, 2, 2, 2, true, 3, sw::shard<2>>();
  check_dilated<1, 2, 6, 11, 2, 1, 1, 3, false, 4, sw::shard<3>>();
}
TEST_CASE("pooling: a divisor in place of the count") {
  const auto x = some(2 * 3 * 5 * 4, 0);
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image = sw::dtensor_of<double, sw::shape<2, 3, 5, 4>, mesh<1>>::distribute(e, x);
    constexpr sw::pool_options windows{.kernel = 2, .padding = 1}, divided{.kernel = 2, .padding = 1, .divisor_override = 3};
    const auto mean = whole(sw::avg_pool2d<windows>(image));
    auto sums = whole(sw::avg_pool2d<divided>(image));
    for (double& s : sums) s *= 3. / 4;
    CHECK(apart(sums, mean) < 1e-14);
  });
}
TEST_CASE("pooling: images cut in height or width, uneven and empty shards included") {
  check<2, 3, 8, 6, 2, 2, 2, 0, 2, sw::shard<2>>();
  check<2, 3, 7, 6, 3, 2, 1, 1, 3, sw::shard<2>>();
  check<1, 2, 9, 7, 3, 3, 2, 1, 4, sw::shard<2>>();
  check<1, 2, 5, 11, 4, 4, 3, 2, 8, sw::shard<3>>();
  check<1, 2, 7, 5, 1, 1, 1, 0, 3, sw::shard<2>>();
}

template <sw::pool_options O>
struct largest {
  constexpr auto operator()(const auto& x) const { return sw::max_pool2d<O>(x); }
};
template <sw::pool_options O>
struct mean {
  constexpr auto operator()(const auto& x) const { return sw::avg_pool2d<O>(x); }
};
struct mean_back {
  constexpr auto operator()(const auto& dy) const {
    return sw::call<sw::custom::avg_pool2d_dx,
                    sw::pack_attributes(sw::pool_attributes{
                        .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}, .counts_padding = 0, .extent = {5, 3}})>(dy);
  }
};
TEST_CASE("pooling: gradients against differences") {
  using options = sw::pool_options;
  CHECK(sw::gradcheck<largest<options{.kernel = 2}>, sw::shape<2, 2, 4, 5>>() == 80);
  CHECK(sw::gradcheck<largest<options{.kernel = 3, .stride = 1, .padding = 1}>, sw::shape<1, 2, 4, 5>>() == 40);
  CHECK(sw::gradcheck<mean<options{.kernel = {3, 2}, .stride = 2, .padding = 1}>, sw::shape<2, 2, 4, 5>>() == 80);
  CHECK(sw::gradcheck<mean<options{.kernel = 3, .stride = 1, .padding = 1, .count_include_pad = false}>,
                      sw::shape<1, 2, 4, 5>>() == 40);
  CHECK(sw::gradcheck<mean_back, sw::shape<1, 2, 3, 4>>() == 24);
  CHECK(sw::gradcheck<largest<options{.kernel = 2, .stride = 1, .padding = 1, .dilation = 2}>, sw::shape<1, 2, 4, 5>>() ==
        40);
  CHECK(sw::gradcheck<largest<options{.kernel = 2, .ceil_mode = true}>, sw::shape<1, 2, 5, 3>>() == 30);
  CHECK(sw::gradcheck<mean<options{.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true}>, sw::shape<1, 2, 4, 6>>() ==
        48);
  CHECK(sw::gradcheck<mean<options{.kernel = 2, .divisor_override = 3}>, sw::shape<1, 2, 4, 5>>() == 40);
}

// Cotangents that lie turned are copied, one for each window: an adjoint appends more nodes than itself.
template <bool Largest, int N>
struct turned {
  constexpr auto operator()(const auto& x) const {
    constexpr sw::pool_options options{.kernel = 2, .stride = 1};
    if constexpr (N == 0) return x;
    else if constexpr (Largest) return turned<Largest, N - 1>{}(sw::transpose<2, 3>(sw::max_pool2d<options>(x)));
    else return turned<Largest, N - 1>{}(sw::transpose<2, 3>(sw::avg_pool2d<options>(x)));
  }
};
TEST_CASE("pooling: gradients through many windows whose cotangents lie turned") {
  CHECK(sw::gradcheck<turned<true, 10>, sw::shape<1, 1, 11, 12>>() == 132);
  CHECK(sw::gradcheck<turned<false, 10>, sw::shape<1, 1, 11, 12>>() == 132);
}

TEST_CASE("pooling: of equals the first is taken") {
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image = sw::dtensor_of<double, sw::shape<1, 1, 2, 4>, mesh<1>>::distribute(e, std::vector<double>(8, 1.5));
    const auto [values, indices] = sw::max_pool2d_with_indices<sw::pool_options{.kernel = 2}>(image);
    CHECK(whole(sw::cast<double>(indices)) == std::vector<double>{0, 2});
    CHECK(whole(values) == std::vector<double>{1.5, 1.5});
  });
}
TEST_CASE("pooling: a NaN wins") {
  std::vector<double> x = some(16, 0);
  x[5] = std::numeric_limits<double>::quiet_NaN();
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image = sw::dtensor_of<double, sw::shape<1, 1, 4, 4>, mesh<1>>::distribute(e, x);
    const auto [values, indices] = sw::max_pool2d_with_indices<sw::pool_options{.kernel = 2}>(image);
    CHECK(std::isnan(whole(values)[0]));
    CHECK(whole(sw::cast<double>(indices))[0] == 5);
  });
}

}  // namespace
