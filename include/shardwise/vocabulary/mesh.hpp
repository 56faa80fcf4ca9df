// SPDX-License-Identifier: Apache-2.0
// mesh<Axes...>: an ordered list of axis types, last axis fastest; ranks, coordinates and the groups along an axis.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace shardwise::inline v0_1 {

inline constexpr int max_axes = 4;

// What a mesh's ranks compute on; a leading tag in mesh<...>, host by default: mesh<on_cuda, dp, tp>.
enum class device_kind : std::uint8_t { host = 0, cuda = 1 };
struct on_host {};
struct on_cuda {};

namespace detail {

template <class A, class... As>
inline constexpr int count_of = (0 + ... + (std::is_same_v<A, As> ? 1 : 0));

template <class A, class... As>
constexpr int index_of_axis() {
  int at = -1, i = 0;
  ((std::is_same_v<A, As> && at < 0 ? void(at = i) : void(), ++i), ...);
  return at;
}

// The axes are of the mesh, each named once, in the mesh's order.
template <int... At>
constexpr bool ascending() {
  int before = -1;
  bool good = true;
  ((good = good && At > before, before = At), ...);
  return good;
}

// What is no axis counts as one rank, so that the mesh's sentence is the only error.
template <class A>
constexpr int ranks_of() {
  if constexpr (is_axis<A>) return A::size;
  else return 1;
}

template <device_kind Device, class... Axes>
struct mesh_base {
  static constexpr int axes = static_cast<int>(sizeof...(Axes));
  static constexpr problem wrong = axes < 1 || axes > max_axes                   ? problem::mesh_axis_count
                                   : !(is_axis<Axes> && ...)                     ? problem::mesh_not_an_axis
                                   : ((count_of<Axes, Axes...> > 1) || ...)      ? problem::mesh_axis_used_twice
                                   : ((ranks_of<Axes>() < 1) || ...)             ? problem::mesh_bad_axis
                                   : (1. * ... * ranks_of<Axes>()) > 2147483647. ? problem::mesh_too_large
                                                                                 : problem::none;
  static_assert(raise<wrong, Axes...>::ok);

  static constexpr device_kind device = Device;
  static constexpr int size = (1 * ... * (wrong == problem::mesh_too_large ? 1 : ranks_of<Axes>()));
  static constexpr std::array<int, sizeof...(Axes)> sizes{ranks_of<Axes>()...};

  template <class A>
  static constexpr int index_of = index_of_axis<A, Axes...>();
  template <class A>
  static constexpr bool has = index_of<A> >= 0;

  // Ranks along one of the mesh's axes.
  template <class A>
  static constexpr int size_of = [] {
    static_assert(raise<(has<A> ? problem::none : problem::submesh_axes), mesh_base, A>::ok);
    return A::size;
  }();

  // Row-major: rank = ((c0 * size1 + c1) * size2 + c2) ...
  static constexpr std::array<int, max_axes> coordinate(int rank) {
    std::array<int, max_axes> c{};
    for (int a = axes - 1; a >= 0; --a) {
      c[static_cast<std::size_t>(a)] = rank % sizes[static_cast<std::size_t>(a)];
      rank /= sizes[static_cast<std::size_t>(a)];
    }
    return c;
  }
  static constexpr int rank_of(const std::array<int, max_axes>& c) {
    int r = 0;
    for (int a = 0; a < axes; ++a) r = r * sizes[static_cast<std::size_t>(a)] + c[static_cast<std::size_t>(a)];
    return r;
  }
  // The k-th member of the group along axis `a` that `rank` belongs to.
  static constexpr int group_member(int rank, int a, int k) {
    auto c = coordinate(rank);
    c[static_cast<std::size_t>(a)] = k;
    return rank_of(c);
  }

  // The ranks that differ from `rank` on the axes A alone, row-major over A: its group along one axis, its submesh along
  // several, and the order of that submesh's ranks when it is flattened.
  template <class... A>
  static constexpr auto group(int rank) {
    constexpr bool known = sizeof...(A) > 0 && ascending<index_of<A>...>();
    static_assert(raise<(known ? problem::none : problem::submesh_axes), mesh_base, A...>::ok);
    std::array<int, static_cast<std::size_t>((1 * ... * A::size))> r{};
    if constexpr (known) {
      constexpr int at[] = {index_of<A>...};
      for (std::size_t i = 0; i < r.size(); ++i) {
        auto c = coordinate(rank);
        int rest = static_cast<int>(i);
        for (int k = static_cast<int>(sizeof...(A)) - 1; k >= 0; --k) {
          c[static_cast<unsigned>(at[k])] = rest % sizes[static_cast<unsigned>(at[k])];
          rest /= sizes[static_cast<unsigned>(at[k])];
        }
        r[i] = rank_of(c);
      }
    }
    return r;
  }

  // Where `rank` stands in group<A...>(rank): its coordinate along one axis, its rank in the submesh of several.
  template <class... A>
  static constexpr int local_rank(int rank) {
    constexpr bool known = sizeof...(A) > 0 && ascending<index_of<A>...>();
    static_assert(raise<(known ? problem::none : problem::submesh_axes), mesh_base, A...>::ok);
    int r = 0;
    if constexpr (known) {
      const auto c = coordinate(rank);
      ((r = r * A::size + c[static_cast<unsigned>(index_of<A>)]), ...);
    }
    return r;
  }

  // All groups along the axes A, ordered by their first ranks: a partition of the mesh.
  template <class... A>
  static constexpr auto groups() {
    constexpr std::size_t members = static_cast<std::size_t>((1 * ... * A::size));
    std::array<std::array<int, members>, static_cast<std::size_t>(size) / members> r{};
    std::size_t at = 0;
    for (int k = 0; k < size; ++k)
      if (local_rank<A...>(k) == 0) r[at++] = group<A...>(k);
    return r;
  }
};

}  // namespace detail

template <class... Axes>
struct mesh : detail::mesh_base<device_kind::host, Axes...> {};
template <class... Axes>
struct mesh<on_host, Axes...> : detail::mesh_base<device_kind::host, Axes...> {};
template <class... Axes>
struct mesh<on_cuda, Axes...> : detail::mesh_base<device_kind::cuda, Axes...> {};

namespace detail {

// A mesh<...>, or what is made of one; a program knows its mesh and is none.
template <class T>
concept is_mesh = requires {
  T::axes;
  T::sizes;
  T::device;
};

template <class Axis, class Sink>
constexpr void put_mesh_axis(Sink& out) {
  if constexpr (is_axis<Axis>) put_axis<Axis>(out);
  else written<Axis>::put(out);
}
template <class Sink, device_kind Device, class... Axes>
constexpr void put_mesh(Sink& out, const mesh_base<Device, Axes...>*) {
  if (Device == device_kind::cuda) text::put(out, "on_cuda, ");
  bool first = true;
  ((text::put(out, first ? "" : ", "), put_mesh_axis<Axes>(out), first = false), ...);
}

// The axis of a mesh at a place, and what to say of a finding that concerns it.
template <device_kind Device, class... Axes>
constexpr type_list<Axes...> axes_in(const mesh_base<Device, Axes...>*);
template <int I, class Axis, class... Axes>
constexpr auto axis_in(type_list<Axis, Axes...>) {
  if constexpr (I == 0) return std::type_identity<Axis>{};
  else return axis_in<I - 1>(type_list<Axes...>{});
}
template <class Mesh>
using axes_list = decltype(axes_in(static_cast<const Mesh*>(nullptr)));
template <class T>
inline constexpr std::size_t axes_count = 0;
template <is_mesh Mesh>
inline constexpr std::size_t axes_count<Mesh> = static_cast<std::size_t>(Mesh::axes);
template <class Mesh, int I>
using axis_at = typename decltype(axis_in<I>(axes_list<Mesh>{}))::type;

// A finding's facts, those that apply: operand, dim, axis, numbers.
template <finding F, class Mesh>
struct finding_facts {
  template <bool Said, class Fact>
  static constexpr auto only() {
    if constexpr (Said) return type_list<Fact>{};
    else return type_list<>{};
  }
  static constexpr auto axis() {
    constexpr finding f = F;
    if constexpr (f.axis >= 0 && is_mesh<Mesh>) return type_list<axis_at<Mesh, f.axis>>{};
    else return type_list<>{};
  }
  static constexpr auto numbers() {
    constexpr finding f = F;
    // of these, the number is an operation's, which is a fact of its own
    constexpr bool operation = f.what == problem::rule_missing || f.what == problem::gradient_missing;
    if constexpr (!operation && (f.have != 0 || f.want != 0)) return type_list<have<f.have>, want<f.want>>{};
    else return type_list<>{};
  }
  template <class... Lists>
  static constexpr auto join(Lists...) {
    return typename joined_lists<Lists...>::type{};
  }
  static constexpr auto list() {
    constexpr finding f = F;
    constexpr bool names_its_dim = f.what == problem::shard_dim_out_of_range || f.what == problem::dim_out_of_range;
    return join(only<(f.operand > 0 && f.operand < 8), at_operand<f.operand>>(),
                only<(f.dim >= 0 && !names_its_dim), at_dim<f.dim>>(), axis(), numbers());
  }
  using type = decltype(list());
};

template <problem P, class List>
struct raise_list;
template <problem P, class... Facts>
struct raise_list<P, type_list<Facts...>> {
  static constexpr bool ok = raise<P, Facts...>::ok;
};

}  // namespace detail

// `ok` is true; a finding on a mesh is a sentence with the facts given, then the finding's own.
template <finding F, class Mesh, class... Facts>
struct raise_finding {
  static constexpr bool ok =
      detail::raise_list<F.what, typename detail::joined_lists<detail::type_list<Facts...>,
                                                               typename detail::finding_facts<F, Mesh>::type>::type>::ok;
};
template <finding F, class Mesh, class... Facts>
  requires(F.what == problem::none)
struct raise_finding<F, Mesh, Facts...> {
  static constexpr bool ok = true;
};

// The mesh of a message: of it, placements get the names of its axes.
template <class Mesh>
  requires detail::is_mesh<Mesh>
struct fact<Mesh> : detail::fact_named<"mesh"> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    if constexpr (requires { detail::put_mesh(out, static_cast<const Mesh*>(nullptr)); })
      detail::put_mesh(out, static_cast<const Mesh*>(nullptr));
    else written<Mesh>::put(out);
  }
};

namespace detail {

template <class... Facts>
struct first_mesh {
  using type = void;
};
template <class Fact, class... More>
struct first_mesh<Fact, More...> : first_mesh<More...> {};
template <class Fact, class... More>
  requires is_mesh<Fact>
struct first_mesh<Fact, More...> {
  using type = Fact;
};
template <class Said>
struct mesh_said;
template <problem P, class... Facts>
struct mesh_said<told<P, Facts...>> : first_mesh<Facts...> {};

}  // namespace detail

}  // namespace shardwise::inline v0_1
