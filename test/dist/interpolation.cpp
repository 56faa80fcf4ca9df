// SPDX-License-Identifier: Apache-2.0
// interpolate against PyTorch's own numbers and against loops that scatter, on 1 to 4 ranks, in both memory formats, its gradients against
// differences.
#include <doctest/doctest.h>

#include <cmath>
#include <figures.hpp>
#include <limits>
#include <shardwise/laws/gradcheck.hpp>
#include <shardwise/more_functions.hpp>
#include <shardwise/pass/layout/layout.hpp>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using figures::apart;
using figures::some;
using figures::whole;
using numbers = std::vector<double>;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;

using options = sw::interpolate_options;
inline constexpr options nearest{}, bilinear{.mode = sw::interpolation::bilinear},
    corners{.mode = sw::interpolation::bilinear, .align_corners = true};

// --- PyTorch's formulas, in double ------------------------------------------------------------------------------------------------

struct weighted {
  int pixel;
  double weight;
};
// scale: pixels of the image for one of the result, of a size in / out; nearest in whole numbers up / down.
std::vector<weighted> made_of(const options& o, int t, int in, int out, int up, int down) {
  if (o.mode == sw::interpolation::nearest) {
    int pixel = 0;
    while (pixel + 1 < in && (pixel + 1) * down <= t * up) ++pixel;
    return {{pixel, 1}};
  }
  double at = 0;
  if (!o.align_corners) at = std::fmax(0., (t + .5) * up / down - .5);
  else if (out > 1) at = static_cast<double>(t) * (in - 1) / (out - 1);
  const int low = static_cast<int>(at + 1e-12), high = low < in - 1 ? low + 1 : low;
  return {{low, 1 - (at - low)}, {high, at - low}};
}
struct sizes {
  int planes, h, w, oh, ow;
  int up[2], down[2];  // as above
};
struct expected {
  numbers y, dx;  // dx of the cotangent dy
};
expected plainly(const options& o, const sizes& s, const numbers& x, const numbers& dy) {
  expected e{numbers(dy.size(), 0), numbers(x.size(), 0)};
  for (int plane = 0; plane < s.planes; ++plane)
    for (int u = 0; u < s.oh; ++u)
      for (int v = 0; v < s.ow; ++v)
        for (const weighted& r : made_of(o, u, s.h, s.oh, s.up[0], s.down[0]))
          for (const weighted& c : made_of(o, v, s.w, s.ow, s.up[1], s.down[1])) {
            const auto to = static_cast<std::size_t>((plane * s.oh + u) * s.ow + v),
                       from = static_cast<std::size_t>((plane * s.h + r.pixel) * s.w + c.pixel);
            e.y[to] += r.weight * c.weight * x[from];
            e.dx[from] += r.weight * c.weight * dy[to];
          }
  return e;
}

template <int H, int W>
constexpr sw::op_attr with_extent(sw::op_attr v) {
  auto a = sw::attributes_of<sw::interpolation_attributes>(v);
  a.extent[0] = H;
  a.extent[1] = W;
  return sw::pack_attributes(a);
}
template <options O, int H, int W, int OH, int OW>
inline constexpr sw::op_attr back = with_extent<H, W>(sw::detail::to_size<O, OH, OW, H, W>);

template <class Shape, int Ranks, class Placement>
using on_ranks = sw::dtensor_of<double, Shape, mesh<Ranks>, sw::on<dp<Ranks>, Placement>>;

// Images of N x C x H x W at OH x OW, and back.
template <options O, int N, int C, int H, int W, int OH, int OW, int Ranks, class Placement>
void check() {
  const auto x = some(N * C * H * W, 0), dy = some(N * C * OH * OW, 1);
  const expected want = plainly(O, {N * C, H, W, OH, OW, {H, W}, {OH, OW}}, x, dy);
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image = on_ranks<sw::shape<N, C, H, W>, Ranks, Placement>::distribute(e, x);
    const auto y = sw::interpolate<OH, OW, O>(image);
    static_assert(std::remove_cvref_t<decltype(y)>::sp.place[0] == std::remove_cvref_t<decltype(image)>::sp.place[0]);
    CHECK(apart(whole(y), want.y) < 1e-13);
    const auto cotangent = on_ranks<sw::shape<N, C, OH, OW>, Ranks, Placement>::distribute(e, dy);
    CHECK(apart(whole(sw::call<sw::custom::interpolate_dx, back<O, H, W, OH, OW>>(cotangent)), want.dx) < 1e-13);
  });
}
template <int N, int C, int H, int W, int OH, int OW, int Ranks, class Placement>
void check_modes() {
  check<nearest, N, C, H, W, OH, OW, Ranks, Placement>();
  check<bilinear, N, C, H, W, OH, OW, Ranks, Placement>();
  check<corners, N, C, H, W, OH, OW, Ranks, Placement>();
}

TEST_CASE("interpolate: larger, smaller and of one pixel, on one rank") {
  check_modes<2, 3, 3, 4, 7, 5, 1, sw::replicate>();
  check_modes<1, 2, 7, 9, 3, 4, 1, sw::replicate>();
  check_modes<1, 2, 5, 3, 2, 8, 1, sw::replicate>();
  check_modes<2, 1, 1, 1, 3, 4, 1, sw::replicate>();
  check_modes<2, 1, 6, 5, 1, 1, 1, sw::replicate>();
  check_modes<1, 1, 1, 7, 4, 1, 1, sw::replicate>();
}
TEST_CASE("interpolate: batch and channels cut over 2 to 4 ranks, unevenly and with empty shards, and partial") {
  check_modes<5, 2, 3, 4, 7, 5, 2, sw::shard<0>>();
  check_modes<4, 2, 7, 5, 3, 4, 3, sw::shard<0>>();
  check_modes<3, 2, 3, 4, 4, 6, 4, sw::shard<0>>();  // a rank without images
  check_modes<2, 5, 3, 4, 2, 7, 3, sw::shard<1>>();
  check_modes<2, 3, 3, 4, 5, 3, 4, sw::shard<1>>();
  check_modes<2, 2, 3, 4, 5, 3, 2, sw::partial<>>();
  check_modes<2, 2, 3, 4, 5, 3, 3, sw::reduced>();
}

template <options O, int Up, int Down>
struct weighed {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return sw::sum(sw::interpolate<sw::scale_factor(sw::scale_ratio(Up, Down)), O>(x) * w);
  }
};
// Height or width cut: whole factors both ways, in shards that lie on the result's or not.
template <options O, int Up, int Down, int Ranks, int Dim, int H, int W>
void check_cut() {
  constexpr int OH = H * Up / Down, OW = W * Up / Down;
  const auto x = some(2 * 2 * H * W, 0), dy = some(2 * 2 * OH * OW, 1);
  const expected want = plainly(O, {4, H, W, OH, OW, {Down, Down}, {Up, Up}}, x, dy);
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image = on_ranks<sw::shape<2, 2, H, W>, Ranks, sw::shard<Dim>>::distribute(e, x);
    const auto weight = on_ranks<sw::shape<2, 2, OH, OW>, Ranks, sw::shard<Dim>>::distribute(e, dy);
    const auto [sum, dx, y] = sw::value_and_grad<weighed<O, Up, Down>, 0, 1>(image, weight);
    static_assert(std::remove_cvref_t<decltype(dx)>::sp.place[0] == sw::shard_value(Dim));
    CHECK(apart(whole(y), want.y) < 1e-13);  // the weight's gradient
    CHECK(apart(whole(dx), want.dx) < 1e-13);
  });
}
template <options O, int Ranks, int H, int W>
void check_cut_factors() {
  check_cut<O, 2, 1, Ranks, 2, H, W>();
  check_cut<O, 2, 1, Ranks, 3, H, W>();
  check_cut<O, 3, 1, Ranks, 2, H, W>();
  check_cut<O, 1, 2, Ranks, 2, H, W>();
  check_cut<O, 1, 3, Ranks, 3, H, W>();
}
TEST_CASE("interpolate: height or width cut, by whole factors and by one over them") {
  check_cut_factors<nearest, 2, 8, 6>();
  check_cut_factors<bilinear, 2, 8, 6>();
  check_cut_factors<nearest, 3, 7, 11>();
  check_cut_factors<bilinear, 3, 7, 11>();
  check_cut_factors<bilinear, 8, 6, 5>();  // ranks without a row
  check_cut_factors<nearest, 4, 5, 9>();
  check_cut_factors<bilinear, 4, 9, 5>();
}
// Corners on corners: 3 rows are 5, of which each second one is made of one.
template <int H, int OH, int Ranks>
void check_corners() {
  const auto x = some(2 * H * 3, 0);
  const expected want = plainly(corners, {2, H, 3, OH, 3, {1, 1}, {1, 1}}, x, numbers(2 * OH * 3, 0));
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image = on_ranks<sw::shape<1, 2, H, 3>, Ranks, sw::shard<2>>::distribute(e, x);
    CHECK(apart(whole(sw::interpolate<OH, 3, corners>(image)), want.y) < 1e-13);
  });
}
TEST_CASE("interpolate: height cut, corners on corners") {
  check_corners<3, 5, 2>();
  check_corners<5, 17, 3>();
  check_corners<9, 5, 2>();
  check_corners<10, 4, 4>();
}
// Twice the rows of shards that lie on the result's: of the nearest pixels nothing moves, of the four around a row to each neighbour, and
// back likewise.
template <options O>
struct doubled {
  constexpr auto operator()(const auto& x) const { return sw::sum(sw::interpolate<sw::scale_factor(2), O>(x)); }
};
template <options O>
using doubled_program =
    sw::gradient_step<doubled<O>, mesh<2>,
                      sw::inputs<sw::input_tensor<double, sw::shape<1, 3, 8, 5>, sw::on<dp<2>, sw::shard<2>>>>, sw::wrt<0>,
                      sw::pipeline<>>;
template <options O>
inline constexpr auto bytes_moved = doubled_program<O>::template comm_bytes<dp<2>>;
TEST_CASE("interpolate: height cut, what is sent") {
  constexpr auto of_sum = bytes_moved<nearest>;
  CHECK(bytes_moved<bilinear> - of_sum == (3 * 5 + 3 * 10) * 8);
}

TEST_CASE("interpolate: PyTorch's numbers") {
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::eager e(rank);
    const auto x = on_ranks<sw::shape<1, 1, 2, 2>, 1, sw::replicate>::distribute(e, numbers{1, 2, 3, 4});
    CHECK(whole(sw::interpolate<4, 4>(x)) == numbers{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
    CHECK(whole(sw::interpolate<4, 4, bilinear>(x)) ==
          numbers{1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4});
    const numbers on_corners{1,      1.3333, 1.6667, 2,      1.6667, 2,      2.3333, 2.6667,
                             2.3333, 2.6667, 3,      3.3333, 3,      3.3333, 3.6667, 4};
    CHECK(apart(whole(sw::interpolate<4, 4, corners>(x)), on_corners) < 1e-4);
    // seven pixels out of five: floor(i * 5 / 7)
    const auto line = on_ranks<sw::shape<1, 1, 1, 5>, 1, sw::replicate>::distribute(e, numbers{0, 1, 2, 3, 4});
    CHECK(whole(sw::interpolate<1, 7>(line)) == numbers{0, 0, 1, 2, 2, 3, 4});
  });
}

// By factors: where extents are rounded, pixels are as far apart as the factor says.
template <options O, int H, int W, int Up, int Down>
void check_factor() {
  constexpr int OH = H * Up / Down, OW = W * Up / Down;
  const auto x = some(2 * H * W, 0), dy = some(2 * OH * OW, 1);
  const expected want = plainly(O, {2, H, W, OH, OW, {Down, Down}, {Up, Up}}, x, dy);
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image = on_ranks<sw::shape<1, 2, H, W>, 1, sw::replicate>::distribute(e, x);
    const auto y = sw::interpolate<sw::scale_factor(sw::scale_ratio(Up, Down)), O>(image);
    CHECK(apart(whole(y), want.y) < 1e-13);
    constexpr sw::op_attr a = with_extent<H, W>(sw::detail::by_factor<O, sw::scale_factor(sw::scale_ratio(Up, Down)), H, W>);
    const auto cotangent = on_ranks<sw::shape<1, 2, OH, OW>, 1, sw::replicate>::distribute(e, dy);
    CHECK(apart(whole(sw::call<sw::custom::interpolate_dx, a>(cotangent)), want.dx) < 1e-13);
  });
}
template <options O>
void check_factors() {
  check_factor<O, 3, 4, 2, 1>();
  check_factor<O, 3, 5, 3, 2>();  // 4.5 and 7.5 are 4 and 7
  check_factor<O, 7, 5, 1, 2>();
  check_factor<O, 5, 7, 2, 3>();
  check_factor<O, 5, 3, 5, 3>();
}
TEST_CASE("interpolate: by whole and by rational factors") {
  check_factors<nearest>();
  check_factors<bilinear>();
  check_factors<corners>();
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image = on_ranks<sw::shape<1, 2, 3, 4>, 1, sw::replicate>::distribute(e, some(24, 0));
    CHECK(whole(sw::interpolate<sw::scale_factor(2, 3), bilinear>(image)) == whole(sw::interpolate<6, 12, bilinear>(image)));
    CHECK(whole(sw::interpolate<sw::scale_factor(2)>(image)) == whole(sw::interpolate<6, 8>(image)));
  });
}

template <options O>
void check_identity(const numbers& x) {
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image = on_ranks<sw::shape<2, 2, 3, 4>, 1, sw::replicate>::distribute(e, x);
    CHECK(whole(sw::interpolate<3, 4, O>(image)) == x);
    CHECK(whole(sw::interpolate<sw::scale_factor(1), O>(image)) == x);
    CHECK(whole(sw::call<sw::custom::interpolate_dx, back<O, 3, 4, 3, 4>>(image)) == x);
  });
}
TEST_CASE("interpolate: the same size keeps every bit, infinite neighbours or not") {
  auto x = some(48, 0);
  x[6] = std::numeric_limits<double>::infinity();
  check_identity<nearest>(x);
  check_identity<bilinear>(x);
  check_identity<corners>(x);
}

// Elements are computed in double and rounded once.
TEST_CASE("interpolate: float") {
  const auto x = some(2 * 3 * 4 * 5, 0);
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::eager e(rank);
    using image = sw::dtensor_of<float, sw::shape<2, 3, 4, 5>, mesh<1>>;
    const auto y = sw::interpolate<7, 3, bilinear>(image::distribute(e, std::vector<float>(x.begin(), x.end())));
    const auto y64 = sw::interpolate<7, 3, bilinear>(on_ranks<sw::shape<2, 3, 4, 5>, 1, sw::replicate>::distribute(e, x));
    CHECK(apart(whole(y), whole(y64)) < 2e-7);
  });
}

// --- gradients --------------------------------------------------------------------------------------------------------------------

template <options O, int H, int W>
struct sized {
  constexpr auto operator()(const auto& x) const { return sw::interpolate<H, W, O>(x); }
};
template <options O, sw::scale_factor F>
struct scaled {
  constexpr auto operator()(const auto& x) const { return sw::interpolate<F, O>(x); }
};
template <options O>
struct sized_back {
  constexpr auto operator()(const auto& dy) const { return sw::call<sw::custom::interpolate_dx, back<O, 5, 3, 3, 4>>(dy); }
};
TEST_CASE("interpolate: gradients against differences") {
  CHECK(sw::gradcheck<sized<nearest, 5, 3>, sw::shape<2, 2, 3, 4>>() == 48);
  CHECK(sw::gradcheck<sized<bilinear, 5, 3>, sw::shape<2, 2, 3, 4>>() == 48);
  CHECK(sw::gradcheck<sized<corners, 5, 3>, sw::shape<2, 2, 3, 4>>() == 48);
  CHECK(sw::gradcheck<scaled<bilinear, sw::scale_factor(sw::scale_ratio(3, 2))>, sw::shape<1, 2, 3, 5>>() == 30);
  CHECK(sw::gradcheck<sized_back<bilinear>, sw::shape<1, 2, 3, 4>>() == 24);
  CHECK(sw::gradcheck<sized_back<corners>, sw::shape<1, 2, 3, 4>>() == 24);
}

// --- memory formats ---------------------------------------------------------------------------------------------------------------

template <options O>
struct of_channels_last {
  constexpr auto operator()(const auto& x) const {
    return sw::contiguous(sw::interpolate<7, 5, O>(sw::contiguous<sw::memory_format::channels_last>(x * x)));
  }
};
template <options O>
struct of_planes {
  constexpr auto operator()(const auto& x) const { return sw::interpolate<7, 5, O>(x * x); }
};
template <class F, class Passes = sw::pipeline<>>
using program =
    sw::gradient_step<F, mesh<1>, sw::inputs<sw::input_tensor<double, sw::shape<2, 3, 4, 6>>>, sw::wrt<0>, Passes>;
template <class Program>
numbers outputs_of() {
  numbers all;
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::executor<Program, std::remove_reference_t<decltype(rank)>> run(rank);
    run.set_input(0, some(2 * 3 * 24, 0));
    run.run(sw::step_env{});
    for (int k = 0; k < 2; ++k) {
      const auto block = run.template output<double>(k);
      for (std::size_t i = 0; i < block.size(); ++i) all.push_back(block[i]);
    }
  });
  return all;
}
// How many nodes of that name have a result that is channels-last.
template <class Program>
constexpr int last_of(const char* name) {
  int last = 0;
  const auto& g = Program::program;
  for (int i = 0; i < g.node_count; ++i)
    if (sw::is_custom(g, g.nodes[i]) && sw::is_same_name(sw::custom_of(g, g.nodes[i])->name, name))
      last += sw::is_channels_last(g.spec_of(i)) ? 1 : 0;
  return last;
}
template <options O>
void check_formats() {
  const auto want = outputs_of<program<of_planes<O>>>();
  CHECK(want.size() == 2 * 3 * (35 + 24));
  CHECK(outputs_of<program<of_channels_last<O>>>() == want);
  using turned = program<of_channels_last<O>, sw::pipeline<sw::optimize_layout<sw::layout_mode::force>>>;
  CHECK(outputs_of<turned>() == want);
}
TEST_CASE("interpolate: channels-last images give the same bits") {
  check_formats<nearest>();
  check_formats<bilinear>();
  check_formats<corners>();
}

TEST_CASE("interpolate: a rank's threads give one thread's bits") {
  using image = sw::input_tensor<double, sw::shape<2, 5, 61, 64>>;
  using large = sw::gradient_step<sized<bilinear, 122, 100>, mesh<1>, sw::inputs<image>, sw::wrt<0>>;
  const auto with = [](int threads) {
    numbers all;
    sw::launch<mesh<1>>([&](auto& rank) {
      rank.compute_threads(threads);
      sw::executor<large, std::remove_reference_t<decltype(rank)>> run(rank);
      run.set_input(0, some(10 * 61 * 64, 0));
      run.run(sw::step_env{});
      for (int k = 0; k < 2; ++k) {
        const auto block = run.template output<double>(k);
        for (std::size_t i = 0; i < block.size(); ++i) all.push_back(block[i]);
      }
    });
    return all;
  };
  const auto alone = with(1);
  CHECK(alone.size() == 10 * (122 * 100 + 61 * 64));
  CHECK(with(3) == alone);
}

// Between convolutions that the layout pass turns.
struct between {
  constexpr auto operator()(const auto& x, const auto& w) const {
    constexpr sw::convolution_options same{.padding = 1};
    const auto y = sw::conv2d<same>(x, w);
    return sw::conv2d<same>(sw::interpolate<8, 6, bilinear>(y), w);
  }
};
template <class Passes>
using network = sw::gradient_step<
    between, mesh<1>,
    sw::inputs<sw::input_tensor<double, sw::shape<2, 4, 4, 3>>, sw::input_tensor<double, sw::shape<4, 4, 3, 3>>>,
    sw::wrt<0, 1>, Passes>;
template <class Program>
numbers network_outputs() {
  numbers all;
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::executor<Program, std::remove_reference_t<decltype(rank)>> run(rank);
    run.set_input(0, some(96, 0));
    run.set_input(1, some(144, 1));
    run.run(sw::step_env{});
    for (int k = 0; k < 3; ++k) {
      const auto block = run.template output<double>(k);
      for (std::size_t i = 0; i < block.size(); ++i) all.push_back(block[i]);
    }
  });
  return all;
}
TEST_CASE("interpolate: stays channels-last between convolutions") {
  using turned = network<sw::pipeline<sw::optimize_layout<sw::layout_mode::force>>>;
  const auto want = network_outputs<network<sw::pipeline<>>>();
  CHECK(want.size() == 2 * 4 * 48 + 96 + 144);
  CHECK(apart(want, network_outputs<turned>()) < 1e-12);
  CHECK(last_of<turned>("interpolate") == 1);
  CHECK(last_of<turned>("interpolate_dx") == 1);
}

}  // namespace
