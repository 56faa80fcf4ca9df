// SPDX-License-Identifier: Apache-2.0
// running_exp: the largest element of a row and the sum of its exponentials, in one pass.
#pragma once

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
