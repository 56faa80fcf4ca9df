// SPDX-License-Identifier: Apache-2.0
// Windows of images whose height, width or both are cut over ranks: values and gradients, and theirs, equal those of whole images, what
// is sent is the halos alone, and a network trains alike.
#include <doctest/doctest.h>

#include <figures.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/batch_collectives.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/layout/layout.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
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

// Among these what other libraries refuse: conv_stride, conv_kernel, conv_nopad.
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
  using unpadded = convolved<options{}>;
  CHECK(problem<2, 8, 5, 3, 3, 3>::off_by_height<unpadded, 3>() < 1e-13);
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

// Gradients of pooling, of an image alone.
template <sw::pool_options O>
struct largest {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::sum(sw::tanh(sw::max_pool2d<O>(x)) * w); }
};
template <sw::pool_options O>
struct means {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::sum(sw::tanh(sw::avg_pool2d<O>(x)) * w); }
};
TEST_CASE("pooling: gradients of images cut in height and width") {
  using pool = sw::pool_options;
  using apart_windows = largest<pool{.kernel = 2}>;
  CHECK(problem<3, 8, 6, 1, 1, 1>::off_by_height<apart_windows, 2>() < 1e-14);
  using overlapping = largest<pool{.kernel = 3, .stride = 2, .padding = 1}>;
  CHECK(problem<2, 9, 7, 1, 1, 1>::off_by_height<overlapping, 3>() < 1e-14);
  CHECK(problem<2, 9, 7, 1, 1, 1>::off_by_both<overlapping, 2, 2>() < 1e-14);
  using dilated = largest<pool{.kernel = 2, .stride = 2, .padding = 1, .dilation = 3}>;
  CHECK(problem<2, 9, 7, 1, 1, 1>::off_by_height<dilated, 3>() < 1e-14);
  using rounded_up = means<pool{.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true}>;
  CHECK(problem<2, 8, 6, 1, 1, 1>::off_by_both<rounded_up, 3, 2>() < 1e-14);
  using counted = means<pool{.kernel = 3, .stride = 1, .padding = 1, .count_include_pad = false}>;
  CHECK(problem<2, 7, 5, 1, 1, 1>::off_by_height<counted, 4>() < 1e-14);
  CHECK(problem<2, 7, 5, 1, 1, 1>::off_by_both<counted, 2, 3>() < 1e-14);
}

// Gradients of what gradients are made of: differentiated once more, where their operands have halos.
template <int H>
struct of_adjoints {
  static constexpr sw::convolution_attributes a{{2, 1}, {1, 1}, {1, 1}, 1, {7, 5}};
  static constexpr sw::sliding by{2, 1, 1};
  constexpr auto operator()(const auto& dy, const auto& w) const {
    return sw::sum(sw::tanh(sw::call<sw::custom::conv2d_dx, sw::pack_attributes(a)>(
        sw::detail::apply<sw::op_code::redistribute,
                          sw::attributes<sw::redistribute_attributes>(0, sw::pack(by.readers(2, 7)))>(0, dy),
        w)));
  }
};
template <int H>
std::vector<double> of_adjoint() {
  using tensor_mesh = mesh<H, 1>;
  std::vector<double> all;
  sw::launch<tensor_mesh>([&](auto& rank) {
    sw::eager e(rank);
    using cotangent = sw::dtensor_of<double, sw::shape<2, 3, 4, 5>, tensor_mesh, sw::on<hp<H>, sw::shard<2>>>;
    using weight = sw::dtensor_of<double, sw::shape<3, 2, 3, 3>, tensor_mesh, sw::on<hp<H>, sw::reduced>>;
    const auto r =
        sw::value_and_grad<of_adjoints<H>, 0, 1>(cotangent::distribute(e, some(120, 0)), weight::distribute(e, some(54, 1)));
    std::vector<double> here = whole(std::get<0>(r));
    for (const double v : whole(std::get<1>(r))) here.push_back(v);
    for (const double v : whole(std::get<2>(r))) here.push_back(v);
    if (rank.index() == 0) all = here;
  });
  return all;
}
TEST_CASE("conv2d: gradients of an image's gradient, whose operands have halos") {
  CHECK(apart(of_adjoint<1>(), of_adjoint<2>()) < 1e-13);
  CHECK(apart(of_adjoint<1>(), of_adjoint<3>()) < 1e-13);
  CHECK(apart(of_adjoint<1>(), of_adjoint<4>()) < 1e-13);
}

// A network over ranks that cut the batch and ranks that cut the height.
template <int C, int O, class Bound = sw::unbound>
struct layer : sw::module<layer<C, O, Bound>, Bound> {
  template <class B>
  using rebound = layer<C, O, B>;
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<O, C, 3, 3>, sw::init::normal<1, 10>>, weight),
                    (sw::parameter<sw::shape<O>, sw::init::zeros>, bias));
  constexpr auto forward(const auto& x) const { return sw::conv2d<options{.padding = 1}>(x, weight, bias); }
};
template <class Bound = sw::unbound>
struct network : sw::module<network<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (layer<2, 6>, first), (layer<6, 3>, second));
  constexpr auto forward(const auto& x) const {
    return second(sw::max_pool2d<sw::pool_options{.kernel = 3, .stride = 2, .padding = 1}>(sw::relu(first(x))));
  }
};
template <int D, int H>
struct task {
  using cut = sw::on<hp<D>, sw::shard<0>>;
  using images = sw::input_tensor<double, sw::shape<5, 2, 10, 4>, cut, sw::on<wp<H>, sw::shard<2>>>;
  using targets = sw::input_tensor<double, sw::shape<5, 3, 5, 2>, cut, sw::on<wp<H>, sw::shard<2>>>;
  using inputs = sw::inputs<images, targets>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
template <int D, int H, class... Passes>
using step = sw::train_step<network, task<D, H>, sw::plan<sw::data_parallel<hp<D>>, sw::data_parallel<wp<H>>>, mesh<D, H>,
                            sw::adam<>, sw::pipeline<Passes...>, double>;
template <int D, int H, class... Passes>
std::vector<double> losses() {
  std::vector<double> all;
  sw::launch<mesh<D, H>>([&](auto& rank) {
    sw::executor<step<D, H, Passes...>, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(3);
    sw::step_env env;
    env.lr = 0.01;
    std::vector<double> here;
    for (env.step = 1; env.step <= 4; ++env.step) {
      run.set_input(0, some(5 * 2 * 40, 4));
      run.set_input(1, some(5 * 3 * 10, 5));
      run.run(env);
      here.push_back(run.loss());
    }
    using program = step<D, H, Passes...>;
    for (int axis = 0; axis < 2; ++axis)
      CHECK(rank.bytes_written(axis) ==
            4 * sw::passes::sent_bytes(program::program, program::traffic, axis, rank.coordinate().data()));
    if (rank.index() == 0) all = here;
  });
  return all;
}
TEST_CASE("halos: a network trains alike whatever is cut, and sends what its program says") {
  const std::vector<double> want = losses<1, 1>();
  CHECK(want.front() > want.back());
  CHECK(apart(want, losses<1, 2>()) < 1e-13);
  CHECK(apart(want, losses<2, 2>()) < 1e-13);
  CHECK(apart(want, losses<1, 3>()) < 1e-13);
  CHECK(apart(want, losses<2, 4>()) < 1e-13);
}
TEST_CASE("halos: passes keep the bits") {
  const std::vector<double> want = losses<1, 3>();
  CHECK(losses<1, 3, sw::fuse_kernels>() == want);
  CHECK(losses<1, 3, sw::cancel_redistributions, sw::merge_common, sw::rematerialise<0>>() == want);
  CHECK(losses<1, 3, sw::batch_collectives, sw::expedite_comms, sw::sink_waits, sw::raise_comms>() == want);
  // another order of sums
  CHECK(apart(losses<1, 3, sw::optimize_layout<sw::layout_mode::force>, sw::fuse_kernels>(), want) < 1e-13);
}

struct forward {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::conv2d<options{.padding = 1}>(x, w); }
};
TEST_CASE("halos: a rank without peers counts what it would send") {
  using program = step<2, 3>;
  for (int r = 0; r < 6; ++r) {
    sw::launch_fake<mesh<2, 3>>(r, [&](auto& rank) {
      sw::executor<program, sw::fake_rank<mesh<2, 3>>> run(rank, sw::executor_checks::poison);
      run.initialise(3);
      run.set_input(0, some(5 * 2 * 40, 4));
      run.set_input(1, some(5 * 3 * 10, 5));
      sw::step_env env;
      env.lr = 0.01;
      env.step = 1;
      run.run(env);
      for (int axis = 0; axis < 2; ++axis)
        CHECK(rank.bytes_written(axis) ==
              sw::passes::sent_bytes(program::program, program::traffic, axis, rank.coordinate().data()));
      CHECK(run.loss() == run.loss());
    });
  }
}

// Ten rows over two ranks, a kernel of three: each rank sends one row of five by two by eight bytes, and nothing else moves.
TEST_CASE("halos: what is sent is the rows beyond a rank's own") {
  using image = sw::input_tensor<double, sw::shape<1, 2, 10, 5>, sw::on<hp<2>, sw::shard<2>>>;
  using weight = sw::input_tensor<double, sw::shape<3, 2, 3, 3>, sw::on<hp<2>, sw::reduced>>;
  using program = sw::function_step<forward, mesh<2, 1>, sw::inputs<image, weight>>;
  static_assert(program::comm_bytes<hp<2>> == 1 * 2 * 5 * 8);
  CHECK(sw::to_text(program::program).find("exchange_halo") != std::string::npos);
}

}  // namespace
