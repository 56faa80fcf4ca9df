// SPDX-License-Identifier: Apache-2.0
// running_exp: the largest element of a row and the sum of its exponentials, in one pass.
#pragma once

#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/runtime/cuda/device/math.cuh>
#include <shardwise/runtime/cuda/device/team.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// Largest element and sum of exp(x - largest), in one pass: the sum is rescaled whenever a larger element comes.
template <class T>
struct running_exp {
  T top = -static_cast<T>(INFINITY), total = T(0);

  __device__ void add(T x) {
    if (x > top) {
      total = total * math<T>::exp(top - x) + T(1);
      top = x;
    } else {
      total += x == top ? T(1) : math<T>::exp(x - top);  // equal: infinities have no difference
    }
  }
  // Of a row of n elements `step` apart, of T or of what is computed in T: all lanes call it and receive it.
  template <class Team, class Element>
  static __device__ running_exp of_row(const Team& t, const Element* x, std::int64_t n, std::int64_t step) {
    running_exp e;
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) e.add(static_cast<T>(x[i * step]));
    return e.of_team(t);
  }
  // The same of a row that begins at a multiple of 16 bytes and holds whole packs, side by side; two packs are on their way at once.
  template <class Team, class X>
  static __device__ running_exp of_packs(const Team& t, const X* x, std::int64_t n) {
    constexpr int V = vector_of<X>, step = Team::threads * V;
    running_exp e;
    std::int64_t i = t.lane() * V;
    for (; i + step < n; i += 2 * step) {
      const auto a = *reinterpret_cast<const pack<X, V>*>(x + i), b = *reinterpret_cast<const pack<X, V>*>(x + i + step);
      e.add_pack(a);
      e.add_pack(b);
    }
    if (i < n) e.add_pack(*reinterpret_cast<const pack<X, V>*>(x + i));
    return e.of_team(t);
  }
  // One rescaling for several elements.
  template <class X, int V>
  __device__ void add_pack(const pack<X, V>& x) {
    T most = top;
#pragma unroll
    for (int k = 0; k < V; ++k)
      if (static_cast<T>(x.v[k]) > most) most = static_cast<T>(x.v[k]);
    if (most > top) {
      total *= math<T>::exp(top - most);  // from nothing: exp(-infinity)
      top = most;
    }
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const T v = static_cast<T>(x.v[k]);
      total += v == top ? T(1) : math<T>::exp(v - top);  // equal: infinities have no difference
    }
  }
  __device__ T log_sum() const { return top + math<T>::log(total); }
  // The sum of exp(x - top) that softmax divides by: beside infinity, whose differences are no numbers, none.
  __device__ T divisor() const { return top == static_cast<T>(INFINITY) ? top - top : total; }

 private:
  // A lane without elements adds nothing.
  template <class Team>
  __device__ running_exp of_team(const Team& t) const {
    running_exp r;
    r.top = t.max(top);
    r.total = t.sum(top == r.top ? total : total * math<T>::exp(top - r.top));
    return r;
  }
};

}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
