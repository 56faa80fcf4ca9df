// SPDX-License-Identifier: Apache-2.0
// epilogue: the expression that follows a kernel, evaluated where that kernel writes: no launch of its own, and what stands
// between stays in registers. Its type carries the expression's words, which are integers.
#pragma once

#include <cstdint>
#include <utility>

#include <shardwise/runtime/cuda/device/kernel.cuh>
#include <shardwise/runtime/cuda/device/math.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// One step of an expression for one element; `slot` holds the values loaded, then the steps', each rounded.
template <class T, std::uint32_t Word>
__device__ T step_value(const T* slot) {
  using C = computed_in<T>;
  constexpr op_code op = static_cast<op_code>(Word & 255U);
  constexpr int x = Word >> 8 & 15U, y = Word >> 12 & 15U;
  if constexpr (operations::element<op>::arity == 1) return T(element<op>(C(0), C(slot[x])));
  else return T(element<op>(C(0), C(slot[x]), C(slot[y])));
}

}  // namespace detail

// The expression of a kernel that none follows.
struct no_epilogue {
  static constexpr int operands = 0;
  struct loaded {};
  __device__ loaded load(const std::int64_t*) const { return {}; }
  template <class T>
  __device__ T operator()(T x, loaded, const std::int64_t*) const {
    return x;
  }
  template <class T>
  __device__ T operator()(T x, const std::int64_t*) const {
    return x;
  }
};

// Operands: the values but the kernel's own, then the buffers. Such expressions have no constants.
template <class T, int Values, int Stores, std::uint32_t... Word>
struct epilogue {
  static constexpr int operands = Values - 1 + Stores;
  T* p[operands > 0 ? operands : 1];

  // The value of the element that the kernel has computed to be x; off[j] is where operand j has it.
  __device__ T operator()(T x, const std::int64_t* off) const { return (*this)(x, load(off), off); }

  // The same in two steps, so that operands are on their way while x is computed.
  struct loaded {
    T v[Values > 1 ? Values - 1 : 1];
  };
  __device__ loaded load(const std::int64_t* off) const {
    loaded l{};
#pragma unroll
    for (int j = 0; j + 1 < Values; ++j) l.v[j] = p[j][off[j]];
    return l;
  }
  __device__ T operator()(T x, const loaded& l, const std::int64_t* off) const {
    return value(x, l, off, std::make_index_sequence<sizeof...(Word)>{});
  }

 private:
  template <std::size_t... I>
  __device__ T value(T x, const loaded& l, const std::int64_t* off, std::index_sequence<I...>) const {
    T slot[Values + sizeof...(Word)];
    slot[0] = x;
#pragma unroll
    for (int j = 0; j + 1 < Values; ++j) slot[j + 1] = l.v[j];
    ((slot[Values + I] = detail::step_value<T, Word>(slot)), ...);
    const auto store = [&](int k, T v) { p[Values - 2 + k][off[Values - 2 + k]] = v; };
    (((Word >> 16 & 15U) != 0 ? store(static_cast<int>(Word >> 16 & 15U), slot[Values + I]) : void()), ...);
    return slot[Values + sizeof...(Word) - 1];
  }
};

namespace detail {

template <class T, expression E, std::size_t... I>
epilogue<T, E.values(), E.stores(), E.step[I]...> make_epilogue(const call& c, std::index_sequence<I...>) {
  epilogue<T, E.values(), E.stores(), E.step[I]...> then{};
  for (int j = 0; j < then.operands; ++j) then.p[j] = as<T>(c.p[c.inputs + j]);
  return then;
}

}  // namespace detail

// Of the expression that follows call c: its operands stand behind those of the kernel.
template <class T, expression E>
auto epilogue_of(const call& c) {
  static_assert(E.follows());
  return detail::make_epilogue<T, E>(c, std::make_index_sequence<static_cast<std::size_t>(E.steps())>{});
}

// The stride with which operand j of the expression that follows call c goes along dim d of the result.
inline std::int64_t epilogue_stride(const call& c, int j, int d) {
  const layout& out = c.l[result];
  return host::broadcast_stride(c.l[c.inputs + j], out.rank, d, out.global);
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
