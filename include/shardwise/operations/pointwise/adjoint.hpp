// SPDX-License-Identifier: Apache-2.0
// Adjoints of pointwise functions: the cotangent times a factor, summed over what was broadcast.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

constexpr int most_of_sum(const spec& x, const spec& out) { return sums(unbroadcast(x, out)) ? 1 : 0; }

inline constexpr adjoint_rule add = pulled([](int, const spec& x, const spec& out) { return most_of_sum(x, out); },
                                           [](pullback& p) {
                                             for (int k = 0; k < 2; ++k)
                                               if (p.wants(k)) p.give_summed(k, p.dy);
                                           });
inline constexpr adjoint_rule sub =
    pulled([](int k, const spec& x, const spec& out) { return most_of_sum(x, out) + (k == 1 ? 1 : 0); },
           [](pullback& p) {
             if (p.wants(0)) p.give_summed(0, p.dy);
             if (!p.wants(1)) return;
             const op_attr u = unbroadcast(p.operand(1), p.result());
             const int g = sums(u) ? p.emit(op_code::sum, u, 0, 1, p.dy) : p.dy;
             p.give(1, p.emit(op_code::scale, {}, -1, 1, g));
           });
inline constexpr adjoint_rule mul =
    pulled([](int, const spec& x, const spec& out) { return most_of_sum(x, out) + 1; },
           [](pullback& p) {
             for (int k = 0; k < 2; ++k) {
               if (!p.wants(k)) continue;
               const bool summed = sums(unbroadcast(p.operand(k), p.result()));
               p.give_summed(k, summed ? p.make(op_code::mul, p.dy, p.n.in[1 - k])
                                       : p.emit(op_code::mul, {}, 0, k, p.dy, p.n.in[1 - k]));
             }
           });
inline constexpr adjoint_rule div =
    pulled([](int k, const spec&, const spec&) { return k == 0 ? 2 : 4; },
           [](pullback& p) {
             const int y = p.n.in[1];
             if (p.wants(0)) p.give_summed(0, p.make(op_code::div, p.dy, y));
             if (p.wants(1))
               p.give_summed(1, p.make(op_code::scale, p.make(op_code::mul, p.dy, p.make(op_code::div, p.id, y)), -1, -1));
           });

// Linear in their operand: the same function of the cotangent.
constexpr void pull_alike(pullback& p) { p.give(0, p.emit(p.n.op, p.n.a, p.n.f, 0, p.dy)); }
inline constexpr adjoint_rule scale = pulled(&pull_alike);
inline constexpr adjoint_rule dropout = pulled(&pull_alike);
inline constexpr adjoint_rule contiguous = pulled<0>([](pullback& p) { p.give(0, p.dy); });

// Whose adjoint is a kernel of its own, of the cotangent and the operand, or the result.
template <op_code Back, bool OfResult = false>
constexpr void pull_by(pullback& p) {
  p.give(0, p.emit(Back, {}, 0, 0, p.dy, OfResult ? p.id : p.n.in[0]));
}
inline constexpr adjoint_rule relu = pulled(&pull_by<op_code::relu_dx>);
inline constexpr adjoint_rule tanh = pulled(&pull_by<op_code::tanh_dx, true>);
inline constexpr adjoint_rule gelu_tanh = pulled(&pull_by<op_code::gelu_tanh_dx>);
inline constexpr adjoint_rule gelu_erf = pulled(&pull_by<op_code::gelu_erf_dx>);

// The cotangent, converted back. Integers have none. That of a parameter's use goes to the parameter as it is: the optimizer converts
// it when it has been summed over ranks, in the type that the plan says. Nothing else reads such a parameter.
inline constexpr adjoint_rule cast = pulled([](pullback& p) {
  if (casts_parameter(p.n) && p.t.cotangent[p.n.in[0]] < 0) {
    p.t.cotangent[p.n.in[0]] = p.dy;
    return;
  }
  const dtype type = p.operand(0).type;
  if (is_floating(type) && is_floating(p.result().type))
    p.give(0, p.emit(op_code::cast, attributes<cast_attributes>(static_cast<std::int64_t>(type)), 0, 0, p.dy));
});

inline constexpr adjoint_rule abs = pulled<2>([](pullback& p) { p.times(p.make(op_code::sign, p.n.in[0])); });
inline constexpr adjoint_rule exp = pulled([](pullback& p) { p.times(p.id); });
inline constexpr adjoint_rule log = pulled([](pullback& p) { p.give(0, p.make(op_code::div, p.dy, p.n.in[0])); });
inline constexpr adjoint_rule sqrt = pulled<5>([](pullback& p) {
  const int g = p.make(op_code::scale, p.make(op_code::div, p.dy, p.id), -1, 0.5);
  // 0 equals itself times 0; no other number does
  const bool zero_at_zero = attributes_of<sqrt_attributes>(p.n.a).zero_at_zero != 0;
  p.give(0, zero_at_zero
                ? p.make(op_code::mask_keep, g, p.make(op_code::eq, p.id, p.make(op_code::scale, p.id, -1, 0)), 0, 1)
                : g);
});
inline constexpr adjoint_rule rsqrt = pulled<4>([](pullback& p) {  // -y^3 / 2
  p.times(p.make(op_code::scale, p.make(op_code::mul, p.make(op_code::mul, p.id, p.id), p.id), -1, -0.5));
});
inline constexpr adjoint_rule reciprocal =
    pulled<3>([](pullback& p) { p.times(p.make(op_code::scale, p.make(op_code::mul, p.id, p.id), -1, -1)); });
inline constexpr adjoint_rule sigmoid =
    pulled<3>([](pullback& p) { p.times(p.make(op_code::sub, p.id, p.make(op_code::mul, p.id, p.id))); });
inline constexpr adjoint_rule sin = pulled<2>([](pullback& p) { p.times(p.make(op_code::cos, p.n.in[0])); });
inline constexpr adjoint_rule cos =
    pulled<3>([](pullback& p) { p.times(p.make(op_code::scale, p.make(op_code::sin, p.n.in[0]), -1, -1)); });
inline constexpr adjoint_rule pow =
    pulled<3>([](pullback& p) {  // x^0 is constant, at 0 too; clang takes no NaN - 1 in a constant
      const double f = p.n.f;
      if (f == 0) p.give(0, p.make(op_code::scale, p.dy, -1, 0));
      else p.times(p.make(op_code::scale, p.make(op_code::pow, p.n.in[0], -1, f == f ? f - 1 : f), -1, f));
    });
// Where the bound is met, too.
constexpr void pull_clamped(pullback& p) {
  p.give(0, p.make(op_code::mask_keep, p.dy, p.make(op_code::eq, p.n.in[0], p.id)));
}
inline constexpr adjoint_rule clamp_min = pulled<2>(&pull_clamped);
inline constexpr adjoint_rule clamp_max = pulled<2>(&pull_clamped);

// Equal operands share; beside a NaN each has all.
template <bool Maximum>
constexpr void pull_larger(pullback& p) {
  const int x = p.n.in[0], y = p.n.in[1];
  for (int k = 0; k < 2; ++k)
    if (p.wants(k))
      p.give_summed(
          k, p.make(op_code::mul, p.dy, (k == 0) == Maximum ? p.make(op_code::keeps, x, y) : p.make(op_code::keeps, y, x)));
}
inline constexpr adjoint_rule maximum = pulled<3>(&pull_larger<true>);
inline constexpr adjoint_rule minimum = pulled<3>(&pull_larger<false>);

inline constexpr adjoint_rule where = pulled<2>(
    [](pullback& p) {
      for (int k = 1; k < 3; ++k)
        if (p.wants(k)) p.give_summed(k, p.make(op_code::mask_keep, p.dy, p.n.in[0], 0, k - 1));
    },
    every_operand & ~1U);
inline constexpr adjoint_rule mask_keep = pulled<2>(
    [](pullback& p) {
      p.give_summed(0,
                    p.make(op_code::mask_keep, p.dy, p.n.in[1], 0, attributes_of<mask_keep_attributes>(p.n.a).where_zero));
    },
    1U);

inline constexpr adjoint_rule sign = no_derivative;
inline constexpr adjoint_rule wins = no_derivative;
inline constexpr adjoint_rule keeps = no_derivative;
inline constexpr adjoint_rule eq = no_derivative;
inline constexpr adjoint_rule ne = no_derivative;
inline constexpr adjoint_rule lt = no_derivative;
inline constexpr adjoint_rule le = no_derivative;
inline constexpr adjoint_rule gt = no_derivative;
inline constexpr adjoint_rule ge = no_derivative;
inline constexpr adjoint_rule relu_dx = unknown;
inline constexpr adjoint_rule tanh_dx = unknown;
inline constexpr adjoint_rule gelu_tanh_dx = unknown;
inline constexpr adjoint_rule gelu_erf_dx = unknown;
inline constexpr adjoint_rule clip_factor = unknown;

}  // namespace shardwise::inline v0_1::adjoints
