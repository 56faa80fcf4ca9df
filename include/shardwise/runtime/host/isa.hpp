// SPDX-License-Identifier: Apache-2.0
// Instruction sets that host kernels choose from at run time, and loops compiled for the widest one.
#pragma once

#include <cstdint>
#include <type_traits>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// Of a loop that it cannot vectorise, as where elements are drawn, clang says so to whoever includes this, unasked; it runs as it is.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

enum class isa { generic, avx2, avx512 };

inline bool supports(isa level) {
#if defined(__x86_64__)
  switch (level) {
    case isa::generic: return true;
    case isa::avx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case isa::avx512: return __builtin_cpu_supports("avx512f");
  }
  return false;
#else
  return level == isa::generic;
#endif
}

inline isa best_isa() {
  static const isa best = supports(isa::avx512) ? isa::avx512 : supports(isa::avx2) ? isa::avx2 : isa::generic;
  return best;
}

namespace isa_detail {

// flatten: the body and what it calls are inlined, hence compiled, for the wider instruction set. g++ vectorises such
// loops only at -O3, so they ask for it themselves, and would fuse products with sums where the set can (clang:
// SHARDWISE_UNFUSED_BEGIN). Law: unfused, an element has the same bits from every set, in rows of any length and stride.
#if defined(__GNUC__) && !defined(__clang__)
#define SHARDWISE_VECTORISE optimize("O3", "fp-contract=off"),
#else
#define SHARDWISE_VECTORISE
#endif
#if defined(__x86_64__) && !defined(__CUDACC__)
template <class F>
__attribute__((SHARDWISE_VECTORISE target("avx512f,avx512dq,avx512vl,avx2,fma"), flatten)) void loop_avx512(std::int64_t n,
                                                                                                            F f) {
  SHARDWISE_IVDEP
  for (std::int64_t i = 0; i < n; ++i) f(i);
}
template <class F>
__attribute__((SHARDWISE_VECTORISE target("avx2,fma"), flatten)) void loop_avx2(std::int64_t n, F f) {
  SHARDWISE_IVDEP
  for (std::int64_t i = 0; i < n; ++i) f(i);
}
template <class F>
__attribute__((SHARDWISE_VECTORISE target("avx512f,avx512dq,avx512vl,avx2,fma"), flatten)) void run_avx512(const F& f) {
  f();
}
template <class F>
__attribute__((SHARDWISE_VECTORISE target("avx2,fma"), flatten)) void run_avx2(const F& f) {
  f();
}
#endif

#undef SHARDWISE_VECTORISE

// What the whole program is compiled for, which under -march=native can fuse, too.
#if defined(__FMA__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
template <class F>
__attribute__((optimize("fp-contract=off"), flatten)) void run_unfused(const F& f) {
  f();
}
#else
template <class F>
void run_unfused(const F& f) {
  f();
}
#endif

}  // namespace isa_detail

// f() for the instruction set that everything is compiled for.
template <class F>
constexpr void run_plainly(const F& f) {
  if (std::is_constant_evaluated()) f();
  else isa_detail::run_unfused(f);
}
// f(i) for i in [0, n) likewise: where elements lie apart.
template <class F>
constexpr void plain_loop(std::int64_t n, const F& f) {
  run_plainly([n, &f] {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  });
}

// f(i) for i in [0, n), iterations independent; T is the element type, whose arithmetic decides whether width helps. Fewer
// than 8 iterations are not worth the choice.
template <class T, class F>
constexpr void independent_loop(std::int64_t n, F f) {
#if defined(__x86_64__) && !defined(__CUDACC__)
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::is_constant_evaluated() && n >= 8) {
      switch (best_isa()) {
        case isa::avx512: isa_detail::loop_avx512(n, f); return;
        case isa::avx2: isa_detail::loop_avx2(n, f); return;
        case isa::generic: break;
      }
    }
  }
#endif
  run_plainly([n, &f] {
    SHARDWISE_IVDEP
    for (std::int64_t i = 0; i < n; ++i) f(i);
  });
}

// f() itself compiled for the widest instruction set; false: there is none but the one that everything is compiled for.
template <class F>
bool try_widest([[maybe_unused]] const F& f) {
#if defined(__x86_64__) && !defined(__CUDACC__)
  switch (best_isa()) {
    case isa::avx512: isa_detail::run_avx512(f); return true;
    case isa::avx2: isa_detail::run_avx2(f); return true;
    case isa::generic: break;
  }
#endif
  return false;
}

struct unit_stride {
  constexpr std::int64_t operator*(std::int64_t i) const { return i; }
  friend constexpr std::int64_t operator*(std::int64_t i, unit_stride) { return i; }
};

// f(s...) for rows whose elements are `strides` apart. Where all lie side by side, the strides are known to the compiler and f
// is compiled for the widest instruction set, chosen once for all rows: for short ones the choice is what costs. Processors
// that have none read rows as if they were apart: one compilation less.
template <class T, class F, class... S>
constexpr void by_strides(const F& f, S... strides) {
  if constexpr (std::is_floating_point_v<T>) {
    if (((strides == 1) && ...) && !std::is_constant_evaluated()) {
      const auto side_by_side = [&] { f(((void)strides, unit_stride{})...); };
#if defined(__x86_64__) && !defined(__CUDACC__)
      if (try_widest(side_by_side)) return;
#else
      return side_by_side();
#endif
    }
  }
  run_plainly([&] { f(strides...); });
}

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
