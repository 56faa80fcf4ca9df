// SPDX-License-Identifier: Apache-2.0
// The host kernels compiled once for many translation units. With SHARDWISE_EXTERN_KERNELS defined, sources that include
// the library emit none of them; one source of the program then has
//
//   #define SHARDWISE_INSTANTIATE_KERNELS 1
//   #include <shardwise/runtime/host/extern_kernels.hpp>
//
// and may be optimised on its own, so that a debug build trains at full speed. Two sources share the work with
// SHARDWISE_KERNELS_OF_FLOAT_ONLY in one and SHARDWISE_KERNELS_OF_DOUBLE_ONLY in the other. Kernels are hidden: a shared object
// has such sources of its own. They are compiled with the same SHARDWISE_WITH_BLAS as those that use them, or nothing links.
#pragma once

#include <shardwise/runtime/host/kernel_table.hpp>
#include <shardwise/support/config.hpp>

#if defined(SHARDWISE_EXTERN_KERNELS) || defined(SHARDWISE_INSTANTIATE_KERNELS)

#include <shardwise/operations/attention/host_tiles.hpp>
#include <shardwise/runtime/host/initialise.hpp>

#ifdef SHARDWISE_INSTANTIATE_KERNELS
#define SHARDWISE_EXTERN
#else
#define SHARDWISE_EXTERN extern
#endif

namespace shardwise::inline v0_1::runtime {

#define SHARDWISE_KERNEL_0(name, type)
#define SHARDWISE_KERNEL_2(name, type)
#define SHARDWISE_KERNEL_1(name, type) \
  SHARDWISE_EXTERN template void compute<op_code::name, type, no_expression>(const call&, const step_env&);

#define SHARDWISE_X(name, kernel) SHARDWISE_KERNEL_##kernel(name, float)
#ifndef SHARDWISE_KERNELS_OF_DOUBLE_ONLY
SHARDWISE_OPS(SHARDWISE_X)
#endif
#undef SHARDWISE_X

#define SHARDWISE_X(name, kernel) SHARDWISE_KERNEL_##kernel(name, double)
#ifndef SHARDWISE_KERNELS_OF_FLOAT_ONLY
SHARDWISE_OPS(SHARDWISE_X)
#endif
#undef SHARDWISE_X

#undef SHARDWISE_KERNEL_0
#undef SHARDWISE_KERNEL_1
#undef SHARDWISE_KERNEL_2

}  // namespace shardwise::inline v0_1::runtime

// What operations made like users' own share with no rank and no program, and what fills blocks before a program runs.
namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

#define SHARDWISE_ATTENTION(type)                                                                                       \
  SHARDWISE_EXTERN template void attend<type>(const attention_call<type>&, const attention_block<type>&, type*, type*); \
  SHARDWISE_EXTERN template void attend_back<type>(const attention_call<type>&, const attention_gradients<type>&, type*);
#define SHARDWISE_INITIALISE(type)                                                                                        \
  SHARDWISE_EXTERN template void initialise_block<type>(std::span<type>, const layout&, init_kind, double, std::uint64_t, \
                                                        std::string_view);

#ifndef SHARDWISE_KERNELS_OF_DOUBLE_ONLY
SHARDWISE_ATTENTION(float)
SHARDWISE_INITIALISE(float)
#endif
#ifndef SHARDWISE_KERNELS_OF_FLOAT_ONLY
SHARDWISE_ATTENTION(double)
SHARDWISE_INITIALISE(double)
#endif

#undef SHARDWISE_ATTENTION
#undef SHARDWISE_INITIALISE

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

#undef SHARDWISE_EXTERN

#endif
