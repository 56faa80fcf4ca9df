// SPDX-License-Identifier: Apache-2.0
// cuda_backend: how much scratch a program's kernels and collectives need on a device; free of CUDA headers, so that a
// program for devices is planned, measured and checked by any compiler.
#pragma once

#include <cstdint>

#include <type_traits>

#include <shardwise/graph/graph.hpp>
#include <shardwise/propagation/scratch.hpp>
#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/pass/memory/scratch.hpp>
#include <shardwise/runtime/cuda/collective_workspace.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/fp32_precision.hpp>

namespace shardwise::inline v0_1 {

// Kernels and collectives run at the same time, so each kind has scratch of its own: [kernels][collectives].
struct cuda_backend {
  static constexpr bool calls_host_functions = true;                 // opaque ones: blocks are copied, see host_calls.hpp
  static constexpr fp32_precision precision = fp32_precision::ieee;  // of products of float

  struct scratch {
    std::int64_t compute = 0, communication = 0;
    constexpr std::int64_t total() const { return passes::align_up(compute) + passes::align_up(communication); }
  };

  template <class Graph>
  static constexpr scratch scratch_of(const Graph& g) {
    scratch most;
    most.compute = passes::kernel_scratch<passes::kernel_place::device>(g);
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      if (n.op != op_code::redistribute) continue;
      const spec& x = g.specs[g.nodes[n.in[0]].spec];
      const std::int64_t need =
          device_collective_workspace_bytes(n, x, g.specs[n.spec], operations::largest_block(x).extent);
      if (need > most.communication) most.communication = need;
    }
    return most;
  }

  template <class Source>
  static constexpr std::int64_t workspace_bytes() {
    return scratch_of(Source::value).total();
  }
};

// The same, and matrix products of float round their factors to 10 bits of fraction (TF32): about eight times the speed of float's
// own, relative errors of 1e-3 instead of 1e-7. Never chosen unasked, and for programs of float alone.
struct cuda_backend_tf32 : cuda_backend {
  static constexpr fp32_precision precision = fp32_precision::tf32;
};

// The same, and matrix products of float may be three products of TF32, of both factors' high and low parts: 1.4 to 2.4 times the speed of float's own
// on an H100 or H200, with errors of the same size (device_split_product_kernel.cuh says the law); what infinities reach may be no number. A product is computed so
// where that is faster: as measured, or as its extents say. Needs a program compiled for sm_90a: the constructor of an executor whose products
// cuBLASLt would compute throws device_error where it is not, or the GPU has no such instructions.
struct cuda_backend_tf32x3 : cuda_backend {
  static constexpr fp32_precision precision = fp32_precision::tf32x3;
};

namespace detail {

template <class Backend, class T>
constexpr problem device_backend_problem() {
  if constexpr (!std::is_base_of_v<cuda_backend, Backend>) return problem::backend_not_cuda;
  else if constexpr (Backend::precision != fp32_precision::ieee && !std::is_same_v<T, float>) return problem::tf32_element;
  else return problem::none;
}

}  // namespace detail

// A program that a rank on a device can run.
template <class Step>
struct checked_device_step {
#if !SHARDWISE_DEVICE_PASS
  static_assert(raise<detail::device_backend_problem<typename Step::backend, typename Step::element>(),
                      typename Step::backend, typename Step::element>::ok);
  static constexpr fp32_precision precision = Step::backend::precision;
#else
  static constexpr fp32_precision precision = fp32_precision::ieee;  // runs nothing
#endif
  static constexpr bool ok = true;
};

}  // namespace shardwise::inline v0_1
