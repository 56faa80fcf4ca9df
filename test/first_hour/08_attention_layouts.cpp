// SPDX-License-Identifier: Apache-2.0
// wanted: a block of causal attention in (batch, time, heads, size)
// mistake: keys and values are permuted to (batch, heads, time, size), queries are not
// names: attention
// names: queries|keys|layout
// names: permute|head_layout
#include <cstdint>

#include <shardwise/module/hana.hpp>
#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>
struct attention : sw::module<attention<Bound>, Bound> {
  using projection_q = sw::linear<16, 16, sw::child<Bound, 0>>;
  using projection_k = sw::linear<16, 16, sw::child<Bound, 1>>;
  using projection_v = sw::linear<16, 16, sw::child<Bound, 2>>;
  BOOST_HANA_DEFINE_STRUCT(attention, (projection_q, wq), (projection_k, wk), (projection_v, wv));
  constexpr auto forward(const auto& x) const {
    const auto q = sw::reshape<4, 12, 4, 4>(wq(x));
#ifdef SHARDWISE_FAIL
    const auto k = sw::permute<0, 2, 1, 3>(sw::reshape<4, 12, 4, 4>(wk(x)));
    const auto v = sw::permute<0, 2, 1, 3>(sw::reshape<4, 12, 4, 4>(wv(x)));
#else
    const auto k = sw::reshape<4, 12, 4, 4>(wk(x));
    const auto v = sw::reshape<4, 12, 4, 4>(wv(x));
#endif
    return sw::reshape<4, 12, 16>(sw::scaled_dot_product_attention<true, sw::head_layout::bthd>(q, k, v));
  }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 12, 16>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
using step = sw::train_step<attention, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>>;
static_assert(step::peak_bytes > 0);
