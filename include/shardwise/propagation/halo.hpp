// SPDX-License-Identifier: Apache-2.0
// Windows that slide along a dim which is cut over ranks: the placements under which each rank has all that its share needs.
#pragma once

#include <shardwise/propagation/rule.hpp>

namespace shardwise::inline v0_1 {

// Window t reads elements t step - before to t step + behind, of which those outside of the dim are padding.
struct sliding {
  std::int64_t step = 1, before = 0, behind = 0;

  // Each window is the element under it: a rank's own elements are all that it needs.
  constexpr bool is_alone() const { return step == 1 && before == 0 && behind == 0; }
  // Whether a placement holds these numbers, of `count` windows or elements.
  constexpr bool has_halo(std::int64_t count) const {
    return step <= max_factor && before >= -max_halo && before <= max_halo && behind >= -max_halo && behind <= max_halo &&
           count <= max_windows;
  }
  // Of a dim that `count` windows slide along, cut as these are; and of windows along a dim of `count` elements, cut as these are.
  constexpr placement windows(int dim, std::int64_t count) const { return placed(placement_kind::windows, dim, count); }
  constexpr placement readers(int dim, std::int64_t count) const { return placed(placement_kind::readers, dim, count); }

 private:
  constexpr placement placed(placement_kind kind, int dim, std::int64_t count) const {
    return halo_value(kind, dim, static_cast<int>(step), static_cast<int>(before), static_cast<int>(behind), count);
  }
};

constexpr bool any_overlaps(const spec& s, int dim) {
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].overlaps(dim)) return true;
  return false;
}
// The axis that alone cuts `dim`, in equal shards, or -1: then it can have halos.
constexpr int halo_axis(const spec& x, int dim) {
  int found = -1;
  for (int a = 0; a < x.axes; ++a) {
    if (!x.place[a].is_shard(dim) && !x.place[a].overlaps(dim)) continue;
    if (found >= 0 || x.place[a] != shard_value(dim)) return -1;
    found = a;
  }
  return found;
}

}  // namespace shardwise::inline v0_1
