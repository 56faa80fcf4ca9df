// SPDX-License-Identifier: Apache-2.0
// batch_norm and group_norm against plain loops, on 1 to 8 ranks with batch, channels, height or width cut, in both memory formats, their
// gradients against differences, and the layers on meshes.
#include <doctest/doctest.h>

#include <algorithm>
#include <both_ways.hpp>
#include <cmath>
#include <figures.hpp>
#include <shardwise/laws/gradcheck.hpp>
#include <shardwise/module/norm_layers.hpp>
#include <shardwise/operations/channel_norm/host.hpp>
#include <shardwise/pass/layout/layout.hpp>
#include <shardwise/shardwise.hpp>
#include <exception>
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

constexpr double eps = 1e-5, momentum = 0.1;

// --- plain loops over (n, c, points) ----------------------------------------------------------------------------------------------

struct figure {
  numbers y, mean, var;  // of each set of elements; var unbiased
};
// Sets: of each channel over all images, or of each of `groups` of an image.
figure plainly(int n, int c, int points, int groups, const numbers& x, const numbers& w, const numbers& b) {
  figure f;
  const int sets = groups > 0 ? n * groups : c;
  const auto set_of = [&](int i) {
    const int channel = i / points % c;
    return static_cast<std::size_t>(groups > 0 ? i / points / c * groups + channel / (c / groups) : channel);
  };
  numbers mean(static_cast<std::size_t>(sets)), squares = mean, count = mean;
  for (int i = 0; i < n * c * points; ++i) mean[set_of(i)] += x[static_cast<std::size_t>(i)], count[set_of(i)] += 1;
  for (std::size_t s = 0; s < mean.size(); ++s) mean[s] /= count[s];
  for (int i = 0; i < n * c * points; ++i)
    squares[set_of(i)] += std::pow(x[static_cast<std::size_t>(i)] - mean[set_of(i)], 2);
  for (int i = 0; i < n * c * points; ++i) {
    const std::size_t s = set_of(i), channel = static_cast<std::size_t>(i / points % c);
    f.y.push_back((x[static_cast<std::size_t>(i)] - mean[s]) / std::sqrt(squares[s] / count[s] + eps) * w[channel] +
                  b[channel]);
  }
  f.mean = mean;
  for (std::size_t s = 0; s < mean.size(); ++s) f.var.push_back(squares[s] / (count[s] - 1));
  return f;
}
numbers moved(const numbers& running, const numbers& to) {
  numbers r;
  for (std::size_t i = 0; i < to.size(); ++i) r.push_back(running[i] + momentum * (to[i] - running[i]));
  return r;
}
numbers squared(const numbers& x) {
  numbers r;
  for (const double v : x) r.push_back(v * v + 0.25);
  return r;
}

using training = std::integral_constant<bool, true>;
inline constexpr sw::batch_norm_options train{.training = true};

// Everything of one shape: placements P of images, W of weights, R of running statistics.
template <int Ranks, class P, class W, class R, int N, int C, int... Space>
void check_batch_norm() {
  constexpr int points = (1 * ... * Space);
  const auto x = some(N * C * points, 0), weight = some(C, 1), bias = some(C, 2), mean = some(C, 3),
             var = squared(some(C, 4));
  const figure want = plainly(N, C, points, 0, x, weight, bias),
               bare = plainly(N, C, points, 0, x, numbers(C, 1), numbers(C, 0));
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image =
        sw::dtensor_of<double, sw::shape<N, C, Space...>, mesh<Ranks>, sw::on<dp<Ranks>, P>>::distribute(e, x);
    using row = sw::dtensor_of<double, sw::shape<C>, mesh<Ranks>, sw::on<dp<Ranks>, W>>;
    const auto w = row::distribute(e, weight), b = row::distribute(e, bias);
    using running = sw::dtensor_of<double, sw::shape<C>, mesh<Ranks>, sw::on<dp<Ranks>, R>>;
    const auto m = running::distribute(e, mean), v = running::distribute(e, var);
    const auto evaluated = whole(sw::batch_norm(image, m, v, w, b)), without = whole(sw::batch_norm(image, m, v));
    CHECK(apart(whole(m), mean) == 0);  // an evaluation writes nothing
    const auto y = whole(sw::batch_norm<train>(image, m, v, w, b));
    CHECK(apart(whole(m), moved(mean, want.mean)) < 1e-14);
    CHECK(apart(whole(v), moved(var, want.var)) < 1e-13);
    const auto plain = whole(sw::batch_norm<train>(image, m, v));
    numbers judged, judged_bare;
    for (int i = 0; i < N * C * points; ++i) {
      const std::size_t c = static_cast<std::size_t>(i / points % C);
      judged_bare.push_back((x[static_cast<std::size_t>(i)] - mean[c]) / std::sqrt(var[c] + eps));
      judged.push_back(judged_bare.back() * weight[c] + bias[c]);
    }
    CHECK(apart(y, want.y) < 1e-12);
    CHECK(apart(plain, bare.y) < 1e-12);
    CHECK(apart(evaluated, judged) < 1e-13);
    CHECK(apart(without, judged_bare) < 1e-13);
  });
}
TEST_CASE("batch_norm: the batch's statistics in training, the running ones else, on 1 to 4 ranks") {
  check_batch_norm<1, sw::replicate, sw::replicate, sw::replicate, 3, 5, 4, 3>();
  check_batch_norm<2, sw::shard<0>, sw::reduced, sw::reduced, 3, 5, 4, 3>();
  check_batch_norm<3, sw::shard<0>, sw::reduced, sw::reduced, 5, 3, 2, 2>();
  check_batch_norm<4, sw::shard<0>, sw::reduced, sw::reduced, 3, 5, 1, 3>();  // an empty shard
  check_batch_norm<2, sw::shard<1>, sw::shard<0>, sw::shard<0>, 3, 5, 4, 3>();
  check_batch_norm<4, sw::shard<1>, sw::shard<0>, sw::shard<0>, 2, 3, 4, 3>();
  check_batch_norm<2, sw::shard<0>, sw::reduced, sw::replicate, 3, 5, 4, 3>();  // running statistics that are replicate
}
TEST_CASE("batch_norm: height or width cut, in uneven and empty shards") {
  check_batch_norm<2, sw::shard<2>, sw::reduced, sw::reduced, 3, 5, 4, 3>();
  check_batch_norm<3, sw::shard<2>, sw::reduced, sw::reduced, 2, 3, 4, 3>();
  check_batch_norm<4, sw::shard<3>, sw::reduced, sw::replicate, 2, 70, 2, 3>();
  check_batch_norm<8, sw::shard<2>, sw::reduced, sw::reduced, 2, 3, 11, 5>();
}
TEST_CASE("batch_norm: of vectors, of lines, and of one image") {
  check_batch_norm<2, sw::shard<0>, sw::reduced, sw::reduced, 7, 5>();
  check_batch_norm<1, sw::replicate, sw::replicate, sw::replicate, 2, 70, 3>();
  check_batch_norm<2, sw::shard<0>, sw::reduced, sw::reduced, 1, 2, 3, 1>();
  check_batch_norm<1, sw::replicate, sw::replicate, sw::replicate, 2, 2, 19, 17>();
}

template <int Ranks, class P, class W, int Groups, int N, int C, int... Space>
void check_group_norm() {
  constexpr int points = (1 * ... * Space);
  const auto x = some(N * C * points, 0), weight = some(C, 1), bias = some(C, 2);
  const figure want = plainly(N, C, points, Groups, x, weight, bias);
  const figure bare = plainly(N, C, points, Groups, x, numbers(C, 1), numbers(C, 0));
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image =
        sw::dtensor_of<double, sw::shape<N, C, Space...>, mesh<Ranks>, sw::on<dp<Ranks>, P>>::distribute(e, x);
    using row = sw::dtensor_of<double, sw::shape<C>, mesh<Ranks>, sw::on<dp<Ranks>, W>>;
    const auto y = whole(sw::group_norm<Groups>(image, row::distribute(e, weight), row::distribute(e, bias)));
    CHECK(apart(y, want.y) < 1e-12);
    CHECK(apart(whole(sw::group_norm<Groups>(image)), bare.y) < 1e-12);
  });
}
TEST_CASE("group_norm: each image's groups, on 1 to 4 ranks") {
  using sw::reduced, sw::replicate, sw::shard;
  check_group_norm<1, replicate, replicate, 2, 3, 6, 4, 3>();
  check_group_norm<1, replicate, replicate, 1, 3, 6, 4, 3>();
  check_group_norm<1, replicate, replicate, 6, 3, 6, 4, 3>();
  check_group_norm<2, shard<0>, reduced, 3, 3, 6, 4, 3>();
  check_group_norm<4, shard<0>, reduced, 3, 3, 6, 2, 2>();
  check_group_norm<2, shard<1>, shard<0>, 2, 3, 6, 4, 3>();
  check_group_norm<4, shard<1>, shard<0>, 8, 2, 16, 3>();
  check_group_norm<3, shard<1>, shard<0>, 6, 2, 12>();
  check_group_norm<1, replicate, replicate, 2, 2, 150, 5>();  // groups of more channels than are read at once
}
TEST_CASE("group_norm: height or width cut, in uneven and empty shards") {
  using sw::reduced, sw::shard;
  check_group_norm<2, shard<2>, reduced, 3, 3, 6, 4, 3>();
  check_group_norm<3, shard<2>, reduced, 2, 2, 150, 5>();
  check_group_norm<4, shard<3>, reduced, 6, 3, 6, 2, 3>();
}

// --- stored channels-last ---------------------------------------------------------------------------------------------------------

template <int Groups>
struct normed {
  constexpr auto operator()(const auto& x, const auto& w, const auto& b) const {
    if constexpr (Groups > 0) {
      return sw::group_norm<Groups>(x, w, b);
    } else {
      const auto [each, mean, variance] = sw::detail::batch_moments(x);
      return sw::detail::by_batch(x, mean, variance, w, b, eps);
    }
  }
};
template <int Groups>
struct normed_last {
  constexpr auto operator()(const auto& x, const auto& w, const auto& b) const {
    return sw::contiguous(normed<Groups>{}(sw::contiguous<sw::memory_format::channels_last>(x), w, b)) * sw::sin(x);
  }
};
template <int Groups>
struct normed_plainly {
  constexpr auto operator()(const auto& x, const auto& w, const auto& b) const {
    return normed<Groups>{}(x, w, b) * sw::sin(x);
  }
};

template <class F, int N, int C, int H, int W>
numbers with_gradients() {
  numbers all;
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::eager e(rank);
    const auto x = sw::dtensor_of<double, sw::shape<N, C, H, W>, mesh<1>>::distribute(e, some(N * C * H * W, 0));
    using row = sw::dtensor_of<double, sw::shape<C>, mesh<1>>;
    const auto w = row::distribute(e, some(C, 1)), b = row::distribute(e, some(C, 2));
    std::apply(
        [&](const auto&... t) {
          (
              [&] {
                for (const double v : whole(t)) all.push_back(v);
              }(),
              ...);
        },
        sw::value_and_grad<F, 0, 1, 2>(x, w, b));
  });
  return all;
}
template <int Groups, int N, int C, int H, int W>
void check_formats() {
  const auto want = with_gradients<normed_plainly<Groups>, N, C, H, W>();
  const auto last = with_gradients<normed_last<Groups>, N, C, H, W>();
  CHECK(want.size() == 2 * N * C * H * W + 2 * C);
  CHECK(apart(want, last) < 1e-12);
}
TEST_CASE("norms over channels: channels-last is read and written as it lies, gradients too") {
  check_formats<0, 3, 5, 4, 3>();
  check_formats<0, 2, 70, 3, 3>();  // more channels than are read at once
  check_formats<2, 3, 6, 4, 3>();
  check_formats<1, 2, 70, 3, 3>();
  check_formats<35, 2, 70, 1, 3>();
}

// --- gradients --------------------------------------------------------------------------------------------------------------------

struct evaluated {
  constexpr auto operator()(const auto& x, const auto& w, const auto& b) const {
    return sw::batch_norm(x, sw::full_like(w, 0.5), sw::full_like(w, 2), w, b);
  }
};
TEST_CASE("norms over channels: gradients against differences") {
  CHECK(sw::gradcheck<normed<0>, sw::shape<3, 2, 2, 3>, sw::shape<2>, sw::shape<2>>() == 40);
  CHECK(sw::gradcheck<normed<0>, sw::shape<6, 3>, sw::shape<3>, sw::shape<3>>() == 24);
  CHECK(sw::gradcheck<normed<2>, sw::shape<2, 4, 2, 2>, sw::shape<4>, sw::shape<4>>() == 40);
  CHECK(sw::gradcheck<normed<1>, sw::shape<2, 3, 4>, sw::shape<3>, sw::shape<3>>() == 30);
  CHECK(sw::gradcheck<evaluated, sw::shape<2, 3, 4>, sw::shape<3>, sw::shape<3>>() == 30);
}

// Gradients of tensors that are cut are those of whole ones, x's, the weight's and the bias's.
struct hp2 : sw::axis<2> {};
template <int Ranks, int Groups, class P>
numbers cut_gradients() {
  numbers all;
  using cut_mesh = sw::mesh<dp<Ranks>, hp2>;
  sw::launch<cut_mesh>([&](auto& rank) {
    sw::eager e(rank);
    using image = sw::dtensor_of<double, sw::shape<4, 6, 5, 3>, cut_mesh, sw::on<dp<Ranks>, P>, sw::on<hp2, sw::shard<0>>>;
    using row = sw::dtensor_of<double, sw::shape<6>, cut_mesh, sw::on<dp<Ranks>, sw::reduced>, sw::on<hp2, sw::reduced>>;
    const auto r = sw::value_and_grad<normed_plainly<Groups>, 0, 1, 2>(
        image::distribute(e, some(360, 0)), row::distribute(e, some(6, 1)), row::distribute(e, some(6, 2)));
    numbers here;
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
TEST_CASE("norms over channels: gradients where height or width is cut beside the batch") {
  const numbers batch = with_gradients<normed_plainly<0>, 4, 6, 5, 3>(),
                groups = with_gradients<normed_plainly<2>, 4, 6, 5, 3>();
  CHECK(apart(cut_gradients<2, 0, sw::shard<2>>(), batch) < 1e-12);
  CHECK(apart(cut_gradients<3, 0, sw::shard<2>>(), batch) < 1e-12);
  CHECK(apart(cut_gradients<4, 0, sw::shard<3>>(), batch) < 1e-12);
  CHECK(apart(cut_gradients<2, 2, sw::shard<2>>(), groups) < 1e-12);
  CHECK(apart(cut_gradients<3, 2, sw::shard<2>>(), groups) < 1e-12);
  CHECK(apart(cut_gradients<4, 2, sw::shard<3>>(), groups) < 1e-12);
}

// --- what would cancel ------------------------------------------------------------------------------------------------------------

// Elements about 10000 with a deviation of 1: float keeps 3 digits of their squares' differences, if those are taken.
template <int Ranks, int Dim>
void check_far() {
  constexpr int N = 6, C = 3, P = 40;
  std::vector<float> x;
  numbers exact;
  for (int i = 0; i < N * C * P; ++i) {
    x.push_back(static_cast<float>(10000 + std::sin(1.3 * i)));
    exact.push_back(static_cast<double>(x.back()));
  }
  const figure want = plainly(N, C, P, 0, exact, numbers(C, 1), numbers(C, 0));
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::eager e(rank);
    const auto image =
        sw::dtensor_of<float, sw::shape<N, C, P>, mesh<Ranks>, sw::on<dp<Ranks>, sw::shard<Dim>>>::distribute(e, x);
    const auto [each, mean, variance] = sw::detail::batch_moments(image);
    const auto found = whole(sw::cast<double>(variance));
    for (std::size_t c = 0; c < C; ++c)
      CHECK(found[c] == doctest::Approx(want.var[c] * (N * P - 1) / (N * P)).epsilon(1e-5));
  });
}
TEST_CASE("batch_norm: a mean far from zero costs the variance no digits") {
  check_far<1, 0>();
  check_far<4, 0>();
  check_far<4, 2>();
}

// Of two-byte elements statistics are float, of cut images, too.
template <int Ranks, class P>
numbers of_low() {
  numbers all;
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::eager e(rank);
    numbers here;
    std::vector<sw::bf16> x;
    for (const double v : some(2 * 6 * 20, 0)) x.push_back(static_cast<sw::bf16>(static_cast<float>(v)));
    const auto image = sw::dtensor_of<sw::bf16, sw::shape<2, 6, 5, 4>, mesh<Ranks>, sw::on<dp<Ranks>, P>>::distribute(e, x);
    const auto [each, mean, variance] = sw::detail::batch_moments(image);
    static_assert(decltype(mean)::sp.type == sw::dtype::f32 && decltype(variance)::sp.type == sw::dtype::f32);
    for (const double v : whole(sw::cast<double>(mean))) here.push_back(v);
    for (const double v : whole(sw::cast<double>(variance))) here.push_back(v);
    for (const double v : whole(sw::cast<double>(sw::group_norm<3>(image)))) here.push_back(v);
    if (rank.index() == 0) all = here;
  });
  return all;
}
TEST_CASE("norms over channels: of two-byte elements, whole and cut in height") {
  const numbers one = of_low<1, sw::replicate>();
  REQUIRE(one.size() == 12 + 240);
  const numbers cut = of_low<3, sw::shard<2>>();
  CHECK(apart(numbers(one.begin(), one.begin() + 12), numbers(cut.begin(), cut.begin() + 12)) < 1e-6);
  CHECK(apart(one, cut) < 0.02);
}

// --- layers -----------------------------------------------------------------------------------------------------------------------

template <class Bound = sw::unbound>
struct network : sw::module<network<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::conv2d_module<2, 6, 3, sw::convolution_options{.padding = 1}>, first),
                    (sw::batch_norm2d_module<6>, norm), (sw::group_norm_module<3, 6>, groups),
                    (sw::batch_norm2d_module<6, sw::batch_norm_options{.momentum = 0.5}, sw::unbound, false>, bare),
                    (sw::conv2d_module<6, 3, 1>, second));
  constexpr auto forward(const auto& x) const { return second(sw::relu(bare(groups(sw::relu(norm(first(x))))))); }
};
template <int N>
struct hp : sw::axis<N> {};
template <int D, int H>
using both = sw::mesh<dp<D>, hp<H>>;
// D ranks cut the batch, H the height.
template <int D, int H, int N = 5>
struct task {
  template <class Shape>
  using cut = sw::input_tensor<double, Shape, sw::on<dp<D>, sw::shard<0>>, sw::on<hp<H>, sw::shard<2>>>;
  using images = cut<sw::shape<N, 2, 6, 4>>;
  using targets = cut<sw::shape<N, 3, 6, 4>>;
  using inputs = sw::inputs<images, targets>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
template <int D, int H>
using plan_of = sw::plan<sw::data_parallel<dp<D>>, sw::data_parallel<hp<H>>>;
template <int D, int H, class Pipeline = sw::pipeline<>, class Plan = plan_of<D, H>>
using train_network = sw::train_step<network, task<D, H>, Plan, both<D, H>, sw::sgd<>, Pipeline, double>;
template <int D, int H>
using judge_network = sw::forward_step<network, task<D, H>, plan_of<D, H>, both<D, H>, sw::pipeline<>, double>;

// Losses of four steps, the buffers that they leave, and the loss of an evaluation.
template <int D, int H = 1, class Step = train_network<D, H>>
numbers history() {
  numbers all;
  sw::launch<both<D, H>>([&](auto& rank) {
    using Rank = std::remove_reference_t<decltype(rank)>;
    sw::executor<Step, Rank> run(rank);
    sw::executor<judge_network<D, H>, Rank> judge(rank);
    run.initialise(3);
    sw::step_env env;
    env.lr = 0.05;
    numbers here;
    const auto give = [](auto& e) {
      e.set_input(0, some(5 * 2 * 24, 4));
      e.set_input(1, some(5 * 3 * 24, 5));
    };
    for (env.step = 1; env.step <= 4; ++env.step) {
      give(run);
      run.run(env);
      here.push_back(run.loss());
    }
    for (int i = 0; i < run.buffer_count(); ++i)
      for (const double v : run.buffer(i)) here.push_back(v);
    judge.copy_parameters(run);
    give(judge);
    judge.run(env);
    here.push_back(judge.loss());
    if (rank.index() == 0) all = here;
  });
  return all;
}
TEST_CASE("batch_norm2d_module, group_norm_module: train and evaluate alike on every mesh") {
  const numbers want = history<1>();
  CHECK(want.size() == 4 + 2 * (6 + 6 + 1) + 1);
  CHECK(want[0] > want[3]);
  CHECK(want[4 + 12] == 4);  // batches tracked
  CHECK(apart(want, history<2>()) < 1e-12);
  CHECK(apart(want, history<3>()) < 1e-12);
  CHECK(apart(want, history<4>()) < 1e-12);
  using sharded = sw::plan<sw::fully_shard<dp<2>>, sw::data_parallel<hp<1>>>;
  CHECK(apart(want, history<2, 1, train_network<2, 1, sw::pipeline<>, sharded>>()) < 1e-12);
  CHECK(apart(want, history<1, 2>()) < 1e-12);
  CHECK(apart(want, history<2, 3>()) < 1e-12);
  CHECK(apart(want, history<1, 4>()) < 1e-12);  // the last rank has no row
}
TEST_CASE("batch_norm2d_module: the layout pass leaves values, and norms stay channels-last between convolutions") {
  using turned = train_network<1, 1, sw::pipeline<sw::optimize_layout<sw::layout_mode::force>>>;
  using turned_parts = train_network<1, 3, sw::pipeline<sw::optimize_layout<sw::layout_mode::force>>>;
  CHECK(apart(history<1>(), history<1, 1, turned>()) < 1e-12);
  CHECK(apart(history<1>(), history<1, 3, turned_parts>()) < 1e-12);
  const auto& g = turned::program;
  int norms = 0, last = 0;
  for (int i = 0; i < g.node_count; ++i)
    if (sw::is_custom(g, g.nodes[i]) && std::string(sw::custom_of(g, g.nodes[i])->name) == "channel_norm") {
      ++norms;
      last += sw::is_channels_last(g.spec_of(i)) ? 1 : 0;
    }
  CHECK(norms == 3);
  CHECK(last == 3);
}

// A batch in two pieces: each is normed by its own statistics, and the running ones move twice.
struct after_step {
  double loss = 0;
  numbers parameters, buffers;
};
// The step's first `steps` runs, all with the first parameters, of six images from image 6 / steps times the run's number on.
template <int H, int N, class... Accumulate>
after_step pieces() {
  after_step r;
  using step =
      sw::train_step<network, task<1, H, N>, sw::plan<sw::data_parallel<dp<1>>, sw::data_parallel<hp<H>>, Accumulate...>,
                     both<1, H>, sw::sgd<>, sw::pipeline<>, double>;
  sw::launch<both<1, H>>([&](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(3);
    std::vector<numbers> first;
    for (int i = 0; i < run.parameter_count(); ++i) first.emplace_back(run.parameter(i).begin(), run.parameter(i).end());
    const auto x = some(6 * 2 * 24, 4), y = some(6 * 3 * 24, 5);
    const auto part = [&](const numbers& all, int k) {
      const auto each = static_cast<std::ptrdiff_t>(all.size()) * N / 6;
      return numbers(all.begin() + k * each, all.begin() + (k + 1) * each);
    };
    sw::step_env env;
    env.lr = 0.5;
    after_step here;
    for (int k = 0; k < 6 / N; ++k) {
      for (int i = 0; i < run.parameter_count(); ++i)
        std::copy(first[static_cast<std::size_t>(i)].begin(), first[static_cast<std::size_t>(i)].end(),
                  run.parameter(i).begin());
      run.set_input(0, part(x, k));
      run.set_input(1, part(y, k));
      env.step = k + 1;
      run.run(env);
      here.loss += run.loss() * N / 6;
      numbers parameters;
      for (int i = 0; i < run.parameter_count(); ++i)
        for (const double v : run.parameter(i)) parameters.push_back(v);
      here.parameters.resize(parameters.size());
      for (std::size_t i = 0; i < parameters.size(); ++i) here.parameters[i] += parameters[i] * N / 6;
    }
    for (int i = 0; i < run.buffer_count(); ++i)
      for (const double v : run.buffer(i)) here.buffers.push_back(v);
    if (rank.index() == 0) r = here;
  });
  return r;
}
TEST_CASE("batch_norm2d_module: a batch in pieces is normed piece by piece") {
  const after_step want = pieces<1, 3>(), one = pieces<1, 6, sw::accumulate<2>>(), cut = pieces<2, 6, sw::accumulate<2>>();
  CHECK(want.buffers[12] == 2);  // batches tracked
  for (const after_step& got : {one, cut}) {
    CHECK(got.loss == doctest::Approx(want.loss).epsilon(1e-13));
    CHECK(apart(got.parameters, want.parameters) < 1e-13);
    CHECK(apart(got.buffers, want.buffers) < 1e-13);
  }
  CHECK(apart(pieces<1, 6>().parameters, want.parameters) > 1e-6);  // the whole batch's statistics are others
}

// Collectives: two of C numbers forward and one of 2 C backward; none where channels are cut. Where height is, one of C, two of 2 C.
template <int R, class P, class W>
struct batch_normed {
  template <class F>
  using program = sw::gradient_step<F, mesh<R>,
                                    sw::inputs<sw::input_tensor<double, sw::shape<6, 4, 3, 2>, sw::on<dp<R>, P>>,
                                               sw::input_tensor<double, sw::shape<4>, sw::on<dp<R>, W>>,
                                               sw::input_tensor<double, sw::shape<4>, sw::on<dp<R>, W>>>,
                                    sw::wrt<0>, sw::pipeline<>>;
};
template <class F>
using cut_batch = batch_normed<2, sw::shard<0>, sw::reduced>::program<F>;
template <class F>
using cut_channels = batch_normed<2, sw::shard<1>, sw::shard<0>>::program<F>;
template <class F>
using cut_height = batch_normed<2, sw::shard<2>, sw::reduced>::program<F>;
static_assert(test::collectives_of<cut_batch<normed<0>>>() ==
              test::in_order(sw::transition::all_reduce, sw::transition::all_reduce, sw::transition::all_reduce));
static_assert(cut_batch<normed<0>>::comm_bytes<dp<2>> == (4 + 4 + 8) * 8);
static_assert(cut_channels<normed<0>>::comm_bytes<dp<2>> == 0);
static_assert(cut_batch<normed<2>>::comm_bytes<dp<2>> == 0);
static_assert(cut_channels<normed<2>>::comm_bytes<dp<2>> == 0);
static_assert(test::collectives_of<cut_height<normed<0>>>() ==
              test::in_order(sw::transition::all_reduce, sw::transition::all_reduce, sw::transition::all_reduce));
static_assert(cut_height<normed<0>>::comm_bytes<dp<2>> == (4 + 8 + 8) * 8);
static_assert(cut_height<normed<2>>::comm_bytes<dp<2>> == 6 * (2 + 4 + 8) * 8);

// --- batches of a run -------------------------------------------------------------------------------------------------------------

struct trained {
  constexpr auto operator()(const auto& x, const auto& mean, const auto& var) const {
    return sw::sum(sw::batch_norm<train>(x, mean, var) * sw::sin(x));
  }
};
template <int R, std::int64_t Batch>
using sized = sw::gradient_step<trained, mesh<R>,
                                sw::inputs<sw::input_tensor<double, sw::shape<Batch, 3, 1, 1>, sw::on<dp<R>, sw::shard<0>>>,
                                           sw::input_tensor<double, sw::shape<3>, sw::on<dp<R>, sw::reduced>>,
                                           sw::input_tensor<double, sw::shape<3>, sw::on<dp<R>, sw::reduced>>>,
                                sw::wrt<0>, sw::pipeline<>>;
template <class Step, int R>
numbers run_sized(int n, bool resized) {
  numbers all;
  sw::launch<mesh<R>>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> run(rank);
    if constexpr (requires { run.resize(n); })
      if (resized) run.resize(n);
    run.set_input(0, some(static_cast<std::size_t>(n) * 3, 0));
    run.set_input(1, some(3, 1));
    run.set_input(2, squared(some(3, 2)));
    run.run({});
    numbers here{run.template output<double>(0)[0]};
    for (const double v : run.template input<double>(2)) here.push_back(v);
    if (rank.index() == 0) all = here;
  });
  return all;
}
TEST_CASE("batch_norm: a batch of the run's size is one of static size") {
  CHECK(run_sized<sized<1, sw::dyn<9>>, 1>(5, true) == run_sized<sized<1, 5>, 1>(5, false));
  CHECK(run_sized<sized<3, sw::dyn<9>>, 3>(2, true) == run_sized<sized<3, 2>, 3>(2, false));
}
TEST_CASE("batch_norm: one value per channel does not train") {
  std::string said;
  try {
    run_sized<sized<1, sw::dyn<9>>, 1>(1, true);
  } catch (const std::exception& e) {
    said = e.what();
  }
  CHECK(said.find("shardwise: batch_norm: training needs more than 1 value per channel, and this batch has 1") == 0);
}

// Implicit tensors are redistributed as every function's.
TEST_CASE("norms over channels: implicit tensors") {
  constexpr int N = 4, C = 6, P = 3;
  const figure want = plainly(N, C, P, 0, some(N * C * P, 0), some(C, 1), some(C, 2));
  sw::launch<mesh<2>>([&](auto& rank) {
    sw::eager e(rank);
    const auto x =
        sw::dtensor_of<double, sw::shape<N, C, P>, mesh<2>, sw::on<dp<2>, sw::shard<0>>>::distribute(e, some(N * C * P, 0));
    using row = sw::dtensor_of<double, sw::shape<C>, mesh<2>, sw::on<dp<2>, sw::shard<0>>>;
    const auto w = row::distribute(e, some(C, 1)), b = row::distribute(e, some(C, 2));
    CHECK(apart(whole(normed<0>{}(sw::implicit(x), sw::implicit(w), sw::implicit(b)).strict), want.y) < 1e-12);
  });
}

}  // namespace
