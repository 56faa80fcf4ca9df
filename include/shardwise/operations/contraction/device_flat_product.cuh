// SPDX-License-Identifier: Apache-2.0
// A small product of matrices that lie in one step along each of their sides, with an expression on the result or the sum of an operand
// beside it: what such a product takes is the way to memory, once.
//
// Price: a block loads all of a stage's depth, adds it in groups of threads and joins the groups, so that a product of 100 by 100 by 100 takes
// 1.9 us of an H200 beside 3.9 to 6.4 of cuBLASLt's float kernels, and one of 20 by 10 by 16 1.4 beside 2.1 (bench/results/step.md). Nothing
// is read twice from memory within a block, but tiles are small: large products are cuBLASLt's.
#pragma once

#include <cstdint>
#include <type_traits>

#include <shardwise/operations/contraction/device_product.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// A tile of the result, 2 by 2 elements of which are a thread's in each group of threads; groups share a stage's depth by quads.
template <int Tile>
struct flat_shape {
  static constexpr int tile = Tile, own = 2, threads = 256, depth = 128, quad = 4, side = tile / own;
  static constexpr int groups = threads / (side * side), elements = tile * tile;
  static constexpr int pitch = depth + quad;  // a quad more: aligned, and neighbouring rows lie in other banks
  static constexpr int loads = tile * depth / threads;
  static constexpr int lanes = threads / tile < warp_threads ? threads / tile : warp_threads;  // that share a row's sum
  static_assert(elements <= threads && loads * threads == tile * depth && lanes * tile <= threads);
};
// Few tiles leave most of a device idle, many read their operands too often.
using small_tiles = flat_shape<8>;
using large_tiles = flat_shape<16>;
inline constexpr std::int64_t most_small_tiles = 256;

// out[batch, row, column] = then(alpha * sum over depth of a[batch, row, depth] b[batch, depth, column]): strides in elements, and those of
// the operands of the expression.
template <int E>
struct flat_strides {
  std::uint32_t rows, columns, depth;
  std::uint32_t a_row, a_depth, b_column, b_depth, out_row, out_column;
  std::uint32_t row[E > 0 ? E : 1], column[E > 0 ? E : 1];
  std::int64_t a_batch, b_batch, out_batch, batch[E > 0 ? E : 1];
};

// The sum of a over its depth, one for each row; null: none.
template <class T>
struct flat_sums {
  T* out;
  std::int64_t step, batch;
  double* part;  // with more than one split: [row tile][split][row]
};

// blockIdx.x: tiles of columns, .y: tiles of rows, .z: matrix * splits + split.
template <class S, class T, class Then, bool Sums>
__global__ void __launch_bounds__(S::threads)
    flat_product_kernel(const __grid_constant__ flat_strides<Then::operands> w, const __grid_constant__ product_arrays<T> g,
                        const flat_sums<T> sums, const Then then) {
  using C = computed_in<T>;
  constexpr int E = Then::operands, own = S::own, loads = S::loads, quad = S::quad;
  __shared__ __align__(32) C as[S::tile][S::pitch];
  __shared__ __align__(32) C bs[S::tile][S::pitch];
  __shared__ C of_group[S::groups][S::elements];
  const int t = static_cast<int>(threadIdx.x), group = t / (S::side * S::side), u = t % (S::side * S::side),
            tx = u % S::side, ty = u / S::side;
  const std::uint32_t row0 = blockIdx.y * S::tile, column0 = blockIdx.x * S::tile;
  const std::uint32_t matrix = g.splits == 1 ? blockIdx.z : blockIdx.z / g.splits, split = blockIdx.z - matrix * g.splits;
  const bool sums_here = Sums && blockIdx.x == 0;
  const std::uint32_t begin = split * g.split_depth;
  const std::uint32_t end = w.depth < begin + g.split_depth ? w.depth : begin + g.split_depth;

  // What a thread loads: neighbours along the depth and several along the side, or the other way round.
  struct load {
    int side, side_step, depth, depth_step;
    __device__ load(int t, bool along_depth)
        : side(along_depth ? t / S::depth : t % S::tile),
          side_step(along_depth ? S::threads / S::depth : 0),
          depth(along_depth ? t % S::depth : t / S::tile),
          depth_step(along_depth ? 0 : S::threads / S::tile) {}
  };
  const load la(t, g.a_along_depth), lb(t, g.b_along_depth);
  const T *a = g.a + matrix * w.a_batch + (row0 + la.side) * w.a_row + (begin + la.depth) * w.a_depth,
          *b = g.b + matrix * w.b_batch + (column0 + lb.side) * w.b_column + (begin + lb.depth) * w.b_depth;
  const std::uint32_t a_step = la.side_step * w.a_row + la.depth_step * w.a_depth,
                      b_step = lb.side_step * w.b_column + lb.depth_step * w.b_depth;

  // The element that this thread writes, whose operands of the expression are on their way while the product is computed.
  const std::uint32_t r = row0 + static_cast<std::uint32_t>(t / S::tile),
                      c = column0 + static_cast<std::uint32_t>(t % S::tile);
  const bool writes = t < S::elements && r < w.rows && c < w.columns;
  std::int64_t off[E + 1];
#pragma unroll
  for (int k = 0; k < E; ++k) off[k] = matrix * w.batch[k] + r * w.row[k] + c * w.column[k];
  typename Then::loaded beside{};
  if (writes && g.splits == 1) beside = then.load(off);

  C acc[own][own];
#pragma unroll
  for (int i = 0; i < own; ++i)
#pragma unroll
    for (int j = 0; j < own; ++j) acc[i][j] = C(0);
  double row_sum = 0;  // of row t / lanes, every lanes-th element of the depth

  for (std::uint32_t first = begin; first < end; first += S::depth) {
    C va[loads], vb[loads];
#pragma unroll
    for (int j = 0; j < loads; ++j) {
      const bool in_a = row0 + la.side + la.side_step * j < w.rows && first + la.depth + la.depth_step * j < end;
      const bool in_b = column0 + lb.side + lb.side_step * j < w.columns && first + lb.depth + lb.depth_step * j < end;
      va[j] = in_a ? static_cast<C>(a[j * a_step]) : C(0);
      vb[j] = in_b ? static_cast<C>(b[j * b_step]) : C(0);
    }
    a += S::depth * w.a_depth;
    b += S::depth * w.b_depth;
    if (first > begin) __syncthreads();  // until all have read the stage before
#pragma unroll
    for (int j = 0; j < loads; ++j) {
      as[la.side + la.side_step * j][la.depth + la.depth_step * j] = va[j];
      bs[lb.side + lb.side_step * j][lb.depth + lb.depth_step * j] = vb[j];
    }
    __syncthreads();
    const int left = static_cast<int>(end - first < S::depth ? end - first : S::depth);
#pragma unroll 1
    for (int q = quad * group; q < left; q += quad * S::groups) {
      pack<C, quad> fa[own], fb[own];
#pragma unroll
      for (int i = 0; i < own; ++i) {
        fa[i] = *reinterpret_cast<const pack<C, quad>*>(&as[ty * own + i][q]);
        fb[i] = *reinterpret_cast<const pack<C, quad>*>(&bs[tx + S::side * i][q]);
      }
#pragma unroll
      for (int i = 0; i < own; ++i)
#pragma unroll
        for (int j = 0; j < own; ++j)
#pragma unroll
          for (int k = 0; k < quad; ++k) acc[i][j] += fa[i].v[k] * fb[j].v[k];
    }
    if (sums_here && t < S::lanes * S::tile)
      for (int k = t % S::lanes; k < left; k += S::lanes) row_sum += static_cast<double>(as[t / S::lanes][k]);
  }

#pragma unroll
  for (int i = 0; i < own; ++i)
#pragma unroll
    for (int j = 0; j < own; ++j) of_group[group][(ty * own + i) * S::tile + tx + S::side * j] = acc[i][j];
  __syncthreads();
  C total = C(0);
  if (t < S::elements) {
    total = of_group[0][t];
#pragma unroll
    for (int k = 1; k < S::groups; ++k) total += of_group[k][t];
  }
  const bool has_sum = sums_here && t < S::lanes * S::tile && t % S::lanes == 0;  // of row t / lanes
  if constexpr (Sums) {
    if (sums_here)
#pragma unroll
      for (int o = S::lanes / 2; o > 0; o /= 2) row_sum += __shfl_xor_sync(0xFFFFFFFFU, row_sum, o);
  }

  if (g.splits > 1) {
    const std::int64_t row_tile = std::int64_t{matrix} * gridDim.y + blockIdx.y, tile = row_tile * gridDim.x + blockIdx.x;
    C* const parts = g.part + tile * g.splits * S::elements + t;
    double* const sums_parts = sums.part + row_tile * g.splits * S::tile + t / S::lanes;
    if (t < S::elements) parts[split * S::elements] = total;
    if (has_sum) sums_parts[split * S::tile] = row_sum;
    if (!last_to_arrive(g.tickets + tile, g.splits)) return;
    total = C(0);
    row_sum = 0;
    if (t < S::elements)
      for (std::uint32_t s = 0; s < g.splits; ++s) total += arrived(parts + s * S::elements);
    if (has_sum)
      for (std::uint32_t s = 0; s < g.splits; ++s) row_sum += arrived(sums_parts + s * S::tile);
    if (writes) beside = then.load(off);
  }

  if (has_sum && row0 + static_cast<std::uint32_t>(t / S::lanes) < w.rows)
    sums.out[matrix * sums.batch + (std::int64_t{row0} + t / S::lanes) * sums.step] = static_cast<T>(row_sum);
  if (writes)
    g.out[matrix * w.out_batch + r * w.out_row + c * w.out_column] = then(static_cast<T>(g.alpha * total), beside, off);
}

// Whether one step along each role describes the product, and within a matrix every element is less than 2^31 from the first.
template <int E>
bool is_flat(const product_roles<E>& w) {
  if (w.rows.rank > 1 || w.columns.rank > 1 || w.batch.rank > 1 || w.depth.rank > 1) return false;
  constexpr std::int64_t limit = most_points;
  const auto last = [](const auto& role, int operand) {
    return role.rank == 0 ? 0 : (role.ext[0] - 1) * role.str[operand][0];
  };
  const auto near = [&](std::int64_t x, std::int64_t y) { return x >= 0 && y >= 0 && x + y < limit; };
  bool all = near(last(w.rows, 0), last(w.depth, 0)) && near(last(w.columns, 0), last(w.depth, 1));
  for (int k = 0; k <= E; ++k) all = all && near(last(w.rows, 1 + k), last(w.columns, 1 + k));
  return all;
}

// In tiles of S; false, and nothing is launched, where there are more than a grid has.
template <class S, class T, bool Sums, class Then>
bool launch_flat_product(const product_roles<Then::operands>& w, product_arrays<T> g, flat_sums<T> sums, const Then& then,
                         void* workspace, context& ctx) {
  constexpr int E = Then::operands;
  using C = computed_in<T>;
  const auto step = [](const auto& role, int operand) {
    return role.rank == 0 ? std::uint32_t{0} : static_cast<std::uint32_t>(role.str[operand][0]);
  };
  const auto distance = [&](int operand) { return w.batch.rank == 0 ? 0 : w.batch.str[operand][0]; };
  const std::int64_t rows = points(w.rows), columns = points(w.columns), depth = points(w.depth), matrices = points(w.batch);
  flat_strides<E> s{static_cast<std::uint32_t>(rows),
                    static_cast<std::uint32_t>(columns),
                    static_cast<std::uint32_t>(depth),
                    step(w.rows, 0),
                    step(w.depth, 0),
                    step(w.columns, 0),
                    step(w.depth, 1),
                    step(w.rows, 1),
                    step(w.columns, 1),
                    {},
                    {},
                    distance(0),
                    distance(1),
                    distance(2),
                    {}};
  for (int k = 0; k < E; ++k) {
    s.row[k] = step(w.rows, 2 + k);
    s.column[k] = step(w.columns, 2 + k);
    s.batch[k] = distance(3 + k);
  }
  const std::int64_t row_tiles = (rows + S::tile - 1) / S::tile, column_tiles = (columns + S::tile - 1) / S::tile;
  const std::int64_t splits = product_splits(row_tiles * column_tiles * matrices, depth, S::depth);
  if (row_tiles > 65535 || matrices * splits > 65535) return false;
  const std::int64_t share = (depth + splits - 1) / splits;
  g.splits = static_cast<std::uint32_t>(splits);
  g.split_depth = static_cast<std::uint32_t>((share + S::depth - 1) / S::depth * S::depth);
  g.part = as<C>(workspace);
  sums.part = reinterpret_cast<double*>(g.part + product_blocks * S::elements);
  g.tickets = ctx.tickets;
  static_assert(
      product_blocks * (S::elements + S::tile) * static_cast<std::int64_t>(sizeof(double)) <= device_scratch::product_bytes,
      "parts lie where cuBLASLt's scratch would");
  launch(
      op_code::einsum, &flat_product_kernel<S, T, Then, Sums>,
      dim3(static_cast<unsigned>(column_tiles), static_cast<unsigned>(row_tiles), static_cast<unsigned>(matrices * splits)),
      S::threads, ctx.stream, s, g, sums, then);
  return true;
}

// Whether such a product takes less time than one launch of cuBLASLt's, or, with something beside it, than that and a second one. Measured on an
// H200, bench/results/gemm.md: cuBLASLt has tensor cores for bfloat16 and double, and for many elements larger tiles. In double: the product may
// exceed 2^63.
template <class T, int E>
bool is_worth_flat(const product_roles<E>& w, bool alone) {
  constexpr bool plain_cores = std::is_same_v<T, float>;
  const double elements =
      static_cast<double>(points(w.rows)) * static_cast<double>(points(w.columns)) * static_cast<double>(points(w.batch));
  const double depth = static_cast<double>(points(w.depth));
  const double most_elements = alone ? 1 << 16 : 1 << 17, most = plain_cores ? 1 << 24 : alone ? 1 << 20 : 1 << 23;
  return elements <= most_elements && elements * depth <= most;
}

// One launch, or false where the product is not flat, or not worth it: the caller then has to do it in another way.
// With Sums: `sums` is where the sum of operand 0 over what it contracts goes: the product's rows, or the batch and these; else null. Tiles: void, by their number, where it is worth it.
template <class T, bool Sums, class Tiles = void, class Then>
bool run_flat_product(const call& c, const Then& then, const layout* sums, void* sums_at, bool alone, context& ctx) {
  product_roles<Then::operands> w = product_roles_of<Then::operands>(c);
  const T *a = as<T>(c.p[0]), *b = as<T>(c.p[1]);
  if (!is_flat(w) || (std::is_void_v<Tiles> && !is_worth_flat<T>(w, alone))) return false;
  const std::int64_t matrices = points(w.batch);
  if (points(w.rows) == 0 || points(w.columns) == 0 || matrices == 0) return sums == nullptr;
  if (sums && !(sums->rank == 1 && matrices == 1) &&
      !(sums->rank == 2 && sums->ext[0] == matrices && sums->ext[1] == points(w.rows)))
    return false;
  if (!columns_are_stored(w)) {
    if (sums) return false;
    turn(w, a, b);
  }
  product_arrays<T> g{};
  g.a = a;
  g.b = b;
  g.out = as<T>(c.p[result]);
  g.alpha = static_cast<computed_in<T>>(c.f);
  g.a_along_depth = w.depth.rank > 0 && last_step(w.depth, 0) == 1;
  g.b_along_depth = w.depth.rank > 0 && last_step(w.depth, 1) == 1;
  const flat_sums<T> beside{as<T>(sums_at), sums ? sums->str[sums->rank - 1] : 0, sums && sums->rank > 1 ? sums->str[0] : 0,
                            nullptr};
  if constexpr (std::is_void_v<Tiles>) {
    const auto tiles = [](std::int64_t n) { return (n + small_tiles::tile - 1) / small_tiles::tile; };
    if (tiles(points(w.rows)) * tiles(points(w.columns)) * matrices <= most_small_tiles)
      return launch_flat_product<small_tiles, T, Sums>(w, g, beside, then, c.workspace, ctx);
    return launch_flat_product<large_tiles, T, Sums>(w, g, beside, then, c.workspace, ctx);
  } else {
    return launch_flat_product<Tiles, T, Sums>(w, g, beside, then, c.workspace, ctx);
  }
}

}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
