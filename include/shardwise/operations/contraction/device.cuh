// SPDX-License-Identifier: Apache-2.0
// einsum on a device: labelled dims become loops around strided-batch products of cuBLASLt, whose plans are kept; or one
// product of our own, where that saves launches.
#pragma once

#include <shardwise/operations/contraction/device_epilogue.cuh>
#include <shardwise/operations/contraction/device_flat_product.cuh>
#include <shardwise/operations/contraction/device_matrix.cuh>
#include <shardwise/operations/contraction/device_product.cuh>
#include <shardwise/operations/contraction/device_split_product.cuh>
#include <shardwise/operations/contraction/host.hpp>
#include <shardwise/operations/written/device.cuh>
#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/runtime/cuda/device/reduce.cuh>
#include <shardwise/runtime/cuda/matmul_plans.cuh>
#include <shardwise/operations/contraction/scratch.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

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

  // How many launches that is at least, of what computes anything.
  std::int64_t launches() {
    plan();
    std::int64_t n = 1;
    for (int k = 0; k < 3; ++k) n += matrix(k).fits() ? 0 : 1;
    const auto loops = [&](const walk<3>& w, int without) {
      for (int d = 0; d < w.rank; ++d)
        if (d != without) n *= w.ext[d];
    };
    loops(plan_.batch, batch_dim());
    loops(plan_.m, plan_.m.rank - 1);
    loops(plan_.n, plan_.n.rank - 1);
    loops(plan_.k, plan_.k.rank - 1);
    return n > 1 ? n : 1;
  }

  // The product, or a batch of them, with the expression as its epilogue, in one launch; false, and nothing is launched, where that cannot be.
  bool run_with(const product_epilogue& then) {
    if (!then.fits || !is_single() || (then.is_rough() && !ctx_.plans->is_rough<T>())) return false;
    // Measured on an H100 (bench/results/gpt2.md): in TF32 the epilogue takes more time than product and pass together.
    if (sizeof(T) != 2 && then.function == product_function::gelu_slope) return false;
    const bool swap = !matrix(2).plain();  // as in describe(): whether the rows of what is stored are the columns
    matmul_shape s;
    matmul_operands x;
    x.c = p_[2];
    product_scalar<T> beta = 0;
    for (int j = 0; j < then.values; ++j) {
      beside v;
      if (!lies_like_result(j, swap, v)) return false;
      if (!x.bias && v.column == 0 && (v.row == 1 || v.rows == 1) && v.columns > 1 && is_biases_step(v.batch, v.rows)) {
        x.bias = v.p;
      } else if (s.ld_c == 0 && v.is_matrix()) {
        s.ld_c = v.leading();
        s.step_c = v.batch;
        s.align_c = alignment_of(reinterpret_cast<std::uintptr_t>(v.p));
        x.c = v.p;
        beta = 1;
      } else {
        return false;
      }
    }
    if (then.beside >= 0) {
      beside v;
      if (!lies_like_result(then.beside, swap, v) || !v.is_matrix() || v.leading() % 8 != 0 || matrices() > 1) return false;
      s.ld_aux = v.leading();
      x.aux = v.p;
    }
    s.epilogue = code_of(then, x.bias != nullptr);
    return run_single(s, x, swap, beta);
  }

  // The product, and beside it, at `sums`, the sums of operand 0 over what it contracts, whose elements are the result's rows; of a
  // batch one after the other;
  // false, and nothing is launched, where cuBLASLt has no such kernel. It adds in float.
  bool run_with_sums(void* sums) {
    if (!ctx_.plans->is_rough<T>() || !is_single()) return false;
    const layout& l = c_.l[2];
    const std::int64_t each = l.ext[l.rank - 1];
    if ((each > 1 && l.str[l.rank - 1] != 1) || l.numel() != each * matrices()) return false;
    if (matrices() > 1 && (l.rank != 2 || !is_biases_step(l.str[0], each))) return false;
    const bool swap = !matrix(2).plain();
    matmul_shape s;
    matmul_operands x;
    x.c = p_[2];
    x.bias = sums;
    s.epilogue = swap ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_BGRADA;  // operand 0 is B of the product in columns
    return run_single(s, x, swap, 0);
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

  void plan() {
    plan_ = host::plan_einsum(c_.a, l_[0], l_[1], l_[2]);
    host::detail::largest_last(plan_.m);
    host::detail::largest_last(plan_.n);
    host::detail::largest_last(plan_.k);
  }

  // An operand of the expression that lies along the stored rows and columns of the result in one step each.
  struct beside {
    T* p = nullptr;
    std::int64_t rows = 0, columns = 0, row = 0, column = 0;
    std::int64_t batch = 0;  // from one matrix to the next
    bool is_matrix() const { return (row == 1 || rows == 1) && (columns == 1 || column >= rows); }
    std::int64_t leading() const { return columns == 1 ? rows : column; }
  };
  bool lies_like_result(int j, bool swap, beside& v) const {
    const walk<3>&rows = swap ? plan_.n : plan_.m, &columns = swap ? plan_.m : plan_.n;
    v.p = as<T>(c_.p[c_.inputs + j]);
    v.rows = rows.ext[rows.rank - 1];
    v.columns = columns.ext[columns.rank - 1];
    return steps_like(j, rows, swap ? 1 : 0, v.row) && steps_like(j, columns, swap ? 0 : 1, v.column) &&
           steps_from_matrix_to_matrix(j, v.batch);
  }
  std::int64_t matrices() const { return points(plan_.batch); }
  // Biases of a batch: plans say that each begins where the one before ends, 16 bytes aligned as the first.
  bool is_biases_step(std::int64_t step, std::int64_t each) const {
    return matrices() == 1 || (step == each && each * static_cast<std::int64_t>(sizeof(T)) % 16 == 0);
  }
  // Whether value j of the expression goes along the batch in one step.
  bool steps_from_matrix_to_matrix(int j, std::int64_t& step) const {
    const auto e = attributes_of<einsum_attributes>(c_.a);
    bool first = true;
    std::int64_t covered = 1;
    for (int d = l_[0].rank - 1; d >= 0; --d) {
      const int l = rules::label(e.lhs, d), at = rules::find_label(e.out, l_[2].rank, l);
      if (rules::find_label(e.rhs, l_[1].rank, l) < 0 || at < 0 || l_[0].ext[d] == 1) continue;
      const std::int64_t s = epilogue_stride(c_, j, at);
      if (first) step = s;
      else if (s != step * covered) return false;
      first = false;
      covered *= l_[0].ext[d];
    }
    return covered == matrices();
  }

  // Whether one launch of cuBLASLt's is all of it, and there is something to do.
  bool is_single() {
    if (l_[0].numel() == 0 || l_[1].numel() == 0 || l_[2].numel() == 0 || launches() != 1) return false;
    return matrices() <= most_batches;
  }
  // Plans are made for a bias and a matrix beside the result that are aligned.
  bool run_single(matmul_shape& s, matmul_operands& x, bool swap, product_scalar<T> beta) {
    for (const void* p : {x.bias, x.aux})
      if (reinterpret_cast<std::uintptr_t>(p) % 16 != 0) return false;
    T* const p[3] = {p_[0], p_[1], p_[2]};
    std::int64_t step[3]{};
    for (int k = 0; k < 3 && matrices() > 1; ++k) step[k] = plan_.batch.str[k][batch_dim()];
    describe(s, p, step, matrices());
    const auto alpha = static_cast<product_scalar<T>>(c_.f);
    x.a = p[swap ? 1 : 0];
    x.b = p[swap ? 0 : 1];
    x.d = p[2];
    return ctx_.plans->try_run(s, &alpha, x, &beta, c_.workspace, ctx_, own());
  }
  static std::int64_t code_of(const product_epilogue& then, bool bias) {
    switch (then.function) {
      case product_function::none: return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
      case product_function::relu: return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
      case product_function::gelu:
        if (then.beside >= 0) return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
        return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
      case product_function::gelu_slope: return CUBLASLT_EPILOGUE_DGELU;
    }
    return CUBLASLT_EPILOGUE_DEFAULT;
  }

  // Whether value j of the expression goes along the result's dims of one role, `of` the operand that has them besides, in
  // one step, as the role's walk does in one dim.
  bool steps_like(int j, const walk<3>& role, int of, std::int64_t& step) const {
    const layout &in = l_[of], &other = l_[1 - of], &out = l_[2];
    const auto e = attributes_of<einsum_attributes>(c_.a);
    const std::int64_t own = of == 0 ? e.lhs : e.rhs, others = of == 0 ? e.rhs : e.lhs;
    bool first = true;
    std::int64_t covered = 1;
    for (int d = in.rank - 1; d >= 0; --d) {
      const int l = rules::label(own, d);
      if (rules::find_label(others, other.rank, l) >= 0 || in.ext[d] == 1) continue;
      const std::int64_t s = epilogue_stride(c_, j, rules::find_label(e.out, out.rank, l));
      if (first) step = s;
      else if (s != step * covered) return false;
      first = false;
      covered *= in.ext[d];
    }
    return covered == role.ext[role.rank - 1];
  }

  // Plans, copies what does not fit, plans again. An operand that is dense already does not fit where another one keeps
  // its innermost role from merging: the inputs are then copied too. With all dense every role is one dim, so this
  // ends.
  void settle() {
    std::byte* free = static_cast<std::byte*>(c_.workspace) + device_scratch::product_bytes;
    bool dense[3]{};
    for (;;) {
      plan();
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
    const auto of = attributes_of<einsum_attributes>(c_.a);
    const device_scratch::einsum_operand w[3] = {{of.lhs, l_[0].ext, l_[0].str, l_[0].rank},
                                                 {of.rhs, l_[1].ext, l_[1].str, l_[1].rank},
                                                 {of.out, l_[2].ext, l_[2].str, l_[2].rank}};
    if (device_scratch::is_by_role(w, k)) return;
    layout to = l_[k];
    device_scratch::strides_by_role(w, k, to.str);
    T* const copy = reinterpret_cast<T*>(free);
    free += device_scratch::align(to.numel() * static_cast<std::int64_t>(sizeof(T)));
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

  void product(T* const (&p)[3], const std::int64_t* step, std::int64_t batch, bool first) {
    matmul_shape s;
    const bool swap = describe(s, p, step, batch);
    const auto alpha = static_cast<product_scalar<T>>(c_.f);
    const product_scalar<T> beta = first ? 0 : 1;
    ctx_.plans->run(s, &alpha, p[swap ? 1 : 0], p[swap ? 0 : 1], &beta, p[2], c_.workspace, ctx_, own());
  }

  // The kernel that may stand beside cuBLASLt's.
  static const own_product* own() { return std::is_same_v<T, float> ? &split_product::candidate : nullptr; }

  // cuBLASLt is column-major: a row-major result is the product of the turned operands in the other order; returns whether
  // it is.
  bool describe(matmul_shape& s, T* const (&p)[3], const std::int64_t* step, std::int64_t batch) const {
    const strided_matrix x = matrix(0), y = matrix(1), o = matrix(2);
    s.batch = batch;
    s.depth = x.column;
    s.type = data_type<T>;
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
    return swap;
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
    const bool sums = attributes_of<einsum_attributes>(c.a).keeps_sums != 0;
    detail::device_einsum<T> products(c, ctx);
    if (sums) {
      if (detail::run_flat_product<T, true>(c, no_epilogue{}, &c.l[2], c.p[2], false, ctx)) return;
      if (products.run_with_sums(c.p[2])) return;
      detail::sum_rows<T>(c, c.l[2], c.p[2], ctx, summed(c));
    }
    if (detail::run_flat_product<T, false>(c, no_epilogue{}, nullptr, nullptr, true, ctx)) return;
    if (const std::int64_t n = products.launches(); n >= detail::launches_worth_one<T>)
      if (detail::run_product<T>(c, no_epilogue{}, n, ctx)) return;
    products.run();
  }

  // One launch where the product is small, or where cuBLASLt has the expression as an epilogue; else the expression is a
  // launch in place.
  template <class T, expression E>
  static void run_then(const call& c, context& ctx) {
    if (attributes_of<einsum_attributes>(c.a).keeps_sums != 0) detail::sum_rows<T>(c, c.l[2], c.p[2], ctx, summed(c));
    constexpr detail::product_epilogue then = detail::product_epilogue::of(E);
    constexpr bool in_library = then.fits && (sizeof(T) == 2 || !then.is_rough());
    const auto behind = epilogue_of<T, E>(c);
    if (detail::run_flat_product<T, false>(c, behind, nullptr, nullptr, in_library, ctx)) return;
    detail::device_einsum<T> products(c, ctx);
    if (then.fits && products.run_with(then)) return;
    if (const std::int64_t n = products.launches(); n > 1)
      if (detail::run_product<T>(c, behind, n, ctx)) return;
    products.run();
    evaluate<T, E>(op_code::einsum, c, ctx);
  }

 private:
  // The dims over which the rows of operand 0 are summed beside the product: those that it contracts.
  static std::int64_t summed(const call& c) { return rules::contracted_dims(c.a, c.l[0].rank, c.l[1].rank); }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
