// SPDX-License-Identifier: Apache-2.0
// by_nccl: along which axes of a mesh NCCL connects GPUs that are processes; along the others their hosts exchange blocks.
#pragma once

#include <type_traits>

#include <shardwise/runtime/launcher.hpp>
#include <shardwise/runtime/processes/within_process.hpp>
#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise::inline v0_1 {

// Axes of a mesh, in any order. The mesh, and with it programs, placements and plans, do not know of it; the launch does:
// launch_cuda_mpi<mesh<host, gpu>, by_nccl<gpu>>(f).
template <class... Axes>
struct by_nccl {};

namespace processes {

// All axes.
struct by_nccl_alone {};

template <class By>
inline constexpr bool is_by_nccl = false;
template <class... Axes>
inline constexpr bool is_by_nccl<by_nccl<Axes...>> = true;

// Which ranks NCCL connects: those of a group, that differ on its axes alone. Each group has communicators of its own, whose ranks are
// numbered by their places in it.
template <class Mesh, class By>
struct nccl_groups;
template <class Mesh, class... Axes>
struct nccl_groups<Mesh, by_nccl<Axes...>> {
  using groups = grouped<Mesh, Axes...>;
  static constexpr bool good = groups::good;
  static_assert(raise<(good ? problem::none : problem::by_nccl_axes), Mesh, Axes...>::ok);
  static constexpr int size = groups::ranks_along(true), count = groups::ranks_along(false);
  static constexpr bool connects(int axis) { return groups::is_within(axis); }
  static constexpr int group_of(int rank) { return groups::number_of(rank, false); }
  static constexpr int place_of(int rank) { return groups::number_of(rank, true); }
  static constexpr int rank_of(int group, int place) { return groups::rank_at(group, place); }
};
template <class Mesh>
struct nccl_groups<Mesh, by_nccl_alone> {
  static constexpr bool good = true;
  static constexpr int size = Mesh::size, count = 1;
  static constexpr bool connects(int) { return true; }
  static constexpr int group_of(int) { return 0; }
  static constexpr int place_of(int rank) { return rank; }
  static constexpr int rank_of(int, int place) { return place; }
};

// Bit a: along axis a, which has several ranks, the hosts exchange blocks.
template <class Mesh, class By>
constexpr unsigned host_axes() {
  unsigned axes = 0;
  for (int a = 0; a < Mesh::axes; ++a)
    if (!nccl_groups<Mesh, By>::connects(a) && Mesh::sizes[static_cast<unsigned>(a)] > 1) axes |= 1U << a;
  return axes;
}

// Of an axis that NCCL connects: the ranks along it among those of their group, as ncclCommSplit asks: a number that ranks along the axis
// alone share, and the place in it.
template <class Mesh, class By>
constexpr int line_of(int rank, int axis) {
  auto c = Mesh::coordinate(rank);
  c[static_cast<unsigned>(axis)] = 0;
  return nccl_groups<Mesh, By>::place_of(Mesh::rank_of(c));
}

// Of one mesh or a choice: `good`, and a sentence if not; of a mesh of a choice those of the axes that it has.
template <class Choice, class By>
struct connections {
  static constexpr bool good = nccl_groups<Choice, By>::good;
  template <class>
  using by = By;
};
template <class... Meshes>
struct connections<mesh_choice<Meshes...>, by_nccl_alone> {
  static constexpr bool good = true;
  template <class>
  using by = by_nccl_alone;
};
template <class... Bys>
struct joined_by;
template <class... Axes>
struct joined_by<by_nccl<Axes...>> {
  using type = by_nccl<Axes...>;
};
template <class... A, class... B, class... More>
struct joined_by<by_nccl<A...>, by_nccl<B...>, More...> : joined_by<by_nccl<A..., B...>, More...> {};
template <class... Meshes, class... Axes>
struct connections<mesh_choice<Meshes...>, by_nccl<Axes...>> {
  template <class Mesh, class Axis>
  using kept = std::conditional_t<Mesh::template has<Axis>, by_nccl<Axis>, by_nccl<>>;
  template <class Mesh>
  using by = typename joined_by<by_nccl<>, kept<Mesh, Axes>...>::type;

  template <class Axis>
  static constexpr bool has = (Meshes::template has<Axis> || ...);
  static constexpr bool good = ((has<Axes> && detail::count_of<Axes, Axes...> == 1) && ...);
  static_assert(raise<(good ? problem::none : problem::by_nccl_axes), Meshes..., Axes...>::ok);
};

}  // namespace processes

}  // namespace shardwise::inline v0_1
