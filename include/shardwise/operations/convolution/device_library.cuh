// SPDX-License-Identifier: Apache-2.0
// Convolutions by the registered library (runtime/cuda/convolution_library.hpp), where it takes the call: what lies in another memory
// format than the library computes in is copied into scratch before, a result out of it after.
#pragma once

#include <shardwise/operations/convolution/device_request.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/runtime/cuda/matmul_plans.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace convolution_launches {

// Elements in the order in which the copy stores them.
template <class T>
__global__ void __launch_bounds__(256) copy_block(const __grid_constant__ convolution_detail::library_block b, const T* from,
                                                  T* to, bool back, bool channels_last, std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < size; at += step) {
    const auto p = b.places_of(at, channels_last);
    if (back) to[p.given] = from[p.dense];
    else to[p.dense] = from[p.given];
  }
}

inline bool rounds_to_tf32(const context& ctx) { return ctx.plans && ctx.plans->rounds_to_tf32(); }

template <class Call>
void run_library(const Call& call, const convolution_library& library, cudaStream_t stream) {
  call.run(
      [&](const convolution_detail::library_block& b, const auto* from, auto* to, bool back) {
        const std::int64_t size = b.elements(), blocks = (size + 255) / 256;
        copy_block<<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), 256, 0, stream>>>(
            b, from, to, back, call.is_channels_last(), size);
        check_launch("conv2d: a copy in another memory format");
      },
      [&](const runtime::convolution_pointers& p, void* workspace) { library.run(call.request(), p, workspace, stream); });
}

// Has a library's plan built, if one takes the call, and run once where it never was: on what lies there, into a result that each run of
// the program writes.
template <int X, int Weight, int Y, class T>
void prepare_library(const kernel_arguments<T>& k, context& ctx) {
  if constexpr (is_floating_element<T>) {
    if (k.size() == 0) return;
    const convolution_detail::library_call<X, Weight, Y, T> call(k, rounds_to_tf32(ctx));
    const convolution_library* const library = convolution_library_for(call.request());
    if (library && !library->has_run(call.request())) run_library(call, *library, ctx.stream);
  }
}
// Whether a library has queued it.
template <int X, int Weight, int Y, class T>
bool take_library(const kernel_arguments<T>& k, context& ctx) {
  if constexpr (is_floating_element<T>) {
    const convolution_detail::library_call<X, Weight, Y, T> call(k, rounds_to_tf32(ctx));
    const convolution_library* const library = convolution_library_for(call.request(), ctx.stream);
    if (library) run_library(call, *library, ctx.stream);
    return library != nullptr;
  }
  return false;
}

}  // namespace convolution_launches

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
