// SPDX-License-Identifier: Apache-2.0
// Placements: what one mesh axis does to a tensor, as types for users and as values for rules; and their duals.
#pragma once

#include <cstdint>
#include <type_traits>

#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/dyn.hpp>

namespace shardwise::inline v0_1 {

// norm: ranks hold norms of their elements, and the whole is the norm of these; see partial_norm.
enum class reduction : std::uint8_t { sum = 0, avg = 1, product = 2, max = 3, min = 4, norm = 5 };

namespace detail {
template <class P>
struct placement_of;  // below; of what is no placement, a sentence

// What a placement answers, as a type; its value form answers the same.
template <class P>
struct placement_queries {
  static constexpr bool is_shard() { return placement_of<P>::value.is_shard(); }
  static constexpr bool is_shard(int dim) { return placement_of<P>::value.is_shard(dim); }
  static constexpr bool is_partial() { return placement_of<P>::value.is_partial(); }
  static constexpr bool is_replicate() { return placement_of<P>::value.is_replicate(); }
  static constexpr bool is_reduced() { return placement_of<P>::value.is_reduced(); }
  static constexpr bool is_whole() { return placement_of<P>::value.is_whole(); }
};
template <class P>
inline constexpr bool is_placement = std::is_convertible_v<const P*, const placement_queries<P>*>;

// The dim of shard<>, which is none.
inline constexpr int no_dim = -32768;
}  // namespace detail

// Equal on all ranks of the axis; so is its gradient.
struct replicate : detail::placement_queries<replicate> {};
// Equal on all ranks of the axis, while its gradient is partial<sum>: still to be summed. Parameters that meet sharded
// activations are reduced, which is how a missing gradient reduction becomes a compile error.
struct reduced : detail::placement_queries<reduced> {};
// Split along Dim by chunks of ceil(extent / ranks), the last ones possibly short or empty. With Block > 1 chunks are
// whole multiples of Block elements (heads), again ceil-divided. A Block may be a run-time size that is a factor of the extent, as
// what reshape makes of a sharded batch before a run-time length has: spelled as in shape<...>.
template <int Dim = detail::no_dim, std::int64_t Block = 1>
struct shard : detail::placement_queries<shard<Dim, Block>> {};
// A shard of an axis that splits Dim after some later axes of the mesh have, instead of before them: data parallel shards
// of tensor parallel shards. Factor is the product of those later axes' sizes. On a mesh of (2, 2) eight elements are
// 01 23 45 67 under (shard<0>, shard<0>) and 01 45 23 67 under (strided_shard<0, 2>, shard<0>), by rank. With Factor 1
// it is shard<Dim>. As DTensor's _StridedShard, but that every rank's block is an interval, whatever the extent.
template <int Dim, int Factor>
struct strided_shard : detail::placement_queries<strided_shard<Dim, Factor>> {};
// The logical value is the reduction over the axis of the ranks' values.
template <reduction Op = reduction::sum>
struct partial : detail::placement_queries<partial<Op>> {};
// The ranks' values are norms, and the logical value is (sum |x|^P)^(1/P) over the axis, for a whole P from 1. The maximum
// norm is partial<reduction::max>. It has no adjoint: for a gradient sum the powers, and take the root of the sum.
template <int P>
struct partial_norm : detail::placement_queries<partial_norm<P>> {};
// A shard whose extent the axis must divide.
template <class Shard>
struct even : detail::placement_queries<even<Shard>> {};
// Names the axis a placement is for.
template <class Axis, class Placement>
struct on {
  static constexpr bool in_order = detail::is_axis<Axis> && detail::is_placement<Placement>;
  static_assert(raise<(in_order ? problem::none : problem::axis_then_placement), Axis, Placement>::ok);
  using axis = std::conditional_t<in_order, Axis, void>;  // of none, nothing more is said
  using placement = std::conditional_t<in_order, Placement, replicate>;
};

// The last two are shards whose blocks overlap, by what windows that slide along the dim read; only functions of windows place tensors
// so (graph/functions/halo.hpp), between an exchange of the overlaps and their operation. With windows numbered by where they stand,
// `factor` elements apart, a window t reads elements from t * factor - before to t * factor + behind. Both cut by rank as shards do:
// windows:  a rank holds all that its share of `block` windows reads;
// readers:  the dim numbers windows, and a rank holds all that read any of its share of `block` elements.
enum class placement_kind : std::uint8_t { replicate = 0, reduced = 1, shard = 2, partial = 3, windows = 4, readers = 5 };

// The largest that the fields hold.
inline constexpr int max_factor = 255, max_order = 32767, max_halo = 127;
inline constexpr std::int64_t max_block = 2147483647, max_windows = 65535;

// The value form; an aggregate without padding bits, since it is part of spec. A field that a kind has no use for holds what
// its initialiser says, so that equal placements are equal bytes.
struct placement {
  placement_kind kind = placement_kind::replicate;
  reduction op = reduction::sum;  // of a partial
  std::int8_t dim = 0;            // of a shard, as are the next two
  std::uint8_t factor = 1;        // above 1, later axes of that many parts split the dim before; 0 fits no mesh
  std::int32_t block = 1;
  std::uint16_t block_sizes = 0;  // of a shard: the run-time sizes that the block is a product of, a bit for each
  std::uint16_t more = 0;         // of a norm its order, from 1; of overlapping shards before and behind, eight bits each

  constexpr int order() const { return more; }
  constexpr int before() const { return static_cast<std::int8_t>(more & 255); }
  constexpr int behind() const { return static_cast<std::int8_t>(more >> 8); }
  constexpr bool operator==(const placement&) const = default;
  constexpr bool is_shard() const { return kind == placement_kind::shard; }
  constexpr bool is_shard(int d) const { return is_shard() && dim == d; }
  // A shard that later axes split before this one.
  constexpr bool is_strided() const { return is_shard() && factor != 1; }
  constexpr bool is_norm() const { return is_partial() && op == reduction::norm; }
  // Of two shards: equal but for the dim.
  constexpr bool splits_like(const placement& p) const {
    return factor == p.factor && block == p.block && block_sizes == p.block_sizes;
  }
  constexpr bool overlaps() const { return kind >= placement_kind::windows; }
  constexpr bool overlaps(int d) const { return overlaps() && dim == d; }
  constexpr bool is_partial() const { return kind == placement_kind::partial; }
  constexpr bool is_replicate() const { return kind == placement_kind::replicate; }
  constexpr bool is_reduced() const { return kind == placement_kind::reduced; }
  // Every rank of the axis holds the whole, equal value.
  constexpr bool is_whole() const { return is_replicate() || is_reduced(); }
};

constexpr placement replicate_value() { return {}; }
// The shard of another dim that splits as `p` does.
constexpr placement split_along(int dim, placement p) {
  p.dim = static_cast<std::int8_t>(dim);
  return p;
}
constexpr placement reduced_value() { return {.kind = placement_kind::reduced}; }
// A dim that no tensor has stays one.
constexpr placement shard_value(int dim, std::int32_t block = 1) {
  const int kept = dim > 127 ? 127 : dim < -127 ? -127 : dim;
  return {.kind = placement_kind::shard, .dim = static_cast<std::int8_t>(kept), .block = block};
}
// A block as it is spelled in shard<Dim, Block>; one that the field does not hold becomes 0, which check_placements refuses.
constexpr placement spelled_shard_value(int dim, std::int64_t block) {
  const std::int64_t bound = bound_of(block);
  placement p = shard_value(dim, bound > max_block ? 0 : static_cast<std::int32_t>(bound));
  p.block_sizes = static_cast<std::uint16_t>(sizes_in(block));
  return p;
}
// A factor that the field does not hold, or that no mesh can ask for, becomes 0, which check_placements refuses.
constexpr placement strided_shard_value(int dim, int factor, std::int32_t block = 1) {
  placement p = shard_value(dim, block);
  p.factor = static_cast<std::uint8_t>(factor < 1 || factor > max_factor ? 0 : factor);
  return p;
}
// A norm without its order, which is 0 then, or of one that the field does not hold is refused by check_placements.
constexpr placement partial_value(reduction op = reduction::sum) { return {.kind = placement_kind::partial, .op = op}; }
constexpr placement partial_norm_value(int order) {
  return {.kind = placement_kind::partial,
          .op = reduction::norm,
          .more = static_cast<std::uint16_t>(order < 0 || order > max_order ? 0 : order)};
}
// windows or readers of `count` windows or elements.
constexpr placement halo_value(placement_kind kind, int dim, int step, int before, int behind, std::int64_t count) {
  return {.kind = kind,
          .dim = static_cast<std::int8_t>(dim),
          .factor = static_cast<std::uint8_t>(step),
          .block = static_cast<std::int32_t>(count),
          .more = static_cast<std::uint16_t>((before & 255) | (behind & 255) << 8)};
}

// Law: dual(dual(p)) == p for every placement but partial<avg>, whose dual is reduced up to the factor of the mean: the
// cotangent of a rank's block, equal on all ranks, is the whole's over their number; and overlapping shards, whose cotangents are
// complete where the elements have their owners.
// Partial of product, max, min and norms have no adjoint and stay what they are.
constexpr placement dual(placement p) {
  switch (p.kind) {
    case placement_kind::reduced: return partial_value();
    case placement_kind::partial: return p.op == reduction::sum || p.op == reduction::avg ? reduced_value() : p;
    case placement_kind::windows:
    case placement_kind::readers: return shard_value(p.dim);
    case placement_kind::replicate:
    case placement_kind::shard: break;
  }
  return p;
}

// How DTensor, which does not tell reduced from replicate, calls a placement: the gradient of a replicate and of a partial
// tensor alike is replicate there.
constexpr placement dtensor_view(placement p) { return p.is_reduced() ? replicate_value() : p; }

namespace detail {
template <class P>
struct placement_of {
  static_assert(raise<problem::not_a_placement, P>::ok);
  static constexpr placement value{};
  static constexpr bool even = false;
};
template <>
struct placement_of<replicate> {
  static constexpr placement value = replicate_value();
  static constexpr bool even = false;
};
template <>
struct placement_of<reduced> {
  static constexpr placement value = reduced_value();
  static constexpr bool even = false;
};
template <int D, std::int64_t B>
struct placement_of<shard<D, B>> {
  static constexpr placement value = spelled_shard_value(D, B);
  static constexpr bool even = false;
};
template <std::int64_t B>
struct placement_of<shard<no_dim, B>> {
  static_assert(raise<problem::shard_dim_missing, shard<no_dim, B>>::ok);
  static constexpr placement value{};
  static constexpr bool even = false;
};
template <reduction Op>
struct placement_of<partial<Op>> {
  static constexpr placement value = partial_value(Op);
  static constexpr bool even = false;
};
template <int D, int F>
struct placement_of<strided_shard<D, F>> {
  static constexpr placement value = strided_shard_value(D, F);
  static constexpr bool even = false;
};
template <int P>
struct placement_of<partial_norm<P>> {
  static constexpr placement value = partial_norm_value(P);
  static constexpr bool even = false;
};
template <class S>
struct placement_of<even<S>> {
  static constexpr placement value = placement_of<S>::value;
  static constexpr bool even = true;
};

template <class P>
struct dual_of {
  using type = P;
};
template <>
struct dual_of<reduced> {
  using type = partial<reduction::sum>;
};
template <>
struct dual_of<partial<reduction::sum>> {
  using type = reduced;
};
template <>
struct dual_of<partial<reduction::avg>> {
  using type = reduced;
};

// Back from value to type, for error messages.
template <placement P>
struct placement_type;
template <placement P>
  requires(P.is_replicate())
struct placement_type<P> {
  using type = replicate;
};
template <placement P>
  requires(P.is_reduced())
struct placement_type<P> {
  using type = reduced;
};
template <placement P>
  requires(P.is_shard() && !P.is_strided())
struct placement_type<P> {
  using type = shard<P.dim, spelled_extent(P.block, P.block_sizes)>;
};
template <placement P>
  requires(P.is_strided())
struct placement_type<P> {
  using type = strided_shard<P.dim, P.factor>;
};
template <int Dim, int Before, int Behind>
struct halo {};
template <placement P>
  requires(P.overlaps())
struct placement_type<P> {
  using type = halo<P.dim, P.before(), P.behind()>;
};
template <placement P>
  requires(P.is_partial() && !P.is_norm())
struct placement_type<P> {
  using type = partial<P.op>;
};
template <placement P>
  requires(P.is_norm())
struct placement_type<P> {
  using type = partial_norm<P.order()>;
};
}  // namespace detail

// Placements in messages, without the arguments that are left out.
template <int D, std::int64_t B>
struct written<shard<D, B>> {
  template <class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, "shard<");
    if (D != detail::no_dim) text::put(out, std::int64_t{D});
    if (B != 1) {
      text::put(out, ", ");
      detail::put_extent(out, B);
    }
    out.push_back('>');
  }
};
template <reduction Op>
struct written<partial<Op>> {
  template <class Sink>
  static constexpr void put(Sink& out) {
    constexpr std::string_view name[] = {
        "", "reduction::avg", "reduction::product", "reduction::max", "reduction::min", "reduction::norm"};
    text::put(out, "partial<");
    text::put(out, name[static_cast<unsigned>(Op)]);
    out.push_back('>');
  }
};
template <class P>
  requires detail::is_placement<P>
struct fact<P> : detail::type_fact<"placement", P> {};
template <class Axis, class P>
struct fact<on<Axis, P>> : detail::type_fact<"placement", on<Axis, P>> {};

template <class P>
inline constexpr placement placement_v = detail::placement_of<P>::value;
template <class P>
using dual_t = typename detail::dual_of<P>::type;

}  // namespace shardwise::inline v0_1
