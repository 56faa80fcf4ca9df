// SPDX-License-Identifier: Apache-2.0
// conv2d of images whose height, width or both are cut over ranks: values and gradients of every order equal those of whole images, what
// is sent is the halos alone, and a network trains alike.
#include <doctest/doctest.h>

#include <figures.hpp>
#include <shardwise/shardwise.hpp>
#include <tuple>
#include <vector>

namespace {

namespace sw = shardwise;
using figures::apart;
using figures::some;
using figures::whole;

template <int N>
struct hp : sw::axis<N> {};
template <int N>
struct wp : sw::axis<N> {};
template <int H, int W>
using mesh = sw::mesh<hp<H>, wp<W>>;
using options = sw::convolution_options;

template <options O>
struct convolved {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::sum(sw::tanh(sw::conv2d<O>(x, w))); }
};
// An image of 2 x C x Height x Width, a kernel of KH x KW.
template <int C, int Height, int Width, int O, int KH, int KW>
struct problem {
  template <class F, int H, int W, bool CutHeight, bool CutWidth>
  static std::vector<double> values() {
    std::vector<double> all;
    sw::launch<mesh<H, W>>([&](auto& rank) {
      sw::eager e(rank);
      using image = sw::dtensor_of<double, sw::shape<2, C, Height, Width>, mesh<H, W>,
                                   sw::on<hp<H>, std::conditional_t<CutHeight, sw::shard<2>, sw::replicate>>,
                                   sw::on<wp<W>, std::conditional_t<CutWidth, sw::shard<3>, sw::replicate>>>;
      using weight = sw::dtensor_of<double, sw::shape<O, C, KH, KW>, mesh<H, W>,
                                    sw::on<hp<H>, std::conditional_t<CutHeight, sw::reduced, sw::replicate>>,
                                    sw::on<wp<W>, std::conditional_t<CutWidth, sw::reduced, sw::replicate>>>;
      const auto r = sw::value_and_grad<F, 0, 1>(image::distribute(e, some(2 * C * Height * Width, 0)),
                                                 weight::distribute(e, some(O * C * KH * KW, 1)));
      std::vector<double> here;
      std::apply(
          [&](const auto&... t) {
            (
                [&] {
                  for (const double v : whole(t)) here.push_back(v);
                }(),
                ...);
          },
          r);
      if (rank.index() == 0) all = here;
    });
    return all;
  }
  template <class F, int H>
  static double off_by_height() {
    return apart(values<F, 1, 1, false, false>(), values<F, H, 1, true, false>());
  }
  template <class F, int H, int W>
  static double off_by_both() {
    return apart(values<F, 1, 1, false, false>(), values<F, H, W, true, true>());
  }
};

TEST_CASE("conv2d: images cut in height, uneven and empty shards included, as whole ones") {
  using same = convolved<options{.padding = 1}>;
  CHECK(problem<3, 7, 5, 4, 3, 3>::off_by_height<same, 1>() < 1e-13);
  CHECK(problem<3, 7, 5, 4, 3, 3>::off_by_height<same, 2>() < 1e-13);
  CHECK(problem<3, 7, 5, 4, 3, 3>::off_by_height<same, 3>() < 1e-13);
  CHECK(problem<3, 7, 5, 4, 3, 3>::off_by_height<same, 4>() < 1e-13);  // the last rank has a row
  CHECK(problem<3, 7, 5, 4, 3, 3>::off_by_height<same, 8>() < 1e-13);  // the last rank has none
  using strided = convolved<options{.stride = 2, .padding = 3}>;       // halos of several ranks' rows
  CHECK(problem<2, 13, 5, 3, 7, 7>::off_by_height<strided, 2>() < 1e-13);
  CHECK(problem<2, 13, 5, 3, 7, 7>::off_by_height<strided, 8>() < 1e-13);
  using dilated = convolved<options{.padding = 2, .dilation = 3}>;
  CHECK(problem<2, 11, 9, 3, 3, 2>::off_by_height<dilated, 3>() < 1e-13);
  using sparse = convolved<options{.stride = 3}>;  // rows that nothing reads
  CHECK(problem<2, 11, 5, 3, 2, 2>::off_by_height<sparse, 3>() < 1e-13);
  CHECK(problem<2, 9, 6, 3, 1, 1>::off_by_height<sparse, 4>() < 1e-13);
  using wide = convolved<options{.padding = 4}>;  // windows that read padding alone
  CHECK(problem<1, 3, 3, 2, 2, 2>::off_by_height<wide, 3>() < 1e-13);
}
TEST_CASE("conv2d: windows of one element need no halo") {
  using one = convolved<options{}>;
  CHECK(problem<3, 7, 5, 4, 1, 1>::off_by_height<one, 3>() < 1e-13);
  CHECK(problem<3, 7, 5, 4, 1, 3>::off_by_height<one, 3>() < 1e-13);
}
TEST_CASE("conv2d: images cut in height and width, corners included") {
  using same = convolved<options{.padding = 1}>;
  CHECK(problem<2, 7, 5, 3, 3, 3>::off_by_both<same, 2, 2>() < 1e-13);
  CHECK(problem<2, 7, 5, 3, 3, 3>::off_by_both<same, 2, 3>() < 1e-13);
  using strided = convolved<options{.stride = {2, 1}, .padding = {1, 2}}>;
  CHECK(problem<2, 9, 6, 3, 3, 5>::off_by_both<strided, 3, 2>() < 1e-13);
}

}  // namespace
