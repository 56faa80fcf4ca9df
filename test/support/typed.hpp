// SPDX-License-Identifier: Apache-2.0
// Tensors that exist as types only, for programs that are compiled and never run: decltype(sw::matmul(a{}, b{})). What is
// refused of them is said at once, since no trace looks for it.
#pragma once

#include <shardwise/graph/functions/pointwise_functions.hpp>
#include <shardwise/graph/sym.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

template <class T, class Shape, class Mesh, class... Placements>
using typed = sw::sym<sw::spec_of<T, Shape, Mesh, Placements...>::value, Mesh, sw::detail::said>;
