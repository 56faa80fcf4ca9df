// SPDX-License-Identifier: Apache-2.0
// Meshes cut out of meshes: slices by axis name, several axes flattened into one, and a mesh on chosen ranks of a world.
#pragma once

#include <array>
#include <optional>

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise {

namespace detail {

template <device_kind Device, class... A>
struct mesh_of {
  using type = mesh<A...>;
};
template <class... A>
struct mesh_of<device_kind::cuda, A...> {
  using type = mesh<on_cuda, A...>;
};

template <class Mesh, class... A>
struct submesh_of {
  static constexpr bool known = sizeof...(A) > 0 && ascending<Mesh::template index_of<A>...>();
  static_assert(raise<known ? problem::none : problem::submesh_axes, Mesh, A...>::ok);
  using type = typename mesh_of<Mesh::device, A...>::type;
};

template <class Mesh, class Name, class... A>
struct flattened_mesh {
  static constexpr bool known = sizeof...(A) > 0 && ascending<Mesh::template index_of<A>...>();
  static_assert(raise<!known                               ? problem::submesh_axes
                      : Name::size != (1 * ... * A::size) ? problem::flatten_size
                      : Mesh::template has<Name> && !(sizeof...(A) == 1 && (std::is_same_v<Name, A> && ...))
                          ? problem::flatten_name
                          : problem::none,
                      Mesh, Name, A...>::ok);
  using type = typename mesh_of<Mesh::device, Name>::type;
};

}  // namespace detail

// The mesh of some of a mesh's axes, in their order; which ranks it has depends on who asks: Mesh::group<A...>(rank).
// With all axes it is the mesh itself.
template <class Mesh, class... A>
using submesh = typename detail::submesh_of<Mesh, A...>::type;

// One axis `Name` in place of the axes A: its ranks, in order, are Mesh::group<A...>(rank).
template <class Mesh, class Name, class... A>
using flattened = typename detail::flattened_mesh<Mesh, Name, A...>::type;

// A mesh whose ranks are the ranks World... of a larger world, in row-major order: placed_mesh<mesh<tp>, 1, 3>.
template <class Mesh, int... World>
struct placed_mesh : Mesh {
  using mesh_type = Mesh;
  static_assert(raise<static_cast<int>(sizeof...(World)) != Mesh::size ? problem::placed_mesh_count : problem::none, Mesh,
                      placed_mesh>::ok);
  static constexpr std::array<int, sizeof...(World)> ranks{World...};

 private:
  static constexpr bool distinct() {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (ranks[i] == ranks[j]) return false;
    return ((World >= 0) && ...);
  }
  static_assert(raise<distinct() ? problem::none : problem::placed_mesh_ranks, Mesh, placed_mesh>::ok);

 public:
  // The rank of the mesh that a rank of the world is, or none.
  static constexpr std::optional<int> rank_in_mesh(int world_rank) {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (ranks[i] == world_rank) return static_cast<int>(i);
    return std::nullopt;
  }
  // No coordinate for a rank outside the mesh.
  static constexpr std::optional<std::array<int, max_axes>> coordinate(int world_rank) {
    const std::optional<int> r = rank_in_mesh(world_rank);
    if (!r) return std::nullopt;
    return Mesh::coordinate(*r);
  }
  // World ranks of the group that a rank of the world belongs to, none if it is outside.
  template <class... A>
  static constexpr auto group(int world_rank) {
    const std::optional<int> r = rank_in_mesh(world_rank);
    auto g = Mesh::template group<A...>(r ? *r : 0);
    for (int& k : g) k = ranks[static_cast<std::size_t>(k)];
    return r ? std::optional(g) : std::nullopt;
  }
};

}  // namespace shardwise
