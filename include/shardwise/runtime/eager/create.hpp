// SPDX-License-Identifier: Apache-2.0
// Eager tensors out of nothing, placed where they are made: zeros<float, shape<8, 4>, shard<0>>(on); blocks checked to be
// equal where the placement says so.
#pragma once

#include <shardwise/runtime/eager/dtensor.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class T, class Shape, class Rank, class... P>
using made_on = dtensor<spec_of<T, Shape, typename Rank::mesh_type, P...>::value, typename Rank::mesh_type, Rank>;

// A word of two 32-bit halves a rank: cut by the axis asked along, and on the others each rank's own business.
template <class Mesh, int Axis>
struct words_along {
  static constexpr spec value = [] {
    spec s = mesh_spec<Mesh>(dtype::i32);
    s.rank = 2;
    s.extent[0] = Mesh::sizes[Axis];
    s.extent[1] = 2;
    s.place[Axis] = shard_value(0);
    make_contiguous(s);
    normalise(s);
    return s;
  }();
};

template <int Axis, class Tensor, class Rank>
void check_replicas_along(const eager<Rank>& on, std::uint64_t hash) {
  using mesh_type = typename Tensor::mesh_type;
  constexpr placement p = Tensor::sp.place[Axis];
  if constexpr (p.is_whole() && mesh_type::sizes[Axis] > 1) {
    const std::int32_t halves[2] = {static_cast<std::int32_t>(hash), static_cast<std::int32_t>(hash >> 32)};
    const auto all = dtensor<words_along<mesh_type, Axis>::value, mesh_type, Rank>::from_local(on, halves).full_tensor();
    const auto block = all.to_local();
    const int me = on.rank().index();
    std::string differ;
    for (int r = 1; r < mesh_type::sizes[Axis]; ++r)
      if (block(r, 0) != block(0, 0) || block(r, 1) != block(0, 1))
        differ += (differ.empty() ? "" : ", ") + std::to_string(mesh_type::group_member(me, Axis, r));
    if (!differ.empty())
      throw std::logic_error("shardwise: from_local: axis " + std::to_string(Axis) +
                             " of the mesh does not split the tensor, but the blocks of ranks " + differ +
                             " differ from that of rank " + std::to_string(mesh_type::group_member(me, Axis, 0)) +
                             "; give all of them the same values, or place the tensor shard or partial on that axis");
  }
  if constexpr (Axis + 1 < mesh_type::axes) check_replicas_along<Axis + 1, Tensor>(on, hash);
}

template <class Tensor, class Rank>
void check_replicas(const eager<Rank>& on, const Tensor& t) {
  const auto block = t.to_local();
  std::uint64_t hash = hash_seed;  // of the bytes, as stored
  const auto* const bytes = reinterpret_cast<const unsigned char*>(block.data.data());
  for (std::size_t i = 0; i < block.data.size_bytes(); ++i) hash = hash_mixed(hash, bytes[i]);
  check_replicas_along<0, Tensor>(on, hash);
}

}  // namespace detail

// All ranks call these alike. Placements as in dtensor_of; one that a rank is not told is replicate. Where the tensor is
// partial, coordinate 0 of the axis holds the value (avg, max, min: every rank), so that full_tensor() is what is said.
template <class T, class Shape, class... Placements, class Rank>
auto empty(const eager<Rank>& on) {
  return detail::made_on<T, Shape, Rank, Placements...>::empty(on);
}
template <class T, class Shape, class... Placements, class Rank>
auto zeros(const eager<Rank>& on) {
  return detail::made_on<T, Shape, Rank, Placements...>::zeros(on);
}
template <class T, class Shape, class... Placements, class Rank>
auto ones(const eager<Rank>& on) {
  return detail::made_on<T, Shape, Rank, Placements...>::ones(on);
}
template <class T, class Shape, class... Placements, class Rank>
auto full(const eager<Rank>& on, T value) {
  return detail::made_on<T, Shape, Rank, Placements...>::full(on, value);
}
// Uniform in [0, 1), and normal with mean 0 and deviation 1, from (seed, global element index) alone.
template <class T, class Shape, class... Placements, class Rank>
auto rand(const eager<Rank>& on, std::uint64_t seed) {
  return detail::made_on<T, Shape, Rank, Placements...>::rand(on, seed);
}
template <class T, class Shape, class... Placements, class Rank>
auto randn(const eager<Rank>& on, std::uint64_t seed) {
  return detail::made_on<T, Shape, Rank, Placements...>::randn(on, seed);
}

}  // namespace shardwise::inline v0_1
