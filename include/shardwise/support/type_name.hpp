// SPDX-License-Identifier: Apache-2.0
// type_name: how a run-time message calls a type. Spelling differs between compilers; equal types have equal names.
#pragma once

#include <string>

#include <shardwise/support/spelling.hpp>

namespace shardwise::inline v0_1 {

template <class T>
std::string type_name() {
  std::string name(spelling<T>());
  constexpr std::string_view version = "::" SHARDWISE_VERSION_NAMESPACE "::";  // which some compilers write and no user does
  for (std::size_t at = name.find(version); at != name.npos; at = name.find(version, at)) name.erase(at, version.size() - 2);
  return name;
}

}  // namespace shardwise::inline v0_1
