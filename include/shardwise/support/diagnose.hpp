// SPDX-License-Identifier: Apache-2.0
// Turns a finding into one static_assert: the problem's sentence on the first line, the facts as types after it.
#pragma once

#include <string_view>

#include <shardwise/support/finding.hpp>

namespace shardwise {

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

// In a function of its own: clang takes a class whose own assertion failed for incomplete, and says so again.
#define SHARDWISE_X(name, text)                                   \
  template <class... Facts>                                       \
  struct raise<problem::name, Facts...> {                         \
    static constexpr bool say() {                                 \
      static_assert(admitted<Facts...>, "shardwise: " text ".");  \
      return true;                                                \
    }                                                             \
    static constexpr bool ok = say();                             \
  };
#include <shardwise/support/problems.def.hpp>

// The same sentence for errors that only a run can know.
constexpr std::string_view sentence(problem p) {
  switch (p) {
#define SHARDWISE_X(name, text) \
  case problem::name: return "shardwise: " text ".";
#include <shardwise/support/problems.def.hpp>
    case problem::none: break;
  }
  return "";
}

}  // namespace shardwise
