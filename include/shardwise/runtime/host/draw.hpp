// SPDX-License-Identifier: Apache-2.0
// each_draw: random words for the elements of a block, by their positions in the whole tensor.
#pragma once

#include <shardwise/support/config.hpp>
#include <shardwise/support/philox.hpp>
#include <shardwise/runtime/host/kernel.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

using runtime::random_policy;

// f(position in the result, position in a block stored as x, random words) for every element: a function of (seed,
// step, site, global element index), so that forward and adjoint, and all meshes, draw alike; see random_policy.
template <class F>
constexpr void each_draw(const call& c, const layout& x, const step_env& env, F&& f) {
  const layout& o = c.l[result];
  const bool by_element = env.random == random_policy::by_element;
  const std::uint32_t site =
      by_element ? static_cast<std::uint32_t>(static_cast<std::uint64_t>(attributes_of<random_attributes>(c.a).site) +
                                              env.first_site) +
                       1
                 : 0;
  const std::int64_t draw = c.draw + static_cast<std::int64_t>(env.first_draw);
  std::int64_t at[max_rank]{};
  const std::int64_t n = o.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t from = 0;
    for (int d = 0; d < o.rank; ++d) from += at[d] * x.str[d];
    const std::uint64_t index = static_cast<std::uint64_t>(by_element ? global_index(o, at) : draw + i);
    f(i, from,
      philox(env.seed, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), site,
             static_cast<std::uint32_t>(env.step)));
    for (int d = o.rank - 1; d >= 0 && ++at[d] == o.ext[d]; --d) at[d] = 0;
  }
}

}  // namespace detail

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
