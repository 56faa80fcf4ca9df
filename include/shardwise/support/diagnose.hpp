// SPDX-License-Identifier: Apache-2.0
// Turns a finding into one static_assert: the problem's sentence, and its facts: as values in the same text where the
// compiler computes it, as types after it elsewhere.
#pragma once

#include <shardwise/support/config.hpp>
#include <shardwise/support/message.hpp>

namespace shardwise::inline v0_1 {

// Concepts choose overloads, sentences explain: nvcc prints no reason for a failed concept, but every compiler prints
// the literal of a static_assert and the template arguments of the class it stands in.
// `ok` is always true, so that the sentence is the only error.
template <problem P, class... Facts>
struct raise {
  static constexpr bool ok = true;
};

// Never true; g++ and clang print it, and so the facts, next to the sentence.
template <class... Facts>
inline constexpr bool admitted = false;

// In a function of its own: clang takes a class whose own assertion failed for incomplete, and says so again. One class that has
// every sentence, not one for each: parsing a class costs every compiler some ten times the parsing of an assertion.
template <problem P, class... Facts>
  requires(P != problem::none)
struct raise<P, Facts...> {
  static constexpr bool say() {
#if SHARDWISE_COMPUTED_MESSAGES
    static_assert(false, message<P, Facts...>{});
#else
#define SHARDWISE_X(name, text) static_assert(P != problem::name || admitted<Facts...>, "shardwise: " text ".");
#include <shardwise/support/problems.def.hpp>
#endif
    return true;
  }
  static constexpr bool ok = say();
};

}  // namespace shardwise::inline v0_1
