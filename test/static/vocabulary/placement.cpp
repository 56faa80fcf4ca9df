// SPDX-License-Identifier: Apache-2.0
// Laws of placements: duality is an involution, types and values say the same, equal placements have one value.

#include <shardwise/vocabulary/placement.hpp>

#include <type_traits>

namespace sw = shardwise;
using sw::dual;
using sw::reduction;

namespace {

// dual of dual is the placement itself, for types and for values
template <class P>
constexpr bool is_involution =
    std::is_same_v<sw::dual_t<sw::dual_t<P>>, P> && dual(dual(sw::placement_v<P>)) == sw::placement_v<P>;
static_assert(is_involution<sw::replicate>);
static_assert(is_involution<sw::reduced>);
static_assert(is_involution<sw::shard<0>>);
static_assert(is_involution<sw::shard<4>>);
static_assert(is_involution<sw::shard<1, 16>>);
static_assert(is_involution<sw::partial<>>);
static_assert(is_involution<sw::strided_shard<1, 4>> && is_involution<sw::partial_norm<2>>);

// the dual of a type has the dual value
template <class P>
constexpr bool agrees = sw::placement_v<sw::dual_t<P>> == dual(sw::placement_v<P>);
static_assert(agrees<sw::replicate> && agrees<sw::reduced> && agrees<sw::shard<2, 3>>);
static_assert(agrees<sw::partial<>> && agrees<sw::partial<reduction::avg>>);
static_assert(agrees<sw::partial<reduction::product>> && agrees<sw::partial<reduction::max>> &&
              agrees<sw::partial<reduction::min>>);

static_assert(std::is_same_v<sw::dual_t<sw::replicate>, sw::replicate>);
static_assert(std::is_same_v<sw::dual_t<sw::reduced>, sw::partial<>>);
static_assert(std::is_same_v<sw::dual_t<sw::partial<>>, sw::reduced>);
static_assert(std::is_same_v<sw::dual_t<sw::shard<1, 16>>, sw::shard<1, 16>>);

// from type to value and back
template <class P>
constexpr bool round_trip = [] {
  constexpr sw::placement p = sw::placement_v<P>;
  return std::is_same_v<typename sw::detail::placement_type<p>::type, P>;
}();
static_assert(round_trip<sw::replicate> && round_trip<sw::reduced> && round_trip<sw::shard<3>> &&
              round_trip<sw::shard<0, 8>> && round_trip<sw::shard<0, sw::dyn<8, 3>>>);
static_assert(round_trip<sw::strided_shard<3, 2>> && round_trip<sw::strided_shard<0, sw::max_factor>>);
static_assert(round_trip<sw::partial_norm<1>> && round_trip<sw::partial_norm<sw::max_order>>);
static_assert(round_trip<sw::partial<>> && round_trip<sw::partial<reduction::avg>> &&
              round_trip<sw::partial<reduction::max>>);

// even<...> is a demand on the extent, not another placement
static_assert(sw::placement_v<sw::even<sw::shard<1>>> == sw::shard_value(1));

// exactly one predicate holds of each kind, and whole means replicate or reduced
constexpr bool classified(sw::placement p) {
  return int{p.is_shard()} + int{p.is_partial()} + int{p.is_replicate()} + int{p.is_reduced()} == 1 &&
         p.is_whole() == (p.is_replicate() || p.is_reduced());
}
static_assert(classified(sw::replicate_value()) && classified(sw::reduced_value()) && classified(sw::shard_value(2)) &&
              classified(sw::partial_value(reduction::min)) && classified(sw::strided_shard_value(2, 3)) &&
              classified(sw::partial_norm_value(2)));
static_assert(sw::strided_shard_value(2, 3).is_strided() && sw::strided_shard_value(2, 3).factor == 3 &&
              !sw::shard_value(2).is_strided() && sw::strided_shard_value(2, 1) == sw::shard_value(2));
static_assert(sw::partial_norm_value(3).is_norm() && sw::partial_norm_value(3).order() == 3 &&
              !sw::partial_value().is_norm());
static_assert(sw::strided_shard_value(2, 3) != sw::shard_value(2) &&
              sw::strided_shard_value(2, 3) != sw::strided_shard_value(2, 2) &&
              sw::partial_norm_value(1) != sw::partial_norm_value(2));
static_assert(sizeof(sw::placement) == 12);

// what a kind has no use for is as in placement{}, so that equal placements are equal bytes
constexpr bool only_its_own(sw::placement p) {
  const sw::placement none{};
  return (p.is_shard() || p.overlaps() || (p.dim == none.dim && p.factor == none.factor && p.block == none.block)) &&
         (p.is_partial() || p.op == none.op) && (p.is_norm() || p.overlaps() || p.more == none.more);
}
template <class... P>
constexpr bool only_their_own = (only_its_own(sw::placement_v<P>) && ...);
static_assert(only_their_own<sw::replicate, sw::reduced, sw::shard<3>, sw::shard<-1, 8>, sw::strided_shard<2, 1>>);
static_assert(only_their_own<sw::strided_shard<2, 9>, sw::partial<>, sw::partial<reduction::avg>, sw::partial_norm<2>>);
static_assert(only_its_own(dual(sw::reduced_value())) && only_its_own(dual(sw::partial_value())) &&
              only_its_own(dual(sw::partial_value(reduction::avg))));
static_assert(sw::shard_value(2).is_shard(2) && !sw::shard_value(2).is_shard(1));

static_assert(sw::shard_value(0) != sw::shard_value(1) && sw::shard_value(0) != sw::shard_value(0, 2));
static_assert(sw::partial_value() != sw::partial_value(reduction::max) && sw::replicate_value() != sw::reduced_value());
static_assert(sw::placement{} == sw::replicate_value());
static_assert(std::has_unique_object_representations_v<sw::placement>);

// a block as it is spelled: a number, or a product of run-time sizes; what the field does not hold is 0, no block
constexpr bool spells(std::int64_t block, std::int32_t bound, unsigned sizes) {
  const sw::placement p = sw::spelled_shard_value(2, block);
  return p.is_shard(2) && p.block == bound && p.block_sizes == sizes &&
         (sizes != 0 || bound == 0 || p == sw::shard_value(2, bound));
}
static_assert(spells(1, 1, 0) && spells(16, 16, 0) && spells(sw::max_block, sw::max_block, 0));
static_assert(spells(sw::dyn<8>, 8, 1) && spells(sw::dyn<8, 3>, 8, 8) && spells(3 * sw::dyn<8>, 24, 1) &&
              spells(sw::extent_product(sw::dyn<8>, sw::dyn<6, 2>), 48, 5));
static_assert(spells(std::int64_t{sw::max_block} + 1, 0, 0) && spells(std::int64_t{1} << 40, 0, 0));

// windows and readers keep each of their numbers apart
constexpr bool holds_halo(sw::placement_kind kind, int dim, int step, int before, int behind, std::int64_t count) {
  const sw::placement p = sw::halo_value(kind, dim, step, before, behind, count);
  return p.kind == kind && p.overlaps(dim) && !p.is_shard() && p.factor == step && p.before() == before &&
         p.behind() == behind && p.block == count && only_its_own(p);
}
static_assert(holds_halo(sw::placement_kind::windows, 2, 1, 1, 1, 9) &&
              holds_halo(sw::placement_kind::windows, 3, 2, 0, 6, 1000) &&
              holds_halo(sw::placement_kind::readers, 2, 3, 5, 0, 1) &&
              holds_halo(sw::placement_kind::readers, 0, 1, 3, 2, 7));
// before and behind may be negative: windows that begin behind their place
static_assert(sw::halo_value(sw::placement_kind::windows, 2, 1, -1, 3, 9).before() == -1 &&
              sw::halo_value(sw::placement_kind::windows, 2, 1, -1, 3, 9).behind() == 3 &&
              sw::halo_value(sw::placement_kind::windows, 2, 1, 3, -2, 9).behind() == -2);

}  // namespace
