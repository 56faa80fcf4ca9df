// SPDX-License-Identifier: Apache-2.0
// Programs that rules are proved on: an operation, or the few that only occur together, on small tensors; what of them is known
// from one device; and what a proof can find.
#pragma once

#include <initializer_list>

#include <shardwise/autodiff/adjoints.hpp>
#include <shardwise/laws/modular.hpp>

namespace shardwise::inline v0_1::laws {

inline constexpr int max_leaves = max_inputs;
inline constexpr int max_elements = 72;  // of any tensor of a program
inline constexpr int max_nodes = 40;
inline constexpr int max_ranks = 6;
inline constexpr int most_results = 4;  // of the last step

struct leaf {
  int rank = 0;
  std::int64_t extent[max_rank]{};
  int below = 0;  // > 0: indices less than this
  int few = 0;    // > 0: values less than this, so that many are equal
};

constexpr leaf tensor_of(std::initializer_list<int> extents) {
  leaf l;
  for (int e : extents) l.extent[l.rank++] = e;
  return l;
}
constexpr leaf indices(std::initializer_list<int> extents, int below) {
  leaf l = tensor_of(extents);
  l.below = below;
  return l;
}

constexpr leaf few_values(std::initializer_list<int> extents, int below) {
  leaf l = tensor_of(extents);
  l.few = below;
  return l;
}

// Operand k is leaf k; operand leaves + j is the result of step j. The last step may have several results.
struct step {
  op_code op = op_code::input;
  const custom_operation* custom = nullptr;
  op_attr a{};
  double f = 0;
  int inputs = 0;
  int in[max_inputs]{};

  constexpr void set(op_code given) { op = given; }
  constexpr void set(const custom_operation* given) {
    op = op_code::custom;
    custom = given;
  }
  constexpr const operation& record() const { return custom ? custom->record : operation_of(op); }
  constexpr const autodiff::adjoint_rule& rule() const { return custom ? *custom->adjoint.value : autodiff::rule_of(op); }
};

struct program {
  leaf leaves[max_leaves]{};
  int leaf_count = 0;
  step steps[4]{};
  int step_count = 0;
  std::int32_t block = 1;  // shards are also tried with this block

  bool partly = false;  // rows of the last step that an earlier one refuses are left to other cases

  constexpr program where_admitted() const {
    program p = *this;
    p.partly = true;
    return p;
  }
  constexpr program blocks(std::int32_t b) const {
    program p = *this;
    p.block = b;
    return p;
  }
  // Op: an op_code, or the address of a custom operation.
  template <class Op>
  constexpr program then(Op op, std::initializer_list<int> in, op_attr a = {}, double f = 0) const {
    program p = *this;
    step& s = p.steps[p.step_count++];
    s.set(op);
    s.a = a;
    s.f = f;
    for (int i : in) s.in[s.inputs++] = i;
    return p;
  }
  constexpr const step& last() const { return steps[step_count - 1]; }
  constexpr int results() const { return last().record().results; }
};

constexpr program on_leaves(std::initializer_list<leaf> leaves) {
  program p;
  for (const leaf& l : leaves) p.leaves[p.leaf_count++] = l;
  return p;
}
// One operation on all leaves in order.
template <class Op>
constexpr program apply(Op op, std::initializer_list<leaf> leaves, op_attr a = {}, double f = 0) {
  program p = on_leaves(leaves);
  step& s = p.steps[p.step_count++];
  s.set(op);
  s.a = a;
  s.f = f;
  for (int k = 0; k < p.leaf_count; ++k) s.in[s.inputs++] = k;
  return p;
}

struct ranks_of {
  int axes = 1;
  std::int32_t size[max_axes] = {1, 1, 1, 1};

  constexpr int count() const {
    int n = 1;
    for (int a = 0; a < axes; ++a) n *= size[a];
    return n;
  }
  // Row-major, as mesh<...>.
  constexpr void coordinate(int rank, int* c) const {
    for (int a = max_axes - 1; a >= 0; --a) {
      c[a] = rank % size[a];
      rank /= size[a];
    }
  }
  constexpr int rank_of(const int* c) const {
    int r = 0;
    for (int a = 0; a < axes; ++a) r = r * size[a] + c[a];
    return r;
  }
};

enum class failure {
  none,
  not_admitted,          // infer refuses the placement
  row_and_infer_differ,  // infer's result placement is not the row's
  pullback_error,        // a rule used inside the pullback refuses
  cotangent_missing,
  cotangent_placement,   // not the dual of the operand's
  adjoint_not_admitted,  // a backward node's operands do not give the placement or extents that it claims
  block_layout,          // a local block is not where its spec says
  split,                 // blocks do not cover the tensor exactly once
  value,                 // forward values differ
  adjoint_value,         // cotangents differ
  not_the_adjoint,       // <dy, A x> != <A* dy, x> for a linear operation
  too_large,             // more elements or results than a proof holds, or several results of a step that is not the last
  kernel_unknown,        // a custom operation that is not among the customs of the proof
};

// One device: what every placement is compared with.
struct reference {
  modp leaves[max_leaves][max_elements]{};
  std::int32_t indices[max_leaves][max_elements]{};
  modp out[most_results][max_elements]{};
  modp dy[most_results][max_elements]{};
  modp cotangent[max_leaves][max_elements]{};
  bool has_cotangent[max_leaves]{};
  bool used[static_cast<int>(op_code::count)]{};  // operations of the adjoint
  failure wrong = failure::none;
};

}  // namespace shardwise::inline v0_1::laws
