// SPDX-License-Identifier: Apache-2.0
// split_product: products of float as three of TF32, as matmul_plans choose and launch them. The kernel and its law: device_split_product_kernel.cuh.
#pragma once

#include <cstdint>

#include <shardwise/operations/contraction/device_split_product_kernel.cuh>
#include <shardwise/operations/contraction/scratch.hpp>
#include <shardwise/runtime/cuda/context.hpp>
#include <shardwise/runtime/cuda/device/launch.cuh>
#include <shardwise/runtime/cuda/matmul_plans.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// The kernel as matmul_plans know it: products of float in columns, as matmul_shape describes them.
struct split_product {
  static const own_product candidate;  // as matmul_plans::run takes it
  // Of the depth.
  static constexpr int most_splits = 8;

  // Whether the current device runs what this source was compiled for: Hopper's own instructions. The body is empty elsewhere, which has not the
  // registers that the groups share.
  static bool is_compiled() {
    cudaFuncAttributes a{};
    check(cudaFuncGetAttributes(&a, &split_product_detail::kernel<true, true>), "cudaFuncGetAttributes");
    return device_attribute(cudaDevAttrComputeCapabilityMajor) == 9 && a.numRegs >= split_product_detail::started_registers;
  }

  // Loads and stores are of 16 bytes, but for a left factor that does not lie along its depth: of 8.
  static bool takes(const matmul_shape& s) {
    constexpr std::int64_t most = std::int64_t{1} << 31;
    const auto fours = [&](std::int64_t align, std::int64_t ld, std::int64_t step, std::int64_t along) {
      return align >= 16 && ld % 4 == 0 && step % 4 == 0 && along % 4 == 0;
    };
    const auto twos = [](std::int64_t align, std::int64_t ld, std::int64_t step, std::int64_t along) {
      return align >= 8 && ld % 2 == 0 && step % 2 == 0 && along % 2 == 0;
    };
    const bool loads =
        fours(s.align_a, s.ld_a, s.step_a, s.transposed_a ? s.depth : s.rows) &&
        (s.transposed_b ? twos(s.align_b, s.ld_b, s.step_b, s.columns) : fours(s.align_b, s.ld_b, s.step_b, s.depth));
    const bool stores = fours(s.align_d, s.ld_d, s.step_d, 0) && (s.ld_c == 0 || fours(s.align_c, s.ld_c, s.step_c, 0));
    const bool then = s.epilogue == CUBLASLT_EPILOGUE_DEFAULT || s.epilogue == CUBLASLT_EPILOGUE_BIAS ||
                      s.epilogue == CUBLASLT_EPILOGUE_RELU || s.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
    return s.type == CUDA_R_32F && loads && stores && then && s.rows < most && s.columns < most && s.depth < most &&
           s.ld_a < most && s.ld_b < most && s.ld_d < most && s.ld_c < most && tiles_of(s) * s.batch * most_splits < most;
  }
  static std::int64_t tiles_of(const matmul_shape& s) {
    constexpr std::int64_t t = split_product_detail::tile;
    return (s.rows + t - 1) / t * ((s.columns + t - 1) / t);
  }

  // Into how many splits the depth is cut, unmeasured; 0: cuBLASLt's own product of float takes less time. It follows from extents alone. Rates
  // are of an H200 (bench/results/gemm.md).
  static int splits_of(const matmul_shape& s) {
    constexpr std::int64_t blocks_at_once = 132;
    constexpr double stage_us = 1.3, block_us = 5, library_rate = 50e6;  // flops a microsecond
    const double library = 2. * static_cast<double>(s.rows) * static_cast<double>(s.columns) * static_cast<double>(s.depth) *
                           static_cast<double>(s.batch) / library_rate;
    double least = library;
    int best = 0;
    for (int n = 1; n <= most_splits; ++n) {
      if (!takes_splits(s, n)) break;
      const auto waves = static_cast<double>((tiles_of(s) * s.batch * n + blocks_at_once - 1) / blocks_at_once);
      const double time =
          waves * (stage_us * static_cast<double>(split_depth(s, n) / split_product_detail::stage) + block_us);
      if (time >= least) continue;
      least = time;
      best = n;
    }
    return best;
  }

  // Whether scratch and tickets suffice.
  static bool takes_splits(const matmul_shape& s, int splits) {
    constexpr std::int64_t tile_bytes = split_product_detail::results * split_product_detail::multiplying * sizeof(float);
    const std::int64_t tiles = tiles_of(s) * s.batch;
    return splits == 1 || (2 * tiles <= ticket_count && tiles * splits * tile_bytes <= device_scratch::product_bytes);
  }

  static void run(const matmul_shape& s, int splits, const void* alpha, const matmul_operands& x, const void* beta,
                  void* workspace, context& ctx) {
    namespace d = split_product_detail;
    const auto word = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
    const bool bias = s.epilogue == CUBLASLT_EPILOGUE_BIAS || s.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
    const bool relu = s.epilogue == CUBLASLT_EPILOGUE_RELU || s.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
    const d::arguments g{static_cast<const float*>(x.b),
                         static_cast<const float*>(x.a),
                         static_cast<const float*>(x.c),
                         bias ? static_cast<const float*>(x.bias) : nullptr,
                         static_cast<float*>(x.d),
                         static_cast<float4*>(workspace),
                         ctx.tickets,
                         word(s.columns),
                         word(s.rows),
                         word(s.depth),
                         word(s.batch),
                         word(splits),
                         word(split_depth(s, splits)),
                         word(s.ld_b),
                         word(s.ld_a),
                         word(s.ld_d),
                         word(s.ld_c != 0 ? s.ld_c : s.ld_d),
                         s.step_b,
                         s.step_a,
                         s.step_d,
                         s.ld_c != 0 ? s.step_c : s.step_d,
                         s.rows,
                         *static_cast<const float*>(alpha),
                         *static_cast<const float*>(beta),
                         relu};
    const auto launched = [&](auto kernel) {
      allow_shared(kernel, d::shared_bytes);
      const std::int64_t pieces = tiles_of(s) * s.batch * splits, most = ctx.multiprocessors;
      launch_shared(op_code::einsum, kernel, word(pieces < most ? pieces : most), d::threads, d::shared_bytes, ctx.stream,
                    g);
    };
    if (!s.transposed_b && s.transposed_a) launched(&d::kernel<true, true>);
    else if (!s.transposed_b) launched(&d::kernel<true, false>);
    else if (s.transposed_a) launched(&d::kernel<false, true>);
    else launched(&d::kernel<false, false>);
  }

 private:
  static std::int64_t split_depth(const matmul_shape& s, int splits) {
    constexpr std::int64_t each = split_product_detail::stage;
    return ((s.depth + splits - 1) / splits + each - 1) / each * each;
  }
};
inline constexpr own_product split_product::candidate = own_product::of<split_product>();

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
