// SPDX-License-Identifier: Apache-2.0
// An uneven shard in storage of full chunks: (10, 257, 160) over two ranks, summed and scattered along the middle dim.
#include <doctest/doctest.h>

#include <both_ways.hpp>

namespace {

using namespace test;
using sw::transition;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using world = sw::placed_mesh<mesh, 1, 3>;  // the ranks that the seed gives the mesh
using R = sw::replicate;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;
using whole = sw::shape<10, 257, 160>;

// The ranks' summands: blocks of the whole shape, side by side.
using blocks = sw::dtensor_of<float, sw::shape<20, 257, 160>, mesh, S<0>>;

struct claim_partial {
  constexpr auto operator()(const auto& x) const { return sw::from_local<whole, P>(x); }
};
struct scatter_padded {
  constexpr auto operator()(const auto& x) const { return sw::redistribute_padded<tp, S<1>>(claim_partial{}(x)); }
};
struct scatter_dense {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<tp, S<1>>(claim_partial{}(x)); }
};
// What the ranks do with their own blocks, told apart so that gradients are: scaled, and turned so that the cotangent
// comes back turned too.
struct scatter_to_local {
  constexpr auto operator()(const auto& x) const { return sw::to_local(scatter_padded{}(x)); }
};
struct scatter_turned {
  constexpr auto operator()(const auto& x, const auto& factor) const {
    return sw::permute<2, 0, 1>(sw::to_local(scatter_padded{}(x))) * factor;
  }
};

// Small integers, so that sums are exact.
std::vector<float> summand(int rank) {
  std::vector<float> v(10 * 257 * 160);
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>((i * 13 + static_cast<std::size_t>(rank) * 5) % 31) - 15;
  return v;
}

constexpr bool has_strides(const sw::spec& s, std::int64_t a, std::int64_t b, std::int64_t c) {
  return s.stride[0] == a && s.stride[1] == b && s.stride[2] == c;
}
constexpr bool has_extents(const sw::spec& s, std::int64_t a, std::int64_t b, std::int64_t c) {
  return s.rank == 3 && s.extent[0] == a && s.extent[1] == b && s.extent[2] == c;
}

using padded = function_of<scatter_padded, blocks>;
using dense = function_of<scatter_dense, blocks>;
template <class Program>
constexpr sw::spec out_of = Program::program.spec_of(Program::program.outputs[0]);

}  // namespace

TEST_CASE("dtensor compile: test_dtensor_partial_placement_redistribute_unbalanced_correct_strides") {
  static_assert(world::coordinate(1).value()[0] == 0 && world::coordinate(3).value()[0] == 1 && !world::coordinate(0));
  constexpr sw::spec claimed = out_of<function_of<claim_partial, blocks>>;
  static_assert(claimed.place[0] == sw::partial_value() && has_extents(claimed, 10, 257, 160) &&
                has_strides(claimed, 41120, 160, 1));
  static_assert(out_of<dense>.place[0] == sw::shard_value(1) && has_extents(out_of<dense>, 10, 257, 160) &&
                has_strides(out_of<dense>, 41120, 160, 1));
  static_assert(out_of<padded>.place[0] == sw::shard_value(1) && has_extents(out_of<padded>, 10, 257, 160));
  // the logical strides are those of the padded tensor: whoever needs dense blocks sees it and copies
  static_assert(has_strides(out_of<padded>, 2 * 20640, 160, 1) && !sw::is_contiguous(out_of<padded>));
  static_assert(collectives_of<padded>() == in_order(transition::reduce_scatter));
  with_and_without_peers<mesh>([](auto& rank) {
    sw::eager on(rank);
    const int world_rank = world::ranks[static_cast<std::size_t>(rank.index())];
    const auto x = blocks::from_local(on, summand(rank.index()));
    const auto [y] = both_ways<scatter_padded>(rank, x);
    const auto& l = y.to_local().layout;
    CHECK(l.ext[0] == 10);
    CHECK(l.ext[1] == (world_rank == 3 ? 128 : 129));
    CHECK(l.ext[2] == 160);
    CHECK(l.str[0] == 20640);
    CHECK(l.str[1] == 160);
    CHECK(l.str[2] == 1);
    CHECK(l.origin[1] == (world_rank == 3 ? 129 : 0));
    // the values: sums of the ranks' summands, the same as without padding, where blocks are dense
    const auto [z] = both_ways<scatter_dense>(rank, x);
    CHECK(z.to_local().layout.str[0] == (world_rank == 3 ? 20480 : 20640));
    CHECK(values_of(z.to_local()) == values_of(y.to_local()));
    const std::vector<float> a = summand(found_at(rank, 0)), b = summand(found_at(rank, 1));
    bool right = true;
    for (std::int64_t i = 0; i < l.ext[0]; ++i)
      for (std::int64_t j = 0; j < l.ext[1]; ++j)
        for (std::int64_t k = 0; k < l.ext[2]; ++k) {
          const auto at = static_cast<std::size_t>((i * 257 + l.origin[1] + j) * 160 + k);
          right = right && y.to_local()(i, j, k) == a[at] + b[at];
        }
    CHECK(right);
    CHECK(values_of(sw::contiguous(y).full_tensor().to_local()).size() == 10 * 257 * 160);
  });
}

TEST_CASE("dtensor compile: test_dtensor_contiguous_dtensor_noncontiguous_local_as_tangent") {
  using both = gradient_of<scatter_to_local, sw::wrt<0>, blocks>;
  // the gradient of a scatter is a gather, and is not divided by the number of ranks
  static_assert(collectives_of<both>() == in_order(transition::reduce_scatter, transition::all_gather));
  static_assert(both::program.spec_of(both::program.outputs[1]) == blocks::sp);
  using factor_type = sw::dtensor_of<float, sw::shape<160, 10, 257>, mesh, S<2>>;
  with_and_without_peers<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = blocks::from_local(on, summand(rank.index()));
    const auto [value, dx] = gradients_both_ways<scatter_to_local, 0>(rank, x);
    CHECK(value.to_local().layout.str[0] == 20640);
    // the row that this rank finds at row j: its own where it stands in for the other rank, none (-1) past its end
    const auto row = [&](std::int64_t j) -> std::int64_t {
      const int owner = j < 129 ? 0 : 1, holder = found_at(rank, owner);
      const std::int64_t at = j - 129 * owner, held = holder == 0 ? 129 : 128;
      return at < held ? 129 * holder + at : -1;
    };
    bool ones = dx.to_local().data.size() == 10 * 257 * 160;
    for (std::int64_t i = 0; i < 10; ++i)
      for (std::int64_t j = 0; j < 257; ++j) ones = ones && dx.to_local()(i, j, 7) == (row(j) < 0 ? 0 : 1);
    CHECK(ones);
    // a cotangent that is not stored densely, and differs from rank to rank
    std::vector<float> f(160 * 10 * 257);
    for (std::size_t i = 0; i < f.size(); ++i) f[i] = static_cast<float>(i % 19) - 9;
    const auto factor = factor_type::distribute(on, f);
    const auto [turned, dturned] = gradients_both_ways<scatter_turned, 0>(rank, x, factor);
    bool right = true;
    for (std::int64_t i = 0; i < 10; ++i)
      for (std::int64_t j = 0; j < 257; ++j)
        for (std::int64_t k = 0; k < 160; ++k)
          right = right &&
                  dturned.to_local()(i, j, k) == (row(j) < 0 ? 0 : f[static_cast<std::size_t>((k * 10 + i) * 257 + row(j))]);
    CHECK(right);
  });
}
