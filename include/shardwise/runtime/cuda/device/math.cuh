// SPDX-License-Identifier: Apache-2.0
// Mathematics of an element on a device, and the formula of a pointwise operation with it.
#pragma once

#include <shardwise/operations/pointwise/formulas.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// The functions of <cmath>, in the element's own precision; correctly rounded within 1 to 2 units, never the fast ones.
template <class T>
struct math {
  static constexpr bool single = sizeof(T) == 4;
  static __device__ T exp(T x) {
    if constexpr (single) return ::expf(x);
    else return ::exp(x);
  }
  static __device__ T log(T x) {
    if constexpr (single) return ::logf(x);
    else return ::log(x);
  }
  static __device__ T tanh(T x) {
    if constexpr (single) return ::tanhf(x);
    else return ::tanh(x);
  }
  static __device__ T erf(T x) {
    if constexpr (single) return ::erff(x);
    else return ::erf(x);
  }
  static __device__ T sqrt(T x) {
    if constexpr (single) return ::sqrtf(x);
    else return ::sqrt(x);
  }
  // x y + z rounded once. Of sums of products the compiler fuses the one or the other, as it finds: where two kernels have to give
  // the same bits, the formula says which.
  static __device__ T fma(T x, T y, T z) {
    if constexpr (single) return ::fmaf(x, y, z);
    else return ::fma(x, y, z);
  }
  static __device__ T mul_add(T x, T y, T z) { return fma(x, y, z); }
  static __device__ T sin(T x) {
    if constexpr (single) return ::sinf(x);
    else return ::sin(x);
  }
  static __device__ T cos(T x) {
    if constexpr (single) return ::cosf(x);
    else return ::cos(x);
  }
  static __device__ T pow(T x, T n) {
    // as host::power_of
    if (n == T(2)) return x * x;
    if (n == T(0.5)) return sqrt(x);
    if (n == T(-1)) return T(1) / x;
    if (n == T(3)) return x * x * x;
    if (n == T(-0.5)) return T(1) / sqrt(x);
    if (n == T(-2)) return T(1) / (x * x);
    if (n == T(1)) return x;
    if constexpr (single) return ::powf(x, n);
    else return ::pow(x, n);
  }
  static __device__ bool less(T a, T b) { return a < b; }
  static __host__ __device__ constexpr T from(double x) { return static_cast<T>(x); }
};

// One element of a pointwise operation on a device; f is the operation's real parameter.
template <op_code Op, class T, class... X>
__device__ auto element(T f, X... x) {
  return operations::element<Op>::template value<math<T>, T>(f, x...);
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
