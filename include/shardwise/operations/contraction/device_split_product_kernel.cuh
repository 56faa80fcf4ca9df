// SPDX-License-Identifier: Apache-2.0
// Products of float on Hopper's tensor cores with the error of float: each factor is the sum of two parts that TF32 holds, high and low, and
// of (a + a')(b + b') all but a' b' is added.
//
// Law: high is the factor rounded to 11 significant bits, low what is left of it, of which 11 bits are read, so a factor is off by at most 2^-21 of
// itself and a product by 2^-19. Tensor cores cut sums off where float rounds, so they add 32 of the depth only, and such parts are added in
// float: over long depths the result is nearer to the exact one than cuBLASLt's own of float (bench/results/gemm.md). Price: three products
// for one. What a factor that is not finite, or within 2^-12 of the largest float, reaches is no number.
#pragma once

#include <cstdint>

#include <shardwise/runtime/cuda/device/arrival.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace split_product_detail {

// A block's part of the result, which two groups of 128 threads multiply, 64 rows each; a stage of the depth. A third group divides the right
// factor into shared memory, up to `slots` stages ahead: while one group adds up and stores what it has, the other one multiplies.
inline constexpr int tile = 128, stage = 32, group = 128, multiplying = 2 * group, threads = 3 * group, results = 64,
                     slots = 4;
// A kernel of so many threads is started with so many registers each, and groups then share them otherwise: one that asks for more than there are
// waits for ever.
inline constexpr int started_registers = 168, dividing_registers = 56, multiplying_registers = 224;
static_assert(2 * multiplying_registers + dividing_registers <= 3 * started_registers &&
              65536 / threads / 8 * 8 == started_registers);
// What a tile of the right factor takes: rows of 128 bytes. Tiles begin at multiples of 1024, the low parts' behind the high ones'.
inline constexpr std::uint32_t tile_bytes = tile * stage * sizeof(float);
inline constexpr int shared_bytes = slots * 2 * static_cast<int>(tile_bytes) + 1024;

// out[m][n] = f(alpha * sum over k of left[m][k] right[n][k] + beta * c[m][n] + bias[n]), n contiguous. A factor lies along its depth, or
// along m or n; ld_* are the distances of its rows then, step_* of matrices. Several splits share the depth, split_depth each: their parts lie at
// part[tile][split], and whoever comes last adds them up in their order.
struct arguments {
  const float *left, *right, *c, *bias;
  float* out;
  float4* part;
  std::uint32_t* tickets;
  std::uint32_t m, n, depth, matrices, splits, split_depth, ld_left, ld_right, ld_out, ld_c;
  std::int64_t step_left, step_right, step_out, step_c, step_bias;
  float alpha, beta;
  bool relu;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ inline std::uint32_t least(std::uint32_t x, std::uint32_t y) { return x < y ? x : y; }

__device__ inline void split(float x, std::uint32_t& high, std::uint32_t& low) {
  high = __float_as_uint(x) + 0x1000U;  // half a unit; tensor cores read the first 19 bits alone
  low = __float_as_uint(x - __uint_as_float(high & 0xFFFFE000U));
}

// d += left right^T of 64 rows, 128 columns and a depth of 8; keep 0: d = that. A lane has of the left: rows lane / 4 and that + 8 of its warp's 16,
// places lane % 4 of the depth, then both rows at + 4; of d: column 8 j + 2 (lane % 4) + e of row lane / 4 + 8 r at 4 j + 2 r + e.
__device__ inline void multiply(float (&d)[results], const std::uint32_t (&left)[4], std::uint64_t right, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1;\n"
      "}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
        "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]),
        "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
        "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]),
        "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
        "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
        "+f"(d[63])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(keep));
}
// Of a tile in rows of 128 bytes, whose chunks of 16 bytes lie at c ^ row % 8.
__device__ inline std::uint64_t descriptor(std::uint32_t address) {
  return std::uint64_t{address >> 4 & 0x3FFFU} | std::uint64_t{1} << 16 | std::uint64_t{1024 >> 4} << 32 |
         std::uint64_t{1} << 62;
}
__device__ inline float4 load_four(const float* p, bool there) {
  return there ? __ldg(reinterpret_cast<const float4*>(p)) : make_float4(0, 0, 0, 0);
}

__device__ inline float2 load_two(const float* p, bool there) {
  return there ? __ldg(reinterpret_cast<const float2*>(p)) : make_float2(0, 0);
}

// Place 8 s + t of a stage, and that + 4, hold elements 16 (s / 2) + 4 t + 2 (s % 2), and that + 1, of the depth: a lane then loads four of
// the left factor at once.

// A lane's elements of the left factor, of the stage that is loaded, in halves: of rows `row` and row + 1 of the result, which are its rows
// lane / 4 and that + 8 of a product.
template <bool AlongDepth>
struct left_factor {
  const float* from;
  std::uint32_t ld, row, rows;
  int left_over;  // of the depth, from this lane's first element on
  float v[2][2][4];
  std::uint32_t high[4][4], low[4][4];

  __device__ void begin(const float* p, std::uint32_t ld_, std::uint32_t row_, std::uint32_t rows_, std::uint32_t begin_,
                        std::uint32_t end) {
    ld = ld_;
    row = row_;
    rows = rows_;
    const std::uint32_t first = begin_ + 4 * (threadIdx.x % 4);
    from = p + (AlongDepth ? std::int64_t{row} * ld + first : std::int64_t{first} * ld + row);
    left_over = static_cast<int>(end) - static_cast<int>(first);
  }
  __device__ void load() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if constexpr (AlongDepth) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float4 x = load_four(from + std::int64_t{r} * ld + 16 * h, row + r < rows && left_over > 16 * h);
          v[h][r][0] = x.x;
          v[h][r][1] = x.y;
          v[h][r][2] = x.z;
          v[h][r][3] = x.w;
        }
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float2 x = load_two(from + std::int64_t{16 * h + e} * ld, row < rows && left_over > 16 * h + e);
          v[h][0][e] = x.x;
          v[h][1][e] = x.y;
        }
      }
    }
    from += AlongDepth ? std::int64_t{stage} : std::int64_t{stage} * ld;
    left_over -= stage;
  }
  // Half h of what was loaded: not before the products that read its parts have ended.
  __device__ void divide(int h) {
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float x = v[h][e % 2][2 * s + e / 2];
        asm volatile("" : "+f"(x));  // not moved up before them
        split(x, high[2 * h + s][e], low[2 * h + s][e]);
      }
  }
};

// A lane's elements of the right factor of one stage, on their way to shared memory: four words each, which lie where no two lanes of a warp
// meet in a bank. Row 32 b + 8 e + c of a tile, c < 8, e < 4, holds column 32 b + 4 c + e of the result: so the four columns of a load go to
// four different eights of rows, and the eight results that a lane has of 32 columns lie side by side.
template <bool AlongDepth>
struct right_factor {
  static constexpr int loads = tile * stage / (4 * group);
  const float* from;
  std::uint32_t ld, own, side,
      sides;  // own, side: the first column that is loaded, of the tile and of all; of those there are `sides`
  int depth, left_over;
  std::uint32_t to;  // of the first word of load 0, from the tile's begin
  float4 v[loads];

  __device__ right_factor() {
    const std::uint32_t t = threadIdx.x % group, c = t % 8;
    own = AlongDepth ? t / 8 % 8 * 4 + t / 64 : t / 32 * 32 + 4 * c;
    depth = static_cast<int>(AlongDepth ? c * 4 : t % 32 / 8 * 4);
    to = AlongDepth ? t / 8 * 128 + (c / 4 * 4 ^ t / 8 % 8) * 16 + c % 4 * 4
                    : (t / 32 * 32 + c) * 128 + c * 16 + t % 32 / 8 * 4;
  }
  __device__ void begin(const float* p, std::uint32_t ld_, std::uint32_t first, std::uint32_t sides_, std::uint32_t begin_,
                        std::uint32_t end) {
    ld = ld_;
    sides = sides_;
    side = first + own;
    left_over = static_cast<int>(end) - static_cast<int>(begin_);
    const std::uint32_t at = begin_ + static_cast<std::uint32_t>(depth);
    from = p + (AlongDepth ? std::int64_t{side} * ld + at : std::int64_t{at} * ld + side);
  }
  __device__ void load(int i) {
    const int columns = i / 2 * 32 + i % 2 * 2, deep = i / 4 * 16 + i % 4;
    if constexpr (AlongDepth)
      v[i] = load_four(from + std::int64_t{columns} * ld, side + columns < sides && left_over > depth);
    else v[i] = load_four(from + std::int64_t{deep} * ld, side < sides && left_over > depth + deep);
  }
  __device__ void advance() {
    from += AlongDepth ? std::int64_t{stage} : std::int64_t{stage} * ld;
    left_over -= stage;
  }
  __device__ void load() {
#pragma unroll
    for (int i = 0; i < loads; ++i) load(i);
    advance();
  }
  // What was loaded; in its place comes the next stage.
  __device__ void divide(std::uint32_t address) {
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      const float x[4] = {v[i].x, v[i].y, v[i].z, v[i].w};
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        std::uint32_t high, low;
        split(x[e], high, low);
        const std::uint32_t at = ((address + to) ^ (AlongDepth ? e : i) * 16) + (AlongDepth ? i * 16 : e * 8) * 128;
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(high) : "memory");
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at + tile_bytes), "r"(low) : "memory");
      }
      load(i);
    }
    advance();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
};

// Four results of a lane, columns n to n + 3 of row m.
__device__ inline void store(const arguments& g, std::uint32_t matrix, std::uint32_t m, std::uint32_t n, float (&y)[4]) {
  if (m >= g.m || n >= g.n) return;
  const bool all = n + 3 < g.n;
#pragma unroll
  for (float& x : y) x *= g.alpha;
  if (g.beta != 0) {
    const float* const c = g.c + matrix * g.step_c + std::int64_t{m} * g.ld_c + n;
    const float4 x =
        all ? *reinterpret_cast<const float4*>(c) : make_float4(c[0], n + 1 < g.n ? c[1] : 0, n + 2 < g.n ? c[2] : 0, 0);
    y[0] += g.beta * x.x;
    y[1] += g.beta * x.y;
    y[2] += g.beta * x.z;
    y[3] += g.beta * x.w;
  }
  if (g.bias) {
    const float* const b = g.bias + matrix * g.step_bias + n;
#pragma unroll
    for (int e = 0; e < 4; ++e) y[e] += n + e < g.n ? b[e] : 0.F;
  }
  if (g.relu)  // which keeps what is no number
#pragma unroll
    for (float& x : y) x = x < 0 ? 0 : x;
  float* const out = g.out + matrix * g.step_out + std::int64_t{m} * g.ld_out + n;
  if (all) *reinterpret_cast<float4*>(out) = make_float4(y[0], y[1], y[2], y[3]);
  else
#pragma unroll
    for (int e = 0; e < 3; ++e)
      if (n + e < g.n) out[e] = y[e];
}

// Where a piece of work lies: a split of a tile of a matrix. Pieces follow one another by splits, down 8 rows of tiles, then along them, so that
// those that are computed together share what they read.
struct piece {
  std::uint32_t split, tile, matrix, m0, n0, begin, end;
  __device__ piece(const arguments& g, std::uint32_t index) {
    const std::uint32_t tiles_m = (g.m + split_product_detail::tile - 1) / split_product_detail::tile,
                        tiles_n = (g.n + split_product_detail::tile - 1) / split_product_detail::tile;
    split = index % g.splits;
    tile = index / g.splits;
    matrix = tile / (tiles_m * tiles_n);
    const std::uint32_t of_matrix = tile % (tiles_m * tiles_n), first_row = of_matrix / (8 * tiles_n) * 8;
    const std::uint32_t rows = least(tiles_m - first_row, 8U), in_rows = of_matrix % (8 * tiles_n);
    m0 = (first_row + in_rows % rows) * split_product_detail::tile;
    n0 = in_rows / rows * split_product_detail::tile;
    begin = least(g.depth, split * g.split_depth);
    end = least(g.depth, begin + g.split_depth);
  }
};

// A barrier in shared memory on which `count` arrivals end a phase; phases are told apart by their parity.
struct arrivals {
  std::uint64_t state;
  __device__ std::uint32_t address() const { return static_cast<std::uint32_t>(__cvta_generic_to_shared(this)); }
  __device__ void begin(std::uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(count) : "memory");
  }
  __device__ void arrive() { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory"); }
  __device__ void wait(std::uint32_t parity) const {
    std::uint32_t over = 0;
    while (over == 0)
      asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                   : "=r"(over)
                   : "r"(address()), "r"(parity)
                   : "memory");
  }
};

// The slot that a group is at, and the parity of its phase.
struct place {
  std::uint32_t slot = 0, parity = 0;
  __device__ void advance() {
    slot = slot + 1 == slots ? 0 : slot + 1;
    parity ^= slot == 0 ? 1U : 0U;
  }
};

// Whether this group is the last of `count` to arrive, as last_to_arrive of blocks.
__device__ inline bool last_group(std::uint32_t* ticket, std::uint32_t count, std::uint32_t which) {
  __shared__ bool last[multiplying / group];
  __threadfence();
  asm volatile("bar.sync %0, %1;" ::"r"(which + 1), "n"(group) : "memory");
  if (threadIdx.x % group == 0) {
    last[which] = atomicInc(ticket, count - 1) == count - 1;
    __threadfence();
  }
  asm volatile("bar.sync %0, %1;" ::"r"(which + 1), "n"(group) : "memory");
  return last[which];
}

#endif

// As many blocks as there are multiprocessors, or pieces of work: block b computes b, b + gridDim.x, ...
template <bool LeftAlongDepth, bool RightAlongDepth>
__global__ void __launch_bounds__(threads, 1) kernel(const __grid_constant__ arguments g) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ unsigned char shared[];
  __shared__ arrivals written[slots], read[slots];
  const std::uint32_t pieces = (g.m + tile - 1) / tile * ((g.n + tile - 1) / tile) * g.splits * g.matrices;
  const std::uint32_t base = (static_cast<std::uint32_t>(__cvta_generic_to_shared(shared)) + 1023U) & ~1023U;
  if (threadIdx.x == 0)
    for (int i = 0; i < slots; ++i) {
      written[i].begin(group);
      read[i].begin(multiplying / 32);
    }
  __syncthreads();
  place at;
  if (threadIdx.x >= multiplying) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(dividing_registers));
    right_factor<RightAlongDepth> right;
    std::uint32_t index = blockIdx.x;
    piece p(g, index);
    const auto begin = [&] { right.begin(g.right + p.matrix * g.step_right, g.ld_right, p.n0, g.n, p.begin, p.end); };
    begin();
    const auto there = [&] {
      while (p.begin >= p.end) {  // a split may be empty
        index += gridDim.x;
        if (index >= pieces) return false;
        p = piece(g, index);
        begin();
      }
      return true;
    };
    if (!there()) return;
    right.load();
    for (bool more = true; more; at.advance()) {
      read[at.slot].wait(at.parity ^ 1U);
      p.begin += stage;
      more = there();
      if (!more) right.left_over = 0;
      right.divide(base + at.slot * 2 * tile_bytes);
      written[at.slot].arrive();
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(multiplying_registers));
  const std::uint32_t lane = threadIdx.x % 32, own_row = threadIdx.x / 32 * 16 + lane / 4 * 2, which = threadIdx.x / group;
  left_factor<LeftAlongDepth> left;
  const auto begin_piece = [&](const piece& p) {
    left.begin(g.left + p.matrix * g.step_left, g.ld_left, p.m0 + own_row, g.m, p.begin, p.end);
    left.load();
  };
  float sum[results], part[results];
  const auto issue = [&](int half, std::uint32_t slot) {
    const std::uint64_t high = descriptor(slot), low = descriptor(slot + tile_bytes);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int s = 2 * half; s < 2 * half + 2; ++s) {  // 32 bytes of a row each
      multiply(part, left.low[s], high + 2 * s, s);
      multiply(part, left.high[s], low + 2 * s, 1);
      multiply(part, left.high[s], high + 2 * s, 1);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  };

  begin_piece(piece(g, blockIdx.x));
#pragma unroll 1
  for (std::uint32_t index = blockIdx.x; index < pieces; index += gridDim.x) {
    const piece p(g, index);
#pragma unroll
    for (int i = 0; i < results; ++i) sum[i] = 0;
    left.divide(0);
#pragma unroll 1
    for (std::uint32_t k = p.begin; k < p.end; k += stage) {
      const std::uint32_t slot = base + at.slot * 2 * tile_bytes;
      written[at.slot].wait(at.parity);
      issue(0, slot);
      left.divide(1);
      left.load();  // behind the end nothing is read
      issue(1, slot);
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (lane == 0) read[at.slot].arrive();
      at.advance();
#pragma unroll
      for (int i = 0; i < results; ++i) sum[i] += part[i];
      left.divide(0);
    }
    if (index + gridDim.x < pieces) begin_piece(piece(g, index + gridDim.x));  // on its way while results are stored
    if (g.splits > 1) {
      constexpr int quads = results / 4;
      float4* const parts = g.part + std::int64_t{p.tile} * g.splits * (quads * multiplying) + threadIdx.x;
#pragma unroll
      for (int j = 0; j < quads; ++j)
        parts[std::int64_t{p.split} * (quads * multiplying) + j * multiplying] =
            make_float4(sum[4 * j], sum[4 * j + 1], sum[4 * j + 2], sum[4 * j + 3]);
      if (!last_group(g.tickets + 2 * p.tile + which, g.splits, which)) continue;
#pragma unroll
      for (int i = 0; i < results; ++i) sum[i] = 0;
#pragma unroll 1
      for (std::uint32_t s = 0; s < g.splits; ++s) {
        float4 x[quads];
#pragma unroll
        for (int j = 0; j < quads; ++j) x[j] = __ldcg(parts + std::int64_t{s} * (quads * multiplying) + j * multiplying);
#pragma unroll
        for (int j = 0; j < quads; ++j) {
          sum[4 * j] += x[j].x;
          sum[4 * j + 1] += x[j].y;
          sum[4 * j + 2] += x[j].z;
          sum[4 * j + 3] += x[j].w;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < results / 4; ++i) {  // 32 columns each, rows, halves of what lies side by side
      const int b = i / 4, r = i / 2 % 2, half = i % 2;
      float y[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) y[e] = sum[4 * (4 * b + e) + 2 * r + half];
      store(g, p.matrix, p.m0 + own_row + r, p.n0 + 32 * b + lane % 4 * 8 + 4 * half, y);
    }
  }
#else
  static_cast<void>(g);
#endif
}

}  // namespace split_product_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
