// SPDX-License-Identifier: Apache-2.0
// rank: what one rank of a backend offers, written down once. Models: thread_rank, fake_rank, cuda_rank (without host
// collectives). Executors and eager tensors ask for it by checked_rank, which names the member that is missing.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <shardwise/runtime/failures.hpp>
#include <shardwise/runtime/program/call.hpp>
#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise::inline v0_1 {

// The members of a rank, as types, so that an error can name the one that is missing.
namespace rank_member {
struct mesh_type;       // the mesh<...> that the rank is one of
struct index;           // int index() const: 0 .. size() - 1, row-major over the mesh
struct size;            // static int size(): of the mesh
struct coordinate;      // std::array<int, max_axes> coordinate() const and int coordinate(int axis) const
struct barrier;         // void barrier(): returns when all ranks have come
struct agree;           // void agree(std::uint64_t, const char*): throws if a rank's value differs from rank 0's
struct bytes_written;   // std::int64_t bytes_written(int axis) const: payload sent to other ranks along the axis
struct count_written;   // void count_written(int axis, std::int64_t bytes): called by whatever sends
struct reset_counts;    // void reset_counts(): bytes_written is 0 on every axis
struct collectives;     // a type with the six static functions below, each void f<T>(const runtime::call&, Rank&)
struct all_reduce;      // partial -> replicate: out = x_0 op x_1 op ... , combined in rank order
struct reduce_scatter;  // partial -> shard: this rank's block of that
struct all_gather;      // shard -> replicate: every rank's block, where it belongs
struct all_to_all;      // shard -> shard of another dim
struct exchange_halo;   // shard -> overlapping shard of the same dim: what this rank's block lacks from its owners
struct exchange;        // void exchange(const void* mine, f): f(peer) on all ranks, peer(r) what rank r shows; optional
struct resplit;         // shard -> shard of the same dim with other boundaries
}  // namespace rank_member

template <class Member>
  requires(detail::in_library_namespace<Member>("rank_member::"))
struct fact<Member> : detail::type_fact<"rank_member", Member> {};

// One concept for each collective of a host backend: C has it for every element type, and returns nothing. Of a call it reads
// the blocks' layouts and pointers (l, p: operand 0 and the result), the axis with its ranks and this rank's coordinate, and
// the placements from and to.
#define SHARDWISE_COLLECTIVE(concept_name, function)                       \
  template <class C, class Rank>                                           \
  concept concept_name = requires(const runtime::call& c, Rank& rank) {    \
    { C::template function<float>(c, rank) } -> std::same_as<void>;        \
    { C::template function<double>(c, rank) } -> std::same_as<void>;       \
    { C::template function<std::int32_t>(c, rank) } -> std::same_as<void>; \
  };
SHARDWISE_COLLECTIVE(has_all_reduce, all_reduce)
SHARDWISE_COLLECTIVE(has_reduce_scatter, reduce_scatter)
SHARDWISE_COLLECTIVE(has_all_gather, all_gather)
SHARDWISE_COLLECTIVE(has_all_to_all, all_to_all)
SHARDWISE_COLLECTIVE(has_resplit, resplit)
SHARDWISE_COLLECTIVE(has_exchange_halo, exchange_halo)
#undef SHARDWISE_COLLECTIVE
template <class C, class Rank>
concept collectives_of = has_all_reduce<C, Rank> && has_reduce_scatter<C, Rank> && has_all_gather<C, Rank> &&
                         has_all_to_all<C, Rank> && has_resplit<C, Rank> && has_exchange_halo<C, Rank>;

namespace detail {

template <class R>
concept has_mesh = requires { requires R::mesh_type::size >= 1 && R::mesh_type::axes >= 1; };
template <class R>
concept has_index = requires(const R& r) {
  { r.index() } -> std::same_as<int>;
};
template <class R>
concept has_size = requires {
  { R::size() } -> std::same_as<int>;
};
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
concept has_bytes_written = requires(const R& r) {
  { r.bytes_written(0) } -> std::same_as<std::int64_t>;
};
template <class R>
concept has_count_written = requires(R& r) { r.count_written(0, std::int64_t{}); };
template <class R>
concept has_reset_counts = requires(R& r) { r.reset_counts(); };
template <class R>
concept has_collectives = requires { typename R::collectives; };
template <class R>
struct collectives_type {
  using type = void;
};
template <has_collectives R>
struct collectives_type<R> {
  using type = typename R::collectives;
};

}  // namespace detail

// Optional: `n` calls of one batch (graph/batches.hpp) as one collective. Without it they run one after the other.
template <class C, class Rank>
concept has_batch = requires(const runtime::call* c, int n, Rank& rank) {
  { C::template batch<float>(c, n, rank) } -> std::same_as<void>;
};

// One rank of a mesh, whatever computes for it.
template <class R>
concept backend_rank = detail::has_mesh<R> && detail::has_index<R> && detail::has_size<R> && detail::has_coordinate<R> &&
                       detail::has_barrier<R> && detail::has_agree<R> && detail::has_bytes_written<R> &&
                       detail::has_count_written<R> && detail::has_reset_counts<R>;

// A rank whose blocks lie in this process's memory. Its `collectives` run the transitions that communicate; the other
// kernels are the library's own. A reduction must combine in rank order, so that every backend gives the same bits.
template <class R>
concept host_rank = backend_rank<R> && collectives_of<typename detail::collectives_type<R>::type, R>;

namespace detail {

template <bool Has, class Rank, class Member>
inline constexpr bool rank_has = raise<(Has ? problem::none : problem::rank_member_missing), Rank, Member>::ok;

}  // namespace detail

// `ok` is true; a member that Rank lacks is a sentence with its name.
template <class Rank>
struct checked_rank {
  static constexpr bool ok = detail::rank_has<detail::has_mesh<Rank>, Rank, rank_member::mesh_type> &&
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
  using collectives = typename detail::collectives_type<Rank>::type;
  static constexpr bool own = detail::has_collectives<Rank>;  // of what it has none, the first sentence is enough
  static constexpr bool ok =
      checked_rank<Rank>::ok && detail::rank_has<own, Rank, rank_member::collectives> &&
      detail::rank_has<(!own || has_all_reduce<collectives, Rank>), Rank, rank_member::all_reduce> &&
      detail::rank_has<(!own || has_reduce_scatter<collectives, Rank>), Rank, rank_member::reduce_scatter> &&
      detail::rank_has<(!own || has_all_gather<collectives, Rank>), Rank, rank_member::all_gather> &&
      detail::rank_has<(!own || has_all_to_all<collectives, Rank>), Rank, rank_member::all_to_all> &&
      detail::rank_has<(!own || has_resplit<collectives, Rank>), Rank, rank_member::resplit> &&
      detail::rank_has<(!own || has_exchange_halo<collectives, Rank>), Rank, rank_member::exchange_halo>;
};

namespace runtime {

// Ranks that can read each other's memory: see thread_rank::exchange.
struct peer_reader {
  template <class Peer>
  void operator()(const Peer&) const {}
};
template <class Rank>
concept has_exchange = requires(Rank& r, const void* mine) { r.exchange(mine, peer_reader{}); };

// Ranks whose collectives can run beside their kernels: see threads::stream.
template <class Rank>
concept has_stream = requires(Rank& r, typename Rank::stream_type::ticket t) {
  r.stream().wait(t);
  r.stream().drain();
};

// No backend skips what it does not know: every kind stands in its switch, and these are none of its.
[[noreturn]] inline void not_a_collective(transition kind) {
  throw std::logic_error("shardwise: transition " + std::to_string(static_cast<int>(kind)) +
                         " is no collective, and a rank was asked to exchange it; run its kernel");
}

// Runs the collective that takes a call's operand from its placement to the result's.
template <class T, class Rank>
void communicate(const call& c, Rank& rank) {
  using collectives = typename Rank::collectives;
  if (c.members > 1) {
    if constexpr (has_batch<collectives, Rank>) {
      return collectives::template batch<T>(c.batch, c.members, rank);
    } else {
      for (int k = 0; k < c.members; ++k) {
        call alone = c.batch[k];
        alone.members = 1;
        communicate<T>(alone, rank);
      }
      return;
    }
  }
  switch (c.kind) {
    case transition::all_reduce: return collectives::template all_reduce<T>(c, rank);
    case transition::reduce_scatter: return collectives::template reduce_scatter<T>(c, rank);
    case transition::all_gather: return collectives::template all_gather<T>(c, rank);
    case transition::all_to_all:
      return c.from.dim == c.to.dim ? collectives::template resplit<T>(c, rank)
                                    : collectives::template all_to_all<T>(c, rank);
    case transition::exchange_halo: return collectives::template exchange_halo<T>(c, rank);
    case transition::none:
    case transition::take_chunk:
    case transition::to_partial:
    case transition::place_chunk: not_a_collective(c.kind);
  }
}

}  // namespace runtime

namespace detail {

// Whether F can be run on the ranks of Mesh; a sentence if not.
template <class Mesh, template <class> class Rank, class F>
constexpr bool can_launch() {
  static_assert(raise<(is_mesh<Mesh> ? problem::none : problem::launch_mesh), Mesh>::ok);
  if constexpr (is_mesh<Mesh>) {
    constexpr bool called = std::is_invocable_v<F&, Rank<Mesh>&>;
    static_assert(raise<(called ? problem::none : problem::launch_function), F, Rank<Mesh>>::ok);
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

}  // namespace shardwise::inline v0_1
