// SPDX-License-Identifier: Apache-2.0
// The device kernels of all generated programs, compiled once: those of the library and those of the operations that programs call as users'
// own. Programs' sources then compile none but those of their own expressions: see compiled_list in fuzz.hpp.
#include <fuzz.hpp>

#include <shardwise/more_functions.cuh>
#include <shardwise/operations/attention/device.cuh>
#include <shardwise/operations/convolution/device.cuh>
#include <shardwise/operations/extreme/device.cuh>
#include <shardwise/operations/pooling/device.cuh>
#include <shardwise/operations/rotary/device.cuh>

#include <cmath>

namespace fuzz {

inline unsigned blocks_of(std::int64_t rows) { return static_cast<unsigned>((rows + 127) / 128); }

// A thread for each row, in the host kernels' order of additions.
template <class T>
__global__ void sum_rows(const T* x, T* out, std::int64_t rows, std::int64_t n, bool from_the_end) {
  const std::int64_t r = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (r >= rows) return;
  T sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t at = r * n + (from_the_end ? n - 1 - i : i);
    out[at] = sum += x[at];
  }
}
template <class T>
__global__ void see_lines(const T* x, T* powers, T* sums, std::int32_t* where, std::int64_t rows, std::int64_t n) {
  const std::int64_t r = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (r >= rows) return;
  T sum = 0;
  std::int64_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const T v = x[r * n + i];
    if (powers) powers[r * n + i] = exp(v);
    sum += v;
    if (x[r * n + largest] < v) largest = i;
  }
  if (sums) sums[r] = sum;
  if (where) where[r] = static_cast<std::int32_t>(largest);
}

}  // namespace fuzz

template <>
struct shardwise::device_kernel<sums::running> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    const std::int64_t n = k.rank() > 0 ? k.extent(k.rank() - 1) : 1, rows = n > 0 ? k.size() / n : 0;
    if (rows > 0) fuzz::sum_rows<<<fuzz::blocks_of(rows), 128, 0, stream>>>(k.in(0), k.out(), rows, n, k.attribute(0) != 0);
  }
};
template <>
struct shardwise::device_kernel<described::lines> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    std::int64_t rows = 1;
    for (int d = 0; d + 1 < k.rank(0); ++d) rows *= k.extent(0, d);
    const std::int64_t n = k.extent(0, k.rank(0) - 1);
    if (rows > 0)
      fuzz::see_lines<<<fuzz::blocks_of(rows), 128, 0, stream>>>(k.in(0), k.wanted(0) ? k.out(0) : static_cast<T*>(nullptr),
                                                                 k.wanted(1) ? k.out(1) : static_cast<T*>(nullptr),
                                                                 k.wanted(2) ? k.index_out(2) : nullptr, rows, n);
  }
};

SHARDWISE_DEVICE_KERNELS(fuzz::gate, fuzz::gate_slope, sums::running, described::lines)
SHARDWISE_DEVICE_ELEMENTS(double, float, std::int32_t)
