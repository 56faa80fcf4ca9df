// SPDX-License-Identifier: Apache-2.0
// What a rank throws where it waits for others, on every backend.
#pragma once

#include <stdexcept>
#include <string>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

// What the ranks that did not fail see when another one did.
struct SHARDWISE_VISIBLE rank_failed : std::runtime_error {
  rank_failed() : std::runtime_error("shardwise: another rank failed; this one was released from a collective") {}
  // Between processes: which one, and what it said.
  rank_failed(int who, const std::string& what)
      : std::runtime_error("shardwise: rank " + std::to_string(who) + " failed, and this one was released: " + what) {}
};

// What a rank sees that waits for one whose function has returned.
struct SHARDWISE_VISIBLE rank_returned : std::runtime_error {
  explicit rank_returned(int who) : std::runtime_error(said(who, "another one waits for it")), rank(who) {}
  rank_returned(int who, int waiting, const char* in)
      : std::runtime_error(said(who, "rank " + std::to_string(waiting) + " waits in " + in)), rank(who) {}
  int rank;

 private:
  static std::string said(int who, const std::string& what) {
    return "shardwise: rank " + std::to_string(who) + " has returned while " + what +
           "; every rank must make the same calls in the same order: let none return before the last of them";
  }
};

}  // namespace shardwise::inline v0_1
