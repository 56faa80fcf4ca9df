// SPDX-License-Identifier: Apache-2.0
// Views: how permute, reshape and slice carry extents, strides and split boundaries.
#pragma once

#include <shardwise/propagation/extents.hpp>
#include <shardwise/propagation/rule.hpp>

namespace shardwise::inline v0_1::rules {

constexpr int packed_dim(std::int64_t packed, int d) { return static_cast<int>((packed >> (4 * d)) & 15); }

constexpr outcome permute_spec(const op_attr& a, const spec& x) {
  const std::int64_t dims = attributes_of<permute_attributes>(a).from;
  outcome r{{}, x};
  unsigned seen = 0;
  for (int d = 0; d < x.rank; ++d) {
    const int from = packed_dim(dims, d);
    if (from >= x.rank || ((seen >> from) & 1U)) return fail(problem::permute_not_a_permutation, x, 0, from);
    seen |= 1U << from;
  }
  for (int d = 0; d < x.rank; ++d) {
    const int from = packed_dim(dims, d);
    copy_extent(r.out, d, x, from);
    r.out.stride[d] = x.stride[from];
    for (int m = 0; m < x.axes; ++m)
      if (x.place[m].is_shard(from)) r.out.place[m].dim = static_cast<std::int8_t>(d);
  }
  return r;
}

// Whether a sharded dim may be cut at its end, or padded there: every rank then has the beginning of what its block was,
// since one axis alone splits the dim and its chunks stay as large as they are. An axis of one rank splits nothing.
constexpr bool keeps_chunks(const spec& x, int d, std::int64_t start, std::int64_t length) {
  int sharers = 0;
  bool same = start == 0 && !is_dyn(x, d);
  for (int m = 0; m < x.axes; ++m) {
    if (!x.place[m].is_shard(d) || x.axis_size[m] == 1) continue;
    ++sharers;
    same =
        same && x.place[m].block == 1 && chunk_size(length, 1, x.axis_size[m]) == chunk_size(x.extent[d], 1, x.axis_size[m]);
  }
  return sharers == 0 || (sharers == 1 && same);
}

constexpr outcome slice_spec(const op_attr& a, const spec& x) {
  const auto of = attributes_of<slice_attributes>(a);
  const int d = static_cast<int>(of.dim);
  if (d < 0 || d >= x.rank) return fail(problem::dim_out_of_range, x, 0, d, d, x.rank);
  if (of.start < 0 || of.length < 0 || of.start + of.length > x.extent[d] || is_dyn(x, d))
    return fail(problem::slice_out_of_range, x, 0, d, of.start + of.length, x.extent[d]);
  for (int m = 0; m < x.axes; ++m)
    if (x.place[m].is_shard(d) && !keeps_chunks(x, d, of.start, of.length))
      return fail(problem::slice_dim_sharded, x, 0, d, 0, 0, m);
  outcome r{{}, x};
  r.out.extent[d] = of.length;
  if (of.start * x.stride[d] != 0 || of.one_of_many != 0) r.out.offset = 1;
  return r;
}

constexpr outcome pad_spec(const op_attr& a, const spec& x) {
  const auto of = attributes_of<slice_attributes>(a);
  const int d = static_cast<int>(of.dim);
  if (is_dyn(x, d)) return fail(problem::dyn_dim_changed, x, 0, d);
  outcome r{{}, x};
  r.out.extent[d] = of.length;
  make_contiguous(r.out);
  for (int m = 0; m < x.axes; ++m)
    if (x.place[m].is_shard(d) && !keeps_chunks(x, d, of.start, of.length))
      return fail(problem::slice_dim_sharded, x, 0, d, 0, 0, m);
  return r;
}

// Law: slice_scatter(x, y) is x, and sliced it is y. Every rank writes the part of y that it has into its part of x, so
// both are placed alike.
constexpr outcome slice_scatter_spec(const op_attr& a, const spec* in) {
  const outcome part = slice_spec(a, in[0]);
  if (part.error) return part;
  const spec &x = part.out, &y = in[1];
  if (y.type != x.type) return fail(problem::types_differ, in[0], 1);
  if (y.rank != x.rank) return fail(problem::slice_scatter_shape, in[0], 1, -1, y.rank, x.rank);
  for (int d = 0; d < x.rank; ++d)
    if (!same_extent(y, d, x, d)) return fail(problem::slice_scatter_shape, in[0], 1, d, y.extent[d], x.extent[d]);
  for (int m = 0; m < x.axes; ++m)
    if (!(y.place[m] == x.place[m])) return fail(problem::slice_scatter_placements, in[0], 1, -1, 0, 0, m);
  return {{}, contiguous(in[0])};
}

// Nothing is placed or shaped anew in place, and an element that stands in many places cannot be written.
constexpr outcome copy_spec(const spec* in) {
  const spec &x = in[0], &y = in[1];
  bool fits = x.type == y.type && x.rank == y.rank && x.dyn == y.dyn;
  for (int d = 0; fits && d < x.rank; ++d) fits = x.extent[d] == y.extent[d];
  if (!fits) return fail(problem::mutation_result, x, 1);
  for (int m = 0; m < x.axes; ++m)
    if (!(x.place[m] == y.place[m])) return fail(problem::mutation_result, x, 1, -1, 0, 0, m);
  for (int d = 0; d < x.rank; ++d)
    if (x.extent[d] > 1 && x.stride[d] == 0) return fail(problem::mutation_overlap, x, 0, d);
  return {{}, x};
}

// Two shapes cut into the smallest groups of neighbouring dims with equal products, at every run-time size. Of empty tensors, and where
// products differ below the bounds, there may be none.
struct reshape_group {
  int from_begin, from_end, to_begin, to_end;
  bool equal = true;
};

constexpr reshape_group group_of(const spec& from, const spec& to, int dim) {
  int i = 0, j = 0;
  reshape_group g{0, from.rank, 0, to.rank};
  while (i < from.rank || j < to.rank) {
    const int i0 = i, j0 = j;
    std::int64_t a = 1, b = 1;
    unsigned of_a = 0, of_b = 0;
    const auto take_from = [&] {
      of_a |= dyn_sizes(from, i);
      a *= from.extent[i++];
    };
    const auto take_to = [&] {
      of_b |= dyn_sizes(to, j);
      b *= to.extent[j++];
    };
    if (i < from.rank) take_from();
    if (j < to.rank) take_to();
    while (a != b || of_a != of_b) {
      const bool less = a < b, more = b < a;
      if (!more && i < from.rank) take_from();
      else if (less) break;
      if (!less && j < to.rank) take_to();
      else if (more) break;
      if (!less && !more && i == from.rank && j == to.rank) break;
    }
    if (dim >= i0 && dim < i) {
      g = {i0, i, j0, j, a == b && of_a == of_b};
      return g;
    }
  }
  return g;
}

// The sizes of dims [begin, end), and whether no two of them have one in common.
struct size_set {
  unsigned sizes = 0;
  bool once = true;
};
constexpr size_set sizes_of(const spec& s, int begin, int end) {
  size_set r;
  for (int d = begin; d < end; ++d) {
    r.once = r.once && (r.sizes & dyn_sizes(s, d)) == 0;
    r.sizes |= dyn_sizes(s, d);
  }
  return r;
}

// Zero extents make products meaningless; such reshapes must keep the dim.
constexpr bool reshape_shard(const spec& from, spec& to, int axis) {
  const placement p = from.place[axis];
  const int d = p.dim;
  const reshape_group g = group_of(from, to, d);
  if (!g.equal) return false;
  for (int i = g.from_begin; i < d; ++i)
    if (from.extent[i] != 1) return false;
  int j = g.to_begin;
  while (j + 1 < g.to_end && to.extent[j] == 1 && from.extent[d] != 1) ++j;
  if (j >= g.to_end) return false;
  // a dim of extent 1 stays one: the adjoint could not tell which dim the shard came from
  if (from.extent[d] == 1 && to.extent[j] != 1) return false;
  std::int64_t inner_from = 1, inner_to = 1;
  for (int i = d + 1; i < g.from_end; ++i) inner_from *= from.extent[i];
  for (int i = j + 1; i < g.to_end; ++i) inner_to *= to.extent[i];
  to.place[axis] = split_along(j, p);
  const unsigned of_from = sizes_of(from, d + 1, g.from_end).sizes, of_to = sizes_of(to, j + 1, g.to_end).sizes;
  if (inner_from == inner_to && of_from == of_to) return true;
  if (inner_from == 0 || inner_to == 0) return false;  // an empty tensor's blocks have no boundaries to keep
  to.place[axis].block = 1;
  to.place[axis].block_sizes = 0;
  const int n = from.axis_size[axis];
  const bool run_time = (of_from | of_to) != 0 || is_dyn(from, d);
  if (n == 1 && !run_time) return true;
  int sharers = 0;
  std::int64_t parts = 1;
  for (int a = 0; a < from.axes; ++a)
    if (from.place[a].is_shard(d) && from.axis_size[a] > 1) {
      ++sharers;
      parts *= from.axis_size[a];
    }
  if (sharers > 1) return !run_time && p.block == 1 && from.extent[d] % parts == 0 && to.extent[j] % parts == 0;
  const std::int64_t scaled = p.block * inner_from;
  if (run_time) {  // whole blocks stay whole: b elements before become b inner_from / inner_to
    const unsigned sizes = p.block_sizes | of_from;
    if (scaled % inner_to != 0 || scaled / inner_to > max_block || (p.block_sizes & of_from) != 0 || (of_to & ~sizes) != 0)
      return false;
    to.place[axis].block = static_cast<std::int32_t>(scaled / inner_to);
    to.place[axis].block_sizes = static_cast<std::uint16_t>(sizes & ~of_to);
    return true;
  }
  const std::int64_t cut = chunk_size(from.extent[d], p.block, n) * inner_from;
  if (cut % inner_to != 0) return false;
  const std::int64_t chunk = cut / inner_to;
  const std::int64_t e = to.extent[j];
  if (chunk_size(e, 1, n) == chunk) return true;
  if (scaled % inner_to == 0 && chunk_size(e, scaled / inner_to, n) == chunk && e % (scaled / inner_to) == 0) {
    to.place[axis].block = static_cast<std::int32_t>(scaled / inner_to);
    return true;
  }
  if (chunk != 0 && e % chunk == 0) {
    to.place[axis].block = static_cast<std::int32_t>(chunk);
    return true;
  }
  return false;
}

// Whether only dims of extent 1 come or go; `from(i)` is then the old dim of new dim i, -1 for one that has come.
struct unit_dims {
  bool only = false;
  int from[max_rank]{};
};
constexpr unit_dims unit_dims_of(const std::int64_t* old, int old_rank, const std::int64_t* now, int now_rank) {
  unit_dims u{true};
  int i = 0;
  for (int j = 0; j < now_rank; ++j) {
    while (i < old_rank && old[i] == 1 && now[j] != 1) ++i;
    const bool same = i < old_rank && old[i] == now[j];
    if (!same && now[j] != 1) return {};
    u.from[j] = same ? i++ : -1;
  }
  for (; i < old_rank; ++i)
    if (old[i] != 1) return {};
  return u;
}

// The strides with which elements stored by `step` are seen in other extents; false: by none, since what becomes one dim, or is cut
// into several, is not stored as one run. PyTorch's rule for views.
constexpr bool view_strides(const std::int64_t* old, const std::int64_t* step, int old_rank, const std::int64_t* now,
                            int now_rank, std::int64_t* strides) {
  int v = now_rank - 1;
  std::int64_t run = 1, seen = 1;  // elements of the old dims that are stored as one, and of the new dims that see them
  std::int64_t base = old_rank > 0 ? step[old_rank - 1] : 1;
  for (int d = old_rank - 1; d >= 0; --d) {
    run *= old[d];
    if (d > 0 && (old[d - 1] == 1 || step[d - 1] == run * base)) continue;
    while (v >= 0 && (seen < run || now[v] == 1)) {
      strides[v] = seen * base;
      seen *= now[v--];
    }
    if (seen != run) return false;
    if (d > 0) {
      base = step[d - 1];
      run = seen = 1;
    }
  }
  for (; v >= 0 && now[v] == 1; --v) strides[v] = seen * base;
  return v < 0;
}

// Which run-time sizes the extents of a reshaped tensor are products of: those that were given, which must be the group's; where
// none was given, the one dim of the group that has any gives its own to the first dim that is not 1.
constexpr finding reshape_sizes(const spec& x, spec& out) {
  for (int d = 0; d < x.rank; ++d) {
    if (!is_dyn(x, d)) continue;
    reshape_group g = group_of(x, out, d);
    const auto sizes = sizes_of(x, g.from_begin, g.from_end);
    if (!sizes.once) return {problem::dyn_square, 0, d};
    if (sizes_of(out, g.to_begin, g.to_end).sizes == 0) {
      if (sizes.sizes != dyn_sizes(x, d)) return {problem::dyn_product, 0, d};
      for (int i = g.from_begin; i < d; ++i)
        if (x.extent[i] != 1) return {problem::reshape_dyn, 0, d};
      int j = g.to_begin;
      while (j + 1 < g.to_end && out.extent[j] == 1) ++j;
      if (j >= g.to_end) return {problem::reshape_dyn, 0, d};
      set_dyn(out, j, dyn_sizes(x, d));
      g = group_of(x, out, d);
    }
    if (!g.equal || !sizes_of(out, g.to_begin, g.to_end).once) return {problem::reshape_dyn, 0, d};
  }
  for (int j = 0; j < out.rank; ++j)
    if (is_dyn(out, j) && ((dyn_sizes(out, j) & ~dyn_sizes(x)) != 0 || !group_of(out, x, j).equal ||
                           out.extent[j] % product_of(x.dyn_bound, dyn_sizes(out, j)) != 0))
      return {problem::reshape_dyn, 0, j};
  return {};
}

// Law: the elements of every rank are the same before and after, in the same order. Storage must allow it: view_strides.
constexpr outcome reshape_spec(const op_attr& a, const spec& x) {
  outcome r{{}, x};
  const int rank = packed_rank(a);
  if (const problem wrong = packed_problem(a); wrong != problem::none) return fail(wrong, x, 0, -1, rank, max_rank);
  r.out.rank = static_cast<std::uint8_t>(rank);
  r.out.dyn = 0;
  for (int d = 0; d < max_rank; ++d) {
    r.out.extent[d] = d < rank ? packed_bound(a, d) : 0;
    r.out.stride[d] = 0;
    if (d < rank) set_dyn(r.out, d, packed_sizes(a, d));
  }
  if (numel(r.out) != numel(x)) return fail(problem::reshape_count, x, 0, -1, numel(r.out), numel(x));
  if (x.dyn != 0 || r.out.dyn != 0)
    if (const finding f = reshape_sizes(x, r.out)) return {f, x};
  make_contiguous(r.out);
  if (!is_contiguous(x)) {
    const unit_dims u = unit_dims_of(x.extent, x.rank, r.out.extent, rank);
    if (!u.only && !view_strides(x.extent, x.stride, x.rank, r.out.extent, rank, r.out.stride))
      return fail(problem::view_not_dense, x);
    for (int d = 0; u.only && d < rank; ++d) r.out.stride[d] = u.from[d] < 0 ? 0 : x.stride[u.from[d]];
    r.out.offset = x.offset;
  }
  for (int m = 0; m < x.axes; ++m)
    if (x.place[m].is_shard() && !reshape_shard(x, r.out, m))
      return fail(problem::reshape_crosses_shard, x, 0, x.place[m].dim, 0, 0, m);
  normalise(r.out);
  return r;
}

}  // namespace shardwise::inline v0_1::rules
