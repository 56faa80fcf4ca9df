// SPDX-License-Identifier: Apache-2.0
// matmul_plans: what cuBLASLt needs to know of each shape of a matrix product, made once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <type_traits>

#include <shardwise/runtime/cuda/context.hpp>
#include <shardwise/runtime/cuda/error.hpp>
#include <shardwise/runtime/cuda/product_search.cuh>
#include <shardwise/operations/contraction/scratch.hpp>
#include <shardwise/vocabulary/dtype.hpp>
#include <shardwise/vocabulary/fp32_precision.hpp>

namespace shardwise::inline v0_1::cuda {

// As CUDA's libraries name an element type.
template <class T>
inline constexpr cudaDataType data_type = sizeof(T) == 8                ? CUDA_R_64F
                                          : sizeof(T) == 4              ? CUDA_R_32F
                                          : std::is_same_v<T, bfloat16> ? CUDA_R_16BF
                                                                        : CUDA_R_16F;
// What a product of elements T is computed in; alpha and beta are of it.
template <class T>
using product_scalar = computed_in<T>;

// One column-major product D = f(alpha op(A) op(B) + beta C + bias) for `batch` matrices, all that a plan depends on. A is
// rows x depth or, transposed, its storage depth x rows; ld_* are distances of stored columns, step_* of matrices. C is D
// itself unless ld_c says otherwise; `epilogue` says whether there is a bias, of a value each row, and f; a batch's biases, or sums
// beside it, lie one after the other; what an epilogue reads or writes besides, a matrix as D, has distances ld_aux.
struct matmul_shape {
  std::int64_t rows = 0, columns = 0, depth = 0, batch = 1;
  std::int64_t ld_a = 1, ld_b = 1, ld_d = 1;
  std::int64_t step_a = 0, step_b = 0, step_d = 0;
  std::int64_t transposed_a = 0, transposed_b = 0;
  std::int64_t align_a = 16, align_b = 16, align_d = 16;
  std::int64_t type = 0;  // a cudaDataType
  std::int64_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int64_t ld_c = 0, step_c = 0, align_c = 16;  // ld_c 0: C is D
  std::int64_t ld_aux = 0;
  fp32_precision precision = fp32_precision::ieee;  // the plans say so, not the caller

  // Whether cuBLASLt has an algorithm for certain. With an epilogue, or a C that is not D, it may have none: try_run says so, and the caller
  // launches the product and what follows it one by one.
  bool plain() const { return epilogue == CUBLASLT_EPILOGUE_DEFAULT && ld_c == 0; }
  using key_type = product_key;
  key_type key() const {
    const auto by = static_cast<std::int64_t>(precision);
    return {rows,         columns, depth,   batch,   ld_a, ld_b,     ld_d, step_a, step_b,  step_d, transposed_a,
            transposed_b, align_a, align_b, align_d, type, epilogue, ld_c, step_c, align_c, ld_aux, by};
  }
};

// Where one product's matrices lie. bias: read, or written by an epilogue that sums; aux: as well.
struct matmul_operands {
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void* d = nullptr;
  const void *bias = nullptr, *aux = nullptr;
};

// A kernel beside cuBLASLt's, for products of float whose factors may be taken in two parts (split_product).
struct own_product {
  bool (*is_compiled)();
  bool (*takes)(const matmul_shape&);
  int (*splits_of)(const matmul_shape&);  // unmeasured; 0: cuBLASLt's
  bool (*takes_splits)(const matmul_shape&, int splits);
  void (*run)(const matmul_shape&, int splits, const void* alpha, const matmul_operands&, const void* beta, void* workspace,
              context&);
  int most_splits;

  template <class Kernel>
  static constexpr own_product of() {
    return {&Kernel::is_compiled,  &Kernel::takes, &Kernel::splits_of,
            &Kernel::takes_splits, &Kernel::run,   Kernel::most_splits};
  }
  // As a choice that is kept, in the place of cuBLASLt's words.
  static constexpr std::uint64_t mark = 0x4C50'5349'5441'4E44ULL;
  static product_algorithm words_of(int splits) { return {mark, static_cast<std::uint64_t>(splits)}; }
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

  // What products of float are computed by from now on. tf32: eight times as fast as ieee; tf32x3: an own_product is among the candidates.
  void set_precision(fp32_precision p) { precision_ = p; }
  bool rounds_to_tf32() const { return precision_ == fp32_precision::tf32; }
  // Whether elements of T lose more in a product than cuBLASLt's epilogues do, which compute gelu for elements of 2 bytes.
  template <class T>
  bool is_rough() const {
    return sizeof(T) == 2 || (sizeof(T) == 4 && rounds_to_tf32());
  }

  // From here to `end_search` the shapes that are met are measured: the operands of such a product are overwritten.
  void begin_search(const product_options& options, cudaStream_t stream) {
    search_ = std::make_unique<product_search>(options, stream);
  }
  product_report end_search() {
    product_report r = search_->report();
    r.seconds = search_->seconds();
    product_choices& all = product_choices::of_process();
    if (r.measured > 0 && !search_->folder().empty()) {
      const std::lock_guard held(all.lock);
      all.say(search_->table()->save(search_->folder()));
    }
    search_.reset();
    return r;
  }

  // alpha and beta are product_scalars, in host memory.
  void run(const matmul_shape& s, const void* alpha, const void* a, const void* b, const void* beta, void* d,
           void* workspace, context& ctx, const own_product* own = nullptr) {
    if (!try_run(s, alpha, {a, b, d, d, nullptr, nullptr}, beta, workspace, ctx, own))
      throw device_error("cublasLtMatmulAlgoGetHeuristic", "no algorithm for a product of these sizes and strides");
  }
  // With C and an epilogue. False, and nothing is launched, where cuBLASLt has no algorithm for it.
  bool try_run(matmul_shape s, const void* alpha, const matmul_operands& x, const void* beta, void* workspace, context& ctx,
               const own_product* own = nullptr) {
    s.precision = s.type == CUDA_R_32F ? precision_ : fp32_precision::ieee;
    if (s.precision != fp32_precision::tf32x3) own = nullptr;
    else if (!own) s.precision = fp32_precision::ieee;
    auto at = plans_.find(s.key());
    if (at == plans_.end()) at = plans_.emplace(s.key(), make(s, alpha, x, beta, workspace, ctx, own)).first;
    plan& p = at->second;
    if (!p.product) return false;
    if (p.own_splits > 0) {
      own->run(s, p.own_splits, alpha, x, beta, workspace, ctx);
      return true;
    }
    const cublasStatus_t status = launch(p, p.algorithm, alpha, x, beta, workspace, ctx);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED && !s.plain()) {
      p.destroy();
      return false;
    }
    check(status, "cublasLtMatmul");
    return true;
  }

  std::size_t size() const { return plans_.size(); }

 private:
  static constexpr int most_candidates = 16;

  struct plan {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr, d = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    int own_splits = 0;  // above 0: an own_product's, and the algorithm means nothing

    void destroy() {
      if (product) cublasLtMatmulDescDestroy(product);
      for (cublasLtMatrixLayout_t l : {a, b, c, d})
        if (l) cublasLtMatrixLayoutDestroy(l);
      *this = plan{};
    }
  };

  static cublasStatus_t launch(const plan& p, const cublasLtMatmulAlgo_t& algorithm, const void* alpha,
                               const matmul_operands& x, const void* beta, void* workspace, context& ctx) {
    point(p.product, x);
    return cublasLtMatmul(ctx.lt, p.product, alpha, x.a, p.a, x.b, p.b, beta, x.c, p.c ? p.c : p.d, x.d, p.d, &algorithm,
                          workspace, static_cast<std::size_t>(device_scratch::product_bytes), ctx.stream);
  }

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

  template <class V>
  static void set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t what, const V& value) {
    check(cublasLtMatmulDescSetAttribute(product, what, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute");
  }
  static void point(cublasLtMatmulDesc_t product, const matmul_operands& x) {
    if (x.bias) set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, x.bias);
    if (x.aux) set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, x.aux);
  }
  static cublasComputeType_t computed_in(const matmul_shape& s) {
    if (s.type == CUDA_R_64F) return CUBLAS_COMPUTE_64F;
    return s.precision == fp32_precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  }

  // The product's descriptors, without an algorithm.
  static void describe(plan& p, const matmul_shape& s, const matmul_operands& x) {
    check(cublasLtMatmulDescCreate(&p.product, computed_in(s), s.type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    set(p.product, CUBLASLT_MATMUL_DESC_TRANSA, s.transposed_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(p.product, CUBLASLT_MATMUL_DESC_TRANSB, s.transposed_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    p.a = s.transposed_a ? make_layout(s, s.depth, s.rows, s.ld_a, s.step_a)
                         : make_layout(s, s.rows, s.depth, s.ld_a, s.step_a);
    p.b = s.transposed_b ? make_layout(s, s.columns, s.depth, s.ld_b, s.step_b)
                         : make_layout(s, s.depth, s.columns, s.ld_b, s.step_b);
    p.d = make_layout(s, s.rows, s.columns, s.ld_d, s.step_d);
    if (s.ld_c != 0) p.c = make_layout(s, s.rows, s.columns, s.ld_c, s.step_c);
    if (s.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return;
    set(p.product, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<cublasLtEpilogue_t>(s.epilogue));
    if (s.ld_aux != 0) set(p.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.ld_aux);
    if (s.batch > 1 && x.bias)
      set(p.product, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, s.epilogue == CUBLASLT_EPILOGUE_BGRADB ? s.columns : s.rows);
    point(p.product, x);
  }

  // Up to `most` algorithms, the likeliest first; none where cuBLASLt has none.
  static int candidates(const plan& p, const matmul_shape& s, context& ctx, int most,
                        cublasLtMatmulHeuristicResult_t* found) {
    struct wishes {
      cublasLtMatmulPreference_t p = nullptr;
      ~wishes() {
        if (p) cublasLtMatmulPreferenceDestroy(p);
      }
    } w;
    check(cublasLtMatmulPreferenceCreate(&w.p), "cublasLtMatmulPreferenceCreate");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
      check(cublasLtMatmulPreferenceSetAttribute(w.p, what, &value, sizeof(value)), "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::size_t>(device_scratch::product_bytes));
    // parts are added in their order and in the type that products are computed in, which elements of four and eight bytes have
    // themselves
    const bool in_place = s.type == CUDA_R_32F || s.type == CUDA_R_64F;
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                      (in_place ? CUBLASLT_REDUCTION_SCHEME_INPLACE : 0)));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(s.align_a));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(s.align_b));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(s.ld_c != 0 ? s.align_c : s.align_d));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(s.align_d));
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(ctx.lt, p.product, p.a, p.b, p.c ? p.c : p.d, p.d, w.p, most, found, &count);
    if (s.plain()) check(status, "cublasLtMatmulAlgoGetHeuristic");
    if (s.plain() && count > 0) check(found[0].state, "cublasLtMatmulAlgoGetHeuristic");
    if (status != CUBLAS_STATUS_SUCCESS) return 0;
    int good = 0;
    for (int k = 0; k < count; ++k)
      if (found[k].state == CUBLAS_STATUS_SUCCESS) found[good++] = found[k];
    return good;
  }

  // Whether cuBLASLt takes an algorithm that was remembered.
  static bool fits(const plan& p, const cublasLtMatmulAlgo_t& a, context& ctx) {
    cublasLtMatmulHeuristicResult_t r{};
    return cublasLtMatmulAlgoCheck(ctx.lt, p.product, p.a, p.b, p.c ? p.c : p.d, p.d, &a, &r) == CUBLAS_STATUS_SUCCESS &&
           r.workspaceSize <= static_cast<std::size_t>(device_scratch::product_bytes);
  }

  // Without a product where there is no algorithm.
  plan make(const matmul_shape& s, const void* alpha, const matmul_operands& x, const void* beta, void* workspace,
            context& ctx, const own_product* own) {
    if (own && !own->is_compiled())
      throw device_error(
          "products of float as three of TF32",
          "this program was not compiled for the instructions that they take, or the GPU is no Hopper; compile with "
          "-arch=sm_90a (CMAKE_CUDA_ARCHITECTURES=90a) for an H100 or H200, or give the step the backend "
          "sw::cuda_backend");
    if (own && !own->takes(s)) own = nullptr;
    plan p;
    try {
      describe(p, s, x);
      cublasLtMatmulHeuristicResult_t found[most_candidates]{};
      const bool searches = search_ && search_->measures();
      const int count = candidates(p, s, ctx, searches ? most_candidates : 1, found);
      if (search_) ++search_->report().shapes;
      if (count == 0) {
        p.destroy();
        return p;
      }
      p.algorithm = found[0].algo;
      if (own) p.own_splits = own->splits_of(s);
      if (searches) choose(p, s, alpha, x, beta, workspace, ctx, found, count, own);
    } catch (...) {
      p.destroy();
      throw;
    }
    return p;
  }

  // What this process or the file remembers, or the fastest now.
  void choose(plan& p, const matmul_shape& s, const void* alpha, const matmul_operands& x, const void* beta, void* workspace,
              context& ctx, const cublasLtMatmulHeuristicResult_t* found, int count, const own_product* own) {
    product_choices& all = product_choices::of_process();
    const std::lock_guard held(all.lock);
    product_table& table = *search_->table();
    if (const product_algorithm* known = table.find(s.key())) {
      if (own && (*known)[0] == own_product::mark && (*known)[1] <= static_cast<std::uint64_t>(own->most_splits) &&
          own->takes_splits(s, static_cast<int>((*known)[1]))) {
        p.own_splits = static_cast<int>((*known)[1]);
        ++search_->report().remembered;
        return;
      }
      if (const cublasLtMatmulAlgo_t a = algorithm_of(*known); fits(p, a, ctx)) {
        p.algorithm = a;
        p.own_splits = 0;
        ++search_->report().remembered;
        return;
      }
      all.say("shardwise: a remembered algorithm is none of cuBLASLt's for its product; it is chosen anew");
      table.forget(s.key());
    }
    if (!search_->has_time()) return;
    const auto type = static_cast<cudaDataType>(s.type);
    const std::int64_t element = type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
    const auto span = [&](std::int64_t ld, std::int64_t across, std::int64_t along, std::int64_t step) {
      return ((across - 1) * ld + along + (s.batch - 1) * step) * element;
    };
    fill_with_noise(const_cast<void*>(x.a),
                    s.transposed_a ? span(s.ld_a, s.rows, s.depth, s.step_a) : span(s.ld_a, s.depth, s.rows, s.step_a), type,
                    ctx.stream);
    fill_with_noise(const_cast<void*>(x.b),
                    s.transposed_b ? span(s.ld_b, s.depth, s.columns, s.step_b) : span(s.ld_b, s.columns, s.depth, s.step_b),
                    type, ctx.stream);
    // own ones come first: where they are the faster ones cuBLASLt's slow ones are not timed twice
    const int own_count = own ? own->most_splits : 0;
    const int best = search_->fastest(own_count + count, [&](int k) {
      if (k >= own_count)
        return launch(p, found[k - own_count].algo, alpha, x, beta, workspace, ctx) == CUBLAS_STATUS_SUCCESS;
      if (!own->takes_splits(s, k + 1)) return false;
      own->run(s, k + 1, alpha, x, beta, workspace, ctx);
      return true;
    });
    if (best < 0) return;
    p.own_splits = best < own_count ? best + 1 : 0;
    if (p.own_splits == 0) p.algorithm = found[best - own_count].algo;
    table.add(s.key(), p.own_splits > 0 ? own_product::words_of(p.own_splits) : words_of(p.algorithm));
    ++search_->report().measured;
  }

  std::map<matmul_shape::key_type, plan> plans_;
  std::unique_ptr<product_search> search_;
  fp32_precision precision_ = fp32_precision::ieee;
};

}  // namespace shardwise::inline v0_1::cuda
