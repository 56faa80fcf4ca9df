// SPDX-License-Identifier: Apache-2.0
// Pullbacks that are made of operations: a factor computed from operands and result, whole where they are, times the
// cotangent, which may be partial.
#pragma once

#include <shardwise/autodiff/pullback.hpp>

namespace shardwise::autodiff {

constexpr int most_pulled_of_function(op_code op, int operand) {
  switch (op) {
    case op_code::abs:
    case op_code::sin:
    case op_code::clamp_min:
    case op_code::clamp_max:
    case op_code::where:
    case op_code::mask_keep: return 2;
    case op_code::sumsq:
    case op_code::reciprocal:
    case op_code::sigmoid:
    case op_code::cos:
    case op_code::pow:
    case op_code::maximum:
    case op_code::minimum: return 3;
    case op_code::rsqrt:
    case op_code::amax:
    case op_code::amin:
    case op_code::log_softmax: return 4;
    case op_code::div: return operand == 0 ? 2 : 4;
    case op_code::sqrt: return 5;
    case op_code::lse: return 6;
    default: return 1;
  }
}

// A node whose extents and placement are its rule's.
constexpr int derive(tape& t, op_code op, const op_attr& a, double f, int scope, int i0, int i1 = -1) {
  const spec in[2] = {t.spec_at(i0), i1 < 0 ? spec{} : t.spec_at(i1)};
  const outcome o = infer(op, a, in, i1 < 0 ? 1 : 2);
  if (o.error && !t.b.error) t.b.error = o.error;
  return t.emit(op, a, f, t.b.intern(o.out), scope, i0, i1);
}

constexpr void pull_function(tape& t, int id) {
  const node n = t.b.nodes[id];
  const int dy = t.cotangent[id], x = n.in[0], y = n.in[1];
  auto make = [&](op_code op, int i0, int i1 = -1, double f = 0, std::int64_t v0 = 0) {
    return derive(t, op, {{v0, v0, 0, 0, 0, 0}}, f, n.scope, i0, i1);
  };
  auto wants = [&](int k) { return t.needs[n.in[k]] && differentiable(n.op, k); };
  // to operand k, summed over what it was broadcast along
  auto give = [&](int k, int g) {
    const op_attr u = unbroadcast(t.spec_at(n.in[k]), t.spec_at(id));
    if (u.v[0] != 0) g = t.emit(op_code::sum, u, 0, t.dual_id(t.b.nodes[n.in[k]].spec), n.scope, g);
    t.give(n.in[k], g, n.scope);
  };
  auto times = [&](int factor) { t.give(x, make(op_code::mul, dy, factor), n.scope); };
  switch (n.op) {
    case op_code::abs: times(make(op_code::sign, x)); break;
    case op_code::exp: times(id); break;
    case op_code::log: t.give(x, make(op_code::div, dy, x), n.scope); break;
    case op_code::sqrt: {
      const int g = make(op_code::scale, make(op_code::div, dy, id), -1, 0.5);
      // 0 equals itself times 0; no other number does
      t.give(x, n.a.v[0] == 0 ? g : make(op_code::mask_keep, g, make(op_code::eq, id, make(op_code::scale, id, -1, 0)), 0, 1), n.scope);
      break;
    }
    case op_code::rsqrt:  // -y^3 / 2
      times(make(op_code::scale, make(op_code::mul, make(op_code::mul, id, id), id), -1, -0.5));
      break;
    case op_code::reciprocal: times(make(op_code::scale, make(op_code::mul, id, id), -1, -1)); break;
    case op_code::sigmoid: times(make(op_code::sub, id, make(op_code::mul, id, id))); break;
    case op_code::sin: times(make(op_code::cos, x)); break;
    case op_code::cos: times(make(op_code::scale, make(op_code::sin, x), -1, -1)); break;
    case op_code::pow:  // x^0 is constant, at 0 too; clang takes no NaN - 1 in a constant
      if (n.f == 0) t.give(x, make(op_code::scale, dy, -1, 0), n.scope);
      else times(make(op_code::scale, make(op_code::pow, x, -1, n.f == n.f ? n.f - 1 : n.f), -1, n.f));
      break;
    case op_code::clamp_min:
    case op_code::clamp_max:  // where the bound is met, too
      t.give(x, make(op_code::mask_keep, dy, make(op_code::eq, x, id)), n.scope);
      break;
    case op_code::div:
      if (wants(0)) give(0, make(op_code::div, dy, y));
      if (wants(1)) give(1, make(op_code::scale, make(op_code::mul, dy, make(op_code::div, id, y)), -1, -1));
      break;
    case op_code::maximum:  // equal operands share; beside a NaN each has all
    case op_code::minimum:
      for (int k = 0; k < 2; ++k)
        if (wants(k)) {
          const bool first = (k == 0) == (n.op == op_code::maximum);
          give(k, make(op_code::mul, dy, first ? make(op_code::keeps, x, y) : make(op_code::keeps, y, x)));
        }
      break;
    case op_code::where:
      for (int k = 1; k < 3; ++k)
        if (wants(k)) give(k, make(op_code::mask_keep, dy, x, 0, k - 1));
      break;
    case op_code::mask_keep: give(0, make(op_code::mask_keep, dy, y, 0, n.a.v[0])); break;
    case op_code::amax:  // all elements that are the largest share evenly; each of them ties: 1/2, of half their number
    case op_code::amin: {
      const int tie = n.op == op_code::amax ? make(op_code::wins, x, id) : make(op_code::wins, id, x);
      const int count = make(op_code::sum, tie, -1, 0, n.a.v[0]);
      t.give(x, make(op_code::mul, make(op_code::div, dy, count), tie), n.scope);
      break;
    }
    case op_code::sumsq: {
      const int spread = t.emit(op_code::expand, n.a, 0, t.dual_id(t.b.nodes[x].spec), n.scope, make(op_code::scale, dy, -1, 2));
      t.give(x, make(op_code::mul, spread, x), n.scope);
      break;
    }
    case op_code::prod: t.give(x, make(op_code::prod_dx, dy, x, 0, n.a.v[0]), n.scope); break;
    case op_code::log_softmax: {  // dy - softmax sum(dy)
      const int total = make(op_code::sum, dy, -1, 0, std::int64_t{1} << (t.spec_at(id).rank - 1));
      t.give(x, make(op_code::sub, dy, make(op_code::mul, make(op_code::exp, id), total)), n.scope);
      break;
    }
    case op_code::lse: {  // dy softmax: rows' numbers get a last dim of extent 1
      op_attr rows{};
      const spec& whole = t.spec_at(x);
      for (int d = 0; d < whole.rank; ++d) rows.v[d] = d + 1 < whole.rank ? whole.extent[d] : 1;
      rows.v[5] = whole.rank;
      const int norm = derive(t, op_code::reshape, rows, 0, n.scope, id);
      const int softmax = make(op_code::exp, make(op_code::sub, x, norm));
      const int g = derive(t, op_code::reshape, rows, 0, n.scope, contiguous_node(t, dy, n.scope));
      t.give(x, make(op_code::mul, softmax, g), n.scope);
      break;
    }
    case op_code::take: {
      const spec& whole = t.spec_at(x);
      const op_attr a{{whole.extent[whole.rank - 1], 0, 0, 0, 0, 0}};
      t.give(x, t.emit(op_code::take_dx, a, 0, t.dual_id(t.b.nodes[x].spec), n.scope, dy, y), n.scope);
      break;
    }
    default:
      if (!t.b.error) t.b.error = {problem::gradient_missing, id, -1, -1, static_cast<long long>(n.op), 0};
      break;
  }
}

}  // namespace shardwise::autodiff
