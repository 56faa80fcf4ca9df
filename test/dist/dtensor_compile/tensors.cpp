// SPDX-License-Identifier: Apache-2.0
// Placements, meshes and tensors answer questions about themselves while compiling, at once and in traced functions.
#include <doctest/doctest.h>

#include <both_ways.hpp>

namespace {

using namespace test;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;
template <class Shape, class Placement>
using tensor = sw::dtensor_of<float, Shape, mesh, Placement>;

using numbers = std::vector<float>;

// --- placements -----------------------------------------------------------------------------------------------------

// As the seed counts: shards 2 for each of four questions, replicate 1, partial 3.
template <class Placement>
constexpr int score() {
  int x = 0;
  if (Placement::is_shard()) x += 2;
  if (Placement::is_shard(0)) x += 2;
  if (Placement::is_shard(/*dim=*/0)) x += 2;
  if (sw::placement_v<Placement>.is_shard()) x += 2;  // the value form
  if (Placement::is_replicate()) x += 1;
  if (Placement::is_partial()) x += 3;
  return x;
}
static_assert(score<S<0>>() == 8 && score<R>() == 1 && score<P>() == 3);
static_assert(!S<0>::is_shard(1) && S<1>::is_shard(1) && score<S<1>>() == 4);
static_assert(U::is_reduced() && !U::is_replicate() && U::is_whole() && R::is_whole() && !P::is_whole());

// The same questions to a tensor's placement, where tracing asks them.
struct scored {
  template <class X>
  constexpr auto operator()(const X& x) const {
    constexpr sw::placement p = sw::placement_on<X, tp>;
    constexpr int n =
        (p.is_shard() ? 4 : 0) + (p.is_shard(0) ? 4 : 0) + (p.is_replicate() ? 1 : 0) + (p.is_partial() ? 3 : 0);
    return x * n;
  }
};

template <class Placement>
void check_score() {
  with_and_without_peers<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<sw::shape<4, 2>, Placement>::ones(on);
    const auto [y] = both_ways<scored>(rank, x);
    static_assert(decltype(y)::sp == decltype(x)::sp);
    // a partial tensor's ones are rank 0's: rank 1 alone finds zeros everywhere, rank 0 alone finds them twice
    const float ones =
        !Placement::is_partial() ? 1.0F : static_cast<float>((found_at(rank, 0) == 0) + (found_at(rank, 1) == 0));
    for (const float v : y.full_tensor().to_local().data) CHECK(v == ones * static_cast<float>(score<Placement>()));
  });
}

// --- meshes ---------------------------------------------------------------------------------------------------------

static_assert(mesh::size + mesh::size_of<tp> + mesh::sizes[0] == 6);
static_assert(mesh::coordinate(0)[0] == 0 && mesh::coordinate(1)[0] == 1);
static_assert(mesh::group<tp>(0) == std::array{0, 1} && mesh::group<tp>(1) == std::array{0, 1});

using odd = sw::placed_mesh<mesh, 1, 3>;  // two ranks of a larger world
static_assert(odd::coordinate(3).value()[0] == 1 && odd::coordinate(1).value()[0] == 0);
static_assert(!odd::coordinate(0) && !odd::coordinate(2) && !odd::rank_in_mesh(4));
static_assert(odd::group<tp>(3).value() == std::array{1, 3} && !odd::group<tp>(2));

struct dp : sw::axis<2> {};
struct four : sw::axis<4> {};
using grid = sw::mesh<dp, four>;
static_assert(grid::group<four>(2) == std::array{0, 1, 2, 3} && grid::group<dp>(2) == std::array{2, 6} &&
              grid::group<dp>(6) == std::array{2, 6});
static_assert(std::is_same_v<sw::submesh<grid, four>, sw::mesh<four>> && std::is_same_v<sw::submesh<grid, dp, four>, grid>);

struct cp : sw::axis<2> {};
using cube = sw::mesh<dp, cp, tp>;
struct dp_cp : sw::axis<4> {};
static_assert(cube::group<dp, cp>(0) == std::array{0, 2, 4, 6} && cube::group<dp, cp>(1) == std::array{1, 3, 5, 7});
static_assert(cube::group<dp, tp>(2) == std::array{2, 3, 6, 7});
static_assert(std::is_same_v<sw::flattened<cube, dp_cp, dp, cp>, sw::mesh<dp_cp>>);
static_assert(std::is_same_v<sw::flattened<mesh, tp, tp>, mesh>);
static_assert(std::is_same_v<sw::submesh<sw::mesh<sw::on_cuda, dp, tp>, tp>, sw::mesh<sw::on_cuda, tp>>);

// x + size() + size(0) + size(mesh_dim=0)
struct plus_sizes {
  template <class X>
  constexpr auto operator()(const X& x) const {
    using m = typename X::mesh_type;
    return x + (m::size + m::template size_of<tp> + m::sizes[0]);
  }
};

struct on_device {
  template <class X>
  constexpr auto operator()(const X& x) const {
    if constexpr (sw::device_of<X> == sw::device_kind::cuda) return x + 1;
    else return x + 2;
  }
};

// --- tensors --------------------------------------------------------------------------------------------------------

struct identity {
  constexpr auto operator()(const auto& x) const { return x; }
};

struct square_plus_two {
  constexpr auto operator()(const auto& x) const { return x * x + 2; }
};

// Asks the intermediate where it is; a branch not taken need not compile for it.
struct asks_intermediate {
  constexpr auto operator()(const auto& x) const {
    const auto twice = x * 2;
    if constexpr (sw::placement_on<decltype(twice), tp>.is_shard()) return sw::to_local(twice) + 2;
    else return sw::softmax(twice);
  }
};

}  // namespace

TEST_CASE("dtensor compile: test_placement_compile") {
  check_score<S<0>>();
  check_score<S<1>>();
  check_score<R>();
  check_score<P>();
}

TEST_CASE("dtensor compile: test_device_mesh_compile") {
  with_and_without_peers<mesh>([](auto& rank) {
    CHECK(mesh::coordinate(rank.index())[0] == rank.coordinate(0));
    CHECK(mesh::group<tp>(rank.index())[static_cast<unsigned>(rank.coordinate(0))] == rank.index());
    sw::eager on(rank);
    const auto x = tensor<sw::shape<2>, R>::ones(on);
    const auto [y] = both_ways<plus_sizes>(rank, x);
    CHECK(values_of(y.to_local()) == numbers{7, 7});
  });
}

TEST_CASE("dtensor compile: test_fakify_dtensor") {
  with_and_without_peers<mesh>([](auto& rank) {
    sw::eager on(rank);
    using type = tensor<sw::shape<2>, S<0>>;  // one element a rank
    const auto x = type::from_local(on, numbers{3.5F + static_cast<float>(rank.index())});
    const auto [y] = both_ways<identity>(rank, x);
    using rank_type = std::remove_reference_t<decltype(rank)>;
    static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, type::on_rank<rank_type>>);
    CHECK(y.shares_storage_with(x));
    CHECK(y.to_local().layout.ext[0] == 1);
    CHECK(values_of(y.full_tensor().to_local()) ==
          numbers{3.5F + static_cast<float>(found_at(rank, 0)), 3.5F + static_cast<float>(found_at(rank, 1))});
    using program = function_of<identity, type>;
    static_assert(program::program.node_count == 1 && program::program.spec_of(program::program.outputs[0]) == type::sp);
    CHECK(sw::to_text(program::program) == "%input = input() (2) [shard<0>]\nreturn %input\n");
  });
}

TEST_CASE("dtensor compile: test_dynamo_dtensor") {
  with_and_without_peers<mesh>([](auto& rank) {
    sw::eager on(rank);
    using type = tensor<sw::shape<2>, S<0>>;
    const float own = 1.25F + static_cast<float>(rank.index());
    const auto x = type::from_local(on, numbers{own});
    const auto [y] = both_ways<square_plus_two>(rank, x);
    static_assert(decltype(y)::sp == type::sp);
    CHECK(values_of(y.to_local()) == numbers{own * own + 2});
    using program = function_of<square_plus_two, type>;
    static_assert(program::traffic.collectives == 0 && program::comm_bytes<tp> == 0);
    // d/dx (x x + 2) = 2x, placed as x
    const auto [value, dx] = gradients_both_ways<square_plus_two, 0>(rank, x);
    static_assert(decltype(dx)::sp == type::sp);
    CHECK(values_of(dx.to_local()) == numbers{2 * own});
  });
}

TEST_CASE("dtensor compile: test_dtensor_attribute_access_on_intermediate") {
  with_and_without_peers<mesh>([](auto& rank) {
    sw::eager on(rank);
    using type = tensor<sw::shape<8>, S<0>>;
    const auto x = type::from_local(on, numbers{1, 1, 1, 1});
    const auto [y] = both_ways<asks_intermediate>(rank, x);
    CHECK(values_of(y.to_local()) == numbers{4, 4, 4, 4});
    const auto [z] = both_ways<asks_intermediate>(rank, tensor<sw::shape<4>, R>::ones(on));
    CHECK(values_of(z.to_local()) == numbers{0.25F, 0.25F, 0.25F, 0.25F});
    using program = function_of<asks_intermediate, type>;
    static_assert(count_of<program>(sw::op_code::softmax) == 0 && count_of<program>(sw::op_code::relabel) == 1);
  });
}

TEST_CASE("dtensor compile: test_dtensor_dynamo_device_mesh_attrs") {
  with_and_without_peers<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<sw::shape<8, 4>, S<0>>::ones(on);
    const auto [y] = both_ways<on_device>(rank, x);
    for (const float v : y.to_local().data) CHECK(v == 3);
  });
  // traced for a mesh of GPUs, which this process need not have: the other branch
  using gpus = sw::mesh<sw::on_cuda, tp>;
  using on_gpus = sw::function_step<on_device, gpus, sw::inputs<sw::input_tensor<float, sw::shape<8, 4>, S<0>>>>;
  constexpr auto added = [](const auto& g) {
    for (int i = 0; i < g.node_count; ++i)
      if (g.nodes[i].op == sw::op_code::fill) return g.nodes[i].f;
    return 0.0;
  };
  static_assert(added(on_gpus::program) == 1);
  static_assert(added(function_of<on_device, tensor<sw::shape<8, 4>, S<0>>>::program) == 2);
}
