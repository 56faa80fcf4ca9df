// SPDX-License-Identifier: Apache-2.0
// Meshes cut out of meshes: slices by axis name, several axes flattened into one, and a mesh on chosen ranks of a world.
#pragma once

#include <array>
#include <optional>

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise::inline v0_1 {

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
  static_assert(raise<(known ? problem::none : problem::submesh_axes), Mesh, A...>::ok);
  using type = typename mesh_of<Mesh::device, A...>::type;
};

template <class Mesh, class Name, class... A>
struct flattened_mesh {
  static constexpr bool known = sizeof...(A) > 0 && ascending<Mesh::template index_of<A>...>();
  static_assert(
      raise<(!known                                                                                 ? problem::submesh_axes
             : Name::size != (1 * ... * A::size)                                                    ? problem::flatten_size
             : Mesh::template has<Name> && !(sizeof...(A) == 1 && (std::is_same_v<Name, A> && ...)) ? problem::flatten_name
                                                                                                    : problem::none),
            Mesh, Name, A...>::ok);
  using type = typename mesh_of<Mesh::device, Name>::type;
};

template <class... A>
struct axis_list {};
template <class... L>
struct joined;
template <class... A>
struct joined<axis_list<A...>> {
  using type = axis_list<A...>;
};
template <class... A, class... B, class... More>
struct joined<axis_list<A...>, axis_list<B...>, More...> : joined<axis_list<A..., B...>, More...> {};

template <class Mesh>
struct axes_of;
template <class... A>
struct axes_of<mesh<A...>> {
  using type = axis_list<A...>;
};
template <class... A>
struct axes_of<mesh<on_host, A...>> {
  using type = axis_list<A...>;
};
template <class... A>
struct axes_of<mesh<on_cuda, A...>> {
  using type = axis_list<A...>;
};

template <device_kind Device, class List>
struct mesh_of_list;
template <device_kind Device, class... A>
struct mesh_of_list<Device, axis_list<A...>> : mesh_of<Device, A...> {};

template <class Mesh, class Axis, class... New>
struct unflattened_mesh {
  static constexpr bool known = Mesh::template has<Axis> && sizeof...(New) > 0;
  static_assert(raise<(!known                                ? problem::submesh_axes
                       : Axis::size != (1 * ... * New::size) ? problem::unflatten_size
                                                             : problem::none),
                      Mesh, Axis, New...>::ok);
  template <class List>
  struct of;
  template <class... A>
  struct of<axis_list<A...>> {
    using type =
        typename joined<axis_list<>, std::conditional_t<std::is_same_v<A, Axis>, axis_list<New...>, axis_list<A>>...>::type;
  };
  using type = typename mesh_of_list<Mesh::device, typename of<typename axes_of<Mesh>::type>::type>::type;
};

template <class Mesh, class List>
struct submesh_of_list;
template <class Mesh, class... A>
struct submesh_of_list<Mesh, axis_list<A...>> : submesh_of<Mesh, A...> {};

}  // namespace detail

// The mesh of some of a mesh's axes, in their order; which ranks it has depends on who asks: Mesh::group<A...>(rank).
// With all axes it is the mesh itself.
template <class Mesh, class... A>
using submesh = typename detail::submesh_of<Mesh, A...>::type;

// One axis `Name` in place of the axes A: its ranks, in order, are Mesh::group<A...>(rank).
template <class Mesh, class Name, class... A>
using flattened = typename detail::flattened_mesh<Mesh, Name, A...>::type;

// Several axes in place of one, the last of them fastest: every rank stays who it is, and Mesh::group<Axis>(rank) is
// unflattened::group<New...>(rank). The inverse of flattened.
template <class Mesh, class Axis, class... New>
using unflattened = typename detail::unflattened_mesh<Mesh, Axis, New...>::type;

// The submesh of the axes of several submeshes of one mesh, which share none and are given in the mesh's order.
template <class Mesh, class... Submesh>
using concatenated = typename detail::submesh_of_list<
    Mesh, typename detail::joined<detail::axis_list<>, typename detail::axes_of<Submesh>::type...>::type>::type;

// A mesh whose ranks are the ranks World... of a larger world, in row-major order: placed_mesh<mesh<tp>, 1, 3>.
template <class Mesh, int... World>
struct placed_mesh : Mesh {
  using mesh_type = Mesh;
  static_assert(raise<(static_cast<int>(sizeof...(World)) != Mesh::size ? problem::placed_mesh_count : problem::none), Mesh,
                      placed_mesh>::ok);
  static constexpr std::array<int, sizeof...(World)> ranks{World...};

 private:
  static constexpr bool distinct() {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (ranks[i] == ranks[j]) return false;
    return ((World >= 0) && ...);
  }
  static_assert(raise<(distinct() ? problem::none : problem::placed_mesh_ranks), Mesh, placed_mesh>::ok);

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

}  // namespace shardwise::inline v0_1
