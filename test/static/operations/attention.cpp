// SPDX-License-Identifier: Apache-2.0
// Attention: extents, what is refused, and the proof of rows, kernels and adjoints under every placement. Its further operands:
// attention_mask.cpp, attention_bias.cpp; the adjoint's own rows: attention_adjoint.cpp.
#include <attention_proofs.hpp>

namespace {

using namespace attention_proofs;
using sw::problem;
using rules_test::on_line;

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

}  // namespace
