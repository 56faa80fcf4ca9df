// SPDX-License-Identifier: Apache-2.0
// What a failed CUDA, cuBLASLt or NCCL call becomes: one exception whose sentence names the call and the library's reason.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

// Thrown at the call that failed; executor and launch add the rank and the module path to the sentence.
struct SHARDWISE_VISIBLE device_error : std::runtime_error {
  device_error(const std::string& call, const std::string& reason)
      : std::runtime_error("shardwise: " + call + " failed: " + reason) {}
};

namespace cuda {

inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // the error is reported here once; a sticky one comes back by itself
  throw device_error(call, std::string(cudaGetErrorString(status)) + " (" + cudaGetErrorName(status) + ")");
}

inline void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw device_error(call, cublasLtGetStatusName(status));
}

// After a kernel launch; `kernel` is what the sentence calls it.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace cuda

}  // namespace shardwise::inline v0_1
