// SPDX-License-Identifier: Apache-2.0
// A rank's convolution as a library on devices is asked for it. Libraries want all blocks in one memory format: which one, and which
// blocks are copied into scratch for it. Free of CUDA.
#pragma once

#include <shardwise/operations/convolution/host.hpp>
#include <shardwise/runtime/cuda/convolution_library.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {

namespace convolution_detail {

// A block as it lies, and as a library has it: the same, or a copy.
struct library_block {
  std::int64_t extent[4] = {}, given[4] = {}, dense[4] = {};
  bool copied = false;

  constexpr std::int64_t elements() const { return extent[0] * extent[1] * extent[2] * extent[3]; }
  // Where element `at` of the copy stands, and where the block has it.
  struct places {
    std::int64_t given = 0, dense = 0;
  };
  constexpr places places_of(std::int64_t at, bool channels_last) const {
    const std::int64_t hw = extent[2] * extent[3], inner = channels_last ? extent[1] : hw,
                       outer = channels_last ? hw : extent[1];
    const std::int64_t x = at % inner, y = at / inner % outer, channel = channels_last ? x : y,
                       place = channels_last ? y : x;
    const std::int64_t of[4] = {at / (inner * outer), channel, place / extent[3], place % extent[3]};
    places p;
    for (int d = 0; d < 4; ++d) {
      p.given += of[d] * given[d];
      p.dense += of[d] * dense[d];
    }
    return p;
  }
};

// X, Weight, Y: operands that are x, the weight and y; -1: the result.
template <int X, int Weight, int Y, class T>
class SHARDWISE_HIDDEN library_call {
 public:
  static constexpr int image = 0, weight = 1, result = 2;
  static constexpr int written = Y < 0 ? result : X < 0 ? image : weight;

  library_call(const kernel_arguments<T>& k, bool tf32) : k_(k) {
    namespace on_host = host::convolution_detail;
    const host::convolution_blocks b = host::blocks_of(k, X, Weight, Y);
    runtime::convolution_request& r = request_.of;
    r = on_host::request_of(b, on_host::pass_of<X, Weight, Y>, dtype_v<T>);
    // Rows and columns behind the last window that no whole stride leads to: libraries leave them out by themselves.
    for (std::int64_t& behind : r.behind) behind = behind < 0 ? 0 : behind;
    request_.tf32 = tf32 && std::is_same_v<T, float>;
    request_.ordered = are_convolutions_ordered();
    const std::int64_t extent[3][4] = {{r.n, r.c, r.h, r.w}, {r.o, r.i, r.kh, r.kw}, {r.n, r.o, r.oh, r.ow}};
    std::int64_t(*const stride[])[4] = {&r.image, &r.weight, &r.result};
    const block_formats lies[] = {{extent[0], r.image}, {extent[1], r.weight}, {extent[2], r.result}};
    // Channels-last where the image or the result is so and not contiguous as well; where both may be taken for either, as the
    // weight lies.
    last_ = lies[image].is_channels_last_alone() || lies[result].is_channels_last_alone() ||
            (lies[image].channels_last && lies[result].channels_last && lies[weight].is_channels_last_alone());
    std::int64_t copies = 0;
    for (int i = 0; i < 3; ++i) {
      library_block& x = of_[i];
      for (int d = 0; d < 4; ++d) {
        x.extent[d] = extent[i][d];
        x.given[d] = (*stride[i])[d];
      }
      runtime::make_dense(x.extent, last_, x.dense);
      for (int d = 0; d < 4; ++d) (*stride[i])[d] = x.dense[d];
      x.copied = !(last_ ? lies[i].channels_last : lies[i].contiguous);
      if (x.copied) copies += bytes_of_copy(i);
      else if (reinterpret_cast<std::uintptr_t>(at(i)) % 16 != 0) request_.aligned = false;
    }
    request_.bytes =
        operations::convolution_library_bytes(r.type, of_[0].elements(), of_[1].elements(), of_[2].elements()) - copies;
  }
  const convolution_request& request() const { return request_; }
  const library_block& block(int i) const { return of_[i]; }
  bool is_channels_last() const { return last_; }

  // Of what the record asks for the copies come first, the library's workspace behind them. copy(block, from, to, back): into the
  // copy, or back out of it.
  template <class Copy, class Run>
  void run(const Copy& copy, const Run& run) const {
    std::byte* free = reinterpret_cast<std::byte*>(k_.scratch());
    T* p[3];
    for (int i = 0; i < 3; ++i) {
      p[i] = at(i);
      if (!of_[i].copied) continue;
      p[i] = reinterpret_cast<T*>(free);
      free += bytes_of_copy(i);
      if (i != written) copy(of_[i], static_cast<const T*>(at(i)), p[i], false);
    }
    run(runtime::convolution_pointers{p[image], p[weight], p[result]}, static_cast<void*>(free));
    if (of_[written].copied) copy(of_[written], static_cast<const T*>(p[written]), at(written), true);
  }

 private:
  using block_formats = runtime::block_formats;

  T* at(int i) const {
    constexpr int operand[] = {X, Weight, Y};
    return operand[i] < 0 ? k_.out() : const_cast<T*>(k_.in(operand[i]));
  }
  std::int64_t bytes_of_copy(int i) const {
    return device_scratch::align(of_[i].elements() * static_cast<std::int64_t>(sizeof(T)));
  }

  const kernel_arguments<T>& k_;
  convolution_request request_;
  library_block of_[3];
  bool last_ = false;
};

}  // namespace convolution_detail

}  // namespace shardwise::inline v0_1::cuda
