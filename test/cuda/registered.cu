// SPDX-License-Identifier: Apache-2.0
// What an executor asks when it is made, asked without a GPU: each call of a program finds the kernels that a source has compiled for it, of
// the library's own operations, of those behind more_functions.cuh and of users', with their adjoints.
#include <doctest/doctest.h>

#include <08_own_operation/operation.hpp>
#include <custom_operations.hpp>
#include <settled.hpp>
#include <shardwise/cuda.cuh>
#include <shardwise/module/function.hpp>
#include <shardwise/more_functions.cuh>
#include <shardwise/operations/extreme/device.cuh>
#include <shardwise/operations/pooling/device.cuh>
#include <tuple>

namespace device_registered {

namespace sw = shardwise;

struct one : sw::axis<1> {};
template <class... Extents>
using step_inputs = sw::inputs<sw::input_tensor<double, Extents>...>;
template <class F, class Inputs, class Wrt>
using program = sw::gradient_step<F, sw::mesh<one>, Inputs, Wrt, sw::pipeline<>, sw::cuda_backend>;

// Refuses what an executor's constructor would; returns how many calls are of operations that are no op_code of the library.
template <class Step>
int checked() {
  const auto& calls = test::calls_of<Step>(0);
  sw::cuda::check_compiled<Step>(calls, 0);
  int own = 0;
  for (const sw::runtime::call& c : calls) own += Step::program.nodes[c.node].op == sw::op_code::custom;
  return own;
}

struct looks {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto y = sw::max_pool2d<sw::pool_options{.kernel = 2}>(x * w);
    return sw::interpolate<5, 7>(sw::avg_pool2d<sw::pool_options{.kernel = 2}>(sw::group_norm<2>(y)));
  }
};
struct smooth {
  constexpr auto operator()(const auto& x, const auto& y) const {
    return sw::erf(x) + sw::softplus(y) + sw::swiglu(x, y) + sw::cumsum<0>(x * y) + sw::smooth_l1_loss(x, y, 0.5);
  }
};
struct largest {
  constexpr auto operator()(const auto& x) const {
    const auto [values, indices] = sw::max<1>(x);
    return std::tuple{sw::sum(values * values), indices};
  }
};
struct users {
  constexpr auto operator()(const auto& x, const auto& y) const { return sw::call<gated::swiglu>(x, y); }
};
struct not_compiled {
  constexpr auto operator()(const auto& x) const { return sw::call<sums::wrong_adjoint>(x); }
};

using images = sw::shape<2, 4, 8, 8>;
using square = sw::shape<3, 5>;

TEST_CASE("every call of a program finds its compiled kernels, without a GPU") {
  CHECK(checked<program<looks, step_inputs<images, images>, sw::wrt<0, 1>>>() >= 10);
  CHECK(checked<program<smooth, step_inputs<square, square>, sw::wrt<0, 1>>>() >= 9);
  CHECK(checked<program<largest, step_inputs<square>, sw::wrt<0>>>() >= 1);
  CHECK(checked<program<users, step_inputs<square, square>, sw::wrt<0, 1>>>() == 3);
}

TEST_CASE("a user's operation that no source has compiled is named, without a GPU") {
  CHECK_THROWS_WITH(
      (checked<program<not_compiled, step_inputs<square>, sw::wrt<>>>()),
      doctest::Contains("custom operation wrong_adjoint, of which no device kernel for its element type double is "
                        "compiled; write SHARDWISE_DEVICE_KERNELS(wrong_adjoint) at namespace scope"));
}

}  // namespace device_registered

SHARDWISE_DEVICE_KERNELS(gated::swiglu, gated::swiglu_gate, gated::swiglu_up)
