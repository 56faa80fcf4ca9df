// SPDX-License-Identifier: Apache-2.0
// wanted: a residual connection
// mistake: the sum is written with +=
// names: \+=
// names: add_|new tensor|in place
// names: add_|h \+|x =
#include <shardwise/module/hana.hpp>

#include "mlp.hpp"

template <class Bound = sw::unbound>
struct residual : sw::module<residual<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(residual, (sw::linear<10, 10, sw::child<Bound, 0>>, fc));
  constexpr auto forward(const auto& x) const {
#ifdef SHARDWISE_FAIL
    auto h = sw::relu(x);
    h += fc(x);
    return h;
#else
    const auto h = sw::relu(x);
    return h + fc(x);
#endif
  }
};
struct mean_of {
  using inputs = sw::inputs<batch>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
static_assert(sw::train_step<residual, mean_of, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>>::peak_bytes > 0);
