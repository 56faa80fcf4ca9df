// SPDX-License-Identifier: Apache-2.0
// executor_checks: what an executor watches while it runs.
#pragma once

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

// What an executor watches while it runs; together: poison | finite.
//   poison: storage that is dead is overwritten, and ranks compare their seeds.
//   finite: the first node whose result holds a NaN or an infinity ends the run with its name, module path and rank. What
//     counts, and how masks of -inf pass, stands at finite_watch. Results are looked at one by one, so collectives do not
//     overlap kernels.
enum class executor_checks : unsigned { none = 0, poison = 1, finite = 2 };
constexpr executor_checks operator|(executor_checks a, executor_checks b) {
  return static_cast<executor_checks>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool has_check(executor_checks all, executor_checks one) {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}

}  // namespace shardwise::inline v0_1
