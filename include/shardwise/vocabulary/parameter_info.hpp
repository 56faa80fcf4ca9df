// SPDX-License-Identifier: Apache-2.0
// parameter_info: a parameter or a buffer of a model: where it is declared, what it is called, and how it begins.
#pragma once

#include <shardwise/vocabulary/init.hpp>

namespace shardwise::inline v0_1 {

// `node` and `scope` are those of the program's graph; `scale` is the initial values' (init_kind).
struct parameter_info {
  int node = -1;
  int scope = -1;
  const char* name = nullptr;
  init_kind kind = init_kind::zeros;
  double scale = 0;
};

}  // namespace shardwise::inline v0_1
