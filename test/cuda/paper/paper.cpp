// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime, cuBLASLt and NCCL between threads, on paper: what test_cuda_paper links in their places. A collective of NCCL waits until all
// ranks of its communicator have come to it, or until it is aborted; it moves nothing, and ends the program where ranks come with different ones.
#include "counts.hpp"
#include "cuda.hpp"

#include <cublasLt.h>
#include <nccl.h>

#include <cstdio>
#include <memory>
#include <string>

std::int64_t paper::launched_kernels() { return kernels; }
std::int64_t paper::launched_graphs() { return replays; }

// --- kernels, as nvcc's code registers and launches them -----------------------------------------------------------------

namespace {

struct configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
thread_local std::vector<configuration> pushed;

void* nothing[1];

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) { return nothing; }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* s) {
  pushed.push_back({grid, block, shared, s});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* s) {
  const configuration c = pushed.back();
  pushed.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<cudaStream_t*>(s) = c.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* k, const void* f) {
  *k = reinterpret_cast<cudaKernel_t>(const_cast<void*>(f));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3 grid, dim3 block, void**, std::size_t, cudaStream_t) {
  const auto none = [](dim3 d) { return d.x == 0 || d.y == 0 || d.z == 0; };
  if (none(grid) || none(block) || block.x * block.y * block.z > 1024 || grid.y > 65'535 || grid.z > 65'535) {
    std::fprintf(stderr, "on paper: a kernel is launched with a grid of %u x %u x %u blocks of %u x %u x %u threads\n",
                 grid.x, grid.y, grid.z, block.x, block.y, block.z);
    std::abort();
  }
  if (!paper::capture) ++paper::kernels;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void*) {
  *a = {};
  a->ptxVersion = a->binaryVersion = 90;  // of the device below
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {};
  std::strcpy(p->name, "paper");
  p->major = 9;
  p->multiProcessorCount = 132;
  return cudaSuccess;
}

// --- cuBLASLt: one algorithm for everything ------------------------------------------------------------------------------

const char* cublasLtGetStatusName(cublasStatus_t) { return "on paper"; }
std::size_t cublasLtGetVersion() { return 0; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* h) {
  *h = reinterpret_cast<cublasLtHandle_t>(nothing);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t, cudaDataType_t) {
  *d = reinterpret_cast<cublasLtMatmulDesc_t>(nothing);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*,
                                              std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* l, cudaDataType, std::uint64_t, std::uint64_t,
                                          std::int64_t) {
  *l = reinterpret_cast<cublasLtMatrixLayout_t>(nothing);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void*,
                                                std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) {
  *p = reinterpret_cast<cublasLtMatmulPreference_t>(nothing);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t* found,
                                              int* count) {
  *found = {};
  found->state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t*, cublasLtMatmulHeuristicResult_t* r) {
  *r = {};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t,
                              const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t, void*,
                              cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void*, std::size_t, cudaStream_t) {
  if (!paper::capture) ++paper::kernels;
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

// --- NCCL, between threads -----------------------------------------------------------------------------------------------

namespace {

// The ranks of a communicator, and what each has come to.
struct circle {
  std::mutex gate;
  std::condition_variable changed;
  int ranks = 0;
  std::vector<std::size_t> come;                                         // collectives, by rank
  std::vector<std::string> what;                                         // each collective as the first that came to it says
  std::map<std::pair<std::size_t, int>, std::shared_ptr<circle>> parts;  // by (how manieth split of a rank, colour)
  std::vector<std::size_t> splits;                                       // by rank
};

}  // namespace

struct ncclComm {
  std::shared_ptr<circle> of;
  int rank = 0;
  std::atomic<bool> aborted{false};
};

namespace {

ncclResult_t meet(ncclComm_t c, cudaStream_t s, std::string what) {
  if (!c || !s) return ncclInvalidArgument;
  s->put([c, what = std::move(what)] {
    circle& all = *c->of;
    std::unique_lock lock(all.gate);
    const std::size_t mine = all.come[static_cast<std::size_t>(c->rank)]++;
    if (all.what.size() == mine) all.what.push_back(what);
    if (all.what[mine] != what) {
      std::fprintf(stderr, "on paper: collective %zu of a communicator is %s on its rank %d, and %s on another\n", mine,
                   what.c_str(), c->rank, all.what[mine].c_str());
      std::abort();
    }
    all.changed.notify_all();
    all.changed.wait(lock, [&] {
      return c->aborted || std::all_of(all.come.begin(), all.come.end(), [&](std::size_t n) { return n > mine; });
    });
  });
  return ncclSuccess;
}
std::string text(const char* name, std::size_t n, ncclDataType_t type, int more = 0) {
  return std::string(name) + " of " + std::to_string(n) + " of type " + std::to_string(type) + ", " + std::to_string(more);
}
ncclComm_t joined(const std::shared_ptr<circle>& c) {
  const std::lock_guard lock(c->gate);
  auto* const made = new ncclComm;
  made->of = c;
  made->rank = c->ranks++;
  c->come.push_back(0);
  c->splits.push_back(0);
  return made;
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(ncclResult_t) { return "on paper"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetUniqueId(ncclUniqueId*) { return ncclInvalidUsage; }
ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int) { return ncclInvalidUsage; }
ncclResult_t ncclCommInitAll(ncclComm_t* c, int n, const int*) {
  const auto all = std::make_shared<circle>();
  for (int r = 0; r < n; ++r) c[r] = joined(all);
  return ncclSuccess;
}
// One thread makes those of all ranks, in the order of their ranks, which the keys have as well.
ncclResult_t ncclCommSplit(ncclComm_t c, int color, int, ncclComm_t* o, ncclConfig_t*) {
  const std::size_t round = c->of->splits[static_cast<std::size_t>(c->rank)]++;
  std::shared_ptr<circle>& part = c->of->parts[{round, color}];
  if (!part) part = std::make_shared<circle>();
  *o = joined(part);
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t) { return ncclSuccess; }  // a stream may still know it
ncclResult_t ncclCommAbort(ncclComm_t c) {
  const std::lock_guard lock(c->of->gate);
  c->aborted = true;
  c->of->changed.notify_all();
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* r) {
  *r = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }
ncclResult_t ncclAllReduce(const void*, void*, std::size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t c,
                           cudaStream_t s) {
  return meet(c, s, text("all_reduce", n, type, op));
}
ncclResult_t ncclAllGather(const void*, void*, std::size_t n, ncclDataType_t type, ncclComm_t c, cudaStream_t s) {
  return meet(c, s, text("all_gather", n, type));
}
ncclResult_t ncclReduceScatter(const void*, void*, std::size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t c,
                               cudaStream_t s) {
  return meet(c, s, text("reduce_scatter", n, type, op));
}
ncclResult_t ncclReduce(const void*, void*, std::size_t n, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t c,
                        cudaStream_t s) {
  return meet(c, s, text("reduce", n, type, op) + " to " + std::to_string(root));
}
// Of pairs, which nobody waits for here.
ncclResult_t ncclSend(const void*, std::size_t, ncclDataType_t, int, ncclComm_t c, cudaStream_t s) {
  return c && s ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclRecv(void*, std::size_t, ncclDataType_t, int, ncclComm_t c, cudaStream_t s) {
  return c && s ? ncclSuccess : ncclInvalidArgument;
}

}  // extern "C"
