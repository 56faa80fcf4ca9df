// SPDX-License-Identifier: Apache-2.0
// A mesh axis is a named type with a size, so that errors print its name: struct tp : axis<2> {};
#pragma once

namespace shardwise {

template <int Size>
struct axis {
  static constexpr int size = Size;
};

}  // namespace shardwise
