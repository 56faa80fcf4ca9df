// SPDX-License-Identifier: Apache-2.0
// add_gradients_: gradients of an eager model added up over several calls, before an optimizer step reduces their sum.
#pragma once

#include <vector>

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/eager_gradient.hpp>

namespace shardwise::inline v0_1 {

// sum += more, parameter by parameter, in place; both are gradients that value_and_grad has given. Law: nothing is sent; gradients
// that are partial stay so, and eager_optimizer::step reduces the sum, once (those of groups of fully_shard are reduced to shards by every
// value_and_grad, and are added as shards). As several calls of backward() under no_sync in PyTorch.
// Of the mean of N losses: the task returns its loss over N. A parameter that one of the two has no gradient of has the other's.
template <class Gradients>
void add_gradients_(Gradients& sum, const Gradients& more) {
  std::vector<const void*> all;
  detail::each_leaf(more, [&](const auto& g) { all.push_back(&g); });
  std::size_t k = 0;
  detail::each_leaf(sum, [&]<class Gradient>(Gradient& into) {
    const Gradient& other = *static_cast<const Gradient*>(all[k++]);
    if (!other.has_value()) return;
    if (into.has_value()) add_(into, other);
    else into = scale(other, 1);
  });
}

}  // namespace shardwise::inline v0_1
