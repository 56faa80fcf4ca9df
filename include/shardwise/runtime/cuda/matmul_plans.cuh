// SPDX-License-Identifier: Apache-2.0
// matmul_plans: what cuBLASLt needs to know of each shape of a matrix product, made once.
#pragma once

#include <array>
#include <map>

#include <shardwise/runtime/cuda/context.hpp>
#include <shardwise/runtime/cuda/error.hpp>
#include <shardwise/operations/contraction/scratch.hpp>

namespace shardwise::inline v0_1::cuda {

// As CUDA's libraries name an element type.
template <class T>
inline constexpr cudaDataType data_type = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;

// One column-major product D = f(alpha op(A) op(B) + beta C + bias) for `batch` matrices, all that a plan depends on. A is
// rows x depth or, transposed, its storage depth x rows; ld_* are distances of stored columns, step_* of matrices. C is D
// itself unless ld_c says otherwise; `epilogue` says whether there is a bias, of a value each row, and f.
struct matmul_shape {
  std::int64_t rows = 0, columns = 0, depth = 0, batch = 1;
  std::int64_t ld_a = 1, ld_b = 1, ld_d = 1;
  std::int64_t step_a = 0, step_b = 0, step_d = 0;
  std::int64_t transposed_a = 0, transposed_b = 0;
  std::int64_t align_a = 16, align_b = 16, align_d = 16;
  std::int64_t type = 0;  // a cudaDataType
  std::int64_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int64_t ld_c = 0, step_c = 0, align_c = 16;  // ld_c 0: C is D

  // What cuBLASLt must be able to do; of the rest we have other ways.
  bool plain() const { return epilogue == CUBLASLT_EPILOGUE_DEFAULT && ld_c == 0; }
  using key_type = std::array<std::int64_t, 20>;
  key_type key() const {
    return {rows,         columns,      depth,   batch,   ld_a,    ld_b, ld_d,     step_a, step_b, step_d,
            transposed_a, transposed_b, align_a, align_b, align_d, type, epilogue, ld_c,   step_c, align_c};
  }
};

// Descriptors and the algorithm of every shape met so far. A rank's own: not for several threads at once.
class matmul_plans {
 public:
  matmul_plans() = default;
  matmul_plans(const matmul_plans&) = delete;
  matmul_plans& operator=(const matmul_plans&) = delete;
  ~matmul_plans() {
    for (auto& [key, p] : plans_) p.destroy();
  }

  // alpha and beta are of the element type, in host memory.
  void run(const matmul_shape& s, const void* alpha, const void* a, const void* b, const void* beta, void* d,
           void* workspace, context& ctx) {
    if (!try_run(s, alpha, a, b, beta, d, nullptr, d, workspace, ctx))
      throw device_error("cublasLtMatmulAlgoGetHeuristic", "no algorithm for a product of these sizes and strides");
  }
  // With C, and a bias (or null). False, and nothing is launched, where cuBLASLt has no algorithm for it.
  bool try_run(const matmul_shape& s, const void* alpha, const void* a, const void* b, const void* beta, const void* c,
               const void* bias, void* d, void* workspace, context& ctx) {
    auto at = plans_.find(s.key());
    if (at == plans_.end()) at = plans_.emplace(s.key(), make(s, bias, ctx)).first;
    plan& p = at->second;
    if (!p.product) return false;
    if (bias) set_bias(p.product, bias);
    const cublasStatus_t status =
        cublasLtMatmul(ctx.lt, p.product, alpha, a, p.a, b, p.b, beta, c, p.c ? p.c : p.d, d, p.d, &p.algorithm, workspace,
                       static_cast<std::size_t>(device_scratch::product_bytes), ctx.stream);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED && !s.plain()) {
      p.destroy();
      return false;
    }
    check(status, "cublasLtMatmul");
    return true;
  }

  std::size_t size() const { return plans_.size(); }

 private:
  struct plan {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr, d = nullptr;
    cublasLtMatmulAlgo_t algorithm{};

    void destroy() {
      if (product) cublasLtMatmulDescDestroy(product);
      for (cublasLtMatrixLayout_t l : {a, b, c, d})
        if (l) cublasLtMatrixLayoutDestroy(l);
      *this = plan{};
    }
  };

  static cublasLtMatrixLayout_t make_layout(const matmul_shape& s, std::int64_t rows, std::int64_t columns, std::int64_t ld,
                                            std::int64_t step) {
    cublasLtMatrixLayout_t l = nullptr;
    check(cublasLtMatrixLayoutCreate(&l, static_cast<cudaDataType>(s.type), static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), ld),
          "cublasLtMatrixLayoutCreate");
    const std::int32_t batch = static_cast<std::int32_t>(s.batch);
    cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch));
    cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof(step));
    return l;
  }

  static void set_bias(cublasLtMatmulDesc_t product, const void* bias) {
    check(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)),
          "cublasLtMatmulDescSetAttribute");
  }

  // Without a product where there is no algorithm.
  static plan make(const matmul_shape& s, const void* bias, context& ctx) {
    plan p;
    cublasLtMatmulPreference_t preference = nullptr;
    try {
      const bool single = s.type == CUDA_R_32F;  // true float32: no TF32
      check(cublasLtMatmulDescCreate(&p.product, single ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_64F,
                                     static_cast<cudaDataType>(s.type)),
            "cublasLtMatmulDescCreate");
      const cublasOperation_t ops[2] = {s.transposed_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                                        s.transposed_b ? CUBLAS_OP_T : CUBLAS_OP_N};
      check(cublasLtMatmulDescSetAttribute(p.product, CUBLASLT_MATMUL_DESC_TRANSA, &ops[0], sizeof(ops[0])),
            "cublasLtMatmulDescSetAttribute");
      check(cublasLtMatmulDescSetAttribute(p.product, CUBLASLT_MATMUL_DESC_TRANSB, &ops[1], sizeof(ops[1])),
            "cublasLtMatmulDescSetAttribute");
      p.a = s.transposed_a ? make_layout(s, s.depth, s.rows, s.ld_a, s.step_a)
                           : make_layout(s, s.rows, s.depth, s.ld_a, s.step_a);
      p.b = s.transposed_b ? make_layout(s, s.columns, s.depth, s.ld_b, s.step_b)
                           : make_layout(s, s.depth, s.columns, s.ld_b, s.step_b);
      p.d = make_layout(s, s.rows, s.columns, s.ld_d, s.step_d);
      if (s.ld_c != 0) p.c = make_layout(s, s.rows, s.columns, s.ld_c, s.step_c);
      if (s.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
        const cublasLtEpilogue_t epilogue = static_cast<cublasLtEpilogue_t>(s.epilogue);
        check(cublasLtMatmulDescSetAttribute(p.product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)),
              "cublasLtMatmulDescSetAttribute");
        if (bias) set_bias(p.product, bias);
      }

      check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
      const std::size_t bytes = static_cast<std::size_t>(device_scratch::product_bytes);
      const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
        check(cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof(value)),
              "cublasLtMatmulPreferenceSetAttribute");
      };
      prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes);
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(s.align_a));
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(s.align_b));
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(s.ld_c != 0 ? s.align_c : s.align_d));
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(s.align_d));
      cublasLtMatmulHeuristicResult_t best{};
      int found = 0;
      const cublasStatus_t status =
          cublasLtMatmulAlgoGetHeuristic(ctx.lt, p.product, p.a, p.b, p.c ? p.c : p.d, p.d, preference, 1, &best, &found);
      if (s.plain()) check(status, "cublasLtMatmulAlgoGetHeuristic");
      if (s.plain() && found > 0) check(best.state, "cublasLtMatmulAlgoGetHeuristic");
      if (status == CUBLAS_STATUS_SUCCESS && found > 0 && best.state == CUBLAS_STATUS_SUCCESS) p.algorithm = best.algo;
      else p.destroy();
    } catch (...) {
      if (preference) cublasLtMatmulPreferenceDestroy(preference);
      p.destroy();
      throw;
    }
    cublasLtMatmulPreferenceDestroy(preference);
    return p;
  }

  std::map<matmul_shape::key_type, plan> plans_;
};

}  // namespace shardwise::inline v0_1::cuda
