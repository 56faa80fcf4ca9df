// SPDX-License-Identifier: Apache-2.0
// A gradient passes through an opaque function two modules deep: the error names the module and the node. The last block's
// is met first, since gradients go backward.
// expect: opaque: a gradient is asked for through an opaque function, of which nothing is known
// located: layers.2.mlp opaque_2

#include <shardwise/graph/functions/opaque.hpp>

#include "nested_step.hpp"

struct square {
  template <class T>
  constexpr void operator()(std::span<T> y, std::span<const T> x) const {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * x[i];
  }
};
struct squared {
  constexpr auto operator()(const auto& h, const auto&) const { return sw::opaque<square>(h); }
};
#ifdef SHARDWISE_FAIL
using between = squared;
#else
using between = add_input;
#endif
using step = sw::train_step<nested<between>::model, mean_task, plan, mesh, sw::adam<>>;
constexpr int nodes = step::program.node_count;
