// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention on a GPU, with the gradients of queries, keys and values, is what it is on a host rank: every option,
// both layouts, times and sizes that no tile divides.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/operations/attention/device.cuh>
#include <vector>

namespace device_attention {

namespace sw = shardwise;
using options = sw::attention_options;
using sw::head_layout;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

template <options O>
struct plain {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v) const {
    const auto y = sw::scaled_dot_product_attention<O>(q, k, v);
    return y * y;
  }
};
template <options O>
struct with_operand {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v, const auto& x) const {
    const auto y = sw::scaled_dot_product_attention<O>(q, k, v, x);
    return y * y;
  }
};
template <options O>
struct with_documents {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v, const auto& ids) const {
    const auto y = sw::scaled_dot_product_attention<O>(q, k, v, sw::documents(ids));
    return y * y;
  }
};
template <options O>
struct with_both {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v, const auto& bias, const auto& ids) const {
    const auto y = sw::scaled_dot_product_attention<O>(q, k, v, bias, sw::documents(ids));
    return y * y;
  }
};

// A shape, and of what its elements are: numbers (of the program's type), or int32 less than Below.
template <class Shape>
struct numbers {
  template <class T>
  using tensor = sw::input_tensor<T, Shape>;
  template <class T>
  static auto values(double salt) {
    std::size_t n = 1;
    for (const std::int64_t e : Shape::extent) n *= static_cast<std::size_t>(e);
    std::vector<T> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<T>(std::sin(1.3 * static_cast<double>(i) + salt));
    return v;
  }
};
template <class Shape, int Below, int Run>
struct integers {
  template <class T>
  using tensor = sw::input_tensor<std::int32_t, Shape>;
  template <class T>
  static auto values(double) {
    std::size_t n = 1;
    for (const std::int64_t e : Shape::extent) n *= static_cast<std::size_t>(e);
    std::vector<std::int32_t> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::int32_t>(i / Run % Below);
    return v;
  }
};

// Numbers, but none in the rows of the last time; and a mask (queries, keys) that hides the last key.
template <class Shape>
struct numbers_but_last : numbers<Shape> {
  template <class T>
  static auto values(double salt) {
    auto v = numbers<Shape>::template values<T>(salt);
    const auto times = static_cast<std::size_t>(Shape::extent[2]), size = static_cast<std::size_t>(Shape::extent[3]);
    for (std::size_t i = 0; i < v.size(); ++i)
      if (i / size % times == times - 1) v[i] = std::numeric_limits<T>::quiet_NaN();
    return v;
  }
};
template <class Shape>
struct all_but_last : integers<Shape, 2, 1> {
  template <class T>
  static auto values(double) {
    auto v = integers<Shape, 2, 1>::template values<T>(0);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = (i + 1) % static_cast<std::size_t>(Shape::extent[1]) == 0 ? 0 : 1;
    return v;
  }
};

template <class F, class Backend, class T, class... Input>
using step =
    sw::gradient_step<F, mesh, sw::inputs<typename Input::template tensor<T>...>, sw::wrt<0, 1, 2>, sw::pipeline<>, Backend>;

// The result and the three gradients.
template <class Program, class T, class... Input, class Rank>
std::vector<double> run(Rank& rank) {
  sw::executor<Program, Rank> ex(rank);
  int k = 0;
  ((ex.set_input(k, Input::template values<T>(k)), ++k), ...);
  sw::step_env env;
  env.seed = 7;
  env.step = 2;
  ex.run(env);
  std::vector<double> all;
  for (int i = 0; i < 4; ++i) {
    const auto block = ex.template output<T>(i);
    for (std::size_t e = 0; e < block.size(); ++e) all.push_back(static_cast<double>(block[e]));
  }
  return all;
}

// Law: host and device agree, and the device with itself, bit by bit.
template <class T, class F, class... Input>
void check() {
  std::vector<double> on_host, on_device, again;
  sw::launch<mesh>([&](auto& rank) { on_host = run<step<F, sw::host_backend, T, Input...>, T, Input...>(rank); });
  sw::launch_cuda<mesh>([&](auto& rank) {
    on_device = run<step<F, sw::cuda_backend, T, Input...>, T, Input...>(rank);
    again = run<step<F, sw::cuda_backend, T, Input...>, T, Input...>(rank);
  });
  REQUIRE(on_host.size() == on_device.size());
  double worst = 0;
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    const double d = std::abs(on_host[i] - on_device[i]);
    worst = d <= worst ? worst : d;
  }
  CHECK(on_host.size() > 500);
  CHECK(worst < (sizeof(T) == 8 ? 1e-11 : 2e-4));
  CHECK(on_device == again);
}
template <std::int64_t... E>
using x = numbers<sw::shape<E...>>;

TEST_CASE("attention on a GPU: layouts, windows, scales, groups of heads, sizes of one tile and more") {
  if (!test::place::has(1)) return;
  check<double, plain<options{}>, x<2, 3, 70, 20>, x<2, 3, 70, 20>, x<2, 3, 70, 20>>();
  check<float, plain<options{}>, x<2, 3, 70, 20>, x<2, 3, 70, 20>, x<2, 3, 70, 20>>();
  check<double, plain<options{.causal = false}>, x<1, 2, 33, 40>, x<1, 2, 95, 40>, x<1, 2, 95, 7>>();
  check<double, plain<options{.layout = head_layout::bthd, .window = 9, .scale = 0.3}>, x<2, 65, 3, 8>, x<2, 65, 3, 8>,
        x<2, 65, 3, 8>>();
  check<double, plain<options{.layout = head_layout::bthd, .enable_gqa = true}>, x<1, 40, 6, 100>, x<1, 40, 2, 100>,
        x<1, 40, 2, 100>>();
  check<double, plain<options{}>, x<1, 1, 40, 200>, x<1, 1, 40, 200>, x<1, 1, 40, 130>>();
  check<float, plain<options{}>, x<1, 1, 40, 200>, x<1, 1, 40, 200>, x<1, 1, 40, 130>>();
  check<double, plain<options{.window = 3}>, x<1, 2, 90, 6>, x<1, 2, 9, 6>, x<1, 2, 9, 6>>();  // most see no key
}

TEST_CASE("attention on a GPU: bias, masks, documents and dropped weights") {
  if (!test::place::has(1)) return;
  using q = x<2, 3, 50, 12>;
  check<double, plain<options{.dropout = 0.3}>, q, q, q>();
  check<double, with_operand<options{}>, q, q, q, x<3, 50, 50>>();
  check<double, with_operand<options{.causal = false, .dropout = 0.2}>, q, q, q, x<2, 1, 50, 1>>();
  check<double, with_operand<options{.causal = false}>, q, q, q, integers<sw::shape<2, 1, 50, 50>, 3, 1>>();
  check<double, with_documents<options{.dropout = 0.2}>, q, q, q, integers<sw::shape<2, 50>, 5, 13>>();
  check<float, with_both<options{.window = 20}>, q, q, q, x<50, 50>, integers<sw::shape<2, 50>, 5, 13>>();
}

// Tiles of float have 32 or 64 keys and 64 or 128 queries, of double 32; heads are of up to 64, of up to 128, or larger.
TEST_CASE("attention on a GPU: times and sizes beside those of tiles") {
  if (!test::place::has(1)) return;
  check<float, plain<options{}>, x<2, 3, 1, 40>, x<2, 3, 1, 40>, x<2, 3, 1, 40>>();
  check<float, plain<options{}>, x<2, 1, 17, 8>, x<2, 1, 17, 8>, x<2, 1, 17, 8>>();
  check<float, plain<options{.layout = head_layout::bthd}>, x<1, 63, 2, 64>, x<1, 63, 2, 64>, x<1, 63, 2, 64>>();
  check<float, plain<options{.window = 20}>, x<1, 2, 200, 80>, x<1, 2, 200, 80>, x<1, 2, 200, 80>>();
  check<float, plain<options{.causal = false}>, x<1, 2, 65, 64>, x<1, 2, 200, 64>, x<1, 2, 200, 128>>();
  check<float, plain<options{.layout = head_layout::bthd, .enable_gqa = true}>, x<1, 200, 4, 64>, x<1, 200, 2, 64>,
        x<1, 200, 2, 64>>();
  check<double, plain<options{}>, x<1, 2, 65, 64>, x<1, 2, 65, 64>, x<1, 2, 65, 64>>();
  check<double, plain<options{.window = 40}>, x<1, 1, 100, 128>, x<1, 1, 100, 128>, x<1, 1, 100, 126>>();
}

TEST_CASE(
    "attention on a GPU: over several tiles bias, masks, documents and dropped weights; a NaN that is hidden reaches nobody") {
  if (!test::place::has(1)) return;
  using q = x<2, 2, 130, 40>;
  check<float, with_operand<options{.dropout = 0.3}>, q, q, q, x<2, 130, 130>>();
  check<float, with_documents<options{.window = 70, .dropout = 0.2}>, q, q, q, integers<sw::shape<2, 130>, 5, 33>>();
  using k = numbers_but_last<sw::shape<1, 2, 70, 64>>;
  check<float, with_operand<options{.causal = false}>, x<1, 2, 66, 64>, k, k, all_but_last<sw::shape<66, 70>>>();
  check<double, with_operand<options{.causal = false}>, x<1, 2, 66, 64>, k, k, all_but_last<sw::shape<66, 70>>>();
}

}  // namespace device_attention
