// SPDX-License-Identifier: Apache-2.0
// What stands around NCCL's reductions: the types that numbers travel in, powers and roots of norms, means, keys of extremes.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <shardwise/runtime/cuda/collective_workspace.hpp>
#include <shardwise/runtime/cuda/context.hpp>
#include <shardwise/runtime/cuda/device/norm_functors.cuh>
#include <shardwise/runtime/cuda/nccl_error.hpp>
#include <shardwise/runtime/cuda/regroup.cuh>

namespace shardwise::inline v0_1::cuda::exchange {

// o[i] = f(x[i]), computed in float on elements of two bytes; x may be o.
template <class From, class To, class F>
__global__ void __launch_bounds__(256) apply_each(const From* x, To* o, std::int64_t n, F f) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    o[i] = static_cast<To>(f(static_cast<computed_in<From>>(x[i])));
}

// The mean's division, after the sum: NCCL's own average multiplies by 1/n first, which rounds once more.
template <class T>
struct divided {
  T by;
  __device__ T operator()(T x) const { return x / by; }
};

template <class From, class To, class F>
void launch_each(const From* x, To* o, std::int64_t n, F f, context& ctx) {
  if (n == 0) return;
  apply_each<<<blocks_for(n, ctx), 256, 0, ctx.stream>>>(x, o, n, f);
  check_launch("the kernel that begins or ends a reduction");
}

template <class T>
constexpr ncclDataType_t nccl_type() {
  switch (dtype_v<T>) {
    case dtype::f32: return ncclFloat32;
    case dtype::f64: return ncclFloat64;
    case dtype::i32: return ncclInt32;
    case dtype::bf16: return ncclBfloat16;
    case dtype::f16: return ncclFloat16;
    case dtype::i64: return ncclInt64;
    case dtype::boolean: break;
  }
  return ncclUint8;
}

// NCCL's max and min drop a NaN beside a number. As whole numbers in the order of the floating-point ones, a NaN beyond
// the end that the reduction looks for, they keep it; -0 comes before 0. NCCL has no whole numbers of two bytes: such elements
// travel as the keys of floats, in scratch.
template <class T>
using key_of = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
template <class T>
inline constexpr key_of<T> top_key =
    sizeof(T) == 4 ? static_cast<key_of<T>>(0x7FFFFFFF) : static_cast<key_of<T>>(0x7FFFFFFFFFFFFFFFLL);
// A NaN of the type, as bits.
template <class T>
inline constexpr key_of<T> nan_bits =
    sizeof(T) == 4 ? static_cast<key_of<T>>(0x7FC00000) : static_cast<key_of<T>>(0x7FF8000000000000LL);
template <class T>
struct to_key {
  bool largest;
  __device__ T operator()(T x) const {
    using key = key_of<T>;
    constexpr key top = top_key<T>;
    const key bits = from_bits<key>(x), k = !(x == x) ? (largest ? top : -top - 1) : bits < 0 ? bits ^ top : bits;
    return from_bits<T>(k);
  }
  template <class To, class From>
  static __device__ To from_bits(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To y;
    memcpy(&y, &x, sizeof(To));
    return y;
  }
};
template <class T>
struct from_key {
  bool largest;
  __device__ T operator()(T x) const {
    using key = key_of<T>;
    constexpr key top = top_key<T>;
    const key k = to_key<T>::template from_bits<key>(x);
    constexpr key nan = nan_bits<T>;
    return to_key<T>::template from_bits<T>(k == (largest ? top : -top - 1) ? nan : k < 0 ? k ^ top : k);
  }
};
constexpr bool keeps_keys(const placement& p) {
  return p.is_partial() && (p.op == reduction::max || p.op == reduction::min);
}
// What the numbers of a reduction are while they travel: their elements, and NCCL's name of these.
template <class T>
ncclDataType_t reduced_type(const placement& p) {
  if constexpr (is_floating_element<T>)
    if (keeps_keys(p)) return sizeof(T) <= 4 ? ncclInt32 : ncclInt64;
  return nccl_type<T>();
}
// Whether the numbers of a reduction lie in scratch while they travel, four bytes each where the elements have two.
template <class T>
bool travels_wide(const placement& p) {
  return is_low_precision(dtype_v<T>) && keeps_keys(p);
}
inline void refuse_norm(dtype t) {
  throw std::logic_error(
      std::string("shardwise: a partial norm of elements of type ") + name_of(t) +
      " is not reduced over GPUs, since powers of such elements overflow or vanish; cast the tensor to float "
      "before its norm is taken");
}

constexpr ncclRedOp_t nccl_op(reduction op) {
  switch (op) {
    case reduction::product: return ncclProd;
    case reduction::max: return ncclMax;
    case reduction::min: return ncclMin;
    case reduction::sum:
    case reduction::avg:
    case reduction::norm: break;
  }
  return ncclSum;
}

// Scratch of a reduction of two-byte elements that travels as keys: the operand's keys, behind them the result's of a
// reduce_scatter, behind these its operand's rows (extreme_scratch).
inline const float* reduced_keys(const call& c) {
  const std::int64_t before = c.kind == transition::reduce_scatter ? runtime::scratch_align(c.l[0].numel() * 4) : 0;
  return reinterpret_cast<const float*>(static_cast<const char*>(c.workspace) + before);
}
template <class T>
void* after_keys(const call& c) {
  if (!travels_wide<T>(c.from)) return c.workspace;
  return static_cast<char*>(c.workspace) +
         runtime::extreme_scratch(c.l[0].numel(), c.kind == transition::reduce_scatter ? c.l[result].numel() : 0);
}

// What stands around NCCL's reduction: norms are summed as powers, means divided, extremes compared as keys. `begin_reduction`
// leaves powers or keys in `to` and returns it, or returns x where there is nothing to do. Integers are never norms.
template <class T>
const void* begin_reduction(const call& c, const T* x, void* scratch, std::int64_t n, context& ctx) {
  [[maybe_unused]] T* const to = static_cast<T*>(scratch);
  if constexpr (is_low_precision(dtype_v<T>)) {
    if (c.from.is_norm()) refuse_norm(dtype_v<T>);
    if (!keeps_keys(c.from)) return x;
    float* const keys = static_cast<float*>(scratch);
    launch_each(x, keys, n, to_key<float>{c.from.op == reduction::max}, ctx);
    return keys;
  } else if constexpr (std::is_floating_point_v<T>)
    if (c.from.is_norm()) {
      launch_each(x, to, n, norm_power<T>{c.from.order()}, ctx);
      return to;
    } else if (keeps_keys(c.from)) {
      launch_each(x, to, n, to_key<T>{c.from.op == reduction::max}, ctx);
      return to;
    }
  return x;
}
template <class T>
void end_reduction(const call& c, context& ctx) {
  using C = computed_in<T>;
  const std::int64_t n = c.l[result].numel();
  T* const o = static_cast<T*>(c.p[result]);
  if (c.from.op == reduction::avg) launch_each(o, o, n, divided<C>{static_cast<C>(c.ranks)}, ctx);
  if constexpr (is_low_precision(dtype_v<T>)) {
    if (keeps_keys(c.from)) launch_each(reduced_keys(c), o, n, from_key<float>{c.from.op == reduction::max}, ctx);
  } else if constexpr (std::is_floating_point_v<T>)
    if (c.from.is_norm()) launch_each(o, o, n, norm_root<T>{c.from.order()}, ctx);
    else if (keeps_keys(c.from)) launch_each(o, o, n, from_key<T>{c.from.op == reduction::max}, ctx);
}

}  // namespace shardwise::inline v0_1::cuda::exchange
