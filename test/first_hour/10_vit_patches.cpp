// SPDX-License-Identifier: Apache-2.0
// wanted: the patches of an image, as einops would cut them
// mistake: a reshape to ten dims
// names: reshape|rank
// names: \b8\b|eight
// names: merge|fewer|in two
#include <cstdint>

#include <shardwise/module/hana.hpp>
#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>
struct patches : sw::module<patches<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(patches, (sw::linear<48, 32, sw::child<Bound, 0>>, embed));
  constexpr auto forward(const auto& image) const {
#ifdef SHARDWISE_FAIL
    const auto cut = sw::reshape<4, 3, 2, 2, 2, 4, 2, 2, 2, 4>(image);
    return embed(sw::reshape<4, 64, 48>(sw::permute<0, 2, 3, 4, 6, 7, 8, 1, 5, 9>(cut)));
#else
    const auto cut = sw::reshape<4, 3, 8, 4, 8, 4>(image);
    return embed(sw::reshape<4, 64, 48>(sw::permute<0, 2, 4, 1, 3, 5>(cut)));
#endif
  }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 3, 32, 32>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
using step = sw::train_step<patches, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>>;
static_assert(step::peak_bytes > 0);
