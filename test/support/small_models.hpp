// SPDX-License-Identifier: Apache-2.0
// The models of wrong programs: one layer, or two.
#pragma once

#include <shardwise/module/bind.hpp>
#include <shardwise/module/layers.hpp>

#include "typed.hpp"

// net: 8 features to 6.
template <class Bound = sw::unbound>
struct one_linear : sw::module<one_linear<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};

// norm: of 8 features.
template <class Bound = sw::unbound>
struct one_norm : sw::module<one_norm<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::layer_norm_module<8>, norm));
  constexpr auto forward(const auto& x) const { return norm(x); }
};

// net1: 10 features to 16; net2: 16 to 10.
template <class Bound = sw::unbound>
struct two_linears : sw::module<two_linears<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, net1), (sw::linear<16, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
