// SPDX-License-Identifier: Apache-2.0
// read_leaves: what a load gives to a program, without a second copy of what it did not hold before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include <shardwise/io/checkpoint/leaves.hpp>
#include <shardwise/runtime/executor/block_access.hpp>

namespace shardwise::inline v0_1::storage {

// What a program is to hold, read before it holds it: apart, so that it keeps what it has until all is well; or, of a leaf that holds
// nothing yet, into its place, which `take_back` makes zeros again.
template <class Executor>
struct read_leaves {
  using T = typename Executor::element;
  Executor& ex;
  std::vector<saved_leaf> leaves = {};
  std::vector<std::vector<T>> blocks = {};  // of each leaf, empty of those in place
  std::vector<char> in_place = {};

  // from(k, layout, elements): leaf number k, this rank's part of it as the layout says, goes to the elements.
  template <class From>
  void read(const From& from) {
    std::map<int, int> uses;  // the parameters of a flat group have one count of steps
    for (const saved_leaf& leaf : leaves) ++uses[leaf.id];
    blocks.resize(leaves.size());
    in_place.resize(leaves.size(), 0);
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      const int id = leaves[k].id;
      const int table = leaves[k].is_state ? -1 : static_cast<int>(k);  // parameters, then buffers stand first
      const runtime::layout& l = ex.layout_of(id);
      if (l.numel() == 0) continue;
      if (uses[id] == 1 && runtime::block_access::holds_nothing(ex, id, table)) {
        in_place[k] = 1;
        runtime::block_access::fill(ex, id, [&](T* to) { from(k, l, to); });
      } else {
        blocks[k].resize(static_cast<std::size_t>(l.numel()));
        from(k, dense_layout(l), blocks[k].data());
      }
    }
  }
  void give() {
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      const runtime::layout& l = ex.layout_of(leaves[k].id);
      if (!blocks[k].empty())
        runtime::block_access::fill(ex, leaves[k].id, [&](T* to) { copy_block(blocks[k].data(), dense_layout(l), to, l); });
    }
  }
  void take_back() {
    for (std::size_t k = 0; k < in_place.size(); ++k)
      if (in_place[k])
        runtime::block_access::fill(ex, leaves[k].id, [&](T* to) {
          std::fill_n(to, static_cast<std::size_t>(ex.layout_of(leaves[k].id).numel()), T{});
        });
  }
};

}  // namespace shardwise::inline v0_1::storage
