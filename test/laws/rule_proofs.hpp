// SPDX-License-Identifier: Apache-2.0
// Proves sharding rules and their adjoints while compiling: one constant expression for each admitted placement. The
// cases are split by family, one source each.
#pragma once

#include <laws/rule_cases.hpp>

#include <utility>

#include <shardwise/laws/cases.hpp>

namespace shardwise::laws {

template <int I>
struct numbered_case {
  using used = customs<>;
  using operation = typename shardwise::detail::op_tag<cases[I].last().op>::type;
  static constexpr const program& value = cases[I];
};

template <int Case>
constexpr int prove_case() {
  using at = numbered_case<Case>;
  int n = one_device<at>::count + on_one_axis<at, 2>::count + on_one_axis<at, 3>::count;
  if constexpr (Case % 6 == 1) n += on_two_axes<at, (Case % 4 == 1 ? 2 : 3)>::count;
  return n;
}
// By a case's last operation. Every case is in one family, whatever it is of.
enum class family { contractions, pointwise, elementwise, reductions, rows, moves, indexing, redistributions, count };

constexpr family family_of(op_code op) {
  if (is_elementwise(op)) return family::elementwise;
  switch (op) {
    case op_code::einsum: return family::contractions;
    case op_code::redistribute: return family::redistributions;
    case op_code::amax:
    case op_code::amin:
    case op_code::prod:
    case op_code::prod_dx:
    case op_code::sum:
    case op_code::sumsq:
    case op_code::vector_norm:
    case op_code::vector_norm_dx: return family::reductions;
    case op_code::softmax:
    case op_code::softmax_dx:
    case op_code::norm_stats:
    case op_code::norm_apply:
    case op_code::norm_dx:
    case op_code::norm_dw:
    case op_code::lse:
    case op_code::nll:
    case op_code::nll_dx:
    case op_code::log_softmax:
    case op_code::exp_sum: return family::rows;
    case op_code::permute:
    case op_code::reshape:
    case op_code::wait:
    case op_code::detach:
    case op_code::slice:
    case op_code::pad:
    case op_code::broadcast:
    case op_code::cat:
    case op_code::constant_pad:
    case op_code::triangle: return family::moves;
    default: return index_operand(op) >= 0 || makes_indices(op) ? family::indexing : family::pointwise;
  }
}

template <family Family>
inline constexpr int cases_of = [] {
  int n = 0;
  for (const program& p : cases) n += family_of(p.last().op) == Family ? 1 : 0;
  return n;
}();
template <int... F>
constexpr int cases_of_all(std::integer_sequence<int, F...>) {
  return (0 + ... + cases_of<static_cast<family>(F)>);
}
static_assert(cases_of_all(std::make_integer_sequence<int, static_cast<int>(family::count)>{}) == case_count);

template <family Family, int Case>
constexpr int prove_one() {
  if constexpr (family_of(cases[Case].last().op) == Family) return prove_case<Case>();
  else return 0;
}
template <family Family, int... Case>
constexpr int prove_cases(std::integer_sequence<int, Case...>) {
  return (0 + ... + prove_one<Family, Case>());
}
// Placements that were proved.
template <family Family>
inline constexpr int proved = prove_cases<Family>(std::make_integer_sequence<int, case_count>{});

}  // namespace shardwise::laws
