// SPDX-License-Identifier: Apache-2.0
// type_name: how a run-time message calls a type. Spelling differs between compilers; equal types have equal names.
#pragma once

#include <string>

#include <shardwise/support/spelling.hpp>

namespace shardwise {

template <class T>
std::string type_name() {
  return std::string(spelling<T>());
}

}  // namespace shardwise
