// SPDX-License-Identifier: Apache-2.0
// copied_block: what an executor on a device gives of an output by name.
#pragma once

#include <stdexcept>
#include <string>
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

}  // namespace shardwise::inline v0_1::cuda
