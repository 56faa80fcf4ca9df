// SPDX-License-Identifier: Apache-2.0
// Convolutions by the registered library (runtime/cuda/convolution_library.hpp), where it takes the call. Libraries want all blocks in
// one memory format: what lies otherwise is copied into scratch before, a result out of it after.
#pragma once

#include <shardwise/operations/convolution/host.hpp>
#include <shardwise/runtime/cuda/convolution_library.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/runtime/cuda/matmul_plans.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace convolution_detail {

// A block as it lies, and as a library has it: the same, or a copy.
struct library_block {
  std::int64_t extent[4] = {}, given[4] = {}, dense[4] = {};
  bool copied = false;

  std::int64_t elements() const { return extent[0] * extent[1] * extent[2] * extent[3]; }
};

// Elements in the order in which `to` stores them: of channels-last blocks the channels innermost.
template <class T>
__global__ void __launch_bounds__(256) copy_block(const __grid_constant__ library_block b, const T* from, T* to, bool back,
                                                  bool channels_last, std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t inner = channels_last ? b.extent[1] : b.extent[2] * b.extent[3];
  for (std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < size; at += step) {
    const std::int64_t x = at % inner, y = at / inner, outer = channels_last ? b.extent[2] * b.extent[3] : b.extent[1];
    const std::int64_t n = y / outer, channel = channels_last ? x : y % outer, place = channels_last ? y % outer : x;
    const std::int64_t of[4] = {n, channel, place / b.extent[3], place % b.extent[3]};
    std::int64_t given = 0, dense = 0;
    for (int d = 0; d < 4; ++d) {
      given += of[d] * b.given[d];
      dense += of[d] * b.dense[d];
    }
    if (back) to[given] = from[dense];
    else to[dense] = from[given];
  }
}

// A call as a library is asked for it. X, Weight, Y: operands that are x, the weight and y; -1: the result.
template <int X, int Weight, int Y, class T>
class library_call {
 public:
  library_call(const kernel_arguments<T>& k, bool tf32) : k_(k) {
    namespace on_host = host::convolution_detail;
    const host::convolution_blocks b = host::blocks_of(k, X, Weight, Y);
    runtime::convolution_request& r = request_.of;
    r = on_host::request_of(b, on_host::pass_of<X, Weight, Y>, dtype_v<T>);
    // Rows and columns behind the last window that no whole stride leads to: libraries leave them out by themselves.
    for (std::int64_t& behind : r.behind) behind = behind < 0 ? 0 : behind;
    request_.tf32 = tf32 && std::is_same_v<T, float>;
    request_.ordered = are_convolutions_ordered();
    lay(image, {r.n, r.c, r.h, r.w}, r.image);
    lay(weight, {r.o, r.i, r.kh, r.kw}, r.weight);
    lay(result, {r.n, r.o, r.oh, r.ow}, r.result);
    const runtime::block_formats x(of_[image].extent, r.image), y(of_[result].extent, r.result),
        w(of_[weight].extent, r.weight);
    last_ = x.is_channels_last_alone() || y.is_channels_last_alone() ||
            (x.channels_last && y.channels_last && w.channels_last && !(x.contiguous && y.contiguous && w.contiguous));
    std::int64_t(*const stride[])[4] = {&r.image, &r.weight, &r.result};
    const runtime::block_formats* const formats[] = {&x, &w, &y};
    for (int i = 0; i < 3; ++i) {
      runtime::make_dense(of_[i].extent, last_, of_[i].dense);
      of_[i].copied = !(last_ ? formats[i]->channels_last : formats[i]->contiguous);
      if (of_[i].copied) copies_ += bytes_of_copy(i);
      for (int d = 0; d < 4; ++d) (*stride[i])[d] = of_[i].dense[d];
      request_.aligned = request_.aligned && (of_[i].copied || reinterpret_cast<std::uintptr_t>(at(i)) % 16 == 0);
    }
    request_.bytes =
        operations::convolution_library_bytes(r.type, of_[image].elements(), of_[weight].elements(), of_[result].elements()) -
        copies_;
  }
  const convolution_request& request() const { return request_; }

  void run(const convolution_library& library, cudaStream_t stream) const {
    constexpr int written = Y < 0 ? result : X < 0 ? image : weight;
    std::byte* free = reinterpret_cast<std::byte*>(k_.scratch());
    T* p[3];
    for (int i = 0; i < 3; ++i) {
      p[i] = at(i);
      if (!of_[i].copied) continue;
      p[i] = reinterpret_cast<T*>(free);
      free += bytes_of_copy(i);
      if (i != written) copy(i, at(i), p[i], false, stream);
    }
    library.run(request_, {p[image], p[weight], p[result]}, free, stream);
    if (of_[written].copied) copy(written, p[written], at(written), true, stream);
  }

 private:
  enum place { image, weight, result };

  void lay(int i, const std::int64_t (&extent)[4], const std::int64_t (&stride)[4]) {
    for (int d = 0; d < 4; ++d) {
      of_[i].extent[d] = extent[d];
      of_[i].given[d] = stride[d];
    }
  }
  T* at(int i) const {
    constexpr int operand[] = {X, Weight, Y};
    return operand[i] < 0 ? k_.out() : const_cast<T*>(k_.in(operand[i]));
  }
  std::int64_t bytes_of_copy(int i) const {
    return device_scratch::align(of_[i].elements() * static_cast<std::int64_t>(sizeof(T)));
  }
  void copy(int i, const T* from, T* to, bool back, cudaStream_t stream) const {
    const std::int64_t size = of_[i].elements(), blocks = (size + 255) / 256;
    copy_block<T><<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), 256, 0, stream>>>(of_[i], from, to, back, last_,
                                                                                             size);
    check_launch("conv2d: a copy in another memory format");
  }

  const kernel_arguments<T>& k_;
  convolution_request request_;
  library_block of_[3];
  std::int64_t copies_ = 0;
  bool last_ = false;
};

inline bool allows_tf32(const context& ctx) { return ctx.plans && ctx.plans->allows_tf32(); }

// Has a library's plan built, if one takes the call.
template <int X, int Weight, int Y, class T>
void prepare_library(const kernel_arguments<T>& k, context& ctx) {
  if constexpr (is_floating_element<T>) {
    if (k.size() == 0) return;
    const library_call<X, Weight, Y, T> call(k, allows_tf32(ctx));
    convolution_library_for(call.request());
  }
}
// Whether a library has queued it.
template <int X, int Weight, int Y, class T>
bool run_library(const kernel_arguments<T>& k, context& ctx) {
  if constexpr (is_floating_element<T>) {
    const library_call<X, Weight, Y, T> call(k, allows_tf32(ctx));
    if (const convolution_library* const library = convolution_library_for(call.request(), ctx.stream)) {
      call.run(*library, ctx.stream);
      return true;
    }
  }
  return false;
}

}  // namespace convolution_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
