// SPDX-License-Identifier: Apache-2.0
// All device kernels, one struct per operation over local blocks, and the tables of what launches them.
#pragma once

#include <shardwise/runtime/cuda/kernels/block.cuh>
#include <shardwise/runtime/cuda/kernels/custom.cuh>
#include <shardwise/runtime/cuda/kernels/elementwise.cuh>
#include <shardwise/runtime/cuda/kernels/fused.cuh>
#include <shardwise/runtime/cuda/kernels/gather.cuh>
#include <shardwise/runtime/cuda/kernels/index.cuh>
#include <shardwise/runtime/cuda/kernels/join.cuh>
#include <shardwise/runtime/cuda/kernels/norm_bwd.cuh>
#include <shardwise/runtime/cuda/kernels/ordering.cuh>
#include <shardwise/runtime/cuda/kernels/pointwise.cuh>
#include <shardwise/runtime/cuda/kernels/random.cuh>
#include <shardwise/runtime/cuda/kernels/rows.cuh>
#include <shardwise/runtime/cuda/kernels/sum.cuh>
#include <shardwise/runtime/cuda/kernels/update.cuh>
#include <shardwise/runtime/cuda/kernels/vector_norm.cuh>
#include <shardwise/runtime/cuda/matmul.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// What launches one operation on elements of T; null where there is no kernel, and for fused ones, which are those of
// their expressions. Integers are only moved and compared. Instantiates the kernels of that operation alone.
template <op_code Op, class T>
constexpr launcher launcher_for() {
  constexpr bool moves = rules::only_moves(Op) || Op == op_code::redistribute || is_comparison(Op);
  if constexpr (runs_kernel(Op) && Op != op_code::opaque && Op != op_code::custom && Op != op_code::fused && (std::is_floating_point_v<T> || moves))
    return &kernel<Op>::template run<T>;
  else
    return nullptr;
}

// All of them, by operation.
template <class T>
struct launchers {
  static constexpr launcher table[static_cast<int>(op_code::count)] = {
#define SHARDWISE_X(name, kernel) launcher_for<op_code::name, T>(),
      SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
  };
};

template <class T>
launcher launcher_of(op_code op) {
  return launchers<T>::table[static_cast<int>(op)];
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::cuda
