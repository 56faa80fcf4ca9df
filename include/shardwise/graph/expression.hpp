// SPDX-License-Identifier: Apache-2.0
// expression: what a fused kernel computes for one element, as a structural value: equal expressions are one kernel.
#pragma once

#include <cstdint>
#include <type_traits>

#include <shardwise/propagation/op.hpp>

namespace shardwise::inline v0_1 {

inline constexpr int max_fused_inputs = 5;  // of one kernel with its expression, and buffers that it stores in
inline constexpr int max_steps = 8;         // operations of one expression
inline constexpr int max_constants = 4;     // real parameters of its operations
inline constexpr int max_expressions = 24;  // of one graph, all different
inline constexpr int no_slot = 15;

// Slots are the values loaded, then the steps' results; the last one is the expression's value.
struct expression_step {
  op_code op = op_code::input;
  int x = 0, y = no_slot;  // slots of the operands
  int store = 0;           // k: the value is also written to the k-th room, from 1
  int constant = 0;        // k: the operation's real parameter is constant k, from 1
};

// Words of 32 bits, so that it is a template argument without padding and copying a graph's table costs little.
struct expression {
  std::uint32_t head;  // values loaded (4 bits), steps (4), rooms (4), 1 if value 0 is another kernel's result
  std::uint32_t step[max_steps];

  constexpr bool operator==(const expression&) const = default;

  constexpr int values() const { return static_cast<int>(head & 15U); }
  constexpr int steps() const { return static_cast<int>(head >> 4 & 15U); }
  constexpr int stores() const { return static_cast<int>(head >> 8 & 15U); }
  constexpr bool follows() const { return (head >> 12 & 1U) != 0; }
  // Operands of the node that the expression reads or writes; they stand behind those of the kernel it follows.
  constexpr int operands() const { return values() - (follows() ? 1 : 0) + stores(); }

  constexpr expression_step at(int i) const {
    const std::uint32_t w = step[i];
    return {static_cast<op_code>(w & 255U), static_cast<int>(w >> 8 & 15U), static_cast<int>(w >> 12 & 15U),
            static_cast<int>(w >> 16 & 15U), static_cast<int>(w >> 20 & 15U)};
  }
  constexpr void append(const expression_step& s) {
    step[steps()] = static_cast<std::uint32_t>(s.op) | static_cast<std::uint32_t>(s.x) << 8 |
                    static_cast<std::uint32_t>(s.y) << 12 | static_cast<std::uint32_t>(s.store) << 16 |
                    static_cast<std::uint32_t>(s.constant) << 20;
    head += 1U << 4;
  }
};

static_assert(std::has_unique_object_representations_v<expression>);

inline constexpr expression no_expression{};

// Whether it adds values to another kernel's result one after the other, and does nothing else.
constexpr bool adds_in_order(const expression& e) {
  if (!e.follows() || e.stores() > 0 || e.steps() + 1 != e.values()) return false;
  for (int i = 0; i < e.steps(); ++i) {
    const expression_step s = e.at(i);
    const int before = i == 0 ? 0 : e.values() + i - 1;
    if (s.op != op_code::add || !((s.x == before && s.y == i + 1) || (s.y == before && s.x == i + 1))) return false;
  }
  return true;
}

constexpr expression begin_expression(int values, int stores, bool follows) {
  expression e{};
  e.head = static_cast<std::uint32_t>(values) | static_cast<std::uint32_t>(stores) << 8 | (follows ? 1U << 12 : 0U);
  return e;
}

}  // namespace shardwise::inline v0_1
