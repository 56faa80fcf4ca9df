// SPDX-License-Identifier: Apache-2.0
// All device kernels, one struct per operation over local blocks, and the tables of what launches them.
#pragma once

#include <shardwise/operations/contraction/device.cuh>
#include <shardwise/operations/embedding/device.cuh>
#include <shardwise/operations/fill/device.cuh>
#include <shardwise/operations/indexing/device.cuh>
#include <shardwise/operations/join/device.cuh>
#include <shardwise/operations/leaf/device.cuh>
#include <shardwise/operations/loss/device.cuh>
#include <shardwise/operations/loss/device_joined.cuh>
#include <shardwise/operations/movement/device.cuh>
#include <shardwise/operations/norm/device.cuh>
#include <shardwise/operations/pointwise/device.cuh>
#include <shardwise/operations/pointwise/device_cast.cuh>
#include <shardwise/operations/reduction/device.cuh>
#include <shardwise/operations/row/device.cuh>
#include <shardwise/operations/update/device.cuh>
#include <shardwise/operations/view/device.cuh>
#include <shardwise/operations/written/device.cuh>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <op_code Op, class T>
concept kernel_written = requires(const call& c, context& ctx) { kernel<Op>::template run<T>(c, ctx); };

template <op_code Op, class T>
constexpr launcher written_launcher() {
  if constexpr (kernel_written<Op, T>) {
    return &kernel<Op>::template run<T>;
  } else {
    static_assert(raise<problem::kernel_unwritten, typename shardwise::detail::op_tag<Op>::type, T>::ok);
    return nullptr;
  }
}

// What launches one operation on elements of T; null where there is no kernel (takes_element), for casts, and for fused ones, which
// are those of their expressions. Instantiates the kernels of that operation alone.
template <op_code Op, class T, bool Arithmetic = true>
constexpr launcher launcher_for() {
  if constexpr (runs_kernel(Op) && Op != op_code::opaque && Op != op_code::custom && Op != op_code::fused &&
                takes_element<Op, T, Arithmetic>)
    return written_launcher<Op, T>();
  else return nullptr;
}

// What launches neighbours of one operation together; null where its record says that each goes out alone.
using launcher_of_all = void (*)(const call*, std::size_t, context&);
template <op_code Op, class T>
constexpr launcher_of_all launcher_for_all() {
  if constexpr (traits_of(Op).launch == launching::alone || !takes_element<Op, T>) {
    return nullptr;
  } else {
    static_assert(
        requires(const call* c, context& ctx) { kernel<Op>::template run_all<T>(c, std::size_t{1}, ctx); },
        "an operation whose record says that neighbours go out together has run_all beside run in its device.cuh");
    return &kernel<Op>::template run_all<T>;
  }
}

// Which kernels a table has: of these, all that there are.
struct all_kernels {
  static constexpr bool alone(op_code, dtype) { return true; }
  static constexpr bool together(op_code, dtype) { return true; }
};

// All of them that Needed names, by operation.
template <class T, bool Arithmetic = true, class Needed = all_kernels>
struct launchers {
  template <op_code Op>
  static constexpr launcher alone() {
    if constexpr (Needed::alone(Op, dtype_v<T>)) return launcher_for<Op, T, Arithmetic>();
    else return nullptr;
  }
  template <op_code Op>
  static constexpr launcher_of_all together() {
    if constexpr (Needed::together(Op, dtype_v<T>)) return launcher_for_all<Op, T>();
    else return nullptr;
  }
  static constexpr launcher table[static_cast<int>(op_code::count)] = {
#define SHARDWISE_X(name, kernel) alone<op_code::name>(),
      SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
  };
  static constexpr launcher_of_all all[static_cast<int>(op_code::count)] = {
#define SHARDWISE_X(name, kernel) together<op_code::name>(),
      SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
  };
};

template <class T, bool Arithmetic = is_floating_element<T>, class Needed = all_kernels>
launcher launcher_of(op_code op) {
  return launchers<T, Arithmetic, Needed>::table[static_cast<int>(op)];
}
template <class T, bool Arithmetic = is_floating_element<T>, class Needed = all_kernels>
launcher_of_all launcher_of_neighbours(op_code op) {
  return launchers<T, Arithmetic, Needed>::all[static_cast<int>(op)];
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
