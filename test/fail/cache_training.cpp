// SPDX-License-Identifier: Apache-2.0
// A cache in a model that is trained.
// expect: kv_cache: the module trains, and no gradient flows through a cache

#include <shardwise/core.hpp>
#include <shardwise/module/kv_cache.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, w), (sw::kv_cache<2, 6, 2, 4>, cache));
  constexpr auto forward(const auto& x, const auto& at) const {
    const auto y = sw::unflatten<-1, 2, 4>(w(x));
    return sw::sum(cache(y, y, y, at));
  }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<2, 3, 8>>, sw::input_tensor<std::int32_t, sw::shape<2>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& at) const { return model(x, at); }
};
#ifdef SHARDWISE_FAIL
using step = sw::train_step<net, task, sw::plan<>, mesh>;
#else
using step = sw::forward_step<net, task, sw::plan<>, mesh>;
#endif
static_assert(step::peak_bytes > 0);
