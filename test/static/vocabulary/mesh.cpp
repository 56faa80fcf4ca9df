// SPDX-License-Identifier: Apache-2.0
// Laws of meshes: ranks and coordinates are inverse and row-major, groups along an axis partition the ranks.

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/mesh.hpp>

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

}  // namespace
