// SPDX-License-Identifier: Apache-2.0
// lowering: what executor and eager tensors share: kernel entries, redistributions on one rank, blocks, initial values.
#pragma once

#include <cmath>
#include <span>
#include <string_view>
#include <type_traits>

#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/runtime/threads_collectives.hpp>
#include <shardwise/vocabulary/init.hpp>

namespace shardwise {

namespace runtime {

template <class Rank>
using kernel_function = void (*)(const call&, const step_env&, Rank&);

// Knows no rank, and is not inlined where one is: meshes share the machine code of all kernels.
template <op_code Op, class T>
__attribute__((noinline)) void compute(const call& c, const step_env& env) {
  host::operands<T> q;
  for (int k = 0; k <= max_inputs; ++k) q.p[k] = static_cast<T*>(c.p[k]);
  constexpr int index = Op == op_code::embedding || Op == op_code::embedding_dw ? 1
                        : Op == op_code::nll                                    ? 2
                        : Op == op_code::nll_dx                                 ? 3
                                                                                : -1;
  if constexpr (index >= 0) q.index = static_cast<const std::int32_t*>(c.p[index]);
  host::kernel<Op>::template run<T>(c, q, env);
}

template <op_code Op, class T, class Rank>
void run_kernel(const call& c, const step_env& env, Rank& rank) {
  if constexpr (Op == op_code::redistribute) {
    if (communicates(c.kind)) {
      threads::communicate<T>(c, rank);
      return;
    }
  }
  compute<Op, T>(c, env);
}

// Integers are only moved; arithmetic kernels exist for floating-point elements.
template <signature S, class Rank>
constexpr kernel_function<Rank> kernel_entry() {
  constexpr op_code op = S.op;
  using T = element_t<S.type>;
  if constexpr (std::is_floating_point_v<T> || op == op_code::contiguous || op == op_code::redistribute)
    return &run_kernel<op, T, Rank>;
  else
    return nullptr;
}

// What a redistribution of `in` to `out` is for the rank at mesh coordinate `c`.
constexpr void lower_redistribute(call& k, int axis, const spec& in, const spec& out, const int* c) {
  k.axis = axis;
  k.ranks = in.axis_size[axis];
  k.coordinate = c[axis];
  k.from = in.place[axis];
  k.to = out.place[axis];
  k.kind = transition_of(k.from, k.to, k.ranks);
}

// f(position in the densely stored block, row-major index in the whole tensor) for every element.
template <class F>
constexpr void each_element(const layout& l, F&& f) {
  std::int64_t at[max_rank]{};
  const std::int64_t n = l.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    f(i, host::detail::global_index(l, at));
    for (int d = l.rank - 1; d >= 0 && ++at[d] == l.ext[d]; --d) at[d] = 0;
  }
}

// The block out of a whole tensor, and back.
template <class From, class To>
constexpr void load_block(const From* global, To* local, const layout& l) {
  each_element(l, [&](std::int64_t i, std::int64_t g) { local[i] = static_cast<To>(global[g]); });
}
template <class From, class To>
constexpr void store_block(const From* local, To* global, const layout& l) {
  each_element(l, [&](std::int64_t i, std::int64_t g) { global[g] = static_cast<To>(local[i]); });
}

// FNV-1a: a parameter's random stream is named by its path, so it does not move when others are added.
constexpr std::uint32_t stream_of(std::string_view path) {
  std::uint32_t h = 2166136261U;
  for (char ch : path) h = (h ^ static_cast<unsigned char>(ch)) * 16777619U;
  return h;
}

inline double initial_value(init_kind kind, double scale, std::uint64_t seed, std::uint32_t stream,
                            std::int64_t index) {
  const philox_words w =
      philox(seed, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), stream, 0xFFFFFFFFU);
  constexpr double unit = 1.0 / 4294967296.0;
  switch (kind) {
    case init_kind::ones:
      return 1;
    case init_kind::uniform:
      return scale * (2 * w.w[0] * unit - 1);
    case init_kind::normal:  // Box-Muller; the shift keeps the logarithm finite
      return scale * std::sqrt(-2 * std::log((w.w[0] + 0.5) * unit)) * std::cos(6.283185307179586 * w.w[1] * unit);
    default:
      return 0;
  }
}

// Values of a parameter's block from (seed, path, global element index) alone: equal on every mesh and placement.
template <class T>
void initialise_block(std::span<T> values, const layout& l, init_kind kind, double scale, std::uint64_t seed,
                      std::string_view path) {
  const std::uint32_t stream = stream_of(path);
  each_element(l, [&](std::int64_t i, std::int64_t g) {
    values[static_cast<std::size_t>(i)] = static_cast<T>(initial_value(kind, scale, seed, stream, g));
  });
}

}  // namespace runtime

using runtime::step_env;

}  // namespace shardwise
