// SPDX-License-Identifier: Apache-2.0
// Tensors that are stored channels-last: whatever reads, views, writes or redistributes them has the values of contiguous ones, at
// once and as a program, split along any dim; and convolutions read them as they are.
#include <doctest/doctest.h>

#include <both_ways.hpp>
#include <figures.hpp>
#include <shardwise/laws/gradcheck.hpp>

namespace {

using namespace test;
using sw::memory_format;
using sw::op_code;

constexpr auto turned(const auto& x) { return sw::contiguous<memory_format::channels_last>(x); }

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
template <int Dim>
using images = sw::dtensor_of<double, sw::shape<2, 3, 5, 4>, mesh, sw::shard<Dim>>;

// Each as it is, or of what Store makes of x.
struct as_it_is {
  constexpr auto operator()(const auto& x) const { return x; }
};
struct turn {
  constexpr auto operator()(const auto& x) const { return turned(x); }
};
template <class Store>
struct reads {
  constexpr auto operator()(const auto& given) const {
    const auto x = Store{}(given);
    return std::tuple{sw::contiguous(x),
                      sw::relu(x),
                      x + sw::unsqueeze<1>(sw::amax<1>(x)),
                      sw::square(x) + x,
                      sw::sum<2, 3>(x),
                      sw::softmax<3>(x),
                      sw::amax<1>(x),
                      sw::transpose<1, 2>(x),
                      sw::narrow<1, 1, 2>(x) * 2,
                      sw::cat<1>(x, x),
                      sw::where(sw::gt(x, 0.0), x, -x)};
  }
};

// A copy of each result, row-major, whole.
template <class F, class X>
std::vector<std::vector<double>> all_of(const X& x) {
  std::vector<std::vector<double>> r;
  std::apply([&](const auto&... y) { (r.push_back(figures::whole(y)), ...); }, F{}(x));
  return r;
}

template <int Dim>
void read_along() {
  const auto values = figures::some(120, Dim);
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = images<Dim>::distribute(on, values);
    if constexpr (Dim == 0) {  // rows of softmax and channels of cat are whole
      const auto a = all_of<reads<turn>>(x), b = all_of<reads<as_it_is>>(x);
      for (std::size_t k = 0; k < a.size(); ++k)
        if (k == 4) CHECK(figures::apart(a[k], b[k]) < 1e-14);  // sums are taken in the order of the storage
        else CHECK(a[k] == b[k]);
      using step = function_of<reads<turn>, images<Dim>>;
      check_program<step>(rank, reads<turn>{}(x), x);
      static_assert(count_of<step>(op_code::contiguous) == 2);
    }
    const auto y = turned(x);
    static_assert(sw::is_channels_last(std::remove_cvref_t<decltype(y)>::sp));
    const auto block = y.to_local();
    CHECK(block.layout.str[1] == 1);
    CHECK(block.data.size() == static_cast<std::size_t>(block.layout.numel()));
    CHECK(values_of(block) == values_of(x.to_local()));
    CHECK(figures::whole(y) == values);
    CHECK(figures::whole(sw::redistribute<dp, sw::replicate>(y)) == values);
    CHECK(figures::whole(sw::redistribute<dp, sw::shard<3 - Dim>>(y)) == values);
    CHECK(figures::whole(y + turned(x)) == figures::whole(x + x));
    if constexpr (Dim < 3) CHECK(figures::whole(sw::view<2, 3, 20>(y)) == values);
    if constexpr (Dim < 2) {  // between the rows of a part there are gaps
      const auto part = sw::narrow<2, 1, 2>(x);
      CHECK(figures::whole(sw::view<2, 3, 8>(part)) == figures::whole(sw::contiguous(part)));
    }
  });
}
TEST_CASE("memory formats: what reads a channels-last tensor has the values of a contiguous one, split along any dim") {
  read_along<0>();
  read_along<1>();
  read_along<2>();
  read_along<3>();
}

// Written in place, through views too.
template <class Store>
struct writes {
  constexpr auto operator()(const auto& given) const {
    const auto x = Store{}(sw::relu(given));
    const auto part = sw::narrow<2, 1, 2>(x);
    sw::mul_(part, 3);
    sw::add_(x, 1);
    sw::copy_(sw::select<1, 0>(x), sw::select<1, 2>(x));
    return std::tuple{x, sw::contiguous(part), sw::sum<0>(x)};
  }
};
TEST_CASE("memory formats: writes in place are seen in a channels-last tensor, which stays one") {
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = images<0>::distribute(on, figures::some(120, 1));
    CHECK(all_of<writes<turn>>(x) == all_of<writes<as_it_is>>(x));
    using step = function_of<writes<turn>, images<0>>;
    static_assert(sw::is_channels_last(step::program.spec_of(step::program.outputs[0])));
    check_program<step>(rank, writes<turn>{}(x), x);
  });
}

template <bool Turned, sw::convolution_options O>
struct convolved {
  constexpr auto operator()(const auto& x, const auto& w) const {
    if constexpr (Turned) return sw::conv2d<O>(turned(x), turned(w));
    else return sw::conv2d<O>(x, w);
  }
};
// The convolution and its gradients, of operands that are split along the batch: the same bits, and no operand is copied again.
template <sw::convolution_options O, int Channels, int Out>
void convolve() {
  using image = sw::dtensor_of<float, sw::shape<3, Channels, 5, 4>, mesh, sw::shard<0>>;
  using weight = sw::dtensor_of<float, sw::shape<Out, Channels / O.groups, 3, 2>, mesh, sw::reduced>;
  using step = gradient_of<convolved<true, O>, sw::wrt<0, 1>, image, weight>;
  static_assert(count_of<step>(op_code::contiguous) == 2);
  static_assert(!sw::verify(step::program));
  const auto given = figures::some(3 * Channels * 20, 0), kernel = figures::some(Out * Channels / O.groups * 6, 1);
  const std::vector<float> x(given.begin(), given.end()), w(kernel.begin(), kernel.end());
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step, std::remove_cvref_t<decltype(rank)>> a(rank, sw::executor_checks::poison);
    sw::executor<gradient_of<convolved<false, O>, sw::wrt<0, 1>, image, weight>, std::remove_cvref_t<decltype(rank)>> b(
        rank);
    a.set_input(0, x);
    a.set_input(1, w);
    b.set_input(0, x);
    b.set_input(1, w);
    a.run({});
    b.run({});
    for (int k = 0; k < 3; ++k) CHECK(same_bits(a.template output<float>(k), b.template output<float>(k)));
  });
}
TEST_CASE(
    "memory formats: a convolution reads channels-last operands as they are, and gives the bits that it gives of others") {
  convolve<sw::convolution_options{}, 3, 4>();
  convolve<sw::convolution_options{.stride = 2, .padding = 1}, 4, 2>();
  convolve<sw::convolution_options{.padding = 2, .dilation = 2, .groups = 2}, 4, 6>();
}
TEST_CASE("memory formats: gradients of convolutions of channels-last operands, and theirs, against differences") {
  using options = sw::convolution_options;
  CHECK(sw::gradcheck<convolved<true, options{.stride = 2, .padding = 1}>, sw::shape<2, 2, 4, 5>, sw::shape<3, 2, 3, 2>>() ==
        80 + 36);
}

// Elements of two bytes, whose kernels run on floats; and a rank's threads, which share the work.
struct halves {
  constexpr auto operator()(const auto& x) const {
    const auto h = sw::cast<sw::bfloat16>(turned(x));
    return std::tuple{sw::cast<double>(sw::relu(h) + h), turned(sw::relu(h))};
  }
};
TEST_CASE("memory formats: elements of two bytes") {
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = images<0>::distribute(on, figures::some(120, 2));
    std::vector<double> want;
    for (const double v : figures::some(120, 2)) {
      const float h = static_cast<float>(sw::bfloat16(static_cast<float>(v)));
      want.push_back(static_cast<double>(static_cast<float>(sw::bfloat16((h > 0 ? h : 0) + h))));
    }
    CHECK(figures::whole(std::get<0>(halves{}(x))) == want);
    check_program<function_of<halves, images<0>>>(rank, halves{}(x), x);
  });
}

}  // namespace
