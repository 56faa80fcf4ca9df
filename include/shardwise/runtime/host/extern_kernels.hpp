// SPDX-License-Identifier: Apache-2.0
// The host kernels compiled once for many translation units. With SHARDWISE_EXTERN_KERNELS defined, sources that include
// the library neither read nor emit any of them; what they compile is expressions, which are each program's own, and kernels of users'
// operations. One source of the program then has
//
//   #define SHARDWISE_INSTANTIATE_KERNELS 1
//   #include <shardwise/runtime/host/extern_kernels.hpp>
//
// and may be optimised on its own, so that a debug build trains at full speed. Three sources share the work if each defines one of
// SHARDWISE_KERNELS_OF_FLOAT_ONLY, SHARDWISE_KERNELS_OF_DOUBLE_ONLY and SHARDWISE_KERNELS_OF_OTHERS_ONLY (elements of two bytes,
// integers, bool). Kernels are hidden: a shared object has such sources of its own. They are compiled with the same
// SHARDWISE_WITH_BLAS as those that use them, or nothing links.
#pragma once

#include <shardwise/runtime/host/initialise.hpp>
#include <shardwise/runtime/host/kernel_table.hpp>
#include <shardwise/support/config.hpp>

#if defined(SHARDWISE_EXTERN_KERNELS) || defined(SHARDWISE_INSTANTIATE_KERNELS)

#include <shardwise/graph/functions/attention.hpp>
#include <shardwise/graph/functions/convolution.hpp>
#include <shardwise/graph/functions/extremes.hpp>
#include <shardwise/graph/functions/pooling.hpp>
#include <shardwise/graph/functions/rotary.hpp>

#ifdef SHARDWISE_INSTANTIATE_KERNELS
#include <shardwise/runtime/host/all_kernels.hpp>
#define SHARDWISE_EXTERN
#else
#define SHARDWISE_EXTERN extern
#endif

// The operations of the umbrella header that are made like users' own.
#define SHARDWISE_OWN_KERNELS(X)      \
  X(attention)                        \
  X(attention_biased)                 \
  X(attention_marked)                 \
  X(attention_biased_marked)          \
  X(attention_dropped)                \
  X(attention_biased_dropped)         \
  X(attention_marked_dropped)         \
  X(attention_adjoint)                \
  X(attention_adjoint_biased)         \
  X(attention_adjoint_marked)         \
  X(attention_adjoint_biased_marked)  \
  X(attention_adjoint_dropped)        \
  X(attention_adjoint_biased_dropped) \
  X(attention_adjoint_marked_dropped) \
  X(attention_delta)                  \
  X(conv2d)                           \
  X(conv2d_dx)                        \
  X(conv2d_dw)                        \
  X(max_pool2d) X(max_pool2d_dx) X(max_pool2d_at) X(avg_pool2d) X(avg_pool2d_dx) X(max) X(min) X(rotary_embedding)

namespace shardwise::inline v0_1::runtime {

#define SHARDWISE_KERNEL_0(name, type)
#define SHARDWISE_KERNEL_2(name, type)
#define SHARDWISE_KERNEL_1(name, type) \
  SHARDWISE_EXTERN template void compute<op_code::name, type>(const call&, const step_env&);
#define SHARDWISE_CUT_0(name)
#define SHARDWISE_CUT_2(name)
#define SHARDWISE_CUT_1(name) SHARDWISE_EXTERN template host::cut_kind cut_of_kernel<op_code::name>();
#define SHARDWISE_OWN(name, type) \
  SHARDWISE_EXTERN template void compute_custom<custom::name, type>(const call&, const step_env&);

#if !defined(SHARDWISE_KERNELS_OF_DOUBLE_ONLY) && !defined(SHARDWISE_KERNELS_OF_OTHERS_ONLY)
#define SHARDWISE_X(name, kernel) SHARDWISE_KERNEL_##kernel(name, float)
SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
#define SHARDWISE_X(name) SHARDWISE_OWN(name, float)
SHARDWISE_OWN_KERNELS(SHARDWISE_X)
#undef SHARDWISE_X
#endif

#if !defined(SHARDWISE_KERNELS_OF_FLOAT_ONLY) && !defined(SHARDWISE_KERNELS_OF_OTHERS_ONLY)
#define SHARDWISE_X(name, kernel) SHARDWISE_KERNEL_##kernel(name, double)
SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
#define SHARDWISE_X(name) SHARDWISE_OWN(name, double)
SHARDWISE_OWN_KERNELS(SHARDWISE_X)
#undef SHARDWISE_X
#endif

#if !defined(SHARDWISE_KERNELS_OF_DOUBLE_ONLY) && !defined(SHARDWISE_KERNELS_OF_FLOAT_ONLY)
#define SHARDWISE_X(name, kernel)                                                                 \
  SHARDWISE_KERNEL_##kernel(name, bfloat16) SHARDWISE_KERNEL_##kernel(name, float16)              \
      SHARDWISE_KERNEL_##kernel(name, std::int32_t) SHARDWISE_KERNEL_##kernel(name, std::int64_t) \
          SHARDWISE_KERNEL_##kernel(name, bool) SHARDWISE_CUT_##kernel(name)
SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
#define SHARDWISE_X(name) SHARDWISE_EXTERN template host::cut_kind cut_of_custom<custom::name>();
SHARDWISE_OWN_KERNELS(SHARDWISE_X)
#undef SHARDWISE_X
// Of those whose record takes any element: custom_entry.
#define SHARDWISE_X(type) SHARDWISE_OWN(max, type) SHARDWISE_OWN(min, type)
SHARDWISE_X(std::int32_t) SHARDWISE_X(std::int64_t) SHARDWISE_X(bool)
#undef SHARDWISE_X
#endif

#undef SHARDWISE_KERNEL_0
#undef SHARDWISE_KERNEL_2
#undef SHARDWISE_KERNEL_1
#undef SHARDWISE_CUT_0
#undef SHARDWISE_CUT_2
#undef SHARDWISE_CUT_1
#undef SHARDWISE_OWN
#undef SHARDWISE_OWN_KERNELS

}  // namespace shardwise::inline v0_1::runtime

// What fills blocks before a program runs.
namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

#define SHARDWISE_INITIALISE(type)                                                                                        \
  SHARDWISE_EXTERN template void initialise_block<type>(std::span<type>, const layout&, init_kind, double, std::uint64_t, \
                                                        std::string_view);

#if !defined(SHARDWISE_KERNELS_OF_DOUBLE_ONLY) && !defined(SHARDWISE_KERNELS_OF_OTHERS_ONLY)
SHARDWISE_INITIALISE(float)
#endif
#if !defined(SHARDWISE_KERNELS_OF_FLOAT_ONLY) && !defined(SHARDWISE_KERNELS_OF_OTHERS_ONLY)
SHARDWISE_INITIALISE(double)
#endif

#undef SHARDWISE_INITIALISE

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

#undef SHARDWISE_EXTERN

#endif
