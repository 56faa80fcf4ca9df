// SPDX-License-Identifier: Apache-2.0
// Laws of submeshes: groups cut the mesh into equal parts, in the order of the submesh's ranks, which is what flattening
// them into one axis keeps; a mesh on some ranks of a world answers for those and for no others.

#include <type_traits>

#include <shardwise/vocabulary/submesh.hpp>

namespace sw = shardwise;

namespace {

template <int Size, int Name = 0>
struct ax : sw::axis<Size> {};

// Every rank is in its own group, at the place that its coordinates on A give; members have one group; and they agree with
// the rank on all other axes.
template <class Mesh, class... A>
constexpr bool groups_are_lawful() {
  using sub = sw::submesh<Mesh, A...>;
  constexpr int at[] = {Mesh::template index_of<A>...};
  for (int rank = 0; rank < Mesh::size; ++rank) {
    const auto g = Mesh::template group<A...>(rank);
    if (static_cast<int>(g.size()) != sub::size) return false;
    const auto c = Mesh::coordinate(rank);
    std::array<int, sw::max_axes> own{};
    for (std::size_t k = 0; k < sizeof...(A); ++k) own[k] = c[static_cast<std::size_t>(at[k])];
    if (g[static_cast<std::size_t>(sub::rank_of(own))] != rank) return false;
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (i > 0 && g[i - 1] >= g[i]) return false;  // row-major order is ascending order
      if (Mesh::template group<A...>(g[i]) != g) return false;
      const auto other = Mesh::coordinate(g[i]);
      for (int a = 0; a < Mesh::axes; ++a)
        if (((Mesh::template index_of<A> != a) && ...) &&
            other[static_cast<std::size_t>(a)] != c[static_cast<std::size_t>(a)])
          return false;
    }
  }
  return true;
}
using dp = ax<2>;
using cp = ax<3>;
using tp = ax<2, 1>;
using one = ax<1>;
using cube = sw::mesh<dp, cp, tp>;
static_assert(groups_are_lawful<cube, dp>() && groups_are_lawful<cube, cp>() && groups_are_lawful<cube, tp>());
static_assert(groups_are_lawful<cube, dp, cp>() && groups_are_lawful<cube, dp, tp>() && groups_are_lawful<cube, cp, tp>() &&
              groups_are_lawful<cube, dp, cp, tp>());
static_assert(groups_are_lawful<sw::mesh<ax<8>>, ax<8>>() && groups_are_lawful<sw::mesh<one>, one>());
static_assert(groups_are_lawful<sw::mesh<dp, one, cp>, one>() && groups_are_lawful<sw::mesh<dp, one, cp>, dp, cp>());

// the mesh of one's own axes is the mesh; names tell meshes of equal sizes apart; the device stays
static_assert(std::is_same_v<sw::submesh<cube, dp, cp, tp>, cube>);
static_assert(std::is_same_v<sw::submesh<cube, dp, tp>, sw::mesh<dp, tp>>);
static_assert(!std::is_same_v<sw::submesh<cube, dp>, sw::submesh<cube, tp>>);
static_assert(std::is_same_v<sw::submesh<sw::mesh<sw::on_cuda, dp, tp>, tp>, sw::mesh<sw::on_cuda, tp>>);
static_assert(std::is_same_v<sw::submesh<sw::submesh<cube, dp, tp>, tp>, sw::submesh<cube, tp>>);

// flattened: as many ranks; again under the same name, the same mesh
struct dp_cp : sw::axis<6> {};
using flat = sw::flattened<cube, dp_cp, dp, cp>;
static_assert(std::is_same_v<flat, sw::mesh<dp_cp>> && flat::size == sw::submesh<cube, dp, cp>::size);
static_assert(std::is_same_v<sw::flattened<flat, dp_cp, dp_cp>, flat>);
static_assert(std::is_same_v<sw::flattened<sw::mesh<sw::on_cuda, dp, cp>, dp_cp, dp, cp>, sw::mesh<sw::on_cuda, dp_cp>>);
static_assert(cube::group<dp, cp>(1) == std::array{1, 3, 5, 7, 9, 11});

// a mesh on ranks 5, 2, 7, 0 of a world, in that order
using placed = sw::placed_mesh<sw::mesh<dp, tp>, 5, 2, 7, 0>;
constexpr bool places() {
  const int world[] = {5, 2, 7, 0};
  for (int r = 0; r < 4; ++r) {
    if (placed::rank_in_mesh(world[r]) != r) return false;
    if (*placed::coordinate(world[r]) != sw::mesh<dp, tp>::coordinate(r)) return false;
  }
  for (int outside : {-1, 1, 3, 4, 6, 8, 100})
    if (placed::rank_in_mesh(outside) || placed::coordinate(outside) || placed::group<tp>(outside)) return false;
  return true;
}
static_assert(places());
static_assert(*placed::group<tp>(5) == std::array{5, 2} && *placed::group<dp>(0) == std::array{2, 0});

}  // namespace
