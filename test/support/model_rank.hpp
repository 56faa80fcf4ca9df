// SPDX-License-Identifier: Apache-2.0
// model_rank: the least that the concepts of runtime/rank.hpp accept, to take a member from and see what is said.
#pragma once

#include <array>
#include <cstdint>

#include <shardwise/runtime/rank.hpp>

namespace test {

namespace sw = shardwise;

template <class Mesh>
struct model_rank {  // without collectives on the host
  using mesh_type = Mesh;
  int index() const { return 0; }
  static int size() { return Mesh::size; }
  const std::array<int, sw::max_axes>& coordinate() const { return where; }
  int coordinate(int axis) const { return where[static_cast<unsigned>(axis)]; }
  void barrier() {}
  void agree(std::uint64_t, const char*) {}
  std::int64_t bytes_written(int) const { return 0; }
  void count_written(int, std::int64_t) {}
  void reset_counts() {}
  std::array<int, sw::max_axes> where{};
};

struct model_collectives {
  template <class T, class Rank>
  static void all_reduce(const sw::runtime::call&, Rank&) {}
  template <class T, class Rank>
  static void reduce_scatter(const sw::runtime::call&, Rank&) {}
  template <class T, class Rank>
  static void all_gather(const sw::runtime::call&, Rank&) {}
  template <class T, class Rank>
  static void all_to_all(const sw::runtime::call&, Rank&) {}
  template <class T, class Rank>
  static void resplit(const sw::runtime::call&, Rank&) {}
  template <class T, class Rank>
  static void exchange_halo(const sw::runtime::call&, Rank&) {}
};

}  // namespace test
