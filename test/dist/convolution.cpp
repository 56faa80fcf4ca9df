// SPDX-License-Identifier: Apache-2.0
// conv2d against plain loops over padded images, its gradients against differences, and a small network on meshes.
#include <doctest/doctest.h>

#include <figures.hpp>
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
struct tp : sw::axis<N> {};
template <int D, int T>
using mesh = sw::mesh<dp<D>, tp<T>>;

// Scattered instead of gathered: each element of a padded image goes to the results that its place in a window belongs to.
struct sizes {
  int n, c, h, w, o, kh, kw, stride, padding, dilation, groups;
  int oh() const { return (h + 2 * padding - dilation * (kh - 1) - 1) / stride + 1; }
  int ow() const { return (w + 2 * padding - dilation * (kw - 1) - 1) / stride + 1; }
};
std::vector<double> scattered(const sizes& s, const std::vector<double>& x, const std::vector<double>& weight,
                              const std::vector<double>& bias) {
  const int ci = s.c / s.groups, co = s.o / s.groups, oh = s.oh(), ow = s.ow();
  std::vector<double> y(static_cast<std::size_t>(s.n * s.o * oh * ow));
  for (int n = 0; n < s.n; ++n)
    for (int o = 0; o < s.o; ++o)
      for (int i = 0; i < oh * ow; ++i)
        y[static_cast<std::size_t>((n * s.o + o) * oh * ow + i)] = bias.empty() ? 0 : bias[static_cast<std::size_t>(o)];
  for (int n = 0; n < s.n; ++n)
    for (int c = 0; c < s.c; ++c)
      for (int r = 0; r < s.h; ++r)
        for (int q = 0; q < s.w; ++q)
          for (int o = c / ci * co; o < (c / ci + 1) * co; ++o)
            for (int a = 0; a < s.kh; ++a)
              for (int b = 0; b < s.kw; ++b) {
                const int up = r + s.padding - a * s.dilation, left = q + s.padding - b * s.dilation;
                if (up < 0 || left < 0 || up % s.stride != 0 || left % s.stride != 0 || up / s.stride >= oh ||
                    left / s.stride >= ow)
                  continue;
                y[static_cast<std::size_t>(((n * s.o + o) * oh + up / s.stride) * ow + left / s.stride)] +=
                    x[static_cast<std::size_t>(((n * s.c + c) * s.h + r) * s.w + q)] *
                    weight[static_cast<std::size_t>(((o * ci + c % ci) * s.kh + a) * s.kw + b)];
              }
  return y;
}

// Options on one rank, with a bias.
template <sw::convolution_options O, int N, int C, int H, int W, int Out, int KH, int KW>
double off() {
  const sizes s{N, C, H, W, Out, KH, KW, O.stride.height, O.padding.height, O.dilation.height, O.groups};
  const auto x = some(N * C * H * W, 0), w = some(Out * C / O.groups * KH * KW, 1), b = some(Out, 2);
  double worst = 0;
  sw::launch<mesh<1, 1>>([&](auto& rank) {
    sw::eager e(rank);
    const auto y = sw::conv2d<O>(sw::dtensor_of<double, sw::shape<N, C, H, W>, mesh<1, 1>>::distribute(e, x),
                                 sw::dtensor_of<double, sw::shape<Out, C / O.groups, KH, KW>, mesh<1, 1>>::distribute(e, w),
                                 sw::dtensor_of<double, sw::shape<Out>, mesh<1, 1>>::distribute(e, b));
    worst = apart(whole(y), scattered(s, x, w, b));
  });
  return worst;
}

TEST_CASE("conv2d: strides, paddings, dilations and groups, against windows that are scattered") {
  using options = sw::convolution_options;
  CHECK(off<options{}, 2, 3, 5, 6, 4, 3, 3>() < 1e-13);
  CHECK(off<options{.padding = 1}, 2, 3, 5, 6, 4, 3, 3>() < 1e-13);
  CHECK(off<options{.stride = 2, .padding = 2}, 2, 3, 7, 6, 4, 3, 5>() < 1e-13);
  CHECK(off<options{.stride = 3}, 1, 2, 8, 8, 3, 2, 2>() < 1e-13);
  CHECK(off<options{.padding = 3, .dilation = 2}, 2, 3, 6, 5, 4, 3, 3>() < 1e-13);
  CHECK(off<options{.padding = 1, .groups = 2}, 2, 4, 5, 5, 6, 3, 3>() < 1e-13);
  CHECK(off<options{.stride = 2, .padding = 1, .groups = 5}, 2, 5, 6, 7, 10, 3, 3>() <
        1e-13);  // depthwise, two outputs a channel
  CHECK(off<options{}, 1, 2, 4, 4, 3, 1, 1>() < 1e-13);
}

template <sw::convolution_options O>
struct convolved {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::conv2d<O>(x, w); }
};
struct with_bias {
  constexpr auto operator()(const auto& x, const auto& w, const auto& b) const {
    return sw::conv2d<sw::convolution_options{.padding = 1}>(x, w, b);
  }
};
// A view as operand, which is read as it lies.
struct of_a_view {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::conv2d(sw::transpose<2, 3>(x), w); }
};
// The gradient's gradient: the operation of one adjoint, differentiated.
struct of_adjoints {
  constexpr auto operator()(const auto& dy, const auto& w) const {
    constexpr sw::convolution_attributes a{{2, 2}, {1, 1}, {1, 1}, 1, {5, 4}};
    return sw::call<sw::custom::conv2d_dx, sw::pack_attributes(a)>(dy, w);
  }
};
struct of_other_adjoints {
  constexpr auto operator()(const auto& dy, const auto& x) const {
    constexpr sw::convolution_attributes a{{2, 2}, {1, 1}, {1, 1}, 1, {3, 3}};
    return sw::call<sw::custom::conv2d_dw, sw::pack_attributes(a)>(dy, x);
  }
};

// Padding "same" by hand: of an even kernel one more row and column behind.
template <int KH, int KW, int Dilation>
struct as_padded {
  constexpr auto operator()(const auto& x, const auto& w) const {
    constexpr int h = Dilation * (KH - 1), v = Dilation * (KW - 1);
    constexpr sw::convolution_options same{.padding = "same", .dilation = Dilation};
    constexpr sw::convolution_options none{.padding = "valid", .dilation = Dilation};
    return sw::conv2d<same>(x, w) - sw::conv2d<none>(sw::constant_pad<v / 2, v - v / 2, h / 2, h - h / 2>(x), w);
  }
};
template <int KH, int KW, int Dilation>
double off_same() {
  double worst = 1;
  sw::launch<mesh<1, 1>>([&](auto& rank) {
    sw::eager e(rank);
    const auto y = as_padded<KH, KW, Dilation>{}(
        sw::dtensor_of<double, sw::shape<2, 3, 7, 6>, mesh<1, 1>>::distribute(e, some(2 * 3 * 42, 0)),
        sw::dtensor_of<double, sw::shape<4, 3, KH, KW>, mesh<1, 1>>::distribute(e, some(12 * KH * KW, 1)));
    static_assert(decltype(y)::sp.extent[2] == 7 && decltype(y)::sp.extent[3] == 6);
    worst = 0;
    for (const double v : whole(y)) worst = std::max(worst, std::abs(v));
  });
  return worst;
}

TEST_CASE("conv2d: padding \"same\" keeps height and width, of odd and of even kernels") {
  CHECK(off_same<3, 3, 1>() < 1e-13);
  CHECK(off_same<2, 4, 1>() < 1e-13);
  CHECK(off_same<1, 5, 1>() < 1e-13);
  CHECK(off_same<4, 3, 2>() < 1e-13);
  using options = sw::convolution_options;
  CHECK(sw::gradcheck<convolved<options{.padding = "same"}>, sw::shape<1, 2, 3, 4>, sw::shape<2, 2, 2, 4>>() == 24 + 32);
}

// Channels last by hand: a view of (batch, height, width, channels) is read as it lies, so nothing is copied.
struct of_channels_last {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return sw::conv2d<sw::convolution_options{.padding = 1}>(sw::permute<0, 3, 1, 2>(x), sw::permute<0, 3, 1, 2>(w));
  }
};
struct of_copies {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return sw::conv2d<sw::convolution_options{.padding = 1}>(sw::contiguous(sw::permute<0, 3, 1, 2>(x)),
                                                             sw::contiguous(sw::permute<0, 3, 1, 2>(w)));
  }
};
template <class F>
using of_images = sw::gradient_step<
    F, mesh<1, 1>,
    sw::inputs<sw::input_tensor<float, sw::shape<2, 9, 8, 20>>, sw::input_tensor<float, sw::shape<6, 3, 3, 20>>>,
    sw::wrt<0, 1>>;
template <class F>
struct summed {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::sum(sw::tanh(F{}(x, w))); }
};
template <class Step>
std::vector<std::vector<float>> outputs_of() {
  std::vector<std::vector<float>> all;
  sw::launch<mesh<1, 1>>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> run(rank);
    const std::vector<double> x = some(2 * 72 * 20, 0), w = some(6 * 180, 1);
    run.set_input(0, std::vector<float>(x.begin(), x.end()));
    run.set_input(1, std::vector<float>(w.begin(), w.end()));
    run.run({});
    for (int k = 0; k < Step::program.output_count; ++k) {
      const auto block = run.output(k);
      all.emplace_back(block.begin(), block.end());
    }
  });
  return all;
}
template <class Step>
constexpr int copies() {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == sw::op_code::contiguous;
  return n;
}

TEST_CASE("conv2d: views are read as they lie, with the bits of copies") {
  static_assert(copies<of_images<summed<of_channels_last>>>() < copies<of_images<summed<of_copies>>>());
  const auto as_is = outputs_of<of_images<summed<of_channels_last>>>(), copied = outputs_of<of_images<summed<of_copies>>>();
  REQUIRE(as_is.size() == copied.size());
  for (std::size_t k = 0; k < as_is.size(); ++k) CHECK(as_is[k] == copied[k]);
}

// Cotangents that lie turned are copied, one for each convolution.
template <int N>
struct turned {
  constexpr auto operator()(const auto& x, const auto& w) const {
    if constexpr (N == 0) return x;
    else return turned<N - 1>{}(sw::transpose<2, 3>(sw::conv2d(x, w)), w);
  }
};

TEST_CASE("conv2d: gradients, and theirs, against differences") {
  CHECK(sw::gradcheck<turned<6>, sw::shape<1, 1, 7, 8>, sw::shape<1, 1, 2, 2>>() == 56 + 4);
  using options = sw::convolution_options;
  CHECK(sw::gradcheck<convolved<options{.stride = 2, .padding = 1}>, sw::shape<2, 2, 4, 5>, sw::shape<3, 2, 3, 2>>() ==
        80 + 36);
  CHECK(sw::gradcheck<convolved<options{.padding = 1, .dilation = 2, .groups = 2}>, sw::shape<1, 4, 4, 4>,
                      sw::shape<2, 2, 2, 2>>() == 64 + 16);
  CHECK(sw::gradcheck<with_bias, sw::shape<1, 2, 3, 3>, sw::shape<2, 2, 3, 3>, sw::shape<2>>() == 18 + 36 + 2);
  CHECK(sw::gradcheck<of_a_view, sw::shape<1, 2, 4, 3>, sw::shape<2, 2, 2, 2>>() == 24 + 16);
  CHECK(sw::gradcheck<of_adjoints, sw::shape<1, 3, 3, 2>, sw::shape<3, 2, 3, 3>>() > 0);
  CHECK(sw::gradcheck<of_other_adjoints, sw::shape<1, 3, 3, 2>, sw::shape<1, 2, 5, 4>>() > 0);
}

// A weight (outputs, channels, 3, 3) and a bias.
template <int C, int O, class Bound = sw::unbound>
struct layer : sw::module<layer<C, O, Bound>, Bound> {
  template <class B>
  using rebound = layer<C, O, B>;
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<O, C, 3, 3>, sw::init::normal<1, 10>>, weight),
                    (sw::parameter<sw::shape<O>, sw::init::zeros>, bias));
  constexpr auto forward(const auto& x) const { return sw::conv2d<sw::convolution_options{.padding = 1}>(x, weight, bias); }
};
template <class Bound = sw::unbound>
struct network : sw::module<network<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (layer<2, 6>, first), (layer<6, 3>, second));
  constexpr auto forward(const auto& x) const { return second(sw::relu(first(x))); }
};
// The library's layers: grouped, and without a bias.
template <class Bound = sw::unbound>
struct layers : sw::module<layers<Bound>, Bound> {
  static constexpr sw::convolution_options grouped{.padding = "same", .groups = 2};
  SHARDWISE_MEMBERS(Bound, (sw::conv2d_module<2, 6, sw::convolution_pair{3, 2}, grouped>, first),
                    (sw::conv2d_module<6, 3, 1, sw::convolution_options{}, sw::unbound, false>, second));
  constexpr auto forward(const auto& x) const { return second(sw::relu(first(x))); }
};
template <int D>
struct task {
  using images = sw::input_tensor<double, sw::shape<5, 2, 6, 4>, sw::on<dp<D>, sw::shard<0>>>;
  using targets = sw::input_tensor<double, sw::shape<5, 3, 6, 4>, sw::on<dp<D>, sw::shard<0>>>;
  using inputs = sw::inputs<images, targets>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
template <int D, int T, template <class> class Model, class Plan = sw::plan<sw::data_parallel<dp<D>>>>
std::vector<double> losses() {
  using step = sw::train_step<Model, task<D>, Plan, mesh<D, T>, sw::adam<>, sw::pipeline<>, double>;
  std::vector<double> all;
  sw::launch<mesh<D, T>>([&](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(3);
    sw::step_env env;
    env.lr = 0.01;
    std::vector<double> here;
    for (env.step = 1; env.step <= 4; ++env.step) {
      run.set_input(0, some(5 * 2 * 24, 4));
      run.set_input(1, some(5 * 3 * 24, 5));
      run.run(env);
      here.push_back(run.loss());
    }
    if (rank.index() == 0) all = here;
  });
  return all;
}

// Outputs cut over tp, then the channels that they are for the next one: a partial sum, as colwise and rowwise products are.
struct pair_of_layers {
  constexpr auto operator()(const auto& x, const auto& first, const auto& second) const {
    return sw::conv2d<sw::convolution_options{.padding = 1}>(sw::relu(sw::conv2d(x, first)), second);
  }
};
template <int T, class First, class Second, class X>
std::vector<double> channels_of() {
  std::vector<double> all;
  sw::launch<mesh<1, T>>([&](auto& rank) {
    sw::eager e(rank);
    using x_type = sw::dtensor_of<double, sw::shape<2, 3, 5, 4>, mesh<1, T>, sw::on<tp<T>, X>>;
    using first = sw::dtensor_of<double, sw::shape<7, 3, 2, 2>, mesh<1, T>, sw::on<tp<T>, First>>;
    using second = sw::dtensor_of<double, sw::shape<2, 7, 3, 3>, mesh<1, T>, sw::on<tp<T>, Second>>;
    const auto r = sw::value_and_grad<pair_of_layers, 0, 1, 2>(
        x_type::distribute(e, some(120, 0)), first::distribute(e, some(84, 1)), second::distribute(e, some(126, 2)));
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

TEST_CASE("conv2d: a network trains alike on every mesh, uneven batches included") {
  const std::vector<double> want = losses<1, 1, network>();
  CHECK(want.front() > want.back());
  CHECK(apart(want, losses<2, 1, network>()) < 1e-13);
  CHECK(apart(want, losses<3, 2, network>()) < 1e-13);
  CHECK(apart(want, losses<4, 1, network>()) < 1e-13);
}
TEST_CASE("conv2d_module: trains alike on every mesh, its shards stored apart, too") {
  const std::vector<double> want = losses<1, 1, layers>();
  CHECK(want.front() > want.back());
  CHECK(apart(want, losses<2, 1, layers>()) < 1e-13);
  CHECK(apart(want, losses<3, 2, layers>()) < 1e-13);
  CHECK(apart(want, losses<2, 1, layers, sw::plan<sw::fully_shard<dp<2>>>>()) < 1e-13);
}
TEST_CASE("conv2d_module: initial values are uniform within one over the root of what a window reads") {
  using step =
      sw::train_step<layers, task<1>, sw::plan<sw::data_parallel<dp<1>>>, mesh<1, 1>, sw::adam<>, sw::pipeline<>, double>;
  const double bound[] = {1 / std::sqrt(1 * 3 * 2), 1 / std::sqrt(1 * 3 * 2), 1 / std::sqrt(6)};
  const std::size_t size[] = {6 * 1 * 3 * 2, 6, 3 * 6};
  sw::launch<mesh<1, 1>>([&](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(3);
    REQUIRE(run.parameter_count() == 3);
    for (int i = 0; i < 3; ++i) {
      std::vector<double> values(size[i]);
      run.gather_parameter(i, values);
      double largest = 0;
      for (const double v : values) largest = std::max(largest, std::abs(v));
      CHECK(largest <= bound[i]);
      CHECK(largest > bound[i] / 2);
    }
  });
}

TEST_CASE("conv2d: outputs and channels over ranks, gradients too") {
  const auto want = channels_of<1, sw::replicate, sw::replicate, sw::replicate>();
  CHECK(apart(want, channels_of<2, sw::shard<0>, sw::shard<1>, sw::reduced>()) < 1e-12);
  CHECK(apart(want, channels_of<3, sw::shard<0>, sw::shard<1>, sw::reduced>()) < 1e-12);  // 3, 3 and 1
}

}  // namespace
