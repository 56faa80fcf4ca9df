// SPDX-License-Identifier: Apache-2.0
// inputs, input_tensor: what a task is given beside its model.
#pragma once

#include <shardwise/vocabulary/shape.hpp>
#include <shardwise/vocabulary/operand.hpp>

namespace shardwise::inline v0_1 {

// A tensor that the caller fills before each step: element type, shape and placements as in spec_of.
template <class T, class Shape, class... Placements>
struct input_tensor {
  template <class Mesh>
  using spec_type = spec_of<T, Shape, Mesh, Placements...>;
};

template <class... Inputs>
struct inputs {
  static constexpr int count = static_cast<int>(sizeof...(Inputs));
};

}  // namespace shardwise::inline v0_1
