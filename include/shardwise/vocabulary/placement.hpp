// SPDX-License-Identifier: Apache-2.0
// Placements: what one mesh axis does to a tensor, as types for users and as values for rules; and their duals.
#pragma once

#include <cstdint>

namespace shardwise {

enum class reduction : std::uint8_t { sum = 0, avg = 1, product = 2, max = 3, min = 4 };

namespace detail {
template <class P>
struct placement_of;

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
}  // namespace detail

// Equal on all ranks of the axis; so is its gradient.
struct replicate : detail::placement_queries<replicate> {};
// Equal on all ranks of the axis, while its gradient is partial<sum>: still to be summed. Parameters that meet sharded
// activations are reduced, which is how a missing gradient reduction becomes a compile error.
struct reduced : detail::placement_queries<reduced> {};
// Split along Dim by chunks of ceil(extent / ranks), the last ones possibly short or empty. With Block > 1 chunks are
// whole multiples of Block elements (heads), again ceil-divided.
template <int Dim, int Block = 1>
struct shard : detail::placement_queries<shard<Dim, Block>> {};
// The logical value is the reduction over the axis of the ranks' values.
template <reduction Op = reduction::sum>
struct partial : detail::placement_queries<partial<Op>> {};
// A shard whose extent the axis must divide.
template <class Shard>
struct even : detail::placement_queries<even<Shard>> {};
// Names the axis a placement is for.
template <class Axis, class Placement>
struct on {
  using axis = Axis;
  using placement = Placement;
};

enum class placement_kind : std::uint8_t { replicate = 0, reduced = 1, shard = 2, partial = 3 };

// The value form; an aggregate without padding bits, since it is part of spec.
struct placement {
  placement_kind kind = placement_kind::replicate;
  reduction op = reduction::sum;
  std::int16_t dim = 0;
  std::int32_t block = 1;

  constexpr bool operator==(const placement&) const = default;
  constexpr bool is_shard() const { return kind == placement_kind::shard; }
  constexpr bool is_shard(int d) const { return is_shard() && dim == d; }
  constexpr bool is_partial() const { return kind == placement_kind::partial; }
  constexpr bool is_replicate() const { return kind == placement_kind::replicate; }
  constexpr bool is_reduced() const { return kind == placement_kind::reduced; }
  // Every rank of the axis holds the whole, equal value.
  constexpr bool is_whole() const { return is_replicate() || is_reduced(); }
};

constexpr placement replicate_value() { return {}; }
constexpr placement reduced_value() { return {placement_kind::reduced, reduction::sum, 0, 1}; }
constexpr placement shard_value(int dim, std::int32_t block = 1) {
  return {placement_kind::shard, reduction::sum, static_cast<std::int16_t>(dim), block};
}
constexpr placement partial_value(reduction op = reduction::sum) { return {placement_kind::partial, op, 0, 1}; }

// Law: dual(dual(p)) == p for every placement but partial<avg>, whose dual is reduced up to the factor of the mean.
// Partial of product, max and min have no adjoint and stay what they are.
constexpr placement dual(placement p) {
  switch (p.kind) {
    case placement_kind::reduced: return partial_value();
    case placement_kind::partial: return p.op == reduction::sum || p.op == reduction::avg ? reduced_value() : p;
    default: return p;
  }
}

// How DTensor, which does not tell reduced from replicate, calls a placement: the gradient of a replicate and of a partial
// tensor alike is replicate there.
constexpr placement dtensor_view(placement p) { return p.is_reduced() ? replicate_value() : p; }

namespace detail {
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
template <int D, int B>
struct placement_of<shard<D, B>> {
  static constexpr placement value = shard_value(D, B);
  static constexpr bool even = false;
};
template <reduction Op>
struct placement_of<partial<Op>> {
  static constexpr placement value = partial_value(Op);
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
template <placement_kind K, reduction Op, int Dim, int Block>
struct placement_type;
template <reduction Op, int D, int B>
struct placement_type<placement_kind::replicate, Op, D, B> {
  using type = replicate;
};
template <reduction Op, int D, int B>
struct placement_type<placement_kind::reduced, Op, D, B> {
  using type = reduced;
};
template <reduction Op, int D, int B>
struct placement_type<placement_kind::shard, Op, D, B> {
  using type = shard<D, B>;
};
template <reduction Op, int D, int B>
struct placement_type<placement_kind::partial, Op, D, B> {
  using type = partial<Op>;
};
}  // namespace detail

template <class P>
inline constexpr placement placement_v = detail::placement_of<P>::value;
template <class P>
using dual_t = typename detail::dual_of<P>::type;

}  // namespace shardwise
