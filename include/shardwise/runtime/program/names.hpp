// SPDX-License-Identifier: Apache-2.0
// names: what a run answers to a name that a program does not have; the moments of an optimizer's states.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <shardwise/propagation/attributes.hpp>
#include <shardwise/support/edit_distance.hpp>

namespace shardwise::inline v0_1 {

// Which of the states that an optimizer keeps for a parameter: the first moment (of sgd<true> its momentum), the second one
// (Adam), the largest second one (amsgrad), and of optimizers over lists the parameter's count of steps.
enum class moment : std::int64_t {
  first = first_moment,
  second = second_moment,
  steps = step_count,
  largest_second = largest_second_moment
};

namespace runtime {

constexpr const char* name_of(moment m) {
  return m == moment::first            ? "first moment"
         : m == moment::second         ? "second moment"
         : m == moment::largest_second ? "largest second moment"
                                       : "count of steps";
}

// "...; the nearest names are 'a', 'b'": of `count` names, name_of(i) the i-th.
template <class NameOf>
[[noreturn]] __attribute__((noinline)) void refuse_name(const char* what, std::string_view name, int count,
                                                        const NameOf& name_of) {
  std::string text = std::string("shardwise: the model has no ") + what + " named '" + std::string(name) + "'";
  std::string best[3];
  int distance[3] = {1 << 20, 1 << 20, 1 << 20};
  for (int i = 0; i < count; ++i) {
    std::string candidate = name_of(i);
    int d = shardwise::detail::edit_distance(candidate, name);
    for (int k = 0; k < 3; ++k)
      if (d < distance[k]) {
        candidate.swap(best[k]);
        const int further = distance[k];
        distance[k] = d;
        d = further;
      }
  }
  for (int k = 0; k < 3 && !best[k].empty(); ++k) text += (k == 0 ? "; the nearest names are '" : ", '") + best[k] + "'";
  throw std::out_of_range(text);
}

// `other`: the program keeps another state of that parameter.
[[noreturn]] __attribute__((noinline)) inline void refuse_state(std::string_view parameter, moment m, bool other) {
  throw std::out_of_range(
      std::string("shardwise: state: the program keeps no ") + name_of(m) + " of parameter '" + std::string(parameter) +
      (other ? "', and another moment of it: ask for one that its optimizer has"
             : "', nor any other state of it: it is frozen, the loss does not depend on it, or the program's "
               "optimizer keeps none"));
}

}  // namespace runtime

}  // namespace shardwise::inline v0_1
