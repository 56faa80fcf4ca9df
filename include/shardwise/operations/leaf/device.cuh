// SPDX-License-Identifier: Apache-2.0
// Fills on a device: a number, random draws by position, values that are their positions.
#pragma once

#include <shardwise/runtime/cuda/device/draw.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <class T>
struct fill_functor {
  T value;
  __device__ T operator()() const { return value; }
};

template <>
struct kernel<op_code::fill> {
  template <class T>
  static void run(const call& c, context& ctx) {
    walk<1> w;
    const std::int64_t step[1] = {1};
    w.push(c.l[result].numel(), step);
    map(op_code::fill, w, pointers<T, 1>{{as<T>(c.p[result])}}, fill_functor<T>{static_cast<T>(c.f)}, ctx);
  }
};

namespace detail {

template <class T>
__global__ void __launch_bounds__(256) arange_kernel(T* o, std::int64_t n, std::int64_t first, std::int64_t step) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
       i += std::int64_t{gridDim.x} * blockDim.x)
    o[i] = static_cast<T>(first + step * i);
}

}  // namespace detail

template <>
struct kernel<op_code::arange> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const auto of = attributes_of<arange_attributes>(c.a);
    const std::int64_t n = c.l[result].numel();
    if (n == 0) return;
    launch(op_code::arange, &detail::arange_kernel<T>, grid_for((n + 255) / 256, ctx), 256, ctx.stream, as<T>(c.p[result]),
           n, of.first + of.step * c.l[result].origin[0], of.step);
  }
};

// Below 1, also where a two-byte element would be rounded to it.
template <class T>
struct rand_draw {
  __device__ T operator()(computed_in<T>, const philox_words& w) const {
    const T x = static_cast<T>(unit_24(w.w[0]));
    if constexpr (sizeof(T) == 2)
      if (x == T(1)) return T::of_bits(static_cast<std::uint16_t>(T(1).bits - 1));
    return x;
  }
};
// Box-Muller in double, as on the host: the device's logarithm and cosine may differ in the last place.
struct randn_draw {
  template <class T>
  __device__ T operator()(T, const philox_words& w) const {
    const double radius = ::sqrt(-2 * ::log((w.w[0] + 0.5) * (1.0 / 4294967296.0)));
    return static_cast<T>(radius * ::cos(6.283185307179586 / 4294967296.0 * w.w[1]));
  }
};
struct bernoulli_draw {
  index_fault* fault;
  std::int32_t node;
  template <class T>
  __device__ T operator()(T x, const philox_words& w) const {
    if (!(x >= T(0) && x <= T(1)) && fault != nullptr && atomicCAS(&fault->node, -1, node) == -1) {
      fault->limits = 2;
      fault->index = __double_as_longlong(static_cast<double>(x));
    }
    return x - static_cast<T>(unit_24(w.w[0])) > T(0) ? T(1) : T(0);
  }
};

template <>
struct kernel<op_code::rand> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::draw<T>(op_code::rand, c, rand_draw<T>{}, ctx);
  }
};
template <>
struct kernel<op_code::randn> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::draw<T>(op_code::randn, c, randn_draw{}, ctx);
  }
};
template <>
struct kernel<op_code::bernoulli> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::draw<T>(op_code::bernoulli, c, bernoulli_draw{ctx.fault, c.node}, ctx);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
