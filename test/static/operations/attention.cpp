// SPDX-License-Identifier: Apache-2.0
// Attention and its adjoint: extents, what is refused, and the proof of rows, kernels and adjoints under every placement.
#include <rules.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/attention/host.hpp>

namespace {

namespace laws = sw::laws;
namespace own = sw::custom;
using sw::problem;
using rules_test::on_line;

constexpr std::int64_t bias = 1, mask = 2, documents = 4, key = 8;
constexpr sw::op_attr with(int layout, bool causal, int window = 0, std::int64_t operands = 0, double dropout = 0) {
  sw::attention_attributes a;
  a.layout = layout;
  a.causal = causal;
  a.window = window;
  a.dropout = dropout;
  a.operands = operands;
  return sw::pack_attributes(a);
}

template <class Q, class K, class V, class... Further>
constexpr sw::outcome attended(const sw::op_attr& a, int result = 0) {
  const sw::spec in[] = {on_line<Q>(sw::replicate_value()), on_line<K>(sw::replicate_value()),
                         on_line<V>(sw::replicate_value()), on_line<Further>(sw::replicate_value())...};
  return sw::infer(sw::operations::attention(-1), a, in, 3 + static_cast<int>(sizeof...(Further)), result);
}
template <class Q, class K, class V, class... Further>
constexpr bool refuses(const sw::op_attr& a, problem p) {
  return attended<Q, K, V, Further...>(a).error.what == p;
}
constexpr bool has_extents(const sw::outcome& o, std::initializer_list<std::int64_t> want) {
  if (o.error || o.out.rank != static_cast<int>(want.size())) return false;
  int d = 0;
  for (const std::int64_t e : want)
    if (o.out.extent[d++] != e) return false;
  return true;
}

// by heads: (batch, heads, time, size), by time: (batch, time, heads, size)
using q_heads = sw::shape<2, 4, 5, 8>;
using k_heads = sw::shape<2, 4, 7, 8>;
using v_heads = sw::shape<2, 4, 7, 6>;
static_assert(has_extents(attended<q_heads, k_heads, v_heads>(with(0, true)), {2, 4, 5, 6}));
static_assert(has_extents(attended<q_heads, k_heads, v_heads>(with(0, true), 1), {2, 4, 5}));
using q_time = sw::shape<2, 5, 4, 8>;
static_assert(has_extents(attended<q_time, sw::shape<2, 7, 2, 8>, sw::shape<2, 7, 2, 8>>(with(1, true)), {2, 5, 4, 8}));
static_assert(has_extents(attended<q_time, sw::shape<2, 7, 2, 8>, sw::shape<2, 7, 2, 8>>(with(1, true), 1), {2, 4, 5}));

static_assert(refuses<sw::shape<4, 5, 8>, k_heads, v_heads>(with(0, true), problem::contraction_rank));
static_assert(refuses<sw::shape<3, 4, 5, 8>, k_heads, v_heads>(with(0, true), problem::attention_shapes));
static_assert(refuses<sw::shape<2, 4, 5, 4>, k_heads, v_heads>(with(0, true), problem::attention_shapes));
static_assert(refuses<q_heads, k_heads, sw::shape<2, 4, 6, 8>>(with(0, true), problem::attention_shapes));
static_assert(refuses<q_heads, sw::shape<2, 3, 7, 8>, sw::shape<2, 3, 7, 8>>(with(0, true), problem::attention_shapes));
static_assert(refuses<q_heads, k_heads, v_heads>(with(0, true, -1), problem::attention_options));
static_assert(refuses<q_heads, k_heads, v_heads>(with(0, true, 0, 0, 1.5), problem::attention_options));
static_assert(!attended<q_heads, k_heads, v_heads, sw::shape<5, 7>>(with(0, true, 0, bias)).error);
static_assert(!attended<q_heads, k_heads, v_heads, sw::shape<4, 1, 7>>(with(0, true, 0, bias)).error);
static_assert(refuses<q_heads, k_heads, v_heads, sw::shape<2, 5, 7>>(with(0, true, 0, bias), problem::attention_mask_shape));
static_assert(refuses<q_heads, k_heads, v_heads, sw::shape<1, 1, 1, 5, 7>>(with(0, true, 0, bias),
                                                                           problem::attention_mask_shape));
static_assert(!attended<q_time, q_time, q_time, sw::shape<2, 5>>(with(1, true, 0, documents)).error);
static_assert(refuses<q_time, sw::shape<2, 7, 4, 8>, sw::shape<2, 7, 4, 8>, sw::shape<2, 5>>(
    with(1, true, 0, documents), problem::attention_documents_shape));

// --- proofs: at most 72 elements a tensor; 3 and 5 are not divided by the ranks --------------------------------------------------

using all = laws::customs<own::attention, own::attention_adjoint, own::attention_delta>;
template <sw::op_attr A, class Q, class K, class V>
inline constexpr int proved = laws::holds_case<laws::custom_case<all, A, Q, K, V>>;
// All six rows.
static_assert(proved<with(0, true), sw::shape<3, 2, 3, 2>, sw::shape<3, 2, 3, 2>, sw::shape<3, 2, 3, 2>> > 12);
static_assert(proved<with(1, false), sw::shape<2, 3, 2, 3>, sw::shape<2, 4, 2, 3>, sw::shape<2, 4, 2, 1>> > 12);
static_assert(proved<with(1, true, 2), sw::shape<1, 5, 3, 2>, sw::shape<1, 5, 3, 2>, sw::shape<1, 5, 3, 2>> > 12);
// Groups of heads: over 2 ranks of whole groups, over 3 not at all.
static_assert(proved<with(0, true), sw::shape<2, 4, 3, 2>, sw::shape<2, 2, 3, 2>, sw::shape<2, 2, 3, 2>> > 10);
static_assert(proved<with(1, true), sw::shape<2, 3, 2, 2>, sw::shape<2, 3, 1, 2>, sw::shape<2, 3, 1, 2>> > 10);

// An operand that is not always there, last: Further, as a leaf.
template <const sw::custom_operation& Op, const sw::custom_operation& Adjoint, sw::op_attr A, laws::leaf... Leaf>
struct further_case {
  using used = laws::customs<Op, Adjoint, own::attention_delta>;
  using operation = sw::detail::custom_tag<Op>;
  static constexpr laws::program value = laws::apply(&Op, {Leaf...}, A);
};
constexpr laws::leaf q = laws::tensor_of({2, 2, 3, 2});
static_assert(laws::holds_case<further_case<own::attention_marked, own::attention_adjoint_marked, with(0, true, 0, mask), q,
                                            q, q, laws::indices({2, 1, 3, 3}, 2)>> > 12);
static_assert(laws::holds_case<further_case<own::attention_marked, own::attention_adjoint_marked, with(1, false, 0, mask),
                                            laws::tensor_of({2, 3, 2, 2}), laws::tensor_of({2, 3, 2, 2}),
                                            laws::tensor_of({2, 3, 2, 2}), laws::indices({2, 1, 3}, 2)>> > 12);
static_assert(laws::holds_case<further_case<own::attention_marked, own::attention_adjoint_marked,
                                            with(0, true, 0, documents), q, q, q, laws::indices({2, 3}, 2)>> > 12);

// A bias and the numbers that drop weights take no gradient, and a proof's leaves would all get one: the same record and kernels
// under a rule that does not ask for it.

}  // namespace

inline constexpr sw::autodiff::adjoint_rule attention_rule_of_test = sw::autodiff::pulled<10>(&own::pull_attention, 7U);
constexpr sw::custom_operation alike(const sw::custom_operation& o, const char* name) {
  sw::custom_operation r = o;
  r.name = name;
  r.adjoint = &attention_rule_of_test;
  return r;
}
inline constexpr sw::custom_operation biased = alike(own::attention_biased, "biased");
inline constexpr sw::custom_operation dropped = alike(own::attention_dropped, "dropped");
inline constexpr sw::custom_operation both_marked = alike(own::attention_biased_marked, "both_marked");
template <>
struct SHARDWISE_HIDDEN sw::host_kernel<biased> : sw::host::attention_kernel {};
template <>
struct SHARDWISE_HIDDEN sw::host_kernel<dropped> : sw::host::attention_kernel {};
template <>
struct SHARDWISE_HIDDEN sw::host_kernel<both_marked> : sw::host::attention_kernel {};

namespace {

static_assert(laws::holds_case<further_case<biased, own::attention_adjoint_biased, with(0, true, 0, bias), q, q, q,
                                            laws::tensor_of({2, 2, 3, 3})>> > 12);
static_assert(laws::holds_case<further_case<biased, own::attention_adjoint_biased, with(0, false, 0, bias), q, q, q,
                                            laws::tensor_of({2, 1, 3})>> > 12);
static_assert(laws::holds_case<further_case<dropped, own::attention_adjoint_dropped, with(0, true, 0, key, 0.5), q, q, q,
                                            laws::tensor_of({4})>> > 12);
static_assert(
    laws::holds_case<further_case<both_marked, own::attention_adjoint_biased_marked, with(0, true, 0, bias | documents), q,
                                  q, q, laws::tensor_of({3, 3}), laws::indices({2, 3}, 2)>> > 12);

// The adjoint's own rows, of which differentiation meets some: all six.
using adjoint_alone = laws::customs<own::attention_adjoint>;
static_assert(laws::holds_case<further_case<own::attention_adjoint, own::attention_adjoint, with(0, true), q, q, q,
                                            laws::tensor_of({2, 2, 3}), q, laws::tensor_of({2, 2, 3})>> > 12);
static_assert(laws::holds_case<laws::custom_case<laws::customs<own::attention_delta>, with(1, true), sw::shape<2, 3, 2, 3>,
                                                 sw::shape<2, 3, 2, 3>>> > 12);

}  // namespace
