// SPDX-License-Identifier: Apache-2.0
// Dropout: masks drawn by global element index.
#pragma once

#include <shardwise/support/philox.hpp>
#include <shardwise/runtime/host/kernels/kernel.hpp>

namespace shardwise::host {

// The mask is a function of (seed, step, site, global element index), so forward and adjoint draw the same one.
template <>
struct kernel<op_code::dropout> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const layout& o = c.l[result];
    const layout& x = c.l[0];
    const T keep = T(1) / math<T>::from(1 - c.f);
    std::int64_t at[max_rank]{};
    const std::int64_t n = o.numel();
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t from = 0;
      for (int d = 0; d < o.rank; ++d) from += at[d] * x.str[d];
      const double u =
          philox_uniform(env.seed, static_cast<std::uint32_t>(c.a.v[0]) + 1, static_cast<std::uint32_t>(env.step),
                         static_cast<std::uint64_t>(detail::global_index(o, at)));
      q.p[result][i] = u < c.f ? T(0) : static_cast<T>(q.p[0][from] * keep);
      for (int d = o.rank - 1; d >= 0 && ++at[d] == o.ext[d]; --d) at[d] = 0;
    }
  }
};

}  // namespace shardwise::host
