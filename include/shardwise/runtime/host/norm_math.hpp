// SPDX-License-Identifier: Apache-2.0
// Powers, roots and slopes of vector norms (sum |x|^P)^(1/P), for whole orders P from 1.
#pragma once

#include <shardwise/support/config.hpp>
#include <shardwise/support/elementary.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// A trait, as math is. Law: power(root(s, p), p) is s up to rounding, so that norms of parts make up the norm.
template <class T>
struct norm_math {
  static constexpr T power(T x, int p) {
    const T a = x < T(0) ? -x : x;
    T r = a;
    for (int k = 1; k < p; ++k) r = r * a;
    return r;
  }
  static T root(T s, int p) {
    return p == 1 ? s : p == 2 ? elementary::sqrt(s) : elementary::pow(s, T(1) / static_cast<T>(p));
  }
  // The norm n as a function of its element x: sign(x) (|x| / n)^(P-1), and 0 where n is, as in PyTorch. Of a NaN, NaN.
  static constexpr T slope(T x, T n, int p) {
    if (n == T(0) || x == T(0)) return T(0);
    if (!(x == x)) return x;
    const T ratio = (x < T(0) ? -x : x) / n;
    T r = x < T(0) ? T(-1) : T(1);
    for (int k = 1; k < p; ++k) r = r * ratio;
    return r;
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
