// SPDX-License-Identifier: Apache-2.0
// one_shot: small all-reduces as one kernel of each rank, which writes its operand into its peers' memory and adds up what they have written
// into its own.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <shardwise/runtime/cuda/context.hpp>
#include <shardwise/runtime/cuda/peer_slots.hpp>
#include <shardwise/runtime/cuda/reductions.cuh>

namespace shardwise::inline v0_1::cuda::one_shot {

// Bytes that a rank sends at most: those of its operand to each peer. Up to about there such a kernel takes less time than NCCL's, which costs 6
// us even for one number: on two H200 2.5 us for 400 bytes where NCCL takes 5.7, and 6.0 for 404000 where NCCL takes 9.1. Beyond it
// twice the bytes, and with more ranks every operand to every rank, cost more than NCCL's steps.
inline constexpr std::int64_t most_sent = std::int64_t{1} << 20;
constexpr std::int64_t words_of(std::int64_t bytes) { return (bytes + payload_of_word - 1) / payload_of_word; }
constexpr std::int64_t most_words(int ranks) { return most_sent / (ranks - 1) / payload_of_word; }
// The words of the slots that a program takes whose largest all-reduce has so many; 0 where NCCL is to do that one. Powers of two, up to the most, so that
// what a rank's executors take one after the other is at most twice the largest.
constexpr std::int32_t slot_words(std::int64_t words, int ranks) {
  if (words <= 0 || ranks > max_slot_ranks || words > most_words(ranks)) return 0;
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(words)));
  return static_cast<std::int32_t>(power < most_words(ranks) ? power : most_words(ranks));
}

// Operands of several all-reduces that one kernel takes, each from a word of its own on.
inline constexpr int max_parts = 16;
struct part {
  const void* from;
  void* to;
  std::int32_t begin, count;  // its first word, its elements
  reduction op;
  bool aligned;  // both blocks: they are read and written by eight bytes
};
struct parts {
  part of[max_parts];
  std::int32_t count = 0, words = 0;

  void add(const void* from, void* to, std::int64_t n, std::int64_t bytes, reduction op) {
    const bool aligned = ((reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to)) & 7U) == 0;
    of[count++] = {from, to, words, static_cast<std::int32_t>(n), op, aligned};
    words += static_cast<std::int32_t>(words_of(bytes));
  }
};

// 0 is the epoch of words that nobody has written; parities alternate where the numbers begin anew.
__host__ __device__ constexpr std::uint32_t next_epoch(std::uint32_t e) { return e == 0xFFFFFFFFU ? 2 : e + 1; }
// A word that no collective has written for 2^32 epochs would be taken for a new one. So two collectives in a row, one of each parity, write all
// words, payload or not, once in 2^30.
__host__ __device__ constexpr bool renews(std::uint32_t e) { return (e & 0x3FFFFFFFU) >> 1U == 1; }

__device__ inline void send(uint4* to, uint2 v, std::uint32_t epoch) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %2};" ::"l"(to), "r"(v.x), "r"(epoch), "r"(v.y) : "memory");
}
__device__ inline uint4 look(const uint4* at) {
  uint4 w;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
               : "l"(at)
               : "memory");
  return w;
}
__device__ inline std::uint32_t look(const std::uint32_t* at) {
  std::uint32_t w;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(w) : "l"(at) : "memory");
  return w;
}

// Waits for a word; false: the run is aborted. What ends the waiting is the peer's word or, looked at once in a thousand times, the host's abort
// word, which whoever sees a failure sets before it aborts NCCL's communicators. The kernels behind this one find it in the device's
// memory and wait for nothing.
__device__ inline bool receive(const uint4* at, std::uint32_t epoch, const peer_slots& s, uint2& v) {
  for (std::uint32_t tries = 1;; ++tries) {
    const uint4 w = look(at);
    if (w.y == epoch && w.w == epoch) {
      v = make_uint2(w.x, w.z);
      return true;
    }
    if (tries % 1024 != 0) continue;
    if (look(&s.state->ended) != 0) return false;
    if (look(s.abort) != 0) {
      *static_cast<volatile std::uint32_t*>(&s.state->ended) = 1;
      return false;
    }
  }
}

// As by NCCL on keys: a NaN is kept, and -0 is below 0; see to_key.
template <class C>
__device__ C extreme(C a, C b, bool largest) {
  if constexpr (std::is_floating_point_v<C>) {
    using key = exchange::key_of<C>;
    const exchange::to_key<C> in_order{largest};
    const key ka = exchange::to_key<C>::template from_bits<key>(in_order(a)),
              kb = exchange::to_key<C>::template from_bits<key>(in_order(b));
    return (largest ? ka >= kb : ka <= kb) ? a : b;
  } else {
    return (largest ? a >= b : a <= b) ? a : b;
  }
}
template <class C>
__device__ C joined(reduction op, C a, C b) {
  switch (op) {
    case reduction::product:
      if constexpr (std::is_integral_v<C>)  // which wrap around
        return static_cast<C>(static_cast<std::make_unsigned_t<C>>(a) * static_cast<std::make_unsigned_t<C>>(b));
      else return a * b;
    case reduction::max: return extreme(a, b, true);
    case reduction::min: return extreme(a, b, false);
    case reduction::sum:
    case reduction::avg:
    case reduction::norm: break;
  }
  if constexpr (std::is_integral_v<C>)
    return static_cast<C>(static_cast<std::make_unsigned_t<C>>(a) + static_cast<std::make_unsigned_t<C>>(b));
  else return a + b;
}

// The elements of a word: eight bytes of a part, less at its end, where zeros stand for what is not there.
template <class T>
inline constexpr int in_word = static_cast<int>(payload_of_word / sizeof(T));
template <class T>
__device__ uint2 word_of(const part& q, std::int32_t i) {
  const std::int32_t at = (i - q.begin) * in_word<T>;
  const T* const x = static_cast<const T*>(q.from) + at;
  uint2 v;
  if (q.aligned && at + in_word<T> <= q.count) {
    v = *reinterpret_cast<const uint2*>(x);
  } else {
    T t[in_word<T>]{};
    for (int k = 0; k < in_word<T>; ++k)
      if (at + k < q.count) t[k] = x[k];
    memcpy(&v, t, sizeof v);
  }
  return v;
}
template <class T>
__device__ void store_word(const part& q, std::int32_t i, const T (&t)[in_word<T>]) {
  const std::int32_t at = (i - q.begin) * in_word<T>;
  T* const o = static_cast<T*>(q.to) + at;
  if (q.aligned && at + in_word<T> <= q.count) {
    uint2 v;
    memcpy(&v, t, sizeof v);
    *reinterpret_cast<uint2*>(o) = v;
  } else {
    for (int k = 0; k < in_word<T>; ++k)
      if (at + k < q.count) o[k] = t[k];
  }
}

// Each thread sends its words, all of them before it waits for the first, then adds the peers' to its own in the order of their places: every rank
// has the same bits, and in every run. Elements of two bytes are added in float and rounded once. A peer's word is sent by a thread that
// has waited for nothing, so blocks need not all be resident, on this device or on another: a block that waits for one which has not begun
// waits for an SM that other work holds, and gets it when that ends. Other waiting kernels hold none, as a rank has one collective at a
// time. The operand may be the result: peers read none of it.
inline constexpr int threads = 512, most_blocks = 64;
template <class T>
__global__ void __launch_bounds__(threads)
    all_reduce_words(const __grid_constant__ parts p, const __grid_constant__ peer_slots s) {
  using C = computed_in<T>;
  const std::uint32_t ended = look(&s.state->ended), epoch = next_epoch(look(&s.state->epoch));
  if (ended == 0) {
    const std::int32_t stride = static_cast<std::int32_t>(gridDim.x) * threads,
                       first = static_cast<std::int32_t>(blockIdx.x) * threads + static_cast<std::int32_t>(threadIdx.x);
    const std::int32_t all = renews(epoch) ? s.words : p.words,
                       mine = static_cast<std::int32_t>(epoch & 1U) * (s.ranks - 1) * s.words;
    int q = 0;
    const auto find_part = [&](std::int32_t i) {
      while (q + 1 < p.count && i >= p.of[q + 1].begin) ++q;
    };
    for (std::int32_t i = first; i < all; i += stride) {
      find_part(i);
      const uint2 v = i < p.words ? word_of<T>(p.of[q], i) : make_uint2(0, 0);
      for (int k = 0; k < s.ranks; ++k)
        if (k != s.rank) send(s.lands[k] + mine + i, v, epoch);
    }
    q = 0;
    bool there = true;
    for (std::int32_t i = first; there && i < all; i += stride) {
      find_part(i);
      const uint4* at = s.comes + mine + i;
      C sum[in_word<T>];
      for (int k = 0; there && k < s.ranks; ++k) {
        uint2 v = make_uint2(0, 0);
        if (k != s.rank) {
          there = receive(at, epoch, s, v);
          at += s.words;
        } else if (i < p.words) {
          v = word_of<T>(p.of[q], i);
        }
        T t[in_word<T>];
        memcpy(t, &v, sizeof v);
        for (int j = 0; j < in_word<T>; ++j)
          sum[j] = k == 0 ? static_cast<C>(t[j]) : joined<C>(p.of[q].op, sum[j], static_cast<C>(t[j]));
      }
      if (!there || i >= p.words) continue;
      T o[in_word<T>];
      const exchange::divided<C> mean{static_cast<C>(s.ranks)};
      for (int j = 0; j < in_word<T>; ++j) o[j] = static_cast<T>(p.of[q].op == reduction::avg ? mean(sum[j]) : sum[j]);
      store_word<T>(p.of[q], i, o);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0 && (gridDim.x == 1 || atomicInc(&s.state->arrived, gridDim.x - 1) == gridDim.x - 1))
    *static_cast<volatile std::uint32_t*>(&s.state->epoch) = epoch;
}

template <class T>
void all_reduce(const parts& p, context& ctx, const peer_slots& s) {
  const int blocks = (p.words + threads - 1) / threads;
  all_reduce_words<T><<<static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks), threads, 0, ctx.stream>>>(p, s);
  check_launch("an all-reduce's kernel");
}

}  // namespace shardwise::inline v0_1::cuda::one_shot
