// SPDX-License-Identifier: Apache-2.0
// with_rank: an exception that says on which rank it was thrown.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include <shardwise/runtime/failures.hpp>

namespace shardwise::inline v0_1::runtime {

// `e` with the rank in its sentence, if it does not say it already; the exception itself is nested in the new one.
inline std::exception_ptr with_rank(std::exception_ptr e, int rank) {
  const std::string who = "rank " + std::to_string(rank);
  try {
    std::rethrow_exception(e);
  } catch (const rank_failed&) {  // another rank's sentence
    return e;
  } catch (const std::exception& x) {
    const std::string said = x.what();
    if (said.ends_with(who + ")") || said.starts_with("shardwise: " + who + " ")) return e;
    try {
      std::throw_with_nested(std::runtime_error(said + " (" + who + ")"));
    } catch (...) {
      return std::current_exception();
    }
  } catch (...) {
    return e;
  }
}

}  // namespace shardwise::inline v0_1::runtime
