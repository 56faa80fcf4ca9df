// SPDX-License-Identifier: Apache-2.0
// A gradient through the norm of a dim that is sharded: the ranks' norms are no sum. Sums of powers have one.
// expect: redistribute: a gradient is asked for through a partial with a reduction other than sum and avg, which has no adjoint; reduce with sums \(a norm is the root of a sum of powers\)

#include <shardwise/module/function.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct norms {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<tp, sw::replicate>(sw::vector_norm<2, 0>(x)); }
};
struct powers {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<tp, sw::replicate>(sw::sum<0>(x * x)); }
};
using in = sw::input_tensor<float, sw::shape<4, 3>, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using step = sw::gradient_step<norms, mesh, sw::inputs<in>, sw::wrt<0>>;
#else
using step = sw::gradient_step<powers, mesh, sw::inputs<in>, sw::wrt<0>>;
#endif
constexpr int nodes = step::program.node_count;
