// SPDX-License-Identifier: Apache-2.0
// Expressions over blocks on the host: one loop, the values between its operations in registers.
#pragma once

#include <bit>
#include <utility>

#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/operations/pointwise/host.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

// Elements of two bytes are computed in float, and each step's value is rounded: a program gives the same bits fused or not.
// One element: `slot` holds the values loaded and takes the steps'. By functions of templates, so that nothing is
// decided in the loop.
template <class T, expression E, int I>
constexpr T step_value(const T* slot, const computed_in<T>* constant) {
  constexpr expression_step s = E.at(I);
  static_assert(operations::has_element<s.op>,
                "an operation whose record says `scalar` has no formula in operations/pointwise/formulas.hpp");
  using C = computed_in<T>;
  C f = C(0);
  if constexpr (s.constant > 0) f = constant[s.constant - 1];
  if constexpr (operations::element<s.op>::arity == 1) return T(host::element<s.op>(f, C(slot[s.x])));
  else return T(host::element<s.op>(f, C(slot[s.x]), C(slot[s.y])));
}

// Pointers and strides of a run: the result, the values loaded, the rooms.
template <class T, int N>
struct run_operands {
  T* p[N];
  std::int64_t s[N];
  computed_in<T> constant[max_constants];
};

template <class T, expression E, bool Dense, std::size_t... V, std::size_t... I>
constexpr void run_element(const run_operands<T, E.values() + E.stores() + 1>& r, std::int64_t i, std::index_sequence<V...>,
                           std::index_sequence<I...>) {
  T slot[sizeof...(V) + sizeof...(I)];
  ((slot[V] = r.p[V + 1][Dense ? i : i * r.s[V + 1]]), ...);
  ((slot[sizeof...(V) + I] = step_value<T, E, static_cast<int>(I)>(slot, r.constant)), ...);
  constexpr auto stored = [](int step) { return E.values() + E.at(step).store; };
  ((E.at(static_cast<int>(I)).store > 0
        ? void(r.p[stored(static_cast<int>(I))][Dense ? i : i * r.s[stored(static_cast<int>(I))]] = slot[sizeof...(V) + I])
        : void()),
   ...);
  r.p[0][Dense ? i : i * r.s[0]] = slot[sizeof...(V) + sizeof...(I) - 1];
}

}  // namespace detail

// The call's result is the expression's value; where it follows a kernel, value 0 is what that kernel has left there.
template <class T, expression E>
constexpr void evaluate(const call& c, const operands<T>& q) {
  constexpr int values = E.values(), count = values + E.stores() + 1;
  constexpr int before = E.follows() ? 1 : 0;
  const layout* in[count - 1]{};
  detail::run_operands<T, count> all{};
  all.p[0] = q.p[result];
  if (before == 1) {
    in[0] = &c.l[result];
    all.p[1] = q.p[result];
  }
  for (int k = before; k < count - 1; ++k) {
    in[k] = &c.l[c.inputs + k - before];
    all.p[k + 1] = q.p[c.inputs + k - before];
  }
  if constexpr (!E.follows())
    for (int k = 0; k < max_constants; ++k)
      all.constant[k] = math<computed_in<T>>::from(attributes_of<fused_attributes>(c.a).constant[k]);
  const walk<count> w = [&] {
    walk<count> x;
    const layout& out = c.l[result];
    for (int d = 0; d < out.rank; ++d) {
      std::int64_t s[count]{};
      s[0] = out.str[d];
      for (int k = 1; k < count; ++k) s[k] = broadcast_stride(*in[k - 1], out.rank, d, out.global);
      x.push(out.ext[d], s);
    }
    x.merge();
    return x;
  }();
  using loads = std::make_index_sequence<static_cast<std::size_t>(values)>;
  using steps = std::make_index_sequence<static_cast<std::size_t>(E.steps())>;
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    detail::run_operands<T, count> r = all;
    bool dense = true;
    for (int k = 0; k < count; ++k) {
      r.p[k] += off[k];
      r.s[k] = s[k];
      dense = dense && s[k] == 1;
    }
    if (dense) independent_loop<T>(n, [r](std::int64_t i) { detail::run_element<T, E, true>(r, i, loads{}, steps{}); });
    else plain_loop(n, [&r](std::int64_t i) { detail::run_element<T, E, false>(r, i, loads{}, steps{}); });
  });
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
