// SPDX-License-Identifier: Apache-2.0
// Elementary functions of float and double, as <cmath> has them: the same functions of the C library, by the compilers' own
// names. Price of <cmath> instead: C++17's special functions, 250 kB of text that every program would read.
#pragma once

namespace shardwise::inline v0_1::elementary {

#define SHARDWISE_ELEMENTARY(NAME)                              \
  inline float NAME(float x) { return __builtin_##NAME##f(x); } \
  inline double NAME(double x) { return __builtin_##NAME(x); }
SHARDWISE_ELEMENTARY(exp)
SHARDWISE_ELEMENTARY(log)
SHARDWISE_ELEMENTARY(sqrt)
SHARDWISE_ELEMENTARY(tanh)
SHARDWISE_ELEMENTARY(erf)
SHARDWISE_ELEMENTARY(sin)
SHARDWISE_ELEMENTARY(cos)
SHARDWISE_ELEMENTARY(fabs)
#undef SHARDWISE_ELEMENTARY

inline float pow(float x, float n) { return __builtin_powf(x, n); }
inline double pow(double x, double n) { return __builtin_pow(x, n); }
inline float copysign(float x, float sign) { return __builtin_copysignf(x, sign); }

}  // namespace shardwise::inline v0_1::elementary
