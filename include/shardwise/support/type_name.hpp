// SPDX-License-Identifier: Apache-2.0
// type_name: how a run-time message calls a type. Spelling differs between compilers; equal types have equal names.
#pragma once

#include <string>

namespace shardwise {

template <class T>
std::string type_name() {
  const std::string signature = __PRETTY_FUNCTION__;
  std::size_t at = signature.find("[with T = "), skip = 10;
  if (at == std::string::npos) {
    at = signature.find("[T = ");
    skip = 5;
  }
  if (at == std::string::npos) return signature;
  std::size_t end = signature.size() - 1;
  // g++ goes on with the other names that the signature mentions
  int depth = 0;
  for (std::size_t i = at + skip; i < end; ++i) {
    const char c = signature[i];
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (depth == 0 && c == ';') end = i;
  }
  return signature.substr(at + skip, end - at - skip);
}

}  // namespace shardwise
