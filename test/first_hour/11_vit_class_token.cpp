// SPDX-License-Identifier: Apache-2.0
// wanted: a class token in front of the patches
// mistake: the token is not expanded to the batch
// names: cat
// names: extents
// names: expand|reshape
#include <cstdint>

#include <shardwise/module/hana.hpp>
#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>
struct with_token : sw::module<with_token<Bound>, Bound> {
  using token_type = sw::parameter<sw::shape<1, 1, 32>, sw::init::zeros, sw::child<Bound, 0>>;
  BOOST_HANA_DEFINE_STRUCT(with_token, (token_type, token), (sw::linear<32, 10, sw::child<Bound, 1>>, head));
  constexpr auto forward(const auto& x) const {
#ifdef SHARDWISE_FAIL
    const auto all = sw::cat<1>(token, x);
#else
    const auto all = sw::cat<1>(sw::expand<4, 1, 32>(token), x);
#endif
    return head(all);
  }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 64, 32>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
using step = sw::train_step<with_token, task, sw::plan<>, mesh, sw::adam<>>;
static_assert(step::peak_bytes > 0);
