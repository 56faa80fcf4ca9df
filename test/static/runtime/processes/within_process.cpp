// SPDX-License-Identifier: Apache-2.0
// Where ranks run that are threads of several processes: every rank is one thread of one process, ranks of an axis within it share the
// process, those of an axis between processes the thread's number.
#include <shardwise/runtime/processes/within_process.hpp>

namespace {

namespace sw = shardwise;

template <int N>
struct a : sw::axis<N> {};
template <int N>
struct b : sw::axis<N> {};
template <int N>
struct c : sw::axis<N> {};

template <class Mesh, class... Within>
constexpr bool law() {
  using layout = sw::processes::layout_of<Mesh, sw::within_process<Within...>>;
  bool all = layout::good && layout::processes * layout::threads == Mesh::size;
  bool seen[Mesh::size]{};
  for (int p = 0; p < layout::processes; ++p)
    for (int t = 0; t < layout::threads; ++t) {
      const int r = layout::rank_of(p, t);
      all = all && r >= 0 && r < Mesh::size && !seen[r] && layout::process_of(r) == p && layout::thread_of(r) == t;
      seen[r] = true;
      for (int axis = 0; axis < Mesh::axes; ++axis)
        for (int k = 0; k < Mesh::sizes[static_cast<unsigned>(axis)]; ++k) {
          const int other = Mesh::group_member(r, axis, k);
          all = all && (layout::is_within(axis) ? layout::process_of(other) == p : layout::thread_of(other) == t);
        }
    }
  return all && layout::rank_of(0, 0) == 0;  // rank 0 is the first thread of the first process
}
using line = sw::mesh<a<3>>;
static_assert(law<line>() && law<line, a<3>>());
using grid = sw::mesh<a<2>, b<3>>;
static_assert(law<grid>() && law<grid, a<2>>() && law<grid, b<3>>() && law<grid, a<2>, b<3>>() && law<grid, b<3>, a<2>>());
using cube = sw::mesh<a<2>, b<3>, c<4>>;
static_assert(law<cube, a<2>>() && law<cube, b<3>>() && law<cube, c<4>>() && law<cube, a<2>, c<4>>() &&
              law<cube, b<3>, c<4>>());
static_assert(law<sw::mesh<a<1>, b<5>, c<1>>, c<1>>());

// By hand: the ranks of the second of two processes, whose threads are b and c
using halves = sw::processes::layout_of<cube, sw::within_process<b<3>, c<4>>>;
static_assert(halves::processes == 2 && halves::threads == 12 && halves::rank_of(1, 0) == 12 &&
              halves::rank_of(1, 11) == 23);
// and those of process (1, 2) of 2 x 4, whose threads are b
using across = sw::processes::layout_of<cube, sw::within_process<b<3>>>;
static_assert(across::processes == 8 && across::threads == 3 && across::rank_of(6, 1) == 12 + 4 + 2);

// Of a choice each mesh takes the axes that it has.
using choice = sw::processes::layouts<sw::mesh_choice<cube, line, sw::mesh<b<3>>>, sw::within_process<b<3>, c<4>>>;
static_assert(choice::good);
static_assert(std::is_same_v<choice::within<cube>, sw::within_process<b<3>, c<4>>>);
static_assert(std::is_same_v<choice::within<line>, sw::within_process<>>);

}  // namespace
