// SPDX-License-Identifier: Apache-2.0
// Dropout: the host's masks, drawn by global element index; and set_env, which stores what kernels read of a step.
#pragma once

#include <cmath>

#include <shardwise/runtime/cuda/kernels/map.cuh>
#include <shardwise/support/philox.hpp>

namespace shardwise::cuda {

namespace detail {

template <class Env>
__global__ void store_env(const Env env, Env* where) {
  *where = env;
}

// The third operand of the walk is no memory: its offset is the element's row-major index in the whole tensor.
template <class T>
__global__ void __launch_bounds__(256)
    dropout_kernel(const __grid_constant__ strided<3> w, const T* x, T* o, const device_env* env, std::uint32_t site,
                   double probability, T keep) {
  const std::uint64_t seed = env->env.seed;
  const std::uint32_t step = static_cast<std::uint32_t>(env->env.step);
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t off[3];
    w.offsets(i, off);
    const double u = philox_uniform(seed, site, step, static_cast<std::uint64_t>(off[2]));
    o[off[0]] = u < probability ? T(0) : x[off[1]] * keep;
  }
}

}  // namespace detail

// The numbers that follow are computed here, on the host, so that they are the host kernels' own to the bit.
inline void set_env(const step_env& env, device_env* where, cudaStream_t stream) {
  const double t = static_cast<double>(env.step);
  const device_env all{env, env.lr / (1 - std::pow(env.beta1, t)), 1 / std::sqrt(1 - std::pow(env.beta2, t))};
  launch(op_code::input, &detail::store_env<device_env>, 1, 1, stream, all, where);
}

template <>
struct kernel<op_code::dropout> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout &x = c.l[0], &o = c.l[result];
    walk<3> w;
    std::int64_t origin[3]{}, step[max_rank], below = 1;
    for (int d = o.rank - 1; d >= 0; --d) {
      step[d] = below;
      origin[2] += o.origin[d] * below;
      below *= o.global[d];
    }
    for (int d = 0; d < o.rank; ++d) {
      const std::int64_t s[3] = {o.str[d], x.str[d], step[d]};
      w.push(o.ext[d], s);
    }
    w.merge();
    const auto go = [&](const walk<3>& piece, const std::int64_t* base) {
      const strided<3> s = make_strided(piece, base);
      launch(op_code::dropout, &detail::dropout_kernel<T>, grid_for((std::int64_t{s.count} + 255) / 256, ctx), 256,
             ctx.stream, s, static_cast<const T*>(c.p[0]), as<T>(c.p[result]), ctx.env,
             static_cast<std::uint32_t>(c.a.v[0]) + 1, c.f, T(1) / static_cast<T>(1 - c.f));
    };
    each_piece(w, origin, most_points, go);
  }
};

}  // namespace shardwise::cuda
