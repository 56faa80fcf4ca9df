// SPDX-License-Identifier: Apache-2.0
// rank: what one rank of a backend offers, written down once. Models: thread_rank, fake_rank, cuda_rank (without host
// collectives). Executors and eager tensors ask for it by checked_rank, which names the member that is missing.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise {

// The members of a rank, as types, so that an error can name the one that is missing.
namespace rank_member {
struct mesh_type;      // the mesh<...> that the rank is one of
struct index;          // int index() const: 0 .. size() - 1, row-major over the mesh
struct size;           // static int size(): of the mesh
struct coordinate;     // std::array<int, max_axes> coordinate() const and int coordinate(int axis) const
struct barrier;        // void barrier(): returns when all ranks have come
struct agree;          // void agree(std::uint64_t, const char*): throws if a rank's value differs from rank 0's
struct bytes_written;  // std::int64_t bytes_written(int axis) const: payload sent to other ranks along the axis
struct count_written;  // void count_written(int axis, std::int64_t bytes): called by whatever sends
struct reset_counts;   // void reset_counts(): bytes_written is 0 on every axis
struct collectives;    // a type with static void communicate<T>(const runtime::call&, Rank&): see host_rank
}  // namespace rank_member

namespace detail {

template <class R>
concept has_mesh = requires { requires R::mesh_type::size >= 1 && R::mesh_type::axes >= 1; };
template <class R>
concept has_index = requires(const R& r) { { r.index() } -> std::same_as<int>; };
template <class R>
concept has_size = requires { { R::size() } -> std::same_as<int>; };
template <class R>
concept has_coordinate = requires(const R& r) {
  { r.coordinate() } -> std::convertible_to<const std::array<int, max_axes>&>;
  { r.coordinate(0) } -> std::same_as<int>;
};
template <class R>
concept has_barrier = requires(R& r) { r.barrier(); };
template <class R>
concept has_agree = requires(R& r) { r.agree(std::uint64_t{}, ""); };
template <class R>
concept has_bytes_written = requires(const R& r) { { r.bytes_written(0) } -> std::same_as<std::int64_t>; };
template <class R>
concept has_count_written = requires(R& r) { r.count_written(0, std::int64_t{}); };
template <class R>
concept has_reset_counts = requires(R& r) { r.reset_counts(); };
template <class R>
concept has_collectives = requires { typename R::collectives; };

}  // namespace detail

// One rank of a mesh, whatever computes for it.
template <class R>
concept backend_rank = detail::has_mesh<R> && detail::has_index<R> && detail::has_size<R> && detail::has_coordinate<R> &&
                       detail::has_barrier<R> && detail::has_agree<R> && detail::has_bytes_written<R> &&
                       detail::has_count_written<R> && detail::has_reset_counts<R>;

// A rank whose blocks lie in this process's memory. Its `collectives` run the transitions that communicate; the other
// kernels are the library's own. A reduction must combine in rank order, so that every backend gives the same bits.
template <class R>
concept host_rank = backend_rank<R> && detail::has_collectives<R>;

namespace detail {

template <bool Has, class Rank, class Member>
inline constexpr bool rank_has = raise<Has ? problem::none : problem::rank_member_missing, Rank, Member>::ok;

}  // namespace detail

// `ok` is true; a member that Rank lacks is a sentence with its name.
template <class Rank>
struct checked_rank {
  static constexpr bool ok =
      detail::rank_has<detail::has_mesh<Rank>, Rank, rank_member::mesh_type> &&
      detail::rank_has<detail::has_index<Rank>, Rank, rank_member::index> &&
      detail::rank_has<detail::has_size<Rank>, Rank, rank_member::size> &&
      detail::rank_has<detail::has_coordinate<Rank>, Rank, rank_member::coordinate> &&
      detail::rank_has<detail::has_barrier<Rank>, Rank, rank_member::barrier> &&
      detail::rank_has<detail::has_agree<Rank>, Rank, rank_member::agree> &&
      detail::rank_has<detail::has_bytes_written<Rank>, Rank, rank_member::bytes_written> &&
      detail::rank_has<detail::has_count_written<Rank>, Rank, rank_member::count_written> &&
      detail::rank_has<detail::has_reset_counts<Rank>, Rank, rank_member::reset_counts>;
};
template <class Rank>
struct checked_host_rank {
  static constexpr bool ok =
      checked_rank<Rank>::ok && detail::rank_has<detail::has_collectives<Rank>, Rank, rank_member::collectives>;
};

namespace detail {

// Whether F can be run on the ranks of Mesh; a sentence if not.
template <class Mesh, template <class> class Rank, class F>
constexpr bool can_launch() {
  static_assert(raise<is_mesh<Mesh> ? problem::none : problem::launch_mesh, Mesh>::ok);
  if constexpr (is_mesh<Mesh>) {
    constexpr bool called = std::is_invocable_v<F&, Rank<Mesh>&>;
    static_assert(raise<called ? problem::none : problem::launch_function, F, Rank<Mesh>>::ok);
    return called;
  } else {
    return false;
  }
}

}  // namespace detail

// What a program without shardwise/cuda.cuh finds under this name; those of cuda.cuh fit better where it is included.
template <class Mesh, class... Given>
int launch_cuda(Given&&...) {
  static_assert(raise<problem::cuda_not_included, Mesh>::ok);
  return 1;
}

}  // namespace shardwise
