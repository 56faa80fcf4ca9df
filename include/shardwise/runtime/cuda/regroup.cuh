// SPDX-License-Identifier: Apache-2.0
// regroup: rows that are cut into the ranks' pieces put together piece by piece, and back; what collectives move
// around.
#pragma once

#include <cstdint>

#include <shardwise/runtime/cuda/context.hpp>

namespace shardwise::inline v0_1::cuda::exchange {

// Rows of a dense block regrouped piece by piece, each piece dense, or back. One thread a word; two divisions each,
// which is why words are as wide as the boundaries allow and indices have 32 bits where they suffice.
template <class Word, class Index, int Back>
__global__ void __launch_bounds__(256)
    regroup(const Word* __restrict__ x, Word* __restrict__ o, Index rows, Index cols, Index chunk, Index first) {
  const Index n = rows * cols, step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const Index row = i / cols, col = i - row * cols;
    const Index low = (col + first) / chunk * chunk;
    const Index begin = low > first ? low - first : 0;
    const Index end = low + chunk - first < cols ? low + chunk - first : cols;
    const Index at = rows * begin + row * (end - begin) + (col - begin);
    if (Back) o[i] = x[at];
    else o[at] = x[i];
  }
}

inline unsigned blocks_for(std::int64_t n, const context& ctx) {
  const std::int64_t want = (n + 255) / 256, most = static_cast<std::int64_t>(ctx.multiprocessors) * 16;
  return static_cast<unsigned>(want < most ? want : most);
}

template <class Word, int Back>
void launch_regroup(const void* x, void* o, std::int64_t rows, std::int64_t cols, std::int64_t chunk, std::int64_t first,
                    context& ctx) {
  const unsigned grid = blocks_for(rows * cols, ctx);
  // an index grows by at most the grid's threads beyond the last word
  constexpr std::int64_t narrow = std::int64_t{1} << 31;
  if (rows * cols < narrow && cols + first + chunk < narrow)
    regroup<Word, std::uint32_t, Back><<<grid, 256, 0, ctx.stream>>>(
        static_cast<const Word*>(x), static_cast<Word*>(o), static_cast<std::uint32_t>(rows),
        static_cast<std::uint32_t>(cols), static_cast<std::uint32_t>(chunk), static_cast<std::uint32_t>(first));
  else
    regroup<Word, std::uint64_t, Back><<<grid, 256, 0, ctx.stream>>>(
        static_cast<const Word*>(x), static_cast<Word*>(o), static_cast<std::uint64_t>(rows),
        static_cast<std::uint64_t>(cols), static_cast<std::uint64_t>(chunk), static_cast<std::uint64_t>(first));
  check_launch("the kernel that regroups a collective's block");
}

// Everything is counted in words, so a boundary between two words is the only thing that asks for narrower ones, down to elements
// of Element bytes.
template <int Back, std::int64_t Element>
void regroup_rows(const void* x, void* o, std::int64_t rows, std::int64_t cols, std::int64_t chunk, std::int64_t first,
                  context& ctx) {
  constexpr std::int64_t element = Element;
  if (rows == 0 || cols == 0) return;
  const auto fits = [&](std::int64_t bytes) {
    const std::int64_t lengths = cols * element | chunk * element | first * element;
    return (lengths | static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(o))) %
               bytes ==
           0;
  };
  const auto run = [&]<class Word>(Word) {
    constexpr std::int64_t w = sizeof(Word);
    launch_regroup<Word, Back>(x, o, rows, cols * element / w, chunk * element / w, first * element / w, ctx);
  };
  if (fits(16)) return run(uint4{});
  if (fits(8)) return run(std::uint64_t{});
  if constexpr (Element < 4) {
    if (fits(4)) return run(std::uint32_t{});
    if constexpr (Element == 2) return run(std::uint16_t{});
    else return run(std::uint8_t{});
  } else {
    run(std::uint32_t{});
  }
}

}  // namespace shardwise::inline v0_1::cuda::exchange
