// SPDX-License-Identifier: Apache-2.0
// copied_block: what an executor on a device gives of an output by name; host_copies: of its blocks to other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace shardwise::inline v0_1::cuda {

// A block on the host.
template <class E>
struct copied_block : std::vector<E> {
  // Its value if it is one.
  E item() const {
    if (this->size() != 1)
      throw std::logic_error("shardwise: item: this rank's block has " + std::to_string(this->size()) +
                             " elements; read them one by one, or make the output a scalar with sum or mean");
    return this->front();
  }
};

// Blocks on the host that other ranks read, and those that are put together out of theirs, by node.
template <class E>
struct host_copies {
  std::vector<std::vector<E>> shown;
  std::vector<std::pair<int, std::vector<E>>> landing;

  const E* show(std::vector<E>&& block) {
    shown.push_back(std::move(block));
    return shown.back().data();
  }
  E* land(int id, std::int64_t elements) {
    landing.emplace_back(id, std::vector<E>(static_cast<std::size_t>(elements)));
    return landing.back().second.data();
  }
};

}  // namespace shardwise::inline v0_1::cuda
