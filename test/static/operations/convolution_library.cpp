// SPDX-License-Identifier: Apache-2.0
// The scratch that programs are planned with for a library's convolutions holds what cuDNN's first choice asks for beside no copies, grows
// with every block, and is bounded.
#include <shardwise/operations/convolution/library_bytes.hpp>

#include <cstdint>

namespace {

namespace sw = shardwise;
using sw::operations::convolution_library_bytes;

// What the kernels asked for that cuDNN 9.19.0 names first for an H100: of float and TF32 those that turn contiguous blocks themselves.
struct asked {
  sw::dtype type;
  std::int64_t image, weight, result, bytes;
};
constexpr asked measured[] = {
    {sw::dtype::f32, 32 * 64 * 56 * 56, 64 * 64 * 9, 32 * 64 * 56 * 56, 51822803},
    {sw::dtype::f32, 32 * 256 * 56 * 56, 64 * 256, 32 * 64 * 56 * 56, 128712927},
    {sw::dtype::f32, 32 * 64 * 56 * 56, 128 * 64 * 9, 32 * 128 * 28 * 28, 38830227},
    {sw::dtype::f32, 32 * 64 * 56 * 56, 64 * 9, 32 * 64 * 56 * 56, 51655862},
    {sw::dtype::f32, 32 * 3 * 224 * 224, 64 * 3 * 49, 32 * 64 * 112 * 112, 122065680},
    {sw::dtype::f64, 32 * 256 * 56 * 56, 64 * 256, 32 * 64 * 56 * 56, 256901136},
    {sw::dtype::bf16, 32 * 3 * 224 * 224, 64 * 3 * 49, 32 * 64 * 112 * 112, 83242128},
    {sw::dtype::f16, 32 * 256 * 56 * 56, 64 * 256, 32 * 64 * 56 * 56, 65994896},
    {sw::dtype::f16, 2 * 3 * 9 * 7, 5 * 27, 2 * 5 * 9 * 7, 5200},
};
constexpr bool holds_what_is_asked() {
  for (const asked& a : measured)
    if (convolution_library_bytes(a.type, a.image, a.weight, a.result) < a.bytes) return false;
  return true;
}
static_assert(holds_what_is_asked());

constexpr bool grows() {
  for (const sw::dtype t : {sw::dtype::f32, sw::dtype::f64, sw::dtype::bf16, sw::dtype::f16})
    for (const std::int64_t n : {0, 1, 1000, 12345678, 2000000000}) {
      const std::int64_t bytes = convolution_library_bytes(t, n, n, n);
      if (bytes % sw::device_scratch::alignment != 0 || bytes > sw::operations::convolution_most_bytes ||
          bytes > convolution_library_bytes(t, n + 1, n, n) || bytes > convolution_library_bytes(t, n, n + 1, n) ||
          bytes > convolution_library_bytes(t, n, n, n + 1))
        return false;
    }
  return true;
}
static_assert(grows());
// Room for a copy of each block, whatever its elements, below the bound.
static_assert(convolution_library_bytes(sw::dtype::f64, 1000, 10, 500) >= 8 * (1000 + 10 + 500) + 3 * 256);
static_assert(convolution_library_bytes(sw::dtype::i32, 1000, 1000, 1000) == 0);

}  // namespace
