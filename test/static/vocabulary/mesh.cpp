// SPDX-License-Identifier: Apache-2.0
// Laws of meshes: ranks and coordinates are inverse and row-major, groups along an axis partition the ranks.

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/mesh.hpp>
#include <shardwise/vocabulary/submesh.hpp>

namespace sw = shardwise;

namespace {

template <int Size, int Name = 0>
struct ax : sw::axis<Size> {};

// rank -> coordinate -> rank, coordinates in range, and counting up moves the last axis fastest
template <class Mesh>
constexpr bool row_major() {
  std::array<int, sw::max_axes> expected{};
  for (int r = 0; r < Mesh::size; ++r) {
    const auto c = Mesh::coordinate(r);
    if (c != expected || Mesh::rank_of(c) != r) return false;
    for (int a = Mesh::axes - 1; a >= 0; --a) {
      if (++expected[static_cast<unsigned>(a)] < Mesh::sizes[static_cast<unsigned>(a)]) break;
      expected[static_cast<unsigned>(a)] = 0;
    }
  }
  return true;
}

// every rank stands once in its own group, at its own coordinate; all members name the same group
template <class Mesh>
constexpr bool groups_partition() {
  for (int a = 0; a < Mesh::axes; ++a)
    for (int r = 0; r < Mesh::size; ++r) {
      const unsigned at = static_cast<unsigned>(a);
      if (Mesh::group_member(r, a, Mesh::coordinate(r)[at]) != r) return false;
      for (int k = 0; k < Mesh::sizes[at]; ++k) {
        const int m = Mesh::group_member(r, a, k);
        if (Mesh::coordinate(m)[at] != k) return false;
        for (int j = 0; j < Mesh::sizes[at]; ++j)
          if (Mesh::group_member(m, a, j) != Mesh::group_member(r, a, j)) return false;
      }
    }
  return true;
}

template <class Mesh>
constexpr bool lawful = row_major<Mesh>() && groups_partition<Mesh>();
static_assert(lawful<sw::mesh<ax<1>>>);
static_assert(lawful<sw::mesh<ax<7>>>);
static_assert(lawful<sw::mesh<ax<2>, ax<3>>>);
static_assert(lawful<sw::mesh<ax<5>, ax<1>, ax<3>>>);
static_assert(lawful<sw::mesh<ax<3>, ax<1>, ax<5>, ax<2>>>);
static_assert(lawful<sw::mesh<ax<1>, ax<1, 1>, ax<11>, ax<1, 2>>>);
static_assert(lawful<sw::mesh<sw::on_cuda, ax<2>, ax<4>>>);

using mesh = sw::mesh<ax<2>, ax<3>, ax<2, 1>>;
static_assert(mesh::axes == 3 && mesh::size == 12);
static_assert(mesh::index_of<ax<2>> == 0 && mesh::index_of<ax<3>> == 1 && mesh::index_of<ax<2, 1>> == 2);
static_assert(mesh::has<ax<3>> && !mesh::has<ax<4>> && mesh::index_of<ax<4>> == -1);
static_assert(mesh::rank_of({1, 2, 1, 0}) == 11 && mesh::rank_of({1, 0, 1, 0}) == 7);

// the device tag is no axis
static_assert(sw::mesh<ax<2>>::device == sw::device_kind::host && sw::mesh<sw::on_host, ax<2>>::axes == 1);
static_assert(sw::mesh<sw::on_cuda, ax<2>>::device == sw::device_kind::cuda && sw::mesh<sw::on_cuda, ax<2>>::size == 2);

// --- groups along several axes, and meshes out of meshes ---------------------------------------------------------------

// the groups along A partition the ranks; each rank stands in its own group where local_rank says, and groups are in the
// order of their first ranks
template <class Mesh, class... A>
constexpr bool partition() {
  constexpr auto all = Mesh::template groups<A...>();
  int seen[Mesh::size]{}, before = -1;
  for (const auto& g : all) {
    if (g[0] <= before) return false;
    before = g[0];
    for (std::size_t k = 0; k < g.size(); ++k) {
      ++seen[g[k]];
      if (Mesh::template local_rank<A...>(g[k]) != static_cast<int>(k) || Mesh::template group<A...>(g[k]) != g)
        return false;
    }
  }
  for (const int n : seen)
    if (n != 1) return false;
  return all.size() * all[0].size() == static_cast<std::size_t>(Mesh::size);
}
struct dp : sw::axis<3> {};
struct cp : sw::axis<2> {};
struct tp : sw::axis<4> {};
using cube = sw::mesh<dp, cp, tp>;
static_assert(partition<cube, dp>() && partition<cube, cp>() && partition<cube, tp>());
static_assert(partition<cube, dp, cp>() && partition<cube, dp, tp>() && partition<cube, cp, tp>());
static_assert(partition<cube, dp, cp, tp>() && cube::groups<dp, cp, tp>().size() == 1);
static_assert(partition<sw::mesh<ax<8>>, ax<8>>() && partition<sw::mesh<ax<1>>, ax<1>>());
static_assert(cube::groups<dp, tp>()[1] == std::array{4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23});
static_assert(cube::local_rank<dp>(23) == 2 && cube::local_rank<cp, tp>(23) == 7 && cube::local_rank<dp, tp>(13) == 5);

// unflatten: every rank stays who it is, and the new axes' group is the old axis's
struct tp_a : sw::axis<2> {};
struct tp_b : sw::axis<2> {};
using finer = sw::unflattened<cube, tp, tp_a, tp_b>;
static_assert(std::is_same_v<finer, sw::mesh<dp, cp, tp_a, tp_b>>);
constexpr bool same_groups() {
  for (int r = 0; r < cube::size; ++r)
    if (finer::group<tp_a, tp_b>(r) != cube::group<tp>(r) || finer::group<dp>(r) != cube::group<dp>(r) ||
        finer::local_rank<tp_a, tp_b>(r) != cube::local_rank<tp>(r))
      return false;
  return true;
}
static_assert(same_groups());
static_assert(std::is_same_v<sw::unflattened<cube, dp, dp>, cube>);
static_assert(std::is_same_v<sw::unflattened<sw::mesh<sw::on_cuda, tp>, tp, tp_a, tp_b>, sw::mesh<sw::on_cuda, tp_a, tp_b>>);
static_assert(std::is_same_v<sw::flattened<sw::mesh<tp_a, tp_b>, tp, tp_a, tp_b>, sw::mesh<tp>>);  // the inverse

// concatenate: the axes of submeshes, together
static_assert(std::is_same_v<sw::concatenated<cube, sw::submesh<cube, dp>, sw::submesh<cube, cp, tp>>, cube>);
static_assert(
    std::is_same_v<sw::concatenated<cube, sw::submesh<cube, dp>, sw::submesh<cube, tp>>, sw::submesh<cube, dp, tp>>);
static_assert(std::is_same_v<sw::concatenated<cube, cube>, cube>);

// --- findings on a mesh ------------------------------------------------------------------------------------------------

// No finding is no error, whatever else is told, on a mesh and on none; a finding is one, which is read only where it is raised.
static_assert(sw::raise_finding<sw::finding{}, cube>::ok && sw::raise_finding<sw::finding{}, void, dp, tp>::ok);
static_assert(sw::raise_finding<sw::finding{sw::problem::none, 0, 1, 2, 3, 4}, cube, dp>::ok);

}  // namespace
