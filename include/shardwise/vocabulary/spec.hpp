// SPDX-License-Identifier: Apache-2.0
// spec: everything that is known of a distributed tensor while compiling: extents, strides, type, placements, mesh sizes.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/dtype.hpp>
#include <shardwise/vocabulary/mesh.hpp>
#include <shardwise/vocabulary/placement.hpp>
#include <shardwise/vocabulary/shape.hpp>

namespace shardwise::inline v0_1 {

// Extents and strides are those of the logical (global) tensor, in elements. A dim that has sizes in `dyn`, four bits a dim, has a
// run-time extent: `extent` is then its bound, and in a run it is extent * n / b for each of these sizes, which is n in that run and
// has the bound b in `dyn_bound`; there sizes that no dim has are 0. `offset` is 1 where the first element need not stand at the
// storage's beginning, else 0: where it stands, the view's own attributes say, so that the parts of a tensor are of one type. Unused
// array elements hold 0 (extents, strides), replicate (placements) and 1 (axis sizes), so that equal tensors have equal specs. Every
// member has an initialiser: nvcc leaves those without one unset in arrays `x[n]{}`.
struct spec {
  std::int64_t extent[max_rank]{};
  std::int64_t stride[max_rank]{};
  std::int64_t offset{};
  dyn_bounds dyn_bound{};
  placement place[max_axes]{};
  std::int32_t axis_size[max_axes]{};
  std::uint8_t rank{};
  std::uint8_t axes{};
  dtype type{};
  device_kind device{};
  std::uint32_t dyn{};

  constexpr bool operator==(const spec&) const = default;
};

// clang 14 to 19 read template arguments with padding bits wrongly at run time.
static_assert(std::has_unique_object_representations_v<spec>);

// Whether offsets of the bytes of a few tensors with such extents, spelled as in shape<...>, would leave 64 bits.
constexpr bool too_large(const std::int64_t* extent, int rank) {
  std::int64_t left = std::int64_t{1} << 57;  // elements, of eight bytes
  for (int d = 0; d < rank; ++d) {
    if (extent[d] < -(max_dyn_extent << 5)) return true;  // no spelling
    const std::int64_t e = bound_of(extent[d]);
    if (e > left) return true;
    if (e > 1) left /= e;
  }
  return false;
}

constexpr std::int64_t numel(const spec& s) {
  std::int64_t n = 1;
  for (int i = 0; i < s.rank; ++i) n *= s.extent[i];
  return n;
}

static_assert(max_rank * max_dyn_sizes <= 32);

// The run-time sizes that a dim's extent is a product of, a bit for each; of several dims, those of any.
constexpr unsigned dyn_sizes(const spec& s, int dim) { return (s.dyn >> (max_dyn_sizes * dim)) & 15U; }
constexpr bool is_dyn(const spec& s, int dim) { return dyn_sizes(s, dim) != 0; }
constexpr unsigned dyn_sizes(const spec& s) {
  unsigned all = 0;
  for (int d = 0; d < s.rank; ++d) all |= dyn_sizes(s, d);
  return all;
}
// As shape<...> has it.
constexpr std::int64_t spelled(const spec& s, int dim) { return spelled_extent(s.extent[dim], dyn_sizes(s, dim)); }

// Whether dim d of a and dim e of b have equally many elements at every run-time size.
constexpr bool same_extent(const spec& a, int d, const spec& b, int e) {
  return a.extent[d] == b.extent[e] && dyn_sizes(a, d) == dyn_sizes(b, e);
}

constexpr void set_dyn(spec& s, int d, unsigned sizes) {
  s.dyn = (s.dyn & ~(15U << (max_dyn_sizes * d))) | sizes << (max_dyn_sizes * d);
}
// Forgets the bounds of sizes that no dim has any more.
constexpr void drop_bounds(spec& s) {
  const unsigned used = dyn_sizes(s);
  for (int i = 0; i < max_dyn_sizes; ++i)
    if (!((used >> i) & 1U)) s.dyn_bound[i] = 0;
}
// Makes dim d of s a static one.
constexpr void set_extent(spec& s, int d, std::int64_t extent) {
  s.extent[d] = extent;
  if (s.dyn == 0) return;
  set_dyn(s, d, 0);
  drop_bounds(s);
}
// Gives dim d of s the extent of dim e of another tensor, run-time sizes and their bounds with it. What dim d was before leaves its
// bounds behind: for specs in the making.
constexpr void copy_extent(spec& s, int d, const spec& from, int e) {
  s.extent[d] = from.extent[e];
  if ((s.dyn | from.dyn) == 0) return;
  const unsigned sizes = dyn_sizes(from, e);
  set_dyn(s, d, sizes);
  for (int i = 0; i < max_dyn_sizes; ++i)
    if ((sizes >> i) & 1U) s.dyn_bound[i] = from.dyn_bound[i];
}

constexpr void make_contiguous(spec& s) {
  std::int64_t step = 1;
  for (int i = s.rank - 1; i >= 0; --i) {
    s.stride[i] = step;
    step *= s.extent[i];
  }
  s.offset = 0;
}

constexpr bool is_contiguous(const spec& s) {
  std::int64_t step = 1;
  for (int i = s.rank - 1; i >= 0; --i) {
    if (s.stride[i] != step) return false;
    step *= s.extent[i];
  }
  return s.offset == 0;
}

constexpr spec empty_spec(dtype t, int axes, const std::int32_t* sizes, device_kind device) {
  spec s{};
  // every element is stored: g++ 12 takes equal template arguments for different ones where one of them was not
  for (int d = 0; d < max_rank; ++d) s.extent[d] = s.stride[d] = 0;
  for (int a = 0; a < max_axes; ++a) s.place[a] = placement{};
  s.type = t;
  s.axes = static_cast<std::uint8_t>(axes);
  s.device = device;
  for (int a = 0; a < max_axes; ++a) s.axis_size[a] = a < axes ? sizes[a] : 1;
  return s;
}

// Same mesh, type and device; no extents, replicate everywhere.
constexpr spec scalar_like(const spec& like) {
  spec s = like;
  for (int i = 0; i < max_rank; ++i) s.extent[i] = s.stride[i] = 0;
  for (auto& p : s.place) p = placement{};
  s.rank = 0;
  s.offset = 0;
  s.dyn = 0;
  s.dyn_bound = {};
  return s;
}

// The chunk that rank 0 of the axis would hold: the identity of a split is its boundaries, not the way it was written.
constexpr std::int64_t chunk_size(std::int64_t extent, std::int64_t block, std::int64_t parts) {
  return ceil_div(ceil_div(extent, block), parts) * block;
}

// One spelling for equal splits: a block that moves no boundary is 1, any other that divides the extent n is the largest that
// cuts alike, gcd(n, chunk): every block b of that chunk divides both, since the chunk is the least multiple of b that is at
// least n / ranks. A block that does not divide stays, for check_placements to refuse. The first axis of several ranks that
// splits a dim cuts the whole of it, whatever splits it further; a later one may cut parts of several sizes and keeps its
// block. A strided shard of one rank is a plain one, and its block 1; of several ranks it never cuts the whole.
constexpr void normalise(spec& s) {
  std::uint32_t split = 0;  // dims that an axis before this one splits
  for (int a = 0; a < s.axes; ++a) {
    placement& p = s.place[a];
    if (!p.is_shard()) continue;
    const int ranks = s.axis_size[a];
    if (p.is_strided()) {
      if (ranks > 1) continue;
      p.factor = 1;
    }
    if (p.block > 1 && !is_dyn(s, p.dim) && s.extent[p.dim] % p.block == 0 && (ranks == 1 || !((split >> p.dim) & 1U))) {
      const std::int64_t n = s.extent[p.dim], chunk = chunk_size(n, p.block, ranks);
      const std::int64_t block = chunk == chunk_size(n, 1, ranks) ? 1 : gcd(n, chunk);
      if (block <= INT32_MAX) p.block = static_cast<std::int32_t>(block);
    }
    if (ranks > 1) split |= 1U << p.dim;
  }
}

// Law: dual(dual(s)) == s, since dual acts on placements alone.
constexpr spec dual(spec s) {
  for (int a = 0; a < s.axes; ++a) s.place[a] = dual(s.place[a]);
  return s;
}

constexpr spec contiguous(spec s) {
  make_contiguous(s);
  return s;
}

// The axes that split a dim, in the order in which they do: each what those before it left.
struct split_order {
  int axis[max_axes]{};
  int count = 0;
  int misplaced = -1;  // an axis whose factor is the product of no beginning of the order

  constexpr int position(int a) const {
    int k = 0;
    while (k < count && axis[k] != a) ++k;
    return k;
  }
};

// From the last axis to the first: each stands behind as many of the later ones as make up its factor.
constexpr split_order split_order_of(const spec& s, int dim) {
  split_order r;
  for (int a = s.axes - 1; a >= 0; --a) {
    if (!s.place[a].is_shard(dim)) continue;
    const int factor = s.place[a].factor;
    int at = 0;
    std::int64_t product = 1;
    while (at < r.count && product < factor) product *= s.axis_size[r.axis[at++]];
    if (product != factor) r.misplaced = a;
    for (int k = r.count++; k > at; --k) r.axis[k] = r.axis[k - 1];
    r.axis[at] = a;
  }
  return r;
}

// An axis of several ranks that splits `dim` after `axis` does, or -1.
constexpr int split_after(const spec& s, int axis, int dim) {
  const split_order o = split_order_of(s, dim);
  for (int k = o.position(axis) + 1; k < o.count; ++k)
    if (s.axis_size[o.axis[k]] > 1) return o.axis[k];
  return -1;
}

// The product of the later axes' sizes that split `dim`: the factor of a shard by `axis` that comes after all others.
constexpr int last_factor(const spec& s, int axis, int dim) {
  int product = 1;
  for (int a = axis + 1; a < s.axes; ++a)
    if (s.place[a].is_shard(dim)) product *= s.axis_size[a];
  return product;
}

// Makes plain shards of those whose factor no longer fits the axes that split their dim.
constexpr void drop_misplaced_factors(spec& s) {
  for (int d = 0; d < s.rank; ++d)
    for (split_order o = split_order_of(s, d); o.misplaced >= 0; o = split_order_of(s, d)) s.place[o.misplaced].factor = 1;
}

constexpr finding check_placements(const spec& s) {
  for (int a = 0; a < s.axes; ++a) {
    const placement& p = s.place[a];
    if (p.is_norm() && p.order() < 1) return {problem::norm_order, 0, -1, a, p.order(), 1};
    if (p.is_norm() && (!is_floating(s.type) || is_low_precision(s.type))) return {problem::partial_norm_type, 0, -1, a};
    if (!p.is_shard()) continue;
    // a dim that is far off is not kept: what is named says it
    if (p.dim <= -127 || p.dim >= 127) return {problem::shard_dim_out_of_range, 0, -1, a};
    if (p.dim < 0 || p.dim >= s.rank) return {problem::shard_dim_out_of_range, 0, p.dim, a, p.dim, s.rank};
    if (p.block < 1 || s.extent[p.dim] % p.block != 0 || (p.block_sizes & ~dyn_sizes(s, p.dim)) != 0)
      return {problem::shard_block_does_not_divide, 0, p.dim, a, p.block, s.extent[p.dim]};
    if (p.is_strided())
      if (const int wrong = split_order_of(s, p.dim).misplaced; wrong >= 0)
        return {problem::strided_shard_factor, 0, p.dim, wrong, s.place[wrong].factor, last_factor(s, wrong, p.dim)};
  }
  return {};
}

// --- local view -----------------------------------------------------------------------------------------------------

struct interval {
  std::int64_t begin = 0;
  std::int64_t size = 0;
};

// The extent of a dim at a run's sizes (ignored where nothing is dyn), and the block of an axis that shards.
constexpr std::int64_t extent_at(const spec& s, int dim, const run_sizes& n) {
  return s.dyn == 0 ? s.extent[dim] : number_at(s.extent[dim], dyn_sizes(s, dim), s.dyn_bound, n);
}
constexpr std::int64_t block_at(const spec& s, int axis, const run_sizes& n) {
  const placement& p = s.place[axis];
  return p.block_sizes == 0 ? p.block : number_at(p.block, p.block_sizes, s.dyn_bound, n);
}

constexpr interval split(interval whole, std::int64_t block, int parts, int part) {
  if (whole.size == 0) return whole;  // and its block may be 0, too
  const std::int64_t chunk = chunk_size(whole.size, block, parts);
  const std::int64_t lo = chunk * part < whole.size ? chunk * part : whole.size;
  const std::int64_t hi = lo + chunk < whole.size ? lo + chunk : whole.size;
  return {whole.begin + lo, hi - lo};
}

// What part `c` of `parts` holds of a dim of n elements by windows or readers, whose own share is [b, e); empty where that is.
constexpr interval overlapping(const placement& p, std::int64_t n, int parts, int c) {
  if (parts == 1) return {0, n};
  const interval own = split({0, p.block}, 1, parts, c);
  if (own.size == 0) return {n, 0};
  const auto floor_div = [](std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); };
  const std::int64_t first = own.begin, last = own.begin + own.size - 1;
  std::int64_t lo = 0, hi = 0;
  if (p.kind == placement_kind::windows) {
    lo = first * p.factor - p.before();
    hi = last * p.factor + p.behind() + 1;
  } else {  // t * factor + behind >= first, t * factor - before <= last, the first of these rounded down
    lo = floor_div(first - p.behind(), p.factor);
    hi = floor_div(last + p.before(), p.factor) + 1;
  }
  lo = lo < 0 ? 0 : lo > n ? n : lo;
  hi = hi < lo ? lo : hi > n ? n : hi;
  return {lo, hi - lo};
}

// The part of `dim` at mesh coordinate `c`; several axes that shard one dim split it in axis order, strided shards after
// later axes, each what the previous one left. An empty trailing part begins at the extent.
constexpr interval local_interval(const spec& s, int dim, const int* c, const run_sizes& n = {}) {
  const interval whole{0, extent_at(s, dim, n)};
  interval v = whole;
  bool strided = false;
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_shard(dim)) {
      strided = strided || s.place[a].is_strided();
      v = split(v, block_at(s, a, n), s.axis_size[a], c[a]);
    } else if (s.place[a].overlaps(dim)) {
      return overlapping(s.place[a], whole.size, s.axis_size[a], c[a]);
    }
  if (!strided) return v;
  v = whole;
  const split_order order = split_order_of(s, dim);
  for (int k = 0; k < order.count; ++k) {
    const int a = order.axis[k];
    v = split(v, block_at(s, a, n), s.axis_size[a], c[a]);
  }
  return v;
}

constexpr std::int64_t local_numel(const spec& s, const int* c, const run_sizes& n = {}) {
  std::int64_t k = 1;
  for (int d = 0; d < s.rank; ++d) k *= local_interval(s, d, c, n).size;
  return k;
}

// Of the largest block along `dim`, and its elements: that of the ranks at coordinate 0, unless blocks overlap.
constexpr std::int64_t largest_extent(const spec& s, int dim) {
  int c[max_axes]{};
  for (int a = 0; a < s.axes; ++a) {
    if (!s.place[a].overlaps(dim)) continue;
    std::int64_t most = 0;
    for (; c[a] < s.axis_size[a]; ++c[a])
      if (const std::int64_t n = local_interval(s, dim, c).size; n > most) most = n;
    return most;
  }
  return local_interval(s, dim, c).size;
}
constexpr std::int64_t largest_numel(const spec& s) {
  std::int64_t k = 1;
  for (int d = 0; d < s.rank; ++d) k *= largest_extent(s, d);
  return k;
}

// Whether on every rank the two tensors' blocks have the same extents.
constexpr bool same_blocks(const spec& a, const spec& b) {
  if (a.rank != b.rank || a.type != b.type || a.axes != b.axes || a.dyn != b.dyn || a.dyn_bound != b.dyn_bound) return false;
  for (int i = 0; i < a.axes && a.dyn != 0; ++i)  // what is equal at the bounds may differ below them
    if ((a.place[i].is_shard() && is_dyn(a, a.place[i].dim)) || (b.place[i].is_shard() && is_dyn(b, b.place[i].dim)))
      if (a.place[i] != b.place[i]) return false;
  int c[max_axes]{};
  for (;;) {
    for (int d = 0; d < a.rank; ++d)
      if (local_interval(a, d, c).size != local_interval(b, d, c).size) return false;
    int axis = 0;
    while (axis < a.axes && ++c[axis] == a.axis_size[axis]) c[axis++] = 0;
    if (axis == a.axes) return true;
  }
}

}  // namespace shardwise::inline v0_1
