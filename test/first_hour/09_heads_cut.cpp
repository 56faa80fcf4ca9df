// SPDX-License-Identifier: Apache-2.0
// wanted: tensor-parallel attention of three heads
// mistake: the query projection is split by features, so that a head is cut in two
// names: reshape
// names: shard
// names: head|whole groups
#include <cstdint>

#include <shardwise/module/hana.hpp>
#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>
struct heads : sw::module<heads<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(heads, (sw::linear<12, 12, sw::child<Bound, 0>>, wq),
                           (sw::linear<12, 12, sw::child<Bound, 1>>, wo));
  constexpr auto forward(const auto& x) const {
    const auto q = sw::reshape<4, 8, 3, 4>(wq(x));
    return wo(sw::reshape<4, 8, 12>(sw::softmax(q)));
  }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8, 12>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"wq", sw::colwise<tp>>, sw::at<"wo", sw::rowwise<tp>>>;
#else
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"wq", sw::colwise<tp, 4>>, sw::at<"wo", sw::rowwise<tp, 4>>>;
#endif
using step = sw::train_step<heads, task, plan, mesh, sw::adam<>>;
static_assert(step::peak_bytes > 0);
