// SPDX-License-Identifier: Apache-2.0
// wanted: an embedding of token ids
// mistake: the ids are int64, as in PyTorch
// names: \blong\b|int64
// names: int32
// names: std::int32_t|convert|give
#include <cstdint>

#include <shardwise/module/hana.hpp>
#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct bag : sw::module<bag<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(bag, (sw::embedding_table<100, 8, sw::child<Bound, 0>>, table));
  constexpr auto forward(const auto& ids) const { return sw::mean<1>(table(ids)); }
};

struct task {
#ifdef SHARDWISE_FAIL
  using ids_type = sw::input_tensor<std::int64_t, sw::shape<4, 6>, sw::on<dp, sw::shard<0>>>;
#else
  using ids_type = sw::input_tensor<std::int32_t, sw::shape<4, 6>, sw::on<dp, sw::shard<0>>>;
#endif
  using inputs = sw::inputs<ids_type>;
  constexpr auto operator()(const auto& model, const auto& ids) const { return sw::mean(model(ids)); }
};
using step = sw::train_step<bag, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>>;
static_assert(step::peak_bytes > 0);
