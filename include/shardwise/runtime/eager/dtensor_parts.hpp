// SPDX-License-Identifier: Apache-2.0
// What eager tensors are declared with: ranges they take values from, checks of blocks, ranks without peers.
#pragma once

#include <span>

#include <shardwise/graph/functions/functions.hpp>
#include <shardwise/runtime/eager/eager.hpp>
#include <shardwise/runtime/threads/collectives.hpp>

namespace shardwise::inline v0_1 {

namespace detail {
// Not <ranges>, which costs every program a tenth of a second; std::data and std::size come with <span>.
template <class R>
concept contiguous_values = requires(const R& r) {
  *std::data(r);
  std::size(r);
};
// A rank of a backend that has no others: see fake_rank.
template <class Rank>
inline constexpr bool without_peers = requires { requires !Rank::has_peers; };

}  // namespace detail

// replicas: compare, across ranks, blocks that must be equal.
enum class local_check { none, replicas };

template <spec S, class Mesh, class Rank = thread_rank<Mesh>>
class dtensor;

namespace detail {

// The tensor that rank 0 holds as a summand when it is the only one with data.
template <spec S>
struct scatter_source {
  static constexpr spec all_partial = [] {
    spec s = contiguous(S);
    for (int a = 0; a < s.axes; ++a) s.place[a] = partial_value();
    return s;
  }();
  template <class Mesh, class Rank>
  using type = dtensor<all_partial, Mesh, Rank>;
};

template <class Tensor, class Rank>
void check_replicas(const eager<Rank>& on, const Tensor& t);  // in create.hpp

}  // namespace detail

}  // namespace shardwise::inline v0_1
