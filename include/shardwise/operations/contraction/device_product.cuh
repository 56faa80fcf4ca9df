// SPDX-License-Identifier: Apache-2.0
// A matrix product of our own, for what no product of cuBLASLt is one launch of: batches that no single stride describes,
// any expression on the result. Operands are read where they lie, whatever their strides; device_flat_product.cuh is for those in one step.
//
// Price, against cuBLASLt on one large matrix: no tensor cores, small tiles only. So it takes products that are small enough for
// launches to cost more; see small_product.
#pragma once

#include <cstdint>
#include <utility>

#include <shardwise/propagation/contraction.hpp>
#include <shardwise/runtime/cuda/device/arrival.cuh>
#include <shardwise/runtime/cuda/device/epilogue.cuh>
#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/operations/contraction/scratch.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// out[batch, row, column] = then(alpha * sum over depth of a[batch, row, depth] b[batch, depth, column]). Walks of the roles,
// each over as many dims as it has; their operands: a or b or both, out, and the expression's.
template <int Operands>
struct product_roles {
  walk<2 + Operands> rows;     // a, out, ...
  walk<2 + Operands> columns;  // b, out, ...
  walk<3 + Operands> batch;    // a, b, out, ...
  walk<2> depth;               // a, b
};

namespace detail {

inline constexpr int product_threads = 256;

// A block's tile of the result, and how much of the depth it holds at once. own: elements of a thread along either side of the tile. One of
// two buffers is filled while the other is read.
template <int Own, int Grid, int Depth>
struct product_shape {
  static constexpr int own = Own, grid = Grid, depth = Depth, buffers = 2, tile = Grid * Own;
  static constexpr int pitch = tile + 4;                        // keeps a pack aligned, spreads banks
  static constexpr int partial = tile * tile;                   // elements that a tile's part takes in the scratch
  static constexpr int loads = tile * depth / product_threads;  // elements of an operand that a thread loads for a stage
  static constexpr int side_step = product_threads / depth, depth_step = product_threads / tile;
  static constexpr int results = partial / product_threads;  // elements of the tile that a thread writes
  static_assert(Grid * Grid == product_threads && results == own * own);
  static_assert(side_step * depth == product_threads && depth_step * tile == product_threads &&
                loads * product_threads == tile * depth);
};
using batched_product = product_shape<4, 16, 16>;

template <int Operands>
struct product_steps {
  strided<2 + Operands> rows, columns;
  strided<3 + Operands> batch;
  strided<2> depth;
};

template <class T>
struct product_arrays {
  using C = computed_in<T>;
  const T *a, *b;
  T* out;
  C alpha;
  bool a_along_depth, b_along_depth;  // which of the two dims neighbouring threads load along
  // with more than one split: [tile][split][element]
  std::uint32_t splits, split_depth;
  C* part;
  std::uint32_t* tickets;
};

// The elements of one operand that a thread loads for a stage: of one position along the tile's side and several along the depth, or
// the other way round.
template <class S>
struct product_load {
  bool along_depth;
  int thread;
  __device__ int side(int j) const { return along_depth ? thread / S::depth + S::side_step * j : thread % S::tile; }
  __device__ int depth(int j) const { return along_depth ? thread % S::depth : thread / S::tile + S::depth_step * j; }

  // Where they lie at depth 0; -1: outside of the matrix, read as zero.
  template <int K>
  __device__ void find(const strided<K>& along_side, std::uint32_t first, std::int64_t start, std::int64_t* at) const {
#pragma unroll
    for (int j = 0; j < S::loads; ++j) {
      if (j > 0 && !along_depth) {  // all at one place of the side
        at[j] = at[0];
        continue;
      }
      const std::uint32_t i = first + static_cast<std::uint32_t>(side(j));
      at[j] = -1;
      if (i >= along_side.count) continue;
      std::int64_t off[K];
      along_side.offsets(i, off);
      at[j] = start + off[0];
    }
  }
  template <class T, class C>
  __device__ void fetch(const strided<2>& along, int operand, std::uint32_t first, std::uint32_t end, const T* from,
                        const std::int64_t* at, C* v) const {
    std::int64_t off[2]{};
    bool within = false;
#pragma unroll
    for (int j = 0; j < S::loads; ++j) {
      if (j == 0 || !along_depth) {  // else all at one depth
        const std::uint32_t k = first + static_cast<std::uint32_t>(depth(j));
        within = k < end;
        if (within) along.offsets(k, off);
      }
      v[j] = within && at[j] >= 0 ? static_cast<C>(from[at[j] + off[operand]]) : C(0);
    }
  }
};

// A block for each tile, matrix and split: blockIdx.x tiles of columns, .y tiles of rows, .z matrix * splits + split.
template <class S, class T, class Then>
__global__ void __launch_bounds__(product_threads)
    product_kernel(const __grid_constant__ product_steps<Then::operands> w, const __grid_constant__ product_arrays<T> g,
                   const Then then) {
  using C = computed_in<T>;
  constexpr int E = Then::operands, own = S::own, loads = S::loads, results = S::results;
  __shared__ __align__(32) C as[S::buffers][S::depth][S::pitch];
  __shared__ __align__(32) C bs[S::buffers][S::depth][S::pitch];
  const int t = static_cast<int>(threadIdx.x), tx = t % S::grid, ty = t / S::grid;
  const std::uint32_t row0 = blockIdx.y * S::tile, column0 = blockIdx.x * S::tile;
  const std::uint32_t matrix = blockIdx.z / g.splits, split = blockIdx.z - matrix * g.splits;
  std::int64_t mo[3 + E];
  w.batch.offsets(matrix, mo);
  const std::uint32_t begin = split * g.split_depth;
  const std::uint32_t end = w.depth.count < begin + g.split_depth ? w.depth.count : begin + g.split_depth;

  // where this thread's elements begin; -1: outside of the matrix, read as zero
  const product_load<S> la{g.a_along_depth, t}, lb{g.b_along_depth, t};
  std::int64_t a_at[loads], b_at[loads];
  la.find(w.rows, row0, mo[0], a_at);
  lb.find(w.columns, column0, mo[1], b_at);

  C va[loads], vb[loads];  // of the next stage
  const auto fetch = [&](std::uint32_t first) {
    la.fetch(w.depth, 0, first, end, g.a, a_at, va);
    lb.fetch(w.depth, 1, first, end, g.b, b_at, vb);
  };
  const auto put = [&](int buffer) {
#pragma unroll
    for (int j = 0; j < loads; ++j) {
      as[buffer][la.depth(j)][la.side(j)] = va[j];
      bs[buffer][lb.depth(j)][lb.side(j)] = vb[j];
    }
  };

  C acc[own][own];  // rows ty * own + i, columns tx + grid * j: stores of neighbouring threads lie side by side
#pragma unroll
  for (int i = 0; i < own; ++i)
#pragma unroll
    for (int j = 0; j < own; ++j) acc[i][j] = C(0);

  if (begin < end) {
    fetch(begin);
    put(0);
  }
  __syncthreads();
  int buffer = 0;
  for (std::uint32_t first = begin; first < end; first += S::depth) {
    const bool more = first + S::depth < end;
    if (more) fetch(first + S::depth);
#pragma unroll
    for (int k = 0; k < S::depth; ++k) {
      constexpr int V = vector_of<C> < own ? vector_of<C> : own;
      C fa[own], fb[own];
#pragma unroll
      for (int i = 0; i < own; i += V) {
        const pack<C, V> p = *reinterpret_cast<const pack<C, V>*>(&as[buffer][k][ty * own + i]);
#pragma unroll
        for (int v = 0; v < V; ++v) fa[i + v] = p.v[v];
      }
#pragma unroll
      for (int j = 0; j < own; ++j) fb[j] = bs[buffer][k][tx + S::grid * j];
#pragma unroll
      for (int i = 0; i < own; ++i)
#pragma unroll
        for (int j = 0; j < own; ++j) acc[i][j] += fa[i] * fb[j];
    }
    buffer ^= 1;
    if (more) put(buffer);  // which all have read before the last barrier
    __syncthreads();
  }

  C total[results];
#pragma unroll
  for (int e = 0; e < results; ++e) total[e] = acc[e / own][e % own];
  if (g.splits > 1) {
    const std::int64_t tile = (std::int64_t{matrix} * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    C* const parts = g.part + tile * g.splits * S::partial;
#pragma unroll
    for (int e = 0; e < results; ++e) parts[std::int64_t{split} * S::partial + e * product_threads + t] = total[e];
    if (!last_to_arrive(g.tickets + tile, g.splits)) return;
#pragma unroll
    for (int e = 0; e < results; ++e) total[e] = C(0);
    for (std::uint32_t s = 0; s < g.splits; ++s) {
#pragma unroll
      for (int e = 0; e < results; ++e) total[e] += arrived(parts + std::int64_t{s} * S::partial + e * product_threads + t);
    }
  }

#pragma unroll
  for (int e = 0; e < results; ++e) {
    const std::uint32_t r = row0 + static_cast<std::uint32_t>(ty * own + e / own),
                        c = column0 + static_cast<std::uint32_t>(tx + S::grid * (e % own));
    if (r >= w.rows.count || c >= w.columns.count) continue;
    std::int64_t ro[2 + E], co[2 + E], off[E + 1];
    w.rows.offsets(r, ro);
    w.columns.offsets(c, co);
#pragma unroll
    for (int k = 0; k < E; ++k) off[k] = mo[3 + k] + ro[2 + k] + co[2 + k];
    g.out[mo[2] + ro[1] + co[1]] = then(static_cast<T>(g.alpha * total[e]), off);
  }
}

// Depth is cut where tiles alone would leave the device idle. The cut depends on extents only: sums are the same on all.
inline constexpr std::int64_t product_blocks = 256, product_least_depth = 64, product_most_splits = 16;
static_assert(product_blocks <= ticket_count);
static_assert(product_blocks * batched_product::partial * static_cast<std::int64_t>(sizeof(double)) <=
                  device_scratch::product_bytes,
              "parts lie where cuBLASLt's scratch would");

// least: no split is shallower.
constexpr std::int64_t product_splits(std::int64_t tiles, std::int64_t depth, std::int64_t least) {
  std::int64_t n = product_blocks / tiles;
  if (n > depth / least) n = depth / least;
  if (n > product_most_splits) n = product_most_splits;
  return n > 1 ? n : 1;
}

// The roles of a call of einsum, with the operands of the expression behind it.
template <int Operands>
product_roles<Operands> product_roles_of(const call& c) {
  product_roles<Operands> w;
  const layout &x = c.l[0], &y = c.l[1], &out = c.l[result];
  // a's or b's strides, both or one of them, then those along the result's dim
  const auto push = [&](auto& to, std::int64_t ext, std::int64_t sa, std::int64_t sb, int first, int count, int dim) {
    const std::int64_t operand[2] = {sa, sb};
    std::int64_t s[3 + Operands]{};
    for (int k = 0; k < count; ++k) s[k] = operand[first + k];
    s[count] = out.str[dim];
    for (int j = 0; j < Operands; ++j) s[count + 1 + j] = epilogue_stride(c, j, dim);
    to.push(ext, s);
  };
  const auto of = attributes_of<einsum_attributes>(c.a);
  for (int d = 0; d < x.rank; ++d) {
    const int l = rules::label(of.lhs, d);
    const int dy = rules::find_label(of.rhs, y.rank, l), dim = rules::find_label(of.out, out.rank, l);
    const std::int64_t both[2] = {x.str[d], dy < 0 ? 0 : y.str[dy]};
    if (dim < 0) w.depth.push(x.ext[d], both);
    else if (dy < 0) push(w.rows, x.ext[d], both[0], both[1], 0, 1, dim);
    else push(w.batch, x.ext[d], both[0], both[1], 0, 2, dim);
  }
  for (int d = 0; d < y.rank; ++d) {
    const int l = rules::label(of.rhs, d);
    if (rules::find_label(of.lhs, x.rank, l) >= 0) continue;
    push(w.columns, y.ext[d], 0, y.str[d], 1, 1, rules::find_label(of.out, out.rank, l));
  }
  w.rows.merge();
  w.columns.merge();
  w.batch.merge();
  w.depth.merge();
  return w;
}

template <int K>
void swap_operands(walk<K>& w) {
  std::swap(w.str[0], w.str[1]);
}
template <int K>
std::int64_t last_step(const walk<K>& w, int operand) {
  return w.str[operand][w.rank - 1];
}

// Neighbouring threads write along the columns, so a result that is stored along its rows is the turned product's.
template <int E>
bool columns_are_stored(const product_roles<E>& w) {
  return last_step(w.columns, 1) == 1 || last_step(w.rows, 1) != 1;
}
template <class T, int E>
void turn(product_roles<E>& w, const T*& a, const T*& b) {
  std::swap(w.rows, w.columns);
  swap_operands(w.batch);
  swap_operands(w.depth);
  std::swap(a, b);
}

// Multiply-adds of a matrix up to which one launch of ours is worth more than several of cuBLASLt's.
inline constexpr std::int64_t small_batch_multiply_adds = std::int64_t{1} << 27;

// Of several launches of cuBLASLt's for matrices of one product, from how many on one of ours is worth more. Measured on an H200
// (bench/results/tune.md): of small matrices ours takes as long as four of them, of elements of two bytes, which it multiplies in float
// without tensor cores, as eight.
template <class T>
inline constexpr std::int64_t launches_worth_one = sizeof(T) == 2 ? 8 : 4;

// Whether one launch of ours may stand for `launches` of cuBLASLt's. In double: the product may exceed 2^63.
constexpr bool small_product(std::int64_t m, std::int64_t n, std::int64_t depth, std::int64_t matrices,
                             std::int64_t launches) {
  const double most = static_cast<double>(small_batch_multiply_adds);
  const double one = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(depth > 0 ? depth : 1);
  return one <= most && one * static_cast<double>(matrices) <= most * static_cast<double>(launches);
}

// One launch, or false where the sizes are not for it: the caller then has to do it in another way.
template <class T, class Then>
bool run_product(const call& c, const Then& then, std::int64_t launches, context& ctx) {
  using S = batched_product;
  constexpr int E = Then::operands;
  product_roles<E> w = product_roles_of<E>(c);
  std::int64_t m = points(w.rows), n = points(w.columns);
  const std::int64_t matrices = points(w.batch), depth = points(w.depth);
  if (m == 0 || n == 0 || matrices == 0) return true;
  const std::int64_t limit = most_points / 2;
  if (m >= limit || n >= limit || matrices >= limit || depth >= limit) return false;
  if (!small_product(m, n, depth, matrices, launches)) return false;
  const T *a = as<T>(c.p[0]), *b = as<T>(c.p[1]);
  if (!columns_are_stored(w)) {
    turn(w, a, b);
    std::swap(m, n);
  }
  const std::int64_t row_tiles = (m + S::tile - 1) / S::tile, column_tiles = (n + S::tile - 1) / S::tile;
  const std::int64_t splits = product_splits(row_tiles * column_tiles * matrices, depth, product_least_depth);
  if (row_tiles > 65535 || matrices * splits > 65535) return false;
  const std::int64_t share = (depth + splits - 1) / splits;
  using C = computed_in<T>;
  const product_arrays<T> g{a,
                            b,
                            as<T>(c.p[result]),
                            static_cast<C>(c.f),
                            last_step(w.depth, 0) == 1,
                            last_step(w.depth, 1) == 1,
                            static_cast<std::uint32_t>(splits),
                            static_cast<std::uint32_t>((share + S::depth - 1) / S::depth * S::depth),
                            as<C>(c.workspace),
                            ctx.tickets};
  std::int64_t zero[3 + E]{};
  const product_steps<E> steps{make_strided(w.rows, zero), make_strided(w.columns, zero), make_strided(w.batch, zero),
                               make_strided(w.depth, zero)};
  const dim3 grid(static_cast<unsigned>(column_tiles), static_cast<unsigned>(row_tiles),
                  static_cast<unsigned>(matrices * splits));
  launch(op_code::einsum, &product_kernel<S, T, Then>, grid, product_threads, ctx.stream, steps, g, then);
  return true;
}

}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
