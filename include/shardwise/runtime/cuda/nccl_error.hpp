// SPDX-License-Identifier: Apache-2.0
// What a failed NCCL call becomes: the exception of every device call, with the last words of the library's log.
#pragma once

#include <nccl.h>

#include <shardwise/runtime/cuda/error.hpp>

namespace shardwise::inline v0_1::cuda {

// NCCL keeps one last message for the whole process: it is nearly always the reason, and can be an older one.
inline void check(ncclResult_t status, const char* call) {
  if (status == ncclSuccess) return;
  const char* const said = ncclGetLastError(nullptr);
  throw device_error(call, std::string(ncclGetErrorString(status)) + (said && *said ? std::string("; ") + said : ""));
}

// Several calls between ncclGroupStart and ncclGroupEnd. The group is ended whatever happens between, as an open one
// would swallow every later call of the thread; of several failures the first is thrown.
class nccl_group {
 public:
  nccl_group() { keep(ncclGroupStart(), "ncclGroupStart"); }
  nccl_group(const nccl_group&) = delete;
  nccl_group& operator=(const nccl_group&) = delete;
  ~nccl_group() {
    if (open_) ncclGroupEnd();
  }
  void keep(ncclResult_t status, const char* call) {
    if (status == ncclSuccess || status_ != ncclSuccess) return;
    status_ = status;
    call_ = call;
  }
  void end() {
    open_ = false;
    keep(ncclGroupEnd(), "ncclGroupEnd");
    check(status_, call_);
  }

 private:
  ncclResult_t status_ = ncclSuccess;
  const char* call_ = "";
  bool open_ = true;
};

}  // namespace shardwise::inline v0_1::cuda
