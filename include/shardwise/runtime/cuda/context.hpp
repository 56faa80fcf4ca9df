// SPDX-License-Identifier: Apache-2.0
// context: what every launch on a device is given: the stream, the step's numbers and the scratch, all of one rank.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include <shardwise/runtime/program/call.hpp>
#include <shardwise/runtime/cuda/error.hpp>

namespace shardwise::inline v0_1::cuda {

using runtime::call;
using runtime::layout;
using runtime::result;
using runtime::step_env;

// What kernels read of a step, in device memory. A graph is captured once and replayed with other numbers, so they are
// never kernel arguments; what follows from them is computed once here and not in every thread.
struct device_env {
  step_env env;
  double adam_rate = 0;  // lr / (1 - beta1^step)
  double adam_root = 0;  // 1 / sqrt(1 - beta2^step)
};

// The first bad index, or number that is no probability, that a kernel met, in device memory: not every link to the host
// carries atomics, so the host copies it when it waits anyway. Kernels go on, with index 0 or the number as it is, so no rank
// leaves the others waiting in a collective.
struct index_fault {
  std::int32_t node;    // -1: none
  std::int32_t limits;  // 1: index is outside 0..limit-1; 2: index holds the bits of a double that is no probability
  std::int64_t index, limit;
};

class matmul_plans;

// Counters by which the blocks of one kernel find out which of them is the last; see device/arrival.cuh. Every kernel
// leaves them at 0, and one stream's kernels run one after another, so each stream has one set.
inline constexpr int ticket_count = 1024;

struct context {
  cudaStream_t stream = nullptr;
  const device_env* env = nullptr;
  index_fault* fault = nullptr;
  cublasLtHandle_t lt = nullptr;
  matmul_plans* plans = nullptr;
  std::uint32_t* tickets = nullptr;
  std::int32_t multiprocessors = 1;
};

using launcher = void (*)(const call&, context&);

}  // namespace shardwise::inline v0_1::cuda
