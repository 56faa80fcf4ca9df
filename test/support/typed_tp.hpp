// SPDX-License-Identifier: Apache-2.0
// Tensors of a wrong program on one axis of two ranks: real<shape<4, 8>, shard<0>>, ids<shape<3>>.
#pragma once

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Shape, class Placement = sw::replicate>
using real = typed<float, Shape, mesh, sw::on<tp, Placement>>;
template <class Shape, class Placement = sw::replicate>
using ids = typed<std::int32_t, Shape, mesh, sw::on<tp, Placement>>;
