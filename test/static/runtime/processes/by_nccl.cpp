// SPDX-License-Identifier: Apache-2.0
// Which ranks NCCL connects: each is in one group, ranks of an axis of its are in one group and in one line of it, in their order; ranks
// of another axis are in different groups.
#include <shardwise/runtime/processes/by_nccl.hpp>

namespace {

namespace sw = shardwise;

template <int N>
struct a : sw::axis<N> {};
template <int N>
struct b : sw::axis<N> {};
template <int N>
struct c : sw::axis<N> {};

template <class Mesh, class By>
constexpr bool law() {
  using groups = sw::processes::nccl_groups<Mesh, By>;
  bool all = groups::good && groups::size * groups::count == Mesh::size;
  bool seen[Mesh::size]{};
  for (int g = 0; g < groups::count; ++g)
    for (int k = 0; k < groups::size; ++k) {
      const int r = groups::rank_of(g, k);
      all = all && r >= 0 && r < Mesh::size && !seen[r] && groups::group_of(r) == g && groups::place_of(r) == k;
      seen[r] = true;
    }
  for (int axis = 0; axis < Mesh::axes; ++axis)
    for (int r = 0; r < Mesh::size; ++r)
      for (int other = 0; other < Mesh::size; ++other) {
        bool along = true;  // they differ on this axis alone
        for (int x = 0; x < Mesh::axes; ++x)
          along = along && (x == axis || Mesh::coordinate(r)[static_cast<unsigned>(x)] ==
                                             Mesh::coordinate(other)[static_cast<unsigned>(x)]);
        const bool together = groups::group_of(r) == groups::group_of(other);
        if (groups::connects(axis)) {
          const bool one_line = sw::processes::line_of<Mesh, By>(r, axis) == sw::processes::line_of<Mesh, By>(other, axis);
          all = all && (!along || together) && (!together || along == one_line);
        } else {
          all = all && (!along || r == other || !together);
        }
      }
  return all;
}
using line = sw::mesh<a<3>>;
using grid = sw::mesh<a<2>, b<3>>;
using cube = sw::mesh<a<2>, b<3>, c<2>>;
static_assert(law<line, sw::by_nccl<>>() && law<line, sw::by_nccl<a<3>>>() && law<line, sw::processes::by_nccl_alone>());
static_assert(law<grid, sw::by_nccl<>>() && law<grid, sw::by_nccl<a<2>>>() && law<grid, sw::by_nccl<b<3>>>() &&
              law<grid, sw::by_nccl<b<3>, a<2>>>() && law<grid, sw::processes::by_nccl_alone>());
static_assert(law<cube, sw::by_nccl<b<3>>>() && law<cube, sw::by_nccl<a<2>, c<2>>>() &&
              law<cube, sw::by_nccl<b<3>, c<2>>>() && law<cube, sw::processes::by_nccl_alone>());

// By hand: two hosts of six GPUs
using two_hosts = sw::processes::nccl_groups<cube, sw::by_nccl<b<3>, c<2>>>;
static_assert(two_hosts::count == 2 && two_hosts::size == 6 && two_hosts::rank_of(1, 0) == 6 &&
              two_hosts::place_of(11) == 5);
static_assert(sw::processes::line_of<cube, sw::by_nccl<b<3>, c<2>>>(6 + 2 + 1, 2) ==
              2);  // its line along c begins at b 1, c 0

// Along which axes hosts exchange blocks: those of one rank exchange nothing.
static_assert(sw::processes::host_axes<cube, sw::by_nccl<b<3>>>() == 0b101);
static_assert(sw::processes::host_axes<cube, sw::processes::by_nccl_alone>() == 0);
static_assert(sw::processes::host_axes<sw::mesh<a<1>, b<5>, c<2>>, sw::by_nccl<b<5>>>() == 0b100);

// Of a choice each mesh takes the axes that it has.
using choice = sw::processes::connections<sw::mesh_choice<cube, line>, sw::by_nccl<b<3>, c<2>>>;
static_assert(choice::good && std::is_same_v<choice::by<cube>, sw::by_nccl<b<3>, c<2>>> &&
              std::is_same_v<choice::by<line>, sw::by_nccl<>>);

}  // namespace
