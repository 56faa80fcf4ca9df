// SPDX-License-Identifier: Apache-2.0
// How elements come to tensor cores, as of sm_80: of two bytes as they are (mma.sync m16n8k16), floats rounded to TF32 or in two parts
// (m16n8k8).
#pragma once

#include <cstdint>
#include <type_traits>

#include <shardwise/support/config.hpp>
#include <shardwise/vocabulary/float16.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail::mma {

// A lane's part of 16 rows of 32 bytes, 16 or 8 elements deep: words (row lane / 4, word lane % 4), that with row + 8, with word + 4, with
// both.
struct fragment {
  std::uint32_t r[4];
};

// How elements come to tensor cores, which multiply 32 bytes of a row with 32 bytes of a column: what of a left factor's fragment, and of
// two words of a right one's, is multiplied. add<0> to add<terms - 1>: c += a b, of a 16 rows and b 8 columns. A lane has of c elements
// 2 r + e: row lane / 4 + 8 r, column 2 (lane % 4) + e. A warp has to wait for a sum before it adds to it again, so `together` blocks of
// 8 columns go through each term side by side.
struct words_of_column {
  std::uint32_t r[2];
};

// Elements of two bytes, as they are.
template <class T>
struct two_byte_factors {
  using element = T;
  using left = fragment;
  using right = words_of_column;
  static constexpr int terms = 1, together = 2;
  __device__ static left left_of(const fragment& f) { return f; }
  __device__ static right right_of(std::uint32_t low, std::uint32_t high) { return {{low, high}}; }
  template <int>
  __device__ static void add(float (&c)[4], const left& a, const right& b) {
    if constexpr (std::is_same_v<T, bfloat16>)
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[0]), "r"(b.r[1]));
    else
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[0]), "r"(b.r[1]));
  }
};

// Tensor cores read the first 19 bits of a float: sign, exponent and 10 bits of the fraction.
__device__ inline void add_tf32(float (&c)[4], const fragment& a, const words_of_column& b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[0]), "r"(b.r[1]));
}

// Floats rounded to TF32, for programs that allow it (cuda_backend_tf32).
struct tf32_factors {
  using element = float;
  using left = fragment;
  using right = words_of_column;
  static constexpr int terms = 1, together = 4;
  __device__ static std::uint32_t rounded(std::uint32_t x) {
    std::uint32_t y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(__uint_as_float(x)));
    return y;
  }
  __device__ static left left_of(const fragment& f) {
    return {{rounded(f.r[0]), rounded(f.r[1]), rounded(f.r[2]), rounded(f.r[3])}};
  }
  __device__ static right right_of(std::uint32_t low, std::uint32_t high) { return {{rounded(low), rounded(high)}}; }
  template <int>
  __device__ static void add(float (&c)[4], const left& a, const right& b) {
    add_tf32(c, a, b);
  }
};

// Floats as sums of two parts that TF32 holds, high and low: of (a + a')(b + b') all but a' b' is added, the small terms first. Law: high
// is the float's first 11 significant bits, low the rest rounded to 11, so a product's relative error is at most 2^-19: of a' b' 2^-20, of
// each rounding 2^-21. Price: three products for one; what a factor that is not finite reaches may be no number.
struct split_factors {
  using element = float;
  static constexpr int terms = 3, together = 4;
  struct left {
    fragment high, low;
  };
  struct right {
    words_of_column high, low;
  };
  __device__ static void split(std::uint32_t x, std::uint32_t& high, std::uint32_t& low) {
    high = x & 0xFFFFE000U;
    low = __float_as_uint(__uint_as_float(x) - __uint_as_float(high)) + 0x1000U;  // half a unit of what is read
  }
  __device__ static left left_of(const fragment& f) {
    left l;
#pragma unroll
    for (int i = 0; i < 4; ++i) split(f.r[i], l.high.r[i], l.low.r[i]);
    return l;
  }
  __device__ static right right_of(std::uint32_t low, std::uint32_t high) {
    right r;
    split(low, r.high.r[0], r.low.r[0]);
    split(high, r.high.r[1], r.low.r[1]);
    return r;
  }
  template <int Term>
  __device__ static void add(float (&c)[4], const left& a, const right& b) {
    add_tf32(c, Term == 0 ? a.low : a.high, Term == 1 ? b.low : b.high);
  }
};

template <class F, int Size>
inline constexpr int row_bytes = Size * static_cast<int>(sizeof(typename F::element));

}  // namespace attention_detail::mma

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
