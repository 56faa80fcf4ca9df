// SPDX-License-Identifier: Apache-2.0
// convolution_library: convolutions on devices by somebody else's kernels. What they are asked, how they are registered, and which of
// them or of the library's own kernels ran. Free of CUDA headers and of any library's: shardwise::cudnn registers one
// (cudnn/convolution.hpp).
#pragma once

#include <cstdint>
#include <string>

#include <shardwise/runtime/cuda/library_registry.hpp>
#include <shardwise/runtime/host/convolution_text.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/vocabulary/dtype.hpp>

namespace shardwise::inline v0_1::cuda {

// Everything that a plan is made for. The blocks are dense and in one memory format, all three; what lies otherwise was copied before.
struct convolution_request {
  runtime::convolution_request of;  // whose `finite` nobody knows on a device
  bool tf32 = false;                // factors of float may be rounded to TF32
  bool ordered = true;              // sums in one order, so that equal operands give equal bits
  bool aligned = true;              // all blocks begin at multiples of 16 bytes
  std::int64_t bytes = 0;           // of workspace that there are; less than 0: the copies alone want more than there is

  bool operator==(const convolution_request&) const = default;
};

struct convolution_library {
  std::string (*name)();  // with its version
  // Why it does not take the request; empty: it does, and its plan for the current device is built, of at most request.bytes. Throws
  // where it is to be built and the stream, if one is given, is being captured.
  std::string (*refusal)(const convolution_request&, CUstream_st* stream);
  // Runs what it takes on the stream and allocates nothing.
  void (*run)(const convolution_request&, const runtime::convolution_pointers&, void* workspace, CUstream_st* stream);
  // Whether it has run what it takes on the current device: a first run may load code, which a capture forbids.
  bool (*has_run)(const convolution_request&);
};

// --- which one runs -------------------------------------------------------------------------------------------------------

using convolution_registry = library_registry<convolution_request, convolution_library>;

// What convolutions on devices run by from now on where it can; null: the library's own kernels. A program that links
// shardwise::cudnn has it registered when main begins. Steps that are captured keep what they were captured with.
inline void use_convolution_library(const convolution_library* library) { convolution_registry::get().use(library); }
inline const convolution_library* used_convolution_library() { return convolution_registry::get().used(); }

// Whether a library's convolutions, gradients among them, add in one order, as they do unless told otherwise. Without it they may be
// faster, and two runs of a step may differ in their last bits. For executors that are made from now on.
inline void order_convolutions(bool ordered) { convolution_registry::get().order(ordered); }
inline bool are_convolutions_ordered() { return convolution_registry::get().is_ordered(); }

// "forward of float, image 32 64 56 56, kernel 64 64 3 3, padding 1 1 1 1, channels-last, TF32".
inline std::string text_of(const convolution_request& r) {
  return runtime::text_of(r.of) + (r.tf32 ? ", TF32" : "") + (r.ordered ? "" : ", in any order");
}

// What no library is asked; empty: nothing.
inline std::string common_refusal(const convolution_request& r) {
  const runtime::convolution_request& c = r.of;
  if (!is_floating(c.type)) return "elements are no floating-point numbers";
  for (const std::int64_t e : {c.n, c.c, c.h, c.w, c.o, c.i, c.kh, c.kw, c.oh, c.ow})
    if (e <= 0) return "a block is empty";
  constexpr std::int64_t most = INT32_MAX;  // what kernels count in 32 bits
  if (c.n * c.c * c.h * c.w > most || c.o * c.i * c.kh * c.kw > most || c.n * c.o * c.oh * c.ow > most)
    return "a block has more than 2147483647 elements";
  // A rank's rows of a cut image: a library begins at the first of them and goes as far as the padding lets it.
  const std::int64_t read[] = {c.h, c.w}, made[] = {c.oh, c.ow}, kernel[] = {c.kh, c.kw};
  for (int d = 0; d < 2; ++d) {
    if (c.before[d] < 0) return "the image's block begins before the first window";
    const std::int64_t last = read[d] + c.before[d] + c.behind[d] - c.dilation[d] * (kernel[d] - 1) - 1;
    if (c.behind[d] < 0 || last < 0 || last / c.stride[d] + 1 != made[d])
      return "the image's block goes on behind the last window";
  }
  if (r.bytes < 0) return "its scratch has no room for the copies that bring its blocks to one memory format";
  if (!r.aligned) return "a block does not begin at a multiple of 16 bytes";
  return {};
}

// The registered library if it takes the request; null: the caller's own kernel is to run on the stream. Says so to
// convolution_report. Without a stream it asks in advance.
inline const convolution_library* convolution_library_for(const convolution_request& r, CUstream_st* stream = nullptr) {
  return convolution_registry::get().library_for(r, common_refusal(r), stream);
}

// A line for each distinct convolution that was planned, launched or captured on devices in this process: what it is, what ran it, and
// if that was the library's own kernel, why. Replays of a captured step launch nothing anew.
inline std::string convolution_report() { return convolution_registry::get().report(); }
inline void clear_convolution_report() { convolution_registry::get().clear(); }

}  // namespace shardwise::inline v0_1::cuda
