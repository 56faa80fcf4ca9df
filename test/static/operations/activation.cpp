// SPDX-License-Identifier: Apache-2.0
// Further elementwise functions: the proof of rows, kernels and adjoints under every placement.
#include <rules.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/activation/host.hpp>

namespace {

namespace laws = sw::laws;
namespace custom = sw::custom;

constexpr sw::op_attr soft = sw::pack_attributes(sw::softplus_attributes{2.0, 20.0});
template <class Customs, sw::op_attr A = sw::op_attr{}, class... X>
inline constexpr int proved = laws::holds_case<laws::custom_case<Customs, A, X...>>;

static_assert(proved<laws::customs<custom::round>, sw::op_attr{}, sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::floor>, sw::op_attr{}, sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::ceil>, sw::op_attr{}, sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::erf, custom::erf_dx>, sw::op_attr{}, sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::log1p, custom::log1p_dx>, sw::op_attr{}, sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::expm1, custom::expm1_dx>, sw::op_attr{}, sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::softplus, custom::softplus_dx>, soft, sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::leaky_relu, custom::leaky_relu_dx>, sw::op_attr{}, sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::elu, custom::elu_dx>, sw::op_attr{}, sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::swiglu, custom::swiglu_gate, custom::swiglu_up>, sw::op_attr{}, sw::shape<5, 3>,
                     sw::shape<3>> > 8);
// Their adjoints are linear in the cotangent, and take it as partial sums.
static_assert(proved<laws::customs<custom::elu_dx>, sw::op_attr{}, sw::shape<5, 3>, sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::swiglu_gate>, sw::op_attr{}, sw::shape<4>, sw::shape<4>, sw::shape<4>> > 6);

}  // namespace
