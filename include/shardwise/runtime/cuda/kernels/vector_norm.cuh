// SPDX-License-Identifier: Apache-2.0
// Vector norms over dims, and their adjoint; sums as sum.cuh makes them, without atomics.
#pragma once

#include <shardwise/runtime/cuda/kernels/norm_functors.cuh>
#include <shardwise/runtime/cuda/kernels/sum.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

template <class T>
struct power_value {
  const T* x;
  int order;
  __device__ double operator()(const std::int64_t* off) const {
    return norm_power<double>{order}(static_cast<double>(x[off[1]]));
  }
};

template <class T>
struct store_root {
  T* out;
  norm_root<double> root;
  __device__ void operator()(const std::int64_t* at, double total) const { out[at[0]] = static_cast<T>(root(total)); }
};

template <class T>
struct norm_slope {
  int order;
  __device__ T operator()(T dy, T x, T n) const {
    if (n == T(0) || x == T(0)) return T(0);
    if (!(x == x)) return x;
    const T ratio = (x < T(0) ? -x : x) / n;
    T r = x < T(0) ? -dy : dy;
    for (int k = 1; k < order; ++k) r *= ratio;
    return r;
  }
};

}  // namespace detail

// The roots of the sums of powers.
template <>
struct kernel<op_code::vector_norm> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout &x = c.l[0], &out = c.l[result];
    const int order = static_cast<int>(c.a.v[2]);
    std::int64_t so[max_rank]{};
    host::detail::sum_strides(c.a, x, out, so);
    walk<2> kept, summed;
    for (int d = 0; d < x.rank; ++d) {
      const std::int64_t s[2] = {so[d], x.str[d]};
      ((c.a.v[0] >> d) & 1 ? summed : kept).push(x.ext[d], s);
    }
    kept.merge();
    summed.merge();
    detail::reduce_to<sum_fold>(op_code::vector_norm, c, kept, summed, detail::power_value<T>{as<T>(c.p[0]), order},
                                detail::store_root<T>{as<T>(c.p[result]), norm_root<double>{order}}, ctx);
  }
};

template <>
struct kernel<op_code::vector_norm_bwd> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout& out = c.l[result];
    std::int64_t sy[max_rank]{}, sn[max_rank]{};
    host::detail::sum_strides(c.a, out, c.l[0], sy);
    host::detail::sum_strides(c.a, out, c.l[2], sn);
    walk<4> w;
    for (int d = 0; d < out.rank; ++d) {
      const std::int64_t s[4] = {out.str[d], sy[d], c.l[1].str[d], sn[d]};
      w.push(out.ext[d], s);
    }
    w.merge();
    map(op_code::vector_norm_bwd, w,
        pointers<T, 4>{{as<T>(c.p[result]), as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[2])}},
        detail::norm_slope<T>{static_cast<int>(c.a.v[2])}, ctx);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::cuda
