// SPDX-License-Identifier: Apache-2.0
// einsum: sums of products over the letters that the result lacks, as torch.einsum.
#pragma once

#include <string_view>

#include <shardwise/graph/functions/views.hpp>
#include <shardwise/support/fixed_string.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// What an equation says: the letters of each operand and of the result, in order.
struct equation {
  char letters[3][max_rank + 1]{};
  int count[3]{};
  int operands = 0;
  bool well_formed = true;

  constexpr bool has(int k, char c) const {
    for (int d = 0; d < count[k]; ++d)
      if (letters[k][d] == c) return true;
    return false;
  }
};

// "ij,jk->ik", spaces apart: letters, one comma at most, an arrow; each letter once an operand, those of the result in an operand.
constexpr equation parsed_equation(std::string_view text) {
  equation e;
  int k = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c == ' ') continue;
    if (c == ',' && k == 0) {
      k = 1;
    } else if (c == '-' && k < 2 && i + 1 < text.size() && text[i + 1] == '>') {
      e.operands = k + 1;
      k = 2;
      ++i;
    } else if (letter && e.count[k] < max_rank && !e.has(k, c) && (k < 2 || e.has(0, c) || e.has(1, c))) {
      e.letters[k][e.count[k]++] = c;
    } else {
      e.well_formed = false;
    }
  }
  if (k != 2) e.well_formed = false;
  return e;
}

// The dims of operand k that neither the other operand nor the result has.
constexpr std::int64_t summed_alone(const equation& e, int k) {
  std::int64_t mask = 0;
  for (int d = 0; d < e.count[k]; ++d)
    if (!e.has(1 - k, e.letters[k][d]) && !e.has(2, e.letters[k][d])) mask |= std::int64_t{1} << d;
  return mask;
}

// Letters numbered from 1 in the order in which they are met; dims that are summed alone are gone. Of two operands of at most 8 dims and
// a result of at most 8 there are at most 12: four that are summed, and eight.
constexpr op_attr labels_of(const equation& e) {
  char seen[15]{};
  int known = 0;
  einsum_attributes r{};
  const auto pack = [&](int k) {
    std::int64_t v = 0;
    int at = 0;
    const std::int64_t gone = k < 2 ? summed_alone(e, k) : 0;
    for (int d = 0; d < e.count[k]; ++d) {
      if ((gone >> d & 1) != 0) continue;
      int l = 0;
      while (l < known && seen[l] != e.letters[k][d]) ++l;
      if (l == known) seen[known++] = e.letters[k][d];
      v |= static_cast<std::int64_t>(l + 1) << (4 * at++);
    }
    return v;
  };
  r.lhs = pack(0);
  r.rhs = pack(1);
  r.out = pack(2);
  return pack_attributes(r);
}
// Of one operand: where each dim of the result comes from.
constexpr std::int64_t order_of(const equation& e) {
  const std::int64_t gone = summed_alone(e, 0);
  std::int64_t dims = 0;
  for (int o = 0; o < e.count[2]; ++o)
    for (int d = 0, at = 0; d < e.count[0]; ++d) {
      if ((gone >> d & 1) != 0) continue;
      if (e.letters[0][d] == e.letters[2][o]) dims |= static_cast<std::int64_t>(at) << (4 * o);
      ++at;
    }
  return dims;
}

template <fixed_string Equation>
inline constexpr equation equation_of = parsed_equation(Equation.view());

template <std::int64_t Mask, tensor A>
constexpr auto sum_of_dims(const A& a) {
  if constexpr (Mask == 0) return a;
  else return apply<op_code::sum, attributes<sum_attributes>(Mask)>(0, a);
}

}  // namespace detail

// einsum<"bhqd,bhkd->bhqk">(q, k): a letter for each dim of each operand, and those of the result. Letters that the result lacks are
// summed over, those of one operand before the product. Placements are those of a product (matmul): a sharded letter is sharded in the
// result, partial where it is summed. A letter twice in an operand, or none for a dim, is refused.
template <fixed_string Equation, tensor A, tensor B>
constexpr auto einsum(const A& a, const B& b) {
  constexpr const detail::equation& e = detail::equation_of<Equation>;
  if constexpr (!detail::resolved<A, B>) {
    return detail::unresolved<typename A::mesh_type>{};
  } else if constexpr (!e.well_formed || e.operands != 2) {
    return detail::refused<problem::einsum_equation, op_code::einsum, operand_t<A::sp>, operand_t<B::sp>>(a, b);
  } else if constexpr (e.count[0] != A::sp.rank || e.count[1] != B::sp.rank) {
    return detail::refused<problem::einsum_letters, op_code::einsum, operand_t<A::sp>, operand_t<B::sp>>(a, b);
  } else {
    return detail::apply<op_code::einsum, detail::labels_of(e)>(1, detail::sum_of_dims<detail::summed_alone(e, 0)>(a),
                                                                detail::sum_of_dims<detail::summed_alone(e, 1)>(b));
  }
}
// The same of one tensor: einsum<"bij->ji">(x) sums over b and transposes.
template <fixed_string Equation, tensor A>
constexpr auto einsum(const A& a) {
  constexpr const detail::equation& e = detail::equation_of<Equation>;
  if constexpr (!detail::resolved<A>) return detail::unresolved<typename A::mesh_type>{};
  else if constexpr (!e.well_formed || e.operands != 1)
    return detail::refused<problem::einsum_equation, op_code::einsum, operand_t<A::sp>>(a);
  else if constexpr (e.count[0] != A::sp.rank)
    return detail::refused<problem::einsum_letters, op_code::einsum, operand_t<A::sp>>(a);
  else
    return detail::apply<op_code::permute, attributes<permute_attributes>(detail::order_of(e))>(
        0, detail::sum_of_dims<detail::summed_alone(e, 0)>(a));
}

}  // namespace shardwise::inline v0_1
