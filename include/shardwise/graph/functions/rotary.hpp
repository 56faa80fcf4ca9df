// SPDX-License-Identifier: Apache-2.0
// rotary_embedding: positions of queries and keys as rotations, one operation made like a user's own.
#pragma once

#include <shardwise/graph/functions/attention.hpp>
#include <shardwise/operations/rotary/record.hpp>

namespace shardwise::inline v0_1 {

// Which numbers of a head are a pair: i and i + size / 2, or the neighbours 2 i and 2 i + 1.
enum class rotary_form { half_split, interleaved };

struct rotary_options {
  head_layout layout = head_layout::bhtd;
  rotary_form form = rotary_form::half_split;
  option_number base = 10000.0;
};

namespace custom {

// The adjoint of a rotation is the rotation by minus the angle, which is again one of these.
constexpr void pull_rotary(autodiff::pullback& p);
inline constexpr autodiff::adjoint_rule rotary_rule = autodiff::pulled<2>(&pull_rotary);
inline constexpr custom_operation rotary_embedding{
    .name = "rotary_embedding", .operands = 1, .record = operations::rotary, .adjoint = &rotary_rule};

constexpr void pull_rotary(autodiff::pullback& p) {
  auto a = attributes_of<rotary_attributes>(p.n.a);
  a.back = 1 - a.back;
  p.give(0, p.make(rotary_embedding, pack_attributes(a), p.n.f, p.dy));
}

}  // namespace custom

// x (batch, heads, time, size), or as `layout` says: pair i of position t is turned by (first + t) base^(-2 i / size). Positions are
// those of the whole tensor, wherever it is cut; any dim but the last may be, and x may be partial.
template <rotary_options Options = rotary_options{}, tensor X>
constexpr auto rotary_embedding(const X& x, std::int64_t first = 0) {
  constexpr op_attr a = pack_attributes(rotary_attributes{.time = Options.layout == head_layout::bhtd ? 2 : 1,
                                                          .interleaved = Options.form == rotary_form::interleaved ? 1 : 0,
                                                          .base = real(Options.base.value()),
                                                          .back = 0});
  return call<custom::rotary_embedding, a>(static_cast<double>(first), x);
}

}  // namespace shardwise::inline v0_1
