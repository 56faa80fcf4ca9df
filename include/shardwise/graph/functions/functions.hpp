// SPDX-License-Identifier: Apache-2.0
// The operations that users write; each serves eager tensors and tracing alike. Names and conventions as in PyTorch.
#pragma once

#include <shardwise/graph/functions/along.hpp>
#include <shardwise/graph/functions/misuses.hpp>
#include <shardwise/graph/functions/number.hpp>
#include <shardwise/graph/functions/placement_functions.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// Labels 1.. for the dims of lhs (batch..., m, k) and rhs (batch..., k, n) or (k, n); out (batch..., m, n).
constexpr op_attr matmul_labels(int ra, int rb) {
  einsum_attributes r{};
  const int k = ra, n = ra + 1;
  for (int d = 0; d < ra; ++d) r.lhs |= static_cast<std::int64_t>(d + 1) << (4 * d);
  for (int d = 0; d + 2 < rb; ++d) r.rhs |= static_cast<std::int64_t>(d + 1) << (4 * d);
  r.rhs |= static_cast<std::int64_t>(k) << (4 * (rb - 2));
  r.rhs |= static_cast<std::int64_t>(n) << (4 * (rb - 1));
  for (int d = 0; d + 1 < ra; ++d) r.out |= static_cast<std::int64_t>(d + 1) << (4 * d);
  r.out |= static_cast<std::int64_t>(n) << (4 * (ra - 1));
  return pack_attributes(r);
}

// x (..., k) with w (n, k): out (..., n)
constexpr op_attr linear_labels(int rx) {
  einsum_attributes r{};
  for (int d = 0; d < rx; ++d) r.lhs |= static_cast<std::int64_t>(d + 1) << (4 * d);
  r.rhs = (rx + 1) | static_cast<std::int64_t>(rx) << 4;
  for (int d = 0; d + 1 < rx; ++d) r.out |= static_cast<std::int64_t>(d + 1) << (4 * d);
  r.out |= static_cast<std::int64_t>(rx + 1) << (4 * (rx - 1));
  return pack_attributes(r);
}

constexpr std::int64_t mask_of(std::initializer_list<int> dims, int rank) {
  std::int64_t m = 0;
  for (int d : dims) {
    const int own = d < 0 ? d + rank : d;
    m |= std::int64_t{1} << (own < 0 || own >= rank ? rank : own);  // a bit that no dim has: the rule refuses it
  }
  return m;
}

constexpr spec constant_spec(const spec& like) {
  spec s = scalar_like(like);
  for (int a = 0; a < s.axes; ++a)
    if (like.place[a].is_shard() || like.place[a].is_reduced()) s.place[a] = reduced_value();
  return s;
}

constexpr problem matmul_ranks(int ra, int rb) {
  if (ra < 2 || rb < 2) return problem::contraction_rank;
  return rb != 2 && rb != ra ? problem::contraction_batch : problem::none;
}

}  // namespace detail

// --- pointwise ------------------------------------------------------------------------------------------------------

template <tensor A, tensor B>
constexpr auto add(const A& a, const B& b) {
  return detail::apply<op_code::add, detail::no_attr>(0, a, b);
}
template <tensor A, tensor B>
constexpr auto sub(const A& a, const B& b) {
  return detail::apply<op_code::sub, detail::no_attr>(0, a, b);
}
template <tensor A, tensor B>
constexpr auto mul(const A& a, const B& b) {
  return detail::apply<op_code::mul, detail::no_attr>(0, a, b);
}
// A scalar of one value that can be added to, or multiplied with, `like`: reduced where like is split, since it is the
// same on all ranks there while its gradient would not be.
template <tensor A>
constexpr auto constant_like(const A& like, double value) {
  if constexpr (detail::is_implicit<A>) {
    return constant_like(like.strict, value);
  } else if constexpr (!detail::resolved<A>) {
    return like;
  } else {
    constexpr spec s = detail::constant_spec(spec(A::sp));
    detail::check_element<s, op_code::fill>(like, value, "constant_like");
    return A::template apply_leaf<op_code::fill, s>(value, like);
  }
}
// Not for a partial tensor, where every rank would add the number: redistribute it first.
template <tensor A>
constexpr auto add(const A& a, double number) {
  return add(a, constant_like(a, number));
}
template <tensor A>
constexpr auto operator+(const A& a, double number) {
  return add(a, number);
}
template <tensor A>
constexpr auto operator+(double number, const A& a) {
  return add(a, number);
}
template <tensor A>
constexpr auto operator-(const A& a, double number) {
  return add(a, -number);
}
template <tensor A>
constexpr auto scale(const A& a, double factor) {
  return detail::apply<op_code::scale, detail::no_attr>(factor, a);
}
template <tensor A, tensor B>
constexpr auto operator+(const A& a, const B& b) {
  return add(a, b);
}
template <tensor A, tensor B>
constexpr auto operator-(const A& a, const B& b) {
  return sub(a, b);
}
template <tensor A, tensor B>
constexpr auto operator*(const A& a, const B& b) {
  return mul(a, b);
}
template <tensor A>
constexpr auto operator*(const A& a, double factor) {
  return scale(a, factor);
}

enum class gelu_form { erf, tanh };

// 0.5 x (1 + erf(x / sqrt 2)), or its tanh approximation.
template <gelu_form Form = gelu_form::erf, tensor A>
constexpr auto gelu(const A& a) {
  return detail::apply<(Form == gelu_form::erf ? op_code::gelu_erf : op_code::gelu_tanh), detail::no_attr>(0, a);
}

// Zeroes each element with probability p and scales the others by 1 / (1 - p). Which elements depends on the run's
// seed, the step, the place in the program and the element's global index alone: not on mesh or placement. A p outside 0 to 1
// does not compile in a traced function and throws std::invalid_argument otherwise. A NaN or an infinity that is dropped is NaN.
template <tensor A>
constexpr auto dropout(const A& a, double p) {
  detail::check_probability(a, p, "dropout");
  return detail::apply<op_code::dropout, detail::no_attr>(p, a);
}

// --- contractions ---------------------------------------------------------------------------------------------------

// a (batch..., m, k), b (batch..., k, n) or (k, n).
template <tensor A, tensor B>
constexpr auto matmul(const A& a, const B& b) {
  constexpr problem wrong = detail::resolved<A, B> ? detail::matmul_ranks(A::sp.rank, B::sp.rank) : problem::none;
  if constexpr (wrong == problem::none)
    return detail::apply<op_code::einsum, detail::matmul_labels(A::sp.rank, B::sp.rank)>(1, a, b);
  else return detail::refused<wrong, op_code::einsum, operand_t<A::sp>, operand_t<B::sp>>(a, b);
}

// x (..., in), w (out, in): x times w transposed.
template <tensor X, tensor W>
constexpr auto linear_product(const X& x, const W& w) {
  constexpr problem wrong =
      detail::resolved<X, W> && (X::sp.rank < 1 || W::sp.rank != 2) ? problem::contraction_rank : problem::none;
  if constexpr (wrong == problem::none) return detail::apply<op_code::einsum, detail::linear_labels(X::sp.rank)>(1, x, w);
  else return detail::refused<wrong, op_code::einsum, operand_t<X::sp>, operand_t<W::sp>>(x, w);
}

// --- reductions -----------------------------------------------------------------------------------------------------

// Over the dims given (negative ones count from the end), or over all.
template <int... Dims, tensor A>
constexpr auto sum(const A& a) {
  constexpr std::int64_t mask =
      sizeof...(Dims) == 0 ? (std::int64_t{1} << A::sp.rank) - 1 : detail::mask_of({Dims...}, A::sp.rank);
  return detail::apply<op_code::sum, attributes<sum_attributes>(mask)>(0, a);
}
template <int... Dims, tensor A>
constexpr auto mean(const A& a) {
  constexpr std::int64_t mask =
      sizeof...(Dims) == 0 ? (std::int64_t{1} << A::sp.rank) - 1 : detail::mask_of({Dims...}, A::sp.rank);
  return detail::apply<op_code::sum, attributes<sum_attributes>(mask, 0, 1)>(0, a);
}

// (sum |a|^P)^(1/P) over the dims given, or over all, as torch.linalg.vector_norm; P is whole and at least 1. As there, powers
// are not scaled: what they lose at either end of the type (below about 1e-154 or above 1e154 for P 2) is 0 or infinite. Of a sharded
// dim the result is partial_norm<P>, which no gradient goes through: redistribute the dim to replicate first, or take the
// root of a sum of powers.
template <int P, int... Dims, tensor A>
constexpr auto vector_norm(const A& a) {
  constexpr std::int64_t mask =
      sizeof...(Dims) == 0 ? (std::int64_t{1} << A::sp.rank) - 1 : detail::mask_of({Dims...}, A::sp.rank);
  return detail::apply<op_code::vector_norm, attributes<vector_norm_attributes>(mask, 0, P)>(0, a);
}

template <int Dim = -1, tensor A>
constexpr auto softmax(const A& a) {
  return detail::along<Dim, A>::template run<op_code::softmax, attributes<softmax_attributes>(0)>(0, a);
}
// Over the last dim (keys), where a key may not come after its query (the dim before).
template <tensor A>
constexpr auto causal_softmax(const A& a) {
  return detail::apply<op_code::softmax, attributes<softmax_attributes>(1)>(0, a);
}

template <tensor X, tensor W, tensor B>
constexpr auto layer_norm(const X& x, const W& w, const B& b, double eps = 1e-5) {
  const auto rows = detail::ready_for<op_code::norm_stats, attributes<norm_attributes>(0)>(x);
  auto stats = detail::apply<op_code::norm_stats, attributes<norm_attributes>(0)>(eps, rows);
  return detail::apply<op_code::norm_apply, attributes<norm_attributes>(0, 1)>(eps, rows, stats, w, b);
}
template <tensor X, tensor W>
constexpr auto rms_norm(const X& x, const W& w, double eps = 1e-5) {
  const auto rows = detail::ready_for<op_code::norm_stats, attributes<norm_attributes>(1)>(x);
  auto stats = detail::apply<op_code::norm_stats, attributes<norm_attributes>(1)>(eps, rows);
  return detail::apply<op_code::norm_apply, attributes<norm_attributes>(1, 0)>(eps, rows, stats, w);
}

// --- indices --------------------------------------------------------------------------------------------------------

// table (rows, features), index (...): out (..., features). An index outside the table is an error at run time.
template <tensor W, tensor I>
constexpr auto embedding(const W& table, const I& index) {
  return detail::apply<op_code::embedding, detail::no_attr>(0, table, index);
}

// Per-row losses: logits (..., classes), target (...) of class ids.
template <tensor X, tensor T>
constexpr auto cross_entropy_rows(const X& logits, const T& target) {
  const auto rows = detail::ready_for<op_code::lse, detail::no_attr>(logits);
  auto norm = detail::apply<op_code::lse, detail::no_attr>(0, rows);
  return detail::apply<op_code::nll, detail::no_attr>(0, rows, norm, target);
}
// Their mean over all rows of all ranks.
template <tensor X, tensor T>
constexpr auto cross_entropy(const X& logits, const T& target) {
  return mean(cross_entropy_rows(logits, target));
}

}  // namespace shardwise::inline v0_1
