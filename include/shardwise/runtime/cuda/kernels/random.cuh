// SPDX-License-Identifier: Apache-2.0
// Random masks and fills, the host's own, drawn by position; and set_env, which stores what kernels read of a step.
#pragma once

#include <cmath>

#include <shardwise/runtime/cuda/kernels/map.cuh>
#include <shardwise/support/philox.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

template <class Env>
__global__ void store_env(const Env env, Env* where) {
  *where = env;
}

// The third operand of the walk is no memory: its offset is the element's row-major index in the whole tensor. The
// result is stored densely, so its offset counts the block's elements: see random_policy. x may be null.
template <class T, class F>
__global__ void __launch_bounds__(256)
    draw_kernel(const __grid_constant__ strided<3> w, const T* x, T* o, const device_env* env, std::uint32_t number,
                std::int64_t draw, const F f) {
  const std::uint64_t seed = env->env.seed;
  const std::uint32_t step = static_cast<std::uint32_t>(env->env.step);
  const bool by_element = env->env.random == random_policy::by_element;
  const std::uint32_t site = by_element ? number + 1 : 0;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t off[3];
    w.offsets(i, off);
    const std::uint64_t at = static_cast<std::uint64_t>(by_element ? off[2] : draw + off[0]);
    const philox_words words = philox(seed, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32), site, step);
    o[off[0]] = f(x ? x[off[1]] : T(0), words);
  }
}

template <class T, class F>
void draw(op_code op, const call& c, const F& f, context& ctx) {
  const layout& o = c.l[result];
  const bool reads = c.inputs > 0;
  walk<3> w;
  std::int64_t origin[3]{}, step[max_rank], below = 1;
  for (int d = o.rank - 1; d >= 0; --d) {
    step[d] = below;
    origin[2] += o.origin[d] * below;
    below *= o.global[d];
  }
  for (int d = 0; d < o.rank; ++d) {
    const std::int64_t s[3] = {o.str[d], reads ? c.l[0].str[d] : 0, step[d]};
    w.push(o.ext[d], s);
  }
  w.merge();
  const auto go = [&](const walk<3>& piece, const std::int64_t* base) {
    const strided<3> s = make_strided(piece, base);
    launch(op, &draw_kernel<T, F>, grid_for((std::int64_t{s.count} + 255) / 256, ctx), 256, ctx.stream, s,
           static_cast<const T*>(reads ? c.p[0] : nullptr), as<T>(c.p[result]), ctx.env,
           static_cast<std::uint32_t>(c.a.v[0]), c.draw, f);
  };
  each_piece(w, origin, most_points, go);
}

}  // namespace detail

// The numbers that follow are computed here, on the host, so that they are the host kernels' own to the bit.
inline void set_env(const step_env& env, device_env* where, cudaStream_t stream) {
  const double t = static_cast<double>(env.step);
  const device_env all{env, env.lr / (1 - std::pow(env.beta1, t)), 1 / std::sqrt(1 - std::pow(env.beta2, t))};
  launch(op_code::input, &detail::store_env<device_env>, 1, 1, stream, all, where);
}

template <class T>
struct dropout_draw {
  double probability;
  T keep;
  __device__ T operator()(T x, const philox_words& w) const { return x * (unit_32(w) < probability ? T(0) : keep); }
};
struct rand_draw {
  template <class T>
  __device__ T operator()(T, const philox_words& w) const {
    return static_cast<T>(unit_24(w.w[0]));
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
struct kernel<op_code::dropout> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::draw<T>(op_code::dropout, c, dropout_draw<T>{c.f, T(1) / static_cast<T>(1 - c.f)}, ctx);
  }
};
template <>
struct kernel<op_code::rand> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::draw<T>(op_code::rand, c, rand_draw{}, ctx);
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
}  // namespace shardwise::cuda
