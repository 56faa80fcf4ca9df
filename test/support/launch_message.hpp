// SPDX-License-Identifier: Apache-2.0
// message_of: what launch tells of ranks of a mesh that throw.
#pragma once

#include <exception>
#include <string>

#include <shardwise/runtime/threads/threads.hpp>

namespace test {

// That of a rank that was only released from a collective begins with "released: "; it is never what launch should tell.
template <class Mesh>
std::string message_of(const auto& body) {
  try {
    shardwise::launch<Mesh>(body);
  } catch (const shardwise::rank_failed& e) {
    return std::string("released: ") + e.what();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no exception";
}

}  // namespace test
