// SPDX-License-Identifier: Apache-2.0
// Attention with a bias or numbers that drop weights. They take no gradient, and a proof's leaves would all get one: so the same records and kernels
// stand here under a rule that does not ask for it.
#include <attention_proofs.hpp>

using namespace attention_proofs;

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

}  // namespace
