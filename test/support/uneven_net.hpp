// SPDX-License-Identifier: Apache-2.0
// A model whose parameters have 7, 6 and 3 rows, and tasks whose batch of 7 is split over any axes.
#pragma once

#include <fsdp.hpp>
#include <running_norm.hpp>

namespace test::uneven {

using fsdp::split_rows_t;

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<5, 7>, in), (sw::layer_norm_module<7>, norm), (sw::linear<7, 6>, up),
                    (sw::linear<6, 3>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(norm(sw::relu(in(x)))))); }
};
template <class Axes>
struct fit {
  using inputs = sw::inputs<split_rows_t<double, sw::shape<7, 5>, Axes>, split_rows_t<double, sw::shape<7, 3>, Axes>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = model(x) - t;
    return sw::mean(apart * apart);
  }
};
template <class Axes>
struct predict {
  using inputs = sw::inputs<split_rows_t<double, sw::shape<7, 5>, Axes>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::sum(model(x)); }
};

}  // namespace test::uneven
