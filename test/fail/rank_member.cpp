// SPDX-License-Identifier: Apache-2.0
// A backend's rank without a member that executors and eager tensors need.
// expect: backend: the rank type lacks the member that rank_member:: names
// expect: rank_member::agree

#include <shardwise/runtime/executor.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;

struct no_collectives {
  template <class T, class Rank>
  static void communicate(const sw::runtime::call&, Rank&) {}
};
struct my_rank {
  using mesh_type = mesh;
  using collectives = no_collectives;
  int index() const { return 0; }
  static int size() { return 2; }
  const std::array<int, sw::max_axes>& coordinate() const { return where; }
  int coordinate(int axis) const { return where[static_cast<unsigned>(axis)]; }
  void barrier() {}
#ifndef SHARDWISE_FAIL
  void agree(std::uint64_t, const char*) {}
#endif
  std::int64_t bytes_written(int) const { return 0; }
  void count_written(int, std::int64_t) {}
  void reset_counts() {}
  std::array<int, sw::max_axes> where{};
};
constexpr bool ok = sw::checked_host_rank<my_rank>::ok;
