// SPDX-License-Identifier: Apache-2.0
// Expressions over blocks on a device: one launch, the values between its operations in registers, 16 bytes at a time where all
// operands allow it. A kernel's template takes the expression's words, which are integers. On elements of two bytes each operation
// is computed in float and rounded, as where it stands alone.
#pragma once

#include <array>
#include <bit>
#include <utility>

#include <shardwise/runtime/cuda/device/takes_element.cuh>
#include <shardwise/runtime/cuda/device/epilogue.cuh>
#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <class T>
struct constants {
  computed_in<T> f[max_constants];
};

namespace detail {

template <class T, int V, std::uint32_t Word>
__device__ void expression_value(pack<T, V>* slot, pack<T, V>& out, const constants<T>& k) {
  constexpr op_code op = static_cast<op_code>(Word & 255U);
  constexpr int x = Word >> 8 & 15U, y = Word >> 12 & 15U, constant = Word >> 20 & 15U;
  using C = computed_in<T>;
  const C f = constant > 0 ? k.f[constant > 0 ? constant - 1 : 0] : C(0);
#pragma unroll
  for (int v = 0; v < V; ++v) {
    if constexpr (operations::element<op>::arity == 1) out.v[v] = T(element<op>(f, C(slot[x].v[v])));
    else out.v[v] = T(element<op>(f, C(slot[x].v[v]), C(slot[y].v[v])));
  }
}

// Operands: the result, the values loaded, the rooms.
template <class T, int V, int Values, int K, std::uint32_t... Word, std::size_t... I>
__device__ void expression_point(const strided<K>& w, const pointers<T, K>& q, const constants<T>& k,
                                 const std::int64_t* off, std::index_sequence<I...>) {
  pack<T, V> slot[Values + sizeof...(Word)];
#pragma unroll
  for (int j = 0; j < Values; ++j) {
    const T* const from = q.p[j + 1] + off[j + 1];
    if (V > 1 && w.str[j + 1][w.rank - 1] != 0) {
      slot[j] = *reinterpret_cast<const pack<T, V>*>(from);
    } else {
      const T one = *from;
      for (int v = 0; v < V; ++v) slot[j].v[v] = one;
    }
  }
  (expression_value<T, V, Word>(slot, slot[Values + I], k), ...);
  const auto store = [&](int operand, const pack<T, V>& x) {
    *reinterpret_cast<pack<T, V>*>(q.p[operand] + off[operand]) = x;
  };
  (((Word >> 16 & 15U) != 0 ? store(Values + static_cast<int>(Word >> 16 & 15U), slot[Values + I]) : void()), ...);
  store(0, slot[Values + sizeof...(Word) - 1]);
}

template <class T, int V, int Values, int K, std::uint32_t... Word>
__global__ void __launch_bounds__(256)
    expression_kernel(const __grid_constant__ strided<K> w, const __grid_constant__ pointers<T, K> q,
                      const __grid_constant__ constants<T> k) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t off[K];
    w.offsets(i, off);
    expression_point<T, V, Values, K, Word...>(w, q, k, off, std::make_index_sequence<sizeof...(Word)>{});
  }
}

template <class T, int V, expression E, int K, std::size_t... I>
void expression_launch(op_code op, const strided<K>& s, const pointers<T, K>& q, const constants<T>& k, context& ctx,
                       std::index_sequence<I...>) {
  launch(op, &expression_kernel<T, V, E.values(), K, E.step[I]...>, grid_for((std::int64_t{s.count} + 255) / 256, ctx), 256,
         ctx.stream, s, q, k);
}

}  // namespace detail

// The call's result is the expression's value; where it follows a kernel, value 0 is what that kernel has left there.
template <class T, expression E>
void evaluate(op_code op, const call& c, context& ctx) {
  constexpr int values = E.values(), K = values + E.stores() + 1, before = E.follows() ? 1 : 0;
  const layout* in[K - 1]{};
  pointers<T, K> q{};
  q.p[0] = as<T>(c.p[result]);
  if (before == 1) {
    in[0] = &c.l[result];
    q.p[1] = q.p[0];
  }
  for (int k = before; k < K - 1; ++k) {
    in[k] = &c.l[c.inputs + k - before];
    q.p[k + 1] = as<T>(c.p[c.inputs + k - before]);
  }
  constants<T> f{};
  if constexpr (!E.follows())
    for (int k = 0; k < max_constants; ++k)
      f.f[k] = static_cast<computed_in<T>>(double{attributes_of<fused_attributes>(c.a).constant[k]});
  const layout& out = c.l[result];
  walk<K> w;
  for (int d = 0; d < out.rank; ++d) {
    std::int64_t s[K]{};
    s[0] = out.str[d];
    for (int k = 1; k < K; ++k) s[k] = host::broadcast_stride(*in[k - 1], out.rank, d, out.global);
    w.push(out.ext[d], s);
  }
  w.merge();
  constexpr auto steps = std::make_index_sequence<static_cast<std::size_t>(E.steps())>{};
  each_piece(w, [&](const walk<K>& piece, const std::int64_t* base) {
    constexpr int V = vector_of<T>;
    if (detail::steps_by_packs(piece, base, q))
      detail::expression_launch<T, V, E>(op, detail::strided_packs<V>(piece, base), q, f, ctx, steps);
    else detail::expression_launch<T, 1, E>(op, make_strided(piece, base), q, f, ctx, steps);
  });
}

// An operation and the expression that follows it. Kernels with a `run_then` evaluate it where they write; behind the others
// it is a launch in place.
template <op_code Op, class T, expression E>
void run_with(const call& c, context& ctx) {
  if constexpr (!takes_element<Op, T>) {
    refuse_element(Op, dtype_v<T>);
  } else if constexpr (Op == op_code::fused) {
    evaluate<T, E>(Op, c, ctx);
  } else if constexpr (requires { kernel<Op>::template run_then<T, E>(c, ctx); }) {
    kernel<Op>::template run_then<T, E>(c, ctx);
  } else {
    kernel<Op>::template run<T>(c, ctx);
    evaluate<T, E>(Op, c, ctx);
  }
}

// The distinct operations of a program with the expressions that follow them, by their element types.
struct followed_pairs {
  static constexpr int most =
      8 * max_expressions;  // few operations lead an expression, see may_lead in pass/fuse/region.hpp
  op_code op[most]{};
  int expression[most]{};
  dtype type[most]{};
  int count = 0;

  template <class Graph>
  static constexpr followed_pairs of(const Graph& g) {
    followed_pairs p;
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      if (n.expression < 0) continue;
      const dtype type = kernel_type(g, n);
      if (p.find(n.op, n.expression, type) >= 0) continue;
      p.op[p.count] = n.op;
      p.type[p.count] = type;
      p.expression[p.count++] = n.expression;
    }
    return p;
  }
  constexpr int find(op_code o, int e, dtype t) const {
    for (int k = 0; k < count; ++k)
      if (op[k] == o && expression[k] == e && type[k] == t) return k;
    return -1;
  }
};

// What launches each of them.
template <class Source>
struct followed_launchers {
  static constexpr followed_pairs pairs = followed_pairs::of(Source::value);

  template <std::size_t... K>
  static constexpr std::array<launcher, sizeof...(K) + 1> make(std::index_sequence<K...>) {
    return {&run_with<pairs.op[K], element_t<pairs.type[K]>, Source::value.expressions[pairs.expression[K]]>..., nullptr};
  }
  static constexpr auto table = make(std::make_index_sequence<static_cast<std::size_t>(pairs.count)>{});

  static launcher of(op_code op, int expression, dtype type) {
    return table[static_cast<std::size_t>(pairs.find(op, expression, type))];
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
