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

// Extents and strides are those of the logical (global) tensor, in elements. A dim whose bit is set in `dyn` has a
// run-time extent: `extent` is then its bound and the run-time value is extent * n / dyn_bound for the program's one
// run-time size n. `offset` is 1 where the first element need not stand at the storage's beginning, else 0: where it stands,
// the view's own attributes say, so that the parts of a tensor are of one type. Unused array elements hold 0 (extents, strides), replicate (placements) and 1 (axis sizes), so that
// equal tensors have equal specs. Every member has an initialiser: nvcc leaves those without one unset in arrays `x[n]{}`.
struct spec {
  std::int64_t extent[max_rank]{};
  std::int64_t stride[max_rank]{};
  std::int64_t offset{};
  std::int64_t dyn_bound{};
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
    if (extent[d] > left || extent[d] < -left) return true;
    const std::int64_t e = extent[d] < 0 ? -extent[d] : extent[d];
    if (e > 1) left /= e;
  }
  return false;
}

constexpr std::int64_t numel(const spec& s) {
  std::int64_t n = 1;
  for (int i = 0; i < s.rank; ++i) n *= s.extent[i];
  return n;
}

constexpr bool is_dyn(const spec& s, int dim) { return (s.dyn >> dim) & 1U; }

// Whether dim d of a and dim e of b have equally many elements at every run-time size.
constexpr bool same_extent(const spec& a, int d, const spec& b, int e) {
  return a.extent[d] == b.extent[e] && is_dyn(a, d) == is_dyn(b, e);
}

// Makes dim d of s a static one.
constexpr void set_extent(spec& s, int d, std::int64_t extent) {
  s.extent[d] = extent;
  s.dyn &= ~(1U << d);
  if (s.dyn == 0) s.dyn_bound = 0;
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
  s.dyn_bound = 0;
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
    if (p.is_norm() && p.order < 1) return {problem::norm_order, 0, -1, a, p.order, 1};
    if (p.is_norm() && (!is_floating(s.type) || is_low_precision(s.type))) return {problem::partial_norm_type, 0, -1, a};
    if (!p.is_shard()) continue;
    // a dim that is far off is not kept: what is named says it
    if (p.dim <= -127 || p.dim >= 127) return {problem::shard_dim_out_of_range, 0, -1, a};
    if (p.dim < 0 || p.dim >= s.rank) return {problem::shard_dim_out_of_range, 0, p.dim, a, p.dim, s.rank};
    if (p.block < 1 || s.extent[p.dim] % p.block != 0)
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

// The run-time extent of a dim for the run-time size n (ignored where nothing is dyn).
constexpr std::int64_t extent_at(const spec& s, int dim, std::int64_t n) {
  return is_dyn(s, dim) ? s.extent[dim] / s.dyn_bound * n : s.extent[dim];
}

constexpr interval split(interval whole, std::int64_t block, int parts, int part) {
  const std::int64_t chunk = chunk_size(whole.size, block, parts);
  const std::int64_t lo = chunk * part < whole.size ? chunk * part : whole.size;
  const std::int64_t hi = lo + chunk < whole.size ? lo + chunk : whole.size;
  return {whole.begin + lo, hi - lo};
}

// The part of `dim` at mesh coordinate `c`; several axes that shard one dim split it in axis order, strided shards after
// later axes, each what the previous one left. An empty trailing part begins at the extent.
constexpr interval local_interval(const spec& s, int dim, const int* c, std::int64_t n = 0) {
  const interval whole{0, extent_at(s, dim, n ? n : s.dyn_bound)};
  interval v = whole;
  bool strided = false;
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_shard(dim)) {
      strided = strided || s.place[a].is_strided();
      v = split(v, s.place[a].block, s.axis_size[a], c[a]);
    }
  if (!strided) return v;
  v = whole;
  const split_order order = split_order_of(s, dim);
  for (int k = 0; k < order.count; ++k) {
    const int a = order.axis[k];
    v = split(v, s.place[a].block, s.axis_size[a], c[a]);
  }
  return v;
}

constexpr std::int64_t local_numel(const spec& s, const int* c, std::int64_t n = 0) {
  std::int64_t k = 1;
  for (int d = 0; d < s.rank; ++d) k *= local_interval(s, d, c, n).size;
  return k;
}

// Whether on every rank the two tensors' blocks have the same extents.
constexpr bool same_blocks(const spec& a, const spec& b) {
  if (a.rank != b.rank || a.type != b.type || a.axes != b.axes || a.dyn != b.dyn || a.dyn_bound != b.dyn_bound) return false;
  int c[max_axes]{};
  for (;;) {
    for (int d = 0; d < a.rank; ++d)
      if (local_interval(a, d, c).size != local_interval(b, d, c).size) return false;
    int axis = 0;
    while (axis < a.axes && ++c[axis] == a.axis_size[axis]) c[axis++] = 0;
    if (axis == a.axes) return true;
  }
}

// --- types to specs -------------------------------------------------------------------------------------------------

namespace detail {

template <class Mesh>
constexpr spec mesh_spec(dtype t) {
  std::int32_t sizes[max_axes] = {1, 1, 1, 1};
  for (int a = 0; a < Mesh::axes; ++a) sizes[a] = Mesh::sizes[static_cast<unsigned>(a)];
  return empty_spec(t, Mesh::axes, sizes, Mesh::device);
}

template <class Shape>
constexpr void set_extents(spec& s) {
  s.rank = static_cast<std::uint8_t>(Shape::rank);
  for (int i = 0; i < Shape::rank && i < max_rank; ++i) {
    const std::int64_t e = Shape::extent[i];
    s.extent[i] = e < 0 ? -e : e;
    if (e < 0) {
      s.dyn |= 1U << i;
      s.dyn_bound = -e;
    }
  }
  make_contiguous(s);
}

template <class P>
struct is_on : std::false_type {};
template <class A, class P>
struct is_on<on<A, P>> : std::true_type {};

struct spec_outcome {
  finding error;
  spec out;
};

template <class Mesh, class P>
constexpr void place_on(spec_outcome& r, unsigned& seen) {
  constexpr int a = Mesh::template index_of<typename P::axis>;
  if constexpr (!P::in_order) {
    return;
  } else if constexpr (a < 0) {
    if (!r.error) r.error = {problem::axis_not_in_mesh};
  } else {
    if ((seen >> a) & 1U) r.error = r.error ? r.error : finding{problem::placement_axis_twice, 0, -1, a};
    seen |= 1U << a;
    using pl = placement_of<typename P::placement>;
    r.out.place[a] = pl::value;
    if (pl::even && pl::value.dim >= 0 && pl::value.dim < r.out.rank &&
        r.out.extent[pl::value.dim] % r.out.axis_size[a] != 0 && !r.error)
      r.error = {problem::uneven_shard, 0, pl::value.dim, a, r.out.extent[pl::value.dim], r.out.axis_size[a]};
  }
}

template <class Mesh, class P>
constexpr void place_at(spec_outcome& r, int a) {
  using pl = placement_of<P>;
  if (a >= Mesh::axes) return;
  r.out.place[a] = pl::value;
  if (pl::even && pl::value.dim >= 0 && pl::value.dim < r.out.rank &&
      r.out.extent[pl::value.dim] % r.out.axis_size[a] != 0 && !r.error)
    r.error = {problem::uneven_shard, 0, pl::value.dim, a, r.out.extent[pl::value.dim], r.out.axis_size[a]};
}

// Placements by name (on<axis, placement>, others as they are) or by position (one for each axis).
template <class Mesh, class... P>
constexpr void place_all(spec_outcome& r) {
  if constexpr ((is_on<P>::value && ...)) {
    [[maybe_unused]] unsigned seen = 0;
    (place_on<Mesh, P>(r, seen), ...);
  } else {
    if (sizeof...(P) != Mesh::axes)
      r.error = {problem::placement_count, 0, -1, -1, static_cast<long long>(sizeof...(P)), Mesh::axes};
    int a = 0;
    (place_at<Mesh, P>(r, a++), ...);
  }
}

// A scalar: what stands for a spec that cannot be made.
template <class Mesh>
constexpr spec nothing_spec() {
  if constexpr (is_mesh<Mesh>) {
    return mesh_spec<Mesh>(dtype::f32);
  } else {
    constexpr std::int32_t one[] = {1};
    return empty_spec(dtype::f32, 1, one, device_kind::host);
  }
}

template <class T, class Shape, class Mesh>
constexpr problem spec_arguments() {
  if (!is_element<T>) return problem::element_type;
  if (!is_shape<Shape>) return problem::tensor_shape;
  return is_mesh<Mesh> ? problem::none : problem::tensor_mesh;
}

template <class T, class Shape, class Mesh, class... P>
constexpr spec_outcome place_spec() {
  spec_outcome r{{}, mesh_spec<Mesh>(dtype_v<T>)};
  if (Shape::rank > max_rank) {
    r.error = {problem::rank_too_large, 0, -1, -1, Shape::rank, max_rank};
    return r;
  }
  if (too_large(&Shape::extent[0], Shape::rank)) {
    r.error = {problem::tensor_too_large, 0};
    return r;
  }
  set_extents<Shape>(r.out);
  place_all<Mesh, P...>(r);
  if (!r.error) r.error = check_placements(r.out);
  if (r.error)
    for (auto& p : r.out.place) p = placement{};
  normalise(r.out);
  return r;
}

template <class T, class Shape, class Mesh, class... P>
constexpr spec_outcome build_spec() {
  if constexpr (spec_arguments<T, Shape, Mesh>() != problem::none) {
    return {{spec_arguments<T, Shape, Mesh>()}, nothing_spec<Mesh>()};
  } else {
    return place_spec<T, Shape, Mesh, P...>();
  }
}

}  // namespace detail

// spec_of<float, shape<4, 8>, mesh<dp, tp>, on<dp, shard<0>>>::value; a wrong placement does not compile.
template <class T, class Shape, class Mesh, class... Placements>
struct spec_of {
  static constexpr detail::spec_outcome built = detail::build_spec<T, Shape, Mesh, Placements...>();
  static_assert(raise_finding<built.error, Mesh, T, Shape, Mesh, Placements...>::ok);
  static constexpr spec value = built.out;
};

// --- specs back to types, for messages ------------------------------------------------------------------------------

// What an error prints of an operand: its elements, its global shape and one placement for each mesh axis, in mesh order.
template <class Element, class Shape, class... Placements>
struct operand;

namespace detail {
template <spec S, class Rank>
struct shape_type;
template <spec S, std::size_t... I>
struct shape_type<S, std::index_sequence<I...>> {
  static constexpr spec s = S;
  using type = shape<(is_dyn(s, static_cast<int>(I)) ? -s.extent[I] : s.extent[I])...>;
};
template <spec S, class Axes>
struct operand_type;
template <spec S, std::size_t... A>
struct operand_type<S, std::index_sequence<A...>> {
  static constexpr spec s = S;
  using type = operand<element_t<s.type>, typename shape_type<S, std::make_index_sequence<s.rank>>::type,
                       typename placement_type<s.place[A]>::type...>;
};
}  // namespace detail

// A class between alias and machinery: g++ 12 crashes on the alias alone in dependent code.
template <spec S>
struct operand_of {
  static constexpr int axes = S.axes;
  using type = typename detail::operand_type<S, std::make_index_sequence<axes>>::type;
};
template <spec S>
using operand_t = typename operand_of<S>::type;

namespace detail {
// "dp: shard<0>, tp: replicate"
template <class Sink, class... Axes, class... Placements>
constexpr void put_placements(Sink& out, type_list<Axes...>, type_list<Placements...>) {
  bool first = true;
  ((text::put(out, first ? "" : ", "), written<Axes>::put(out), text::put(out, ": "), written<Placements>::put(out),
    first = false),
   ...);
}
// "float[8, 16] (dp: shard<0>, tp: replicate)"; without a mesh the placements alone.
template <class Operand, class Mesh = void>
struct written_operand;
template <class Element, class Shape, class... Placements, class Mesh>
struct written_operand<operand<Element, Shape, Placements...>, Mesh> {
  template <class Sink>
  static constexpr void put(Sink& out) {
    written<Element>::put(out);
    out.push_back('[');
    put_extents(out, Shape{});
    text::put(out, "] (");
    if constexpr (axes_count<Mesh> == sizeof...(Placements))
      put_placements(out, axes_list<Mesh>{}, type_list<Placements...>{});
    else put_list(out, type_list<Placements...>{});
    out.push_back(')');
  }
};
}  // namespace detail

template <class Element, class Shape, class... Placements>
struct written<operand<Element, Shape, Placements...>> : detail::written_operand<operand<Element, Shape, Placements...>> {};
template <class Element, class Shape, class... Placements>
struct fact<operand<Element, Shape, Placements...>> : detail::fact_named<"operand"> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    detail::written_operand<operand<Element, Shape, Placements...>, typename detail::mesh_said<Said>::type>::put(out);
  }
};

}  // namespace shardwise::inline v0_1
