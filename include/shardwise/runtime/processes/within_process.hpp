// SPDX-License-Identifier: Apache-2.0
// within_process: which axes of a mesh lie within a process, whose threads are its ranks; the other axes lie between processes.
#pragma once

#include <array>
#include <type_traits>

#include <shardwise/runtime/launcher.hpp>
#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise::inline v0_1 {

// Axes of a mesh, in any order: ranks that differ on these alone are threads of one process. The mesh, and with it programs, placements and
// plans, do not know of it; the launch does: launch_mpi<mesh<dp, tp>, within_process<tp>>(f).
template <class... Axes>
struct within_process {};

namespace processes {

template <class Within>
inline constexpr bool is_within_process = false;
template <class... Axes>
inline constexpr bool is_within_process<within_process<Axes...>> = true;

// A mesh's ranks in groups: ranks that differ on Axes alone are one. Groups are counted row-major over the other axes, the ranks of each
// row-major over Axes, both in the mesh's order.
template <class Mesh, class... Axes>
struct grouped {
  static constexpr bool good = ((Mesh::template has<Axes> && detail::count_of<Axes, Axes...> == 1) && ...);

  static constexpr bool is_within([[maybe_unused]] int axis) { return ((Mesh::template index_of<Axes> == axis) || ...); }
  static constexpr int ranks_along(bool within) {
    int n = 1;
    for (int a = 0; a < Mesh::axes; ++a)
      if (is_within(a) == within) n *= Mesh::sizes[static_cast<unsigned>(a)];
    return n;
  }
  // Of a rank: its group's number, or its own in the group.
  static constexpr int number_of(int rank, bool within) {
    const auto c = Mesh::coordinate(rank);
    int n = 0;
    for (int a = 0; a < Mesh::axes; ++a)
      if (is_within(a) == within) n = n * Mesh::sizes[static_cast<unsigned>(a)] + c[static_cast<unsigned>(a)];
    return n;
  }
  static constexpr int rank_at(int group, int place) {
    std::array<int, max_axes> c{};
    for (int a = Mesh::axes - 1; a >= 0; --a) {
      int& rest = is_within(a) ? place : group;
      c[static_cast<unsigned>(a)] = rest % Mesh::sizes[static_cast<unsigned>(a)];
      rest /= Mesh::sizes[static_cast<unsigned>(a)];
    }
    return Mesh::rank_of(c);
  }
};

// Where the ranks of a mesh run: a group is a process, whose threads are its ranks. Ranks are counted as the mesh does.
template <class Mesh, class Within>
struct layout_of;
template <class Mesh, class... Axes>
struct layout_of<Mesh, within_process<Axes...>> {
  using groups = grouped<Mesh, Axes...>;
  static constexpr bool good = groups::good;
  static_assert(raise<(good ? problem::none : problem::within_process_axes), Mesh, Axes...>::ok);

  static constexpr bool is_within(int axis) { return groups::is_within(axis); }
  static constexpr int threads = groups::ranks_along(true), processes = groups::ranks_along(false);

  static constexpr int process_of(int rank) { return groups::number_of(rank, false); }
  static constexpr int thread_of(int rank) { return groups::number_of(rank, true); }
  static constexpr int rank_of(int process, int thread) { return groups::rank_at(process, thread); }
};

template <class... Withins>
struct joined_within;
template <class... Axes>
struct joined_within<within_process<Axes...>> {
  using type = within_process<Axes...>;
};
template <class... A, class... B, class... More>
struct joined_within<within_process<A...>, within_process<B...>, More...>
    : joined_within<within_process<A..., B...>, More...> {};

// Of one mesh or a choice: `good`, and a sentence if not; of a mesh of a choice those of the axes that it has.
template <class Choice, class Within>
struct layouts {
  static constexpr bool good = layout_of<Choice, Within>::good;
  template <class>
  using within = Within;
};
template <class... Meshes, class... Axes>
struct layouts<mesh_choice<Meshes...>, within_process<Axes...>> {
  template <class Mesh, class Axis>
  using kept = std::conditional_t<Mesh::template has<Axis>, within_process<Axis>, within_process<>>;
  template <class Mesh>
  using within = typename joined_within<within_process<>, kept<Mesh, Axes>...>::type;

  template <class Axis>
  static constexpr bool has = (Meshes::template has<Axis> || ...);
  static constexpr bool axes_known = ((has<Axes> && detail::count_of<Axes, Axes...> == 1) && ...);
  static_assert(raise<(axes_known ? problem::none : problem::within_process_axes), Meshes..., Axes...>::ok);
  static constexpr bool numbers_differ() {
    const int n[] = {layout_of<Meshes, within<Meshes>>::processes...};
    for (unsigned i = 0; i < sizeof...(Meshes); ++i)
      for (unsigned k = 0; k < i; ++k)
        if (n[i] == n[k]) return false;
    return true;
  }
  static constexpr bool good = axes_known && numbers_differ();
  static_assert(raise<(good || !axes_known ? problem::none : problem::within_process_choice), Meshes..., Axes...>::ok);
};

}  // namespace processes

}  // namespace shardwise::inline v0_1
