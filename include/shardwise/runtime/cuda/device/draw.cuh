// SPDX-License-Identifier: Apache-2.0
// draw: random words for the elements of a block, the host's own, by their positions in the whole tensor.
#pragma once

#include <shardwise/support/config.hpp>
#include <shardwise/support/philox.hpp>
#include <shardwise/runtime/cuda/device/map.cuh>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// The third operand of the walk is no memory: its offset is the element's row-major index in the whole tensor. The
// result is stored densely, so its offset counts the block's elements: see random_policy. x may be null.
template <class T, class F>
__global__ void __launch_bounds__(256)
    draw_kernel(const __grid_constant__ strided<3> w, const T* x, T* o, const device_env* env, std::uint32_t number,
                std::int64_t draw, const F f) {
  const std::uint64_t seed = env->env.seed;
  const std::uint32_t step = static_cast<std::uint32_t>(env->env.step);
  const bool by_element = env->env.random == random_policy::by_element;
  const std::uint32_t site = by_element ? number + static_cast<std::uint32_t>(env->env.first_site) + 1 : 0;
  const std::int64_t first = draw + static_cast<std::int64_t>(env->env.first_draw);
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t off[3];
    w.offsets(i, off);
    const std::uint64_t at = static_cast<std::uint64_t>(by_element ? off[2] : first + off[0]);
    const philox_words words =
        philox(seed, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32), site, step);
    o[off[0]] = static_cast<T>(f(static_cast<computed_in<T>>(x ? x[off[1]] : T(0)), words));
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
           static_cast<std::uint32_t>(attributes_of<random_attributes>(c.a).site), c.draw, f);
  };
  each_piece(w, origin, most_points, go);
}

}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
