// SPDX-License-Identifier: Apache-2.0
// einsum on the device: labelled dims become loops around strided-batch products of cuBLASLt; its plans are kept.
#pragma once

#include <array>
#include <map>

#include <shardwise/runtime/cuda/kernels/map.cuh>
#include <shardwise/runtime/cuda/kernels/sum.cuh>
#include <shardwise/runtime/device_workspace.hpp>
#include <shardwise/runtime/host/einsum.hpp>

namespace shardwise::cuda {

// One column-major product D = alpha op(A) op(B) + beta D for `batch` matrices, all that a plan depends on. A is
// rows x depth or, transposed, its storage depth x rows; ld_* are distances of stored columns, step_* of matrices.
struct matmul_shape {
  std::int64_t rows = 0, columns = 0, depth = 0, batch = 1;
  std::int64_t ld_a = 1, ld_b = 1, ld_d = 1;
  std::int64_t step_a = 0, step_b = 0, step_d = 0;
  std::int64_t transposed_a = 0, transposed_b = 0;
  std::int64_t align_a = 16, align_b = 16, align_d = 16;
  std::int64_t type = 0;  // a cudaDataType

  std::array<std::int64_t, 16> key() const {
    return {rows,   columns, depth,        batch,        ld_a,    ld_b,    ld_d,    step_a,
            step_b, step_d,  transposed_a, transposed_b, align_a, align_b, align_d, type};
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
    auto at = plans_.find(s.key());
    if (at == plans_.end()) at = plans_.emplace(s.key(), make(s, ctx)).first;
    const plan& p = at->second;
    check(cublasLtMatmul(ctx.lt, p.product, alpha, a, p.a, b, p.b, beta, d, p.d, d, p.d, &p.algorithm, workspace,
                         static_cast<std::size_t>(runtime::matmul_workspace_bytes), ctx.stream),
          "cublasLtMatmul");
  }

  std::size_t size() const { return plans_.size(); }

 private:
  struct plan {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
    cublasLtMatmulAlgo_t algorithm{};

    void destroy() {
      if (product) cublasLtMatmulDescDestroy(product);
      for (cublasLtMatrixLayout_t l : {a, b, d})
        if (l) cublasLtMatrixLayoutDestroy(l);
      *this = plan{};
    }
  };

  static cublasLtMatrixLayout_t make_layout(const matmul_shape& s, std::int64_t rows, std::int64_t columns,
                                            std::int64_t ld, std::int64_t step) {
    cublasLtMatrixLayout_t l = nullptr;
    check(cublasLtMatrixLayoutCreate(&l, static_cast<cudaDataType>(s.type), static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), ld),
          "cublasLtMatrixLayoutCreate");
    const std::int32_t batch = static_cast<std::int32_t>(s.batch);
    cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch));
    cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof(step));
    return l;
  }

  static plan make(const matmul_shape& s, context& ctx) {
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

      check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
      const std::size_t bytes = static_cast<std::size_t>(runtime::matmul_workspace_bytes);
      const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
        check(cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof(value)),
              "cublasLtMatmulPreferenceSetAttribute");
      };
      prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes);
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(s.align_a));
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(s.align_b));
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(s.align_d));
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(s.align_d));
      cublasLtMatmulHeuristicResult_t best{};
      int found = 0;
      check(cublasLtMatmulAlgoGetHeuristic(ctx.lt, p.product, p.a, p.b, p.d, p.d, preference, 1, &best, &found),
            "cublasLtMatmulAlgoGetHeuristic");
      if (found == 0)
        throw device_error("cublasLtMatmulAlgoGetHeuristic", "no algorithm for a product of these sizes and strides");
      check(best.state, "cublasLtMatmulAlgoGetHeuristic");
      p.algorithm = best.algo;
    } catch (...) {
      if (preference) cublasLtMatmulPreferenceDestroy(preference);
      p.destroy();
      throw;
    }
    cublasLtMatmulPreferenceDestroy(preference);
    return p;
  }

  std::map<std::array<std::int64_t, 16>, plan> plans_;
};

namespace detail {

// A matrix of one product as it lies in memory: extent and stride of its two dims, and of the batch.
struct strided_matrix {
  std::int64_t row = 0, column = 0, row_step = 0, column_step = 0;

  // cuBLASLt steps by 1 along stored columns: along the rows, or (transposed) along the columns.
  bool plain() const { return row == 1 || row_step == 1; }
  bool turned() const { return column == 1 || column_step == 1; }
  // Columns must not overlap, as a broadcast operand's do.
  bool fits() const { return (plain() || turned()) && leading() >= (plain() ? row : column); }
  // The other stride; of a single stored column it means nothing, yet must be at least the rows.
  std::int64_t leading() const {
    return plain() ? distance(row, column, column_step) : distance(column, row, row_step);
  }

 private:
  static std::int64_t distance(std::int64_t rows, std::int64_t columns, std::int64_t step) {
    return columns == 1 ? rows : step;
  }
};

constexpr std::int64_t alignment_of(std::uintptr_t p) { return p % 16 == 0 ? 16 : p % 8 == 0 ? 8 : 4; }

// f(offsets, whether it is the first) for every point of a walk.
template <class F>
void each_point(walk<3> w, F&& f) {
  if (w.rank == 0) {
    const std::int64_t none[3]{};
    w.push(1, none);
  }
  bool first = true;
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* step) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at[3] = {off[0] + i * step[0], off[1] + i * step[1], off[2] + i * step[2]};
      f(at, first);
      first = false;
    }
  });
}

// One einsum: its operands, of which those that no matrix layout describes are first copied densely into the scratch.
template <class T>
class device_einsum {
 public:
  device_einsum(const call& c, context& ctx)
      : c_(c), ctx_(ctx), l_{c.l[0], c.l[1], c.l[result]}, p_{as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[result])} {}

  void run() {
    if (l_[2].numel() == 0) return;
    if (l_[0].numel() == 0 || l_[1].numel() == 0) {  // nothing to contract
      zero<T>(c_, ctx_);
      return;
    }
    settle();
    walk<3> outer, inner;
    push_but(plan_.batch, batch_dim(), outer);
    push_but(plan_.m, plan_.m.rank - 1, outer);
    push_but(plan_.n, plan_.n.rank - 1, outer);
    push_but(plan_.k, plan_.k.rank - 1, inner);
    each_point(outer, [&](const std::int64_t* o, bool) {
      each_point(inner, [&](const std::int64_t* i, bool first) {
        const std::int64_t off[3] = {o[0] + i[0], o[1] + i[1], o[2] + i[2]};
        batches(off, first);
      });
    });
    if (p_[2] != c_.p[result]) {
      const std::int64_t zeros[max_rank]{};
      copy_block<T>(op_code::einsum, p_[2], l_[2], zeros, as<T>(c_.p[result]), c_.l[result], zeros, l_[2].ext, ctx_);
    }
  }

 private:
  static constexpr std::int64_t most_batches = 32768;  // of one product: kernels may number them in a grid's third dim

  // The matrix of operand k: lhs m x k, rhs k x n, out m x n.
  strided_matrix matrix(int k) const {
    const walk<3>& rows = k == 1 ? plan_.k : plan_.m;
    const walk<3>& columns = k == 0 ? plan_.k : plan_.n;
    const int r = rows.rank - 1, s = columns.rank - 1;
    return {rows.ext[r], columns.ext[s], rows.str[k][r], columns.str[k][s]};
  }

  // Plans, copies what does not fit, plans again. An operand that is dense already does not fit where another one keeps
  // its innermost role from merging: the inputs are then copied too. With all dense every role is one dim, so this
  // ends.
  void settle() {
    std::byte* free = static_cast<std::byte*>(c_.workspace) + runtime::matmul_workspace_bytes;
    bool dense[3]{};
    for (;;) {
      plan_ = host::plan_einsum(c_.a, l_[0], l_[1], l_[2]);
      host::detail::largest_last(plan_.m);
      host::detail::largest_last(plan_.n);
      host::detail::largest_last(plan_.k);
      int copied = -1;
      bool all_fit = true;
      for (int k = 2; k >= 0; --k) {
        if (matrix(k).fits()) continue;
        all_fit = false;
        if (!dense[k]) copied = k;
      }
      if (all_fit) return;
      if (copied < 0) copied = !dense[1] ? 1 : !dense[0] ? 0 : 2;
      dense[copied] = true;
      copy_by_role(copied, free);
    }
  }

  void copy_by_role(int k, std::byte*& free) {
    const runtime::detail::einsum_operand w[3] = {{c_.a.v[0], l_[0].ext, l_[0].str, l_[0].rank},
                                                  {c_.a.v[1], l_[1].ext, l_[1].str, l_[1].rank},
                                                  {c_.a.v[2], l_[2].ext, l_[2].str, l_[2].rank}};
    if (runtime::detail::is_by_role(w, k)) return;
    layout to = l_[k];
    runtime::detail::strides_by_role(w, k, to.str);
    T* const copy = reinterpret_cast<T*>(free);
    free += runtime::align_device(to.numel() * static_cast<std::int64_t>(sizeof(T)));
    const std::int64_t zeros[max_rank]{};
    if (k < 2) copy_block<T>(op_code::einsum, p_[k], l_[k], zeros, copy, to, zeros, to.ext, ctx_);
    l_[k] = to;
    p_[k] = copy;
  }

  // The largest batch dim is cuBLASLt's; the others are loops.
  int batch_dim() const {
    int best = 0;
    for (int d = 1; d < plan_.batch.rank; ++d)
      if (plan_.batch.ext[d] > plan_.batch.ext[best]) best = d;
    return best;
  }

  static void push_but(const walk<3>& w, int without, walk<3>& to) {
    for (int d = 0; d < w.rank; ++d) {
      if (d == without) continue;
      const std::int64_t s[3] = {w.str[0][d], w.str[1][d], w.str[2][d]};
      to.push(w.ext[d], s);
    }
  }

  void batches(const std::int64_t* off, bool first) {
    const int d = batch_dim();
    const std::int64_t all = plan_.batch.ext[d];
    const std::int64_t step[3] = {plan_.batch.str[0][d], plan_.batch.str[1][d], plan_.batch.str[2][d]};
    for (std::int64_t b = 0; b < all; b += most_batches) {
      T* p[3];
      for (int k = 0; k < 3; ++k) p[k] = p_[k] + off[k] + b * step[k];
      product(p, step, all - b < most_batches ? all - b : most_batches, first);
    }
  }

  // cuBLASLt is column-major: a row-major result is the product of the turned operands in the other order.
  void product(T* const (&p)[3], const std::int64_t* step, std::int64_t batch, bool first) {
    const strided_matrix x = matrix(0), y = matrix(1), o = matrix(2);
    matmul_shape s;
    s.batch = batch;
    s.depth = x.column;
    s.type = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;
    const bool swap = !o.plain();  // rows of the stored result are n
    const int ka = swap ? 1 : 0, kb = swap ? 0 : 1;
    const strided_matrix a = swap ? turn(y) : x, b = swap ? turn(x) : y, out = swap ? turn(o) : o;
    s.rows = a.row;
    s.columns = b.column;
    s.ld_a = a.leading();
    s.ld_b = b.leading();
    s.ld_d = out.leading();
    s.transposed_a = a.plain() ? 0 : 1;
    s.transposed_b = b.plain() ? 0 : 1;
    if (batch > 1) {  // of a single matrix the distance to the next means nothing
      s.step_a = step[ka];
      s.step_b = step[kb];
      s.step_d = step[2];
    }
    s.align_a = alignment_of(reinterpret_cast<std::uintptr_t>(p[ka]));
    s.align_b = alignment_of(reinterpret_cast<std::uintptr_t>(p[kb]));
    s.align_d = alignment_of(reinterpret_cast<std::uintptr_t>(p[2]));
    const T alpha = static_cast<T>(c_.f), beta = first ? T(0) : T(1);
    ctx_.plans->run(s, &alpha, p[ka], p[kb], &beta, p[2], c_.workspace, ctx_);
  }
  static strided_matrix turn(const strided_matrix& m) { return {m.column, m.row, m.column_step, m.row_step}; }

  const call& c_;
  context& ctx_;
  layout l_[3];
  T* p_[3];
  host::einsum_plan plan_;
};

}  // namespace detail

template <>
struct kernel<op_code::einsum> {
  template <class T>
  static void run(const call& c, context& ctx) {
    if (c.a.v[3] != 0) detail::sum_rows<T>(c, c.l[2], c.p[2], ctx, rules::contracted_dims(c.a, c.l[0].rank, c.l[1].rank));
    detail::device_einsum<T>(c, ctx).run();
  }
};

}  // namespace shardwise::cuda
