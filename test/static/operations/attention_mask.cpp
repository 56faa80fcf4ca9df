// SPDX-License-Identifier: Apache-2.0
// Attention with a mask or documents.
#include <attention_proofs.hpp>

namespace {

using namespace attention_proofs;

static_assert(laws::holds_case<further_case<own::attention_marked, own::attention_adjoint_marked, with(0, true, 0, mask), q,
                                            q, q, laws::indices({2, 1, 3, 3}, 2)>> > 12);
static_assert(laws::holds_case<further_case<own::attention_marked, own::attention_adjoint_marked, with(1, false, 0, mask),
                                            laws::tensor_of({2, 3, 2, 2}), laws::tensor_of({2, 3, 2, 2}),
                                            laws::tensor_of({2, 3, 2, 2}), laws::indices({2, 1, 3}, 2)>> > 12);
static_assert(laws::holds_case<further_case<own::attention_marked, own::attention_adjoint_marked,
                                            with(0, true, 0, documents), q, q, q, laws::indices({2, 3}, 2)>> > 12);

}  // namespace
