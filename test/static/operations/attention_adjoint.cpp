// SPDX-License-Identifier: Apache-2.0
// The rows of attention's adjoint and of its deltas alone, of which differentiation meets some: all six.
#include <attention_proofs.hpp>

namespace {

using namespace attention_proofs;

static_assert(laws::holds_case<further_case<own::attention_adjoint, own::attention_adjoint, with(0, true), q, q, q,
                                            laws::tensor_of({2, 2, 3}), q, laws::tensor_of({2, 2, 3})>> > 12);
static_assert(laws::holds_case<laws::custom_case<laws::customs<own::attention_delta>, with(1, true), sw::shape<2, 3, 2, 3>,
                                                 sw::shape<2, 3, 2, 3>>> > 12);

}  // namespace
