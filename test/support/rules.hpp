// SPDX-License-Identifier: Apache-2.0
// One operation applied to specs, as values: what the laws of the propagation rules are written with.
#pragma once

#include <shardwise/operations/infer.hpp>
#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/operand.hpp>

namespace sw = shardwise;

namespace rules_test {

using sw::rows::P;
using sw::rows::R;
using sw::rows::S;
using sw::rows::U;

// Every kind of placement of a tensor of rank 2 on one axis.
inline constexpr sw::placement kinds[] = {R, U, P, S(0), S(1)};

struct line : sw::axis<2> {};

// A tensor on a mesh of one axis.
template <class Shape, class T = float, class Axis = line>
constexpr sw::spec on_line(sw::placement p) {
  sw::spec s = sw::spec_of<T, Shape, sw::mesh<Axis>>::value;
  s.place[0] = p;
  return s;
}

template <class... Spec>
constexpr sw::outcome apply(sw::op_code op, const sw::op_attr& a, const Spec&... s) {
  const sw::spec in[] = {s...};
  return sw::infer(op, a, in, static_cast<int>(sizeof...(Spec)));
}

constexpr bool gives(const sw::outcome& o, sw::placement p) { return !o.error && o.out.place[0] == p; }
constexpr bool refuses(const sw::outcome& o, sw::problem p) { return o.error.what == p; }

}  // namespace rules_test
