// SPDX-License-Identifier: Apache-2.0
// Laws of specs: shards tile a dim in rank order, equal splits have one spelling, duality changes placements alone.

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/operand.hpp>

namespace sw = shardwise;
using sw::interval;

namespace {

static_assert(std::has_unique_object_representations_v<sw::spec>);

template <int Size, int Name = 0>
struct ax : sw::axis<Size> {};

// --- the chunk rule --------------------------------------------------------------------------------------------------

struct piece {
  std::int64_t size, offset;
};
template <std::size_t N>
constexpr bool chunks(std::int64_t n, const piece (&expected)[N]) {
  for (std::size_t r = 0; r < N; ++r) {
    const interval v = sw::split({0, n}, 1, static_cast<int>(N), static_cast<int>(r));
    if (v.size != expected[r].size || v.begin != expected[r].offset) return false;
  }
  return true;
}
static_assert(chunks(8, {{2, 0}, {2, 2}, {2, 4}, {2, 6}}));
static_assert(chunks(5, {{2, 0}, {2, 2}, {1, 4}, {0, 5}}));
static_assert(chunks(6, {{2, 0}, {2, 2}, {2, 4}, {0, 6}}));
static_assert(chunks(7, {{2, 0}, {2, 2}, {2, 4}, {1, 6}}));
static_assert(chunks(9, {{3, 0}, {3, 3}, {3, 6}, {0, 9}}));
static_assert(chunks(10, {{3, 0}, {3, 3}, {3, 6}, {1, 9}}));
static_assert(chunks(1, {{1, 0}, {0, 1}, {0, 1}, {0, 1}}));
static_assert(chunks(4, {{2, 0}, {2, 2}, {0, 4}}));
static_assert(chunks(3, {{1, 0}, {1, 1}, {1, 2}, {0, 3}, {0, 3}, {0, 3}, {0, 3}, {0, 3}}));
static_assert(chunks(257, {{129, 0}, {128, 129}}));
static_assert(chunks(0, {{0, 0}, {0, 0}}));

// Parts tile the whole in order, each a whole number of blocks; empty parts stand at the end and begin at the extent.
constexpr bool tiles(std::int64_t n, std::int64_t block, int parts) {
  std::int64_t at = 0;
  for (int p = 0; p < parts; ++p) {
    const interval v = sw::split({0, n}, block, parts, p);
    if (v.begin != at || v.size < 0 || v.size % block != 0) return false;
    if (v.size > sw::chunk_size(n, block, parts)) return false;
    at += v.size;
  }
  return at == n;
}
constexpr bool all_tile() {
  for (std::int64_t block = 1; block <= 4; ++block)
    for (std::int64_t n = 0; n <= 6; ++n)
      for (int parts = 1; parts <= 5; ++parts)
        if (!tiles(n * block, block, parts)) return false;
  return true;
}
static_assert(all_tile());

// --- several axes on one dim -----------------------------------------------------------------------------------------

using square = sw::mesh<ax<2>, ax<2, 1>>;
constexpr sw::spec nested = sw::spec_of<float, sw::shape<5>, square, sw::shard<0>, sw::shard<0>>::value;
constexpr bool nested_is(int rank, std::int64_t size, std::int64_t offset) {
  const interval v = sw::local_interval(nested, 0, square::coordinate(rank).data());
  return v.size == size && v.begin == offset;
}
// 5 over (2, 2): 3 and 2, then 2, 1 and 1, 1: each axis splits what the one before it left
static_assert(nested_is(0, 2, 0) && nested_is(1, 1, 2) && nested_is(2, 1, 3) && nested_is(3, 1, 4));

// The ranks' parts cover every element as often as the tensor is replicated.
template <class Mesh>
constexpr bool covered(const sw::spec& s, std::int64_t copies) {
  std::int64_t total = 0;
  for (int r = 0; r < Mesh::size; ++r) total += sw::local_numel(s, Mesh::coordinate(r).data());
  return total == copies * sw::numel(s);
}
using awkward = sw::mesh<ax<3>, ax<1>, ax<4>>;
template <class... P>
constexpr sw::spec seven_by_ten = sw::spec_of<float, sw::shape<7, 10>, awkward, P...>::value;
static_assert(covered<awkward>(seven_by_ten<sw::shard<0>, sw::replicate, sw::shard<1>>, 1));
static_assert(covered<awkward>(seven_by_ten<sw::shard<1>, sw::shard<1>, sw::shard<1>>, 1));
static_assert(covered<awkward>(seven_by_ten<sw::shard<1>, sw::shard<0>, sw::reduced>, 4));
static_assert(covered<awkward>(seven_by_ten<sw::partial<>, sw::replicate, sw::shard<0>>, 3));
static_assert(covered<awkward>(seven_by_ten<sw::replicate, sw::replicate, sw::replicate>, 12));
static_assert(covered<square>(nested, 1));

// --- one spelling ----------------------------------------------------------------------------------------------------

template <std::int64_t N, int Ranks, class P>
constexpr sw::spec vector = sw::spec_of<float, sw::shape<N>, sw::mesh<ax<Ranks>>, P>::value;
static_assert(vector<12, 2, sw::shard<0, 3>> == vector<12, 2, sw::shard<0>>);      // 6 and 6 either way
static_assert(vector<64, 4, sw::shard<0, 16>> == vector<64, 4, sw::shard<0>>);     // whole heads without saying so
static_assert(!(vector<64, 3, sw::shard<0, 16>> == vector<64, 3, sw::shard<0>>));  // 32, 32, 0 against 22, 22, 20
static_assert(vector<64, 3, sw::shard<0, 16>>.place[0].block == 32);
static_assert(vector<8, 3, sw::shard<0, 2>> == vector<8, 3, sw::shard<0, 4>>);  // 4, 4, 0 either way

// Law: of all blocks of a dim, two are spelled alike exactly where they cut alike, and the spelling cuts as they do.
constexpr bool spelled_by_cuts(std::int64_t extent, int ranks) {
  std::int32_t axis[1] = {ranks};
  const auto with = [&](std::int32_t block) {
    sw::spec s = sw::empty_spec(sw::dtype::f32, 1, axis, sw::device_kind::host);
    s.rank = 1;
    s.extent[0] = extent;
    s.place[0] = sw::shard_value(0, block);
    sw::normalise(s);
    return s.place[0].block;
  };
  for (std::int32_t a = 1; a <= extent; ++a) {
    if (extent % a) continue;
    const std::int64_t cut = sw::chunk_size(extent, a, ranks);
    const std::int32_t spelled = with(a);
    if (extent % spelled || sw::chunk_size(extent, spelled, ranks) != cut || with(spelled) != spelled) return false;
    for (std::int32_t b = 1; b < a; ++b)
      if (extent % b == 0 && (spelled == with(b)) != (cut == sw::chunk_size(extent, b, ranks))) return false;
  }
  return true;
}
constexpr bool spelled_by_cuts_up_to(std::int64_t extent) {
  for (std::int64_t n = 0; n <= extent; ++n)
    for (const int ranks : {1, 2, 3, 4, 8})
      if (!spelled_by_cuts(n, ranks)) return false;
  return true;
}
static_assert(spelled_by_cuts_up_to(30));
static_assert(spelled_by_cuts(60, 7) && spelled_by_cuts(64, 3) && spelled_by_cuts(72, 5));
static_assert(vector<8, 2, sw::even<sw::shard<0>>> == vector<8, 2, sw::shard<0>>);

// by name, in any order, or by position; axes left out are replicate
using two = sw::mesh<ax<2>, ax<3>>;
static_assert(sw::spec_of<float, sw::shape<6, 6>, two, sw::on<ax<3>, sw::shard<1>>, sw::on<ax<2>, sw::shard<0>>>::value ==
              sw::spec_of<float, sw::shape<6, 6>, two, sw::shard<0>, sw::shard<1>>::value);
static_assert(sw::spec_of<float, sw::shape<6, 6>, two, sw::on<ax<3>, sw::shard<1>>>::value ==
              sw::spec_of<float, sw::shape<6, 6>, two, sw::replicate, sw::shard<1>>::value);

// Normalising again changes nothing, and moves no boundary.
constexpr bool normalise_is_sound() {
  for (int n = 1; n <= 24; ++n)
    for (int block = 1; block <= n; ++block) {
      if (n % block != 0) continue;
      sw::spec s = vector<24, 3, sw::replicate>;
      s.extent[0] = n;
      s.place[0] = sw::shard_value(0, block);
      sw::spec t = s;
      sw::normalise(t);
      sw::spec u = t;
      sw::normalise(u);
      if (!(t == u)) return false;
      for (int c = 0; c < 3; ++c)
        if (sw::local_interval(s, 0, &c).begin != sw::local_interval(t, 0, &c).begin) return false;
    }
  return true;
}
static_assert(normalise_is_sound());

// The first split of a dim has one spelling, whatever splits it further; a later split keeps its block, for the parts
// that it cuts are of several sizes; an axis of one rank splits nothing.
struct outer : sw::axis<2> {};
struct inner : sw::axis<2> {};
struct lone : sw::axis<1> {};
template <class... P>
constexpr sw::spec stacked = sw::spec_of<float, sw::shape<16>, sw::mesh<lone, outer, inner>, P...>::value;
static_assert(stacked<sw::replicate, sw::shard<0, 4>, sw::shard<0>> == stacked<sw::replicate, sw::shard<0>, sw::shard<0>>);
static_assert(stacked<sw::shard<0, 4>, sw::shard<0, 4>, sw::shard<0, 2>>.place[0].block == 1 &&
              stacked<sw::shard<0, 4>, sw::shard<0, 4>, sw::shard<0, 2>>.place[1].block == 1 &&
              stacked<sw::shard<0, 4>, sw::shard<0, 4>, sw::shard<0, 2>>.place[2].block == 2);

// --- duality, layout, messages ---------------------------------------------------------------------------------------

constexpr sw::spec mixed = seven_by_ten<sw::partial<>, sw::reduced, sw::shard<1>>;
static_assert(sw::dual(sw::dual(mixed)) == mixed);
static_assert(sw::dual(mixed) == seven_by_ten<sw::reduced, sw::partial<>, sw::shard<1>>);

static_assert(sw::is_contiguous(mixed) && sw::contiguous(mixed) == mixed && mixed.stride[0] == 10 && mixed.stride[1] == 1);
static_assert(sw::numel(mixed) == 70 && sw::numel(sw::scalar_like(mixed)) == 1 && sw::scalar_like(mixed).rank == 0);

static_assert(
    std::is_same_v<sw::operand_t<mixed>, sw::operand<float, sw::shape<7, 10>, sw::partial<>, sw::reduced, sw::shard<1>>>);

static_assert(!sw::check_placements(mixed));
static_assert([] {
  sw::spec s = mixed;
  s.place[0] = sw::shard_value(2);
  return sw::check_placements(s).what == sw::problem::shard_dim_out_of_range;
}());
static_assert([] {
  sw::spec s = mixed;
  s.place[0] = sw::shard_value(1, 3);
  return sw::check_placements(s).what == sw::problem::shard_block_does_not_divide;
}());
// a norm has an order, from 1
constexpr bool has_order(sw::placement norm) {
  sw::spec s = mixed;
  s.place[0] = norm;
  return sw::check_placements(s).what != sw::problem::norm_order;
}
static_assert(has_order(sw::partial_norm_value(1)) && has_order(sw::partial_norm_value(sw::max_order)));
static_assert(!has_order(sw::partial_norm_value(0)) && !has_order(sw::partial_norm_value(sw::max_order + 1)) &&
              !has_order(sw::partial_norm_value(-2)) && !has_order(sw::partial_value(sw::reduction::norm)));

// --- run-time extents ------------------------------------------------------------------------------------------------

constexpr sw::spec batch = sw::spec_of<float, sw::shape<sw::dyn<8>, 4>, sw::mesh<ax<2>>, sw::shard<0>>::value;
static_assert(sw::is_dyn(batch, 0) && !sw::is_dyn(batch, 1) && batch.extent[0] == 8 &&
              batch.dyn_bound == sw::dyn_bounds{{8}});
constexpr bool batch_is(std::int64_t n, std::int64_t first, std::int64_t second) {
  const int a = 0, b = 1;
  return sw::local_numel(batch, &a, sw::run_sizes(n)) == 4 * first &&
         sw::local_numel(batch, &b, sw::run_sizes(n)) == 4 * second;
}
static_assert(batch_is(8, 4, 4) && batch_is(5, 3, 2) && batch_is(1, 1, 0));

// A multiple of the product of bounds becomes that of the sizes; a size that is not given is its bound, and one that the number does
// not scale with changes nothing.
constexpr bool scales_with_sizes() {
  constexpr sw::dyn_bounds bounds{{6, 1000, 5}};
  for (unsigned sizes = 0; sizes < 8; ++sizes)
    for (std::int64_t a = -1; a <= 6; ++a)
      for (std::int64_t b = -1; b <= 5; ++b)
        for (std::int64_t multiple = 0; multiple <= 3; ++multiple) {
          std::int64_t want = multiple;
          if (sizes & 1U) want *= a < 0 ? 6 : a;
          if (sizes & 2U) want *= 7;
          if (sizes & 4U) want *= b < 0 ? 5 : b;
          const sw::run_sizes run(a, 7, b);
          if (sw::number_at(multiple * sw::product_of(bounds, sizes), sizes, bounds, run) != want) return false;
        }
  return true;
}
static_assert(scales_with_sizes());

// --- extents of one tensor given to another -----------------------------------------------------------------------------

constexpr sw::spec two_sizes =
    sw::spec_of<float, sw::shape<sw::dyn<8>, 4, sw::dyn<6, 1>>, sw::mesh<ax<2>>, sw::replicate>::value;
// A dim that is copied has its sizes and their bounds; what it was before leaves its bounds behind until they are dropped.
static_assert([] {
  sw::spec s = two_sizes;
  sw::copy_extent(s, 1, two_sizes, 2);
  const bool copied = sw::same_extent(s, 1, two_sizes, 2) && sw::dyn_sizes(s, 1) == 2U && s.extent[1] == 6;
  sw::copy_extent(s, 0, two_sizes, 1);
  const bool made_static = !sw::is_dyn(s, 0) && s.extent[0] == 4 && s.dyn_bound == sw::dyn_bounds{{8, 6}};
  sw::drop_bounds(s);
  return copied && made_static && s.dyn_bound == sw::dyn_bounds{{0, 6}} && sw::dyn_sizes(s) == 2U;
}());
// From a tensor of a size that the other has not.
static_assert([] {
  sw::spec s = batch;
  sw::copy_extent(s, 1, two_sizes, 2);
  const bool both = s.dyn_bound == sw::dyn_bounds{{8, 6}} && sw::dyn_sizes(s) == 3U && s.extent[0] == 8 && s.extent[1] == 6;
  sw::spec t = sw::spec_of<float, sw::shape<3, 4>, sw::mesh<ax<2>>, sw::shard<0>>::value;
  sw::copy_extent(t, 0, batch, 1);
  return both && t.extent[0] == 4 && t.dyn == 0 && t.dyn_bound == sw::dyn_bounds{};
}());
// Where every size is used, nothing is dropped.
static_assert([] {
  sw::spec s = two_sizes;
  sw::drop_bounds(s);
  return s == two_sizes;
}());

// --- extents whose bytes would not be counted in 64 bits ------------------------------------------------------------------------

template <std::size_t N>
constexpr bool too_many(const std::int64_t (&extents)[N]) {
  return sw::too_large(extents, static_cast<int>(N));
}
constexpr std::int64_t half = std::int64_t{1} << 28, limit = std::int64_t{1} << 57;
static_assert(!too_many({limit}) && too_many({limit + 1}) && !too_many({half, 2 * half}) && too_many({half, 2 * half, 2}));
static_assert(!too_many({half, 1, 2 * half, 1}) && too_many({half, half, 3}) && !too_many({half, half, 2}));
static_assert(!too_many({0, half}) && !too_many({half, 2 * half, 0}) && !sw::too_large(nullptr, 0));
// A run-time extent counts as its bound; what is no spelling of one is refused.
static_assert(!too_many({sw::dyn<(std::int64_t{1} << 40)>, 1 << 17}) &&
              too_many({sw::dyn<(std::int64_t{1} << 40)>, 1 << 18}));
static_assert(too_many({-(sw::max_dyn_extent << 5) - 1}));

// The type of a spec, by the class that stands behind the alias.
template <sw::spec S, class Written>
constexpr bool has_type() {  // a function: nvcc cannot write such a class into host code
  return std::is_same_v<typename sw::operand_of<S>::type, Written> && std::is_same_v<sw::operand_t<S>, Written> &&
         sw::operand_of<S>::axes == S.axes;
}
static_assert(has_type<batch, sw::operand<float, sw::shape<sw::dyn<8>, 4>, sw::shard<0>>>());
static_assert(has_type<mixed, sw::operand<float, sw::shape<7, 10>, sw::partial<>, sw::reduced, sw::shard<1>>>());

// The greatest common divisor, by trial; gcd(n, 0) is n.
constexpr bool divides_most() {
  for (std::int64_t a = 0; a <= 40; ++a)
    for (std::int64_t b = 0; b <= 40; ++b) {
      std::int64_t most = a + b;  // of a zero and a number: that one
      if (a > 0 && b > 0)
        for (most = a; a % most != 0 || b % most != 0;) --most;
      if (sw::gcd(a, b) != most) return false;
    }
  return true;
}
static_assert(divides_most() && sw::gcd(std::int64_t{1} << 50, 3 * (std::int64_t{1} << 40)) == std::int64_t{1} << 40);

}  // namespace
