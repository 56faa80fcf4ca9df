// SPDX-License-Identifier: Apache-2.0
// Proofs of attention: its attributes by name, and cases whose operands are given leaf by leaf. At most 72 elements a tensor; 3 and 5 are not divided
// by the ranks.
#pragma once

#include <rules.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/attention/host.hpp>

namespace attention_proofs {

namespace laws = sw::laws;
namespace own = sw::custom;

inline constexpr std::int64_t bias = 1, mask = 2, documents = 4, key = 8;
constexpr sw::op_attr with(int layout, bool causal, int window = 0, std::int64_t operands = 0, double dropout = 0) {
  sw::attention_attributes a;
  a.layout = layout;
  a.causal = causal;
  a.window = window;
  a.dropout = dropout;
  a.operands = operands;
  return sw::pack_attributes(a);
}

// An application of Op to Leaf..., under the rows of Op, of its adjoint and of their deltas.
template <const sw::custom_operation& Op, const sw::custom_operation& Adjoint, sw::op_attr A, laws::leaf... Leaf>
struct further_case {
  using used = laws::customs<Op, Adjoint, own::attention_delta>;
  using operation = sw::detail::custom_tag<Op>;
  static constexpr laws::program value = laws::apply(&Op, {Leaf...}, A);
};
inline constexpr laws::leaf q = laws::tensor_of({2, 2, 3, 2});

}  // namespace attention_proofs
