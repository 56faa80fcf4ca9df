// SPDX-License-Identifier: Apache-2.0
// convolution_library: convolutions on hosts by somebody else's kernels. What they are asked, how they are registered, and which ran.
// Free of any library's headers: shardwise::onednn registers one (onednn/convolution.hpp). A program that links none runs the built-in
// kernels (operations/convolution/host.hpp), and so does every call that a library does not take.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <shardwise/support/config.hpp>
#include <shardwise/vocabulary/dtype.hpp>

namespace shardwise::inline v0_1::runtime {

enum class convolution_pass : std::uint8_t { forward, image_gradient, weight_gradient };

// One rank's convolution, or one thread's part of it: image (n, c, h, w), weight (o, i, kh, kw) with i = c / groups, result
// (n, o, oh, ow). Gradients lie as what they are of. Strides in elements.
struct convolution_request {
  convolution_pass pass = convolution_pass::forward;
  dtype type = dtype::f32;
  std::int64_t n = 0, c = 0, h = 0, w = 0, o = 0, i = 0, kh = 0, kw = 0, oh = 0, ow = 0, groups = 1;
  std::int64_t stride[2] = {1, 1}, before[2] = {0, 0}, behind[2] = {0, 0}, dilation[2] = {1, 1};  // before, behind: padding
  std::int64_t image[4] = {}, weight[4] = {}, result[4] = {};                                     // strides
  // Of a padded image: what is multiplied with it is one piece of finite numbers. Libraries multiply with the padding's zeros, which
  // are none for other factors (infinity times 0).
  bool finite = true;

  bool operator==(const convolution_request&) const = default;
};

// Of the three the one that the pass computes is written, the others are read.
struct convolution_pointers {
  void *image = nullptr, *weight = nullptr, *result = nullptr;
};

struct convolution_library {
  std::string (*name)();  // with its version
  // Runs what it takes in the calling thread alone; false: it does not take the request, and nothing is written.
  bool (*run)(const convolution_request&, const convolution_pointers&);
  // A line for each distinct request: what ran it, and if that was the built-in kernel, why.
  std::string (*report)();
  void (*clear_report)();
};

namespace convolution_registry {

inline std::atomic<const convolution_library*>& get() {
  static std::atomic<const convolution_library*> used{nullptr};
  return used;
}

}  // namespace convolution_registry

// What convolutions run by from now on where it can; null: the built-in kernels. A program that links shardwise::onednn has it
// registered when main begins.
inline void use_convolution_library(const convolution_library* library) {
  convolution_registry::get().store(library, std::memory_order_release);
}
inline const convolution_library* used_convolution_library() {
  return convolution_registry::get().load(std::memory_order_acquire);
}

// A line for each distinct convolution of floating-point elements that ran in this process while a library was registered, as
// "forward of float, image 2 3 16 16, kernel 64 3 7 7, stride 7 7: oneDNN 2.6.3 (jit:avx2), 4 calls". Elements of two bytes are widened
// to float before, and are reported as such.
inline std::string convolution_report() {
  const convolution_library* const library = used_convolution_library();
  return library ? library->report()
                 : "no library is linked (shardwise::onednn): convolutions run by the built-in kernels\n";
}
inline void clear_convolution_report() {
  if (const convolution_library* const library = used_convolution_library()) library->clear_report();
}

}  // namespace shardwise::inline v0_1::runtime
