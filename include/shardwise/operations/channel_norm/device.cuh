// SPDX-License-Identifier: Apache-2.0
// Norms over channels on devices: teams of threads for planes, tiles of 32 channels for pixels, sums in doubles in one order. Of two-byte
// elements statistics and arithmetic are float. more_functions.cuh includes it, in one CUDA source of a program that calls batch_norm or
// group_norm.
#pragma once

#include <shardwise/operations/channel_norm/host.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/runtime/cuda/device/team.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace channel_norms {

using host::channel_block;
using host::channel_strides;

inline constexpr int tile_channels = 32, tile_rows = 32;  // of a tile of pixels, a warp each

// Both sums over value(element) of a set's elements, for all threads of a team.
template <int Threads, class Value>
__device__ two_sums team_sums(const team<Threads>& t, std::int64_t n, const Value& value) {
  two_sums s{0, 0};
  for (std::int64_t i = t.lane(); i < n; i += Threads) s = s + value(i);
  return t.sum(s);
}
// The same over all pixels of a thread's channel, for the threads of a tile's column.
template <class Value>
__device__ two_sums tile_sums(std::int64_t points, bool own, two_sums (*part)[tile_channels], const Value& value) {
  const int lane = static_cast<int>(threadIdx.x), row = static_cast<int>(threadIdx.y);
  two_sums s{0, 0};
  if (own)
    for (std::int64_t p = row; p < points; p += tile_rows) s = s + value(p);
  __syncthreads();  // what was there has been read
  part[row][lane] = s;
  for (int rows = tile_rows / 2; rows > 0; rows /= 2) {
    __syncthreads();
    if (row < rows) part[row][lane] = part[row][lane] + part[row + rows][lane];
  }
  __syncthreads();
  return part[0][lane];
}

template <class W>
__device__ void put_moments(W* out, std::int64_t all, std::int64_t to, double mean, two_sums apart, double n) {
  const double lost = n > 0 ? apart.a / n : 0;  // by rounding the mean
  out[to] = static_cast<W>(mean + lost);
  out[all + to] = static_cast<W>(apart.b - apart.a * lost);
}
template <class C>
__device__ two_sums apart_of(C x, double mean) {
  const double d = static_cast<double>(x) - mean;
  return {d, d * d};
}

// Sums of what elements are apart from given numbers are results as they are.
template <class W>
__device__ void put_sums(W* out, std::int64_t all, std::int64_t to, two_sums apart) {
  out[to] = static_cast<W>(apart.a);
  out[all + to] = static_cast<W>(apart.b);
}

// A team for each group of each image. Elements are met as they lie: along channels where those are side by side. `about`: numbers in place
// of the means, or null.
template <int Threads, class T, class W>
__global__ void __launch_bounds__(Threads == warp_threads ? warp_threads * rows_in_block : Threads)
    moments_of_sets(const __grid_constant__ channel_block b, const __grid_constant__ channel_strides at, const T* x,
                    const W* about, W* out) {
  const team<Threads> t;
  const std::int64_t groups = b.groups(), all = b.images * groups, n = b.points * b.each;
  for (std::int64_t set = t.first_row(); set < all; set += t.row_step()) {
    const T* const from = x + at.at(set / groups, set % groups * b.each, 0);
    const auto element = [&](std::int64_t i) {
      const bool inner = at.in_channels();
      const std::int64_t c = inner ? i % b.each : i / b.points, p = inner ? i / b.each : i % b.points;
      return static_cast<W>(from[c * at.channel + p * at.point]);
    };
    const double mean =
        about != nullptr ? static_cast<double>(about[b.statistic(set / groups, set % groups * b.each)])
                         : team_sums(t, n, [&](std::int64_t i) { return two_sums{static_cast<double>(element(i)), 0}; }).a /
                               static_cast<double>(n);
    const two_sums apart = team_sums(t, n, [&](std::int64_t i) { return apart_of(element(i), mean); });
    if (t.lane() != 0) continue;
    if (about != nullptr) put_sums(out, all, set, apart);
    else put_moments(out, all, set, mean, apart, static_cast<double>(n));
  }
}
// Of each channel by itself, pixels of channels side by side.
template <class T, class W>
__global__ void __launch_bounds__(tile_channels* tile_rows)
    moments_of_tiles(const __grid_constant__ channel_block b, const __grid_constant__ channel_strides at, const T* x,
                     const W* about, W* out) {
  __shared__ two_sums part[tile_rows][tile_channels];
  const std::int64_t c = std::int64_t{blockIdx.x} * tile_channels + threadIdx.x;
  const bool own = c < b.channels;
  for (std::int64_t n = blockIdx.y; n < b.images; n += gridDim.y) {
    const auto element = [&](std::int64_t p) { return static_cast<W>(x[at.at(n, c, p)]); };
    const auto count = static_cast<double>(b.points);
    const double mean = about != nullptr ? own ? static_cast<double>(about[b.statistic(n, c)]) : 0.0
                                         : tile_sums(
                                               b.points, own, part,
                                               [&](std::int64_t p) {
                                                 return two_sums{static_cast<double>(element(p)), 0};
                                               }).a /
                                               count;
    const two_sums apart = tile_sums(b.points, own, part, [&](std::int64_t p) { return apart_of(element(p), mean); });
    if (!own || threadIdx.y != 0) continue;
    if (about != nullptr) put_sums(out, b.images * b.channels, n * b.channels + c, apart);
    else put_moments(out, b.images * b.channels, n * b.channels + c, mean, apart, count);
  }
}

// Of dy and of dy times the normalised x.
template <int Threads, class T, class W>
__global__ void __launch_bounds__(Threads == warp_threads ? warp_threads * rows_in_block : Threads)
    sums_of_planes(const __grid_constant__ channel_block b, const __grid_constant__ channel_strides d,
                   const __grid_constant__ channel_strides at, const T* dy, const T* x, const W* mean, const W* inverse,
                   W* out) {
  const team<Threads> t;
  const std::int64_t all = b.images * b.channels;
  for (std::int64_t set = t.first_row(); set < all; set += t.row_step()) {
    const std::int64_t n = set / b.channels, c = set % b.channels, s = b.statistic(n, c);
    const auto m = static_cast<double>(mean[s]);
    const two_sums sum = team_sums(t, b.points, [&](std::int64_t p) {
      const auto g = static_cast<double>(static_cast<W>(dy[d.at(n, c, p)]));
      return two_sums{g, g * (static_cast<double>(static_cast<W>(x[at.at(n, c, p)])) - m)};
    });
    if (t.lane() != 0) continue;
    out[set] = static_cast<W>(sum.a);
    out[all + set] = static_cast<W>(sum.b * static_cast<double>(inverse[s]));
  }
}
template <class T, class W>
__global__ void __launch_bounds__(tile_channels* tile_rows)
    sums_of_tiles(const __grid_constant__ channel_block b, const __grid_constant__ channel_strides d,
                  const __grid_constant__ channel_strides at, const T* dy, const T* x, const W* mean, const W* inverse,
                  W* out) {
  __shared__ two_sums part[tile_rows][tile_channels];
  const std::int64_t c = std::int64_t{blockIdx.x} * tile_channels + threadIdx.x, all = b.images * b.channels;
  const bool own = c < b.channels;
  for (std::int64_t n = blockIdx.y; n < b.images; n += gridDim.y) {
    const std::int64_t s = own ? b.statistic(n, c) : 0;
    const auto m = own ? static_cast<double>(mean[s]) : 0.0;
    const two_sums sum = tile_sums(b.points, own, part, [&](std::int64_t p) {
      const auto g = static_cast<double>(static_cast<W>(dy[d.at(n, c, p)]));
      return two_sums{g, g * (static_cast<double>(static_cast<W>(x[at.at(n, c, p)])) - m)};
    });
    if (!own || threadIdx.y != 0) continue;
    out[n * b.channels + c] = static_cast<W>(sum.a);
    out[all + n * b.channels + c] = static_cast<W>(sum.b * static_cast<double>(inverse[s]));
  }
}

// What a kernel that writes all elements needs of a channel: of the norm, and of its adjoint.
template <class T, class W>
struct norm_element {
  channel_block b;
  channel_strides x, y;
  const T *in, *weight, *bias;
  const W *mean, *inverse;
  T* out;
  struct parameters {
    W mean, slope, shift;
  };
  __device__ parameters of(std::int64_t n, std::int64_t c) const {
    const std::int64_t s = b.statistic(n, c);
    return {mean[s], inverse[s] * static_cast<W>(weight[c]), static_cast<W>(bias[c])};
  }
  __device__ void put(const parameters& q, std::int64_t n, std::int64_t c, std::int64_t p) const {
    out[y.at(n, c, p)] = static_cast<T>((static_cast<W>(in[x.at(n, c, p)]) - q.mean) * q.slope + q.shift);
  }
};
template <class T, class W>
struct norm_dx_element {
  channel_block b;
  channel_strides d, x, y;
  const T *dy, *in, *weight;
  const W *mean, *inverse, *sums;
  T* out;
  struct parameters {
    W mean, slope, constant, factor;
  };
  __device__ parameters of(std::int64_t n, std::int64_t c) const {
    const auto g = host::norm_gradient_of<host::math<W>, double>(b, n, c, mean, inverse, weight, sums);
    return {static_cast<W>(g.mean), static_cast<W>(g.slope), static_cast<W>(g.constant), static_cast<W>(g.factor)};
  }
  __device__ void put(const parameters& q, std::int64_t n, std::int64_t c, std::int64_t p) const {
    out[y.at(n, c, p)] = static_cast<T>(static_cast<W>(dy[d.at(n, c, p)]) * q.slope - q.constant -
                                        (static_cast<W>(in[x.at(n, c, p)]) - q.mean) * q.factor);
  }
};
// A warp for each plane.
template <class Element>
__global__ void __launch_bounds__(256) put_planes(const __grid_constant__ Element e) {
  const std::int64_t warps = std::int64_t{gridDim.x} * 8, all = e.b.images * e.b.channels;
  for (std::int64_t plane = std::int64_t{blockIdx.x} * 8 + threadIdx.x / 32; plane < all; plane += warps) {
    const std::int64_t n = plane / e.b.channels, c = plane % e.b.channels;
    const auto q = e.of(n, c);
    for (std::int64_t p = threadIdx.x % 32; p < e.b.points; p += 32) e.put(q, n, c, p);
  }
}
// A thread for a channel of every eighth pixel of a chunk.
template <class Element>
__global__ void __launch_bounds__(256) put_tiles(const __grid_constant__ Element e, std::int64_t length) {
  const std::int64_t c = std::int64_t{blockIdx.x} * tile_channels + threadIdx.x;
  if (c >= e.b.channels) return;
  const std::int64_t begin = std::int64_t{blockIdx.z} * length,
                     end = begin + length < e.b.points ? begin + length : e.b.points;
  for (std::int64_t n = blockIdx.y; n < e.b.images; n += gridDim.y) {
    const auto q = e.of(n, c);
    for (std::int64_t p = begin + threadIdx.y; p < end; p += 8) e.put(q, n, c, p);
  }
}

inline unsigned at_most(std::int64_t n, std::int64_t most) { return static_cast<unsigned>(n < most ? n : most); }
inline dim3 tiles_of(const channel_block& b, std::int64_t chunks = 1) {
  return {static_cast<unsigned>((b.channels + tile_channels - 1) / tile_channels), at_most(b.images, 65535),
          at_most(chunks, 65535)};
}
template <class Element>
void put_all(const Element& e, bool in_channels, cudaStream_t stream) {
  if (e.b.images * e.b.channels * e.b.points == 0) return;
  if (in_channels) {
    constexpr std::int64_t least = 256;
    const std::int64_t chunks = (e.b.points + least - 1) / least, grid = chunks < 65535 ? chunks : 65535;
    put_tiles<<<tiles_of(e.b, grid), dim3(tile_channels, 8), 0, stream>>>(e, (e.b.points + grid - 1) / grid);
  } else {
    put_planes<<<at_most((e.b.images * e.b.channels + 7) / 8, 65536), 256, 0, stream>>>(e);
  }
}
// launch(team's size, blocks) for `sets` sets of n elements.
template <class Launch>
void by_teams(std::int64_t sets, std::int64_t n, const Launch& launch) {
  if (n <= short_row)
    launch(std::integral_constant<int, warp_threads>{}, at_most((sets + rows_in_block - 1) / rows_in_block, 65536));
  else launch(std::integral_constant<int, block_threads>{}, at_most(sets, 65536));
}

template <class W, class T>
const W* wide(const T* p) {
  return reinterpret_cast<const W*>(p);
}
template <class W, class T>
W* wide(T* p) {
  return reinterpret_cast<W*>(p);
}

}  // namespace channel_norms

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace cuda

namespace cuda {
inline namespace SHARDWISE_DEVICE_BUILD {
namespace channel_norms {
// `about`: of operand 1, or null.
template <class W, class T>
void launch_moments(const kernel_arguments<T>& k, const W* about, cudaStream_t stream) {
  const channel_block b = host::channel_block_of(k, 0);
  const channel_strides at = host::channel_strides_of(k, 0);
  W* const out = wide<W>(k.out());
  if (k.size() == 0) return;
  if (at.in_channels() && b.each == 1) {
    moments_of_tiles<T, W><<<tiles_of(b), dim3(tile_channels, tile_rows), 0, stream>>>(b, at, k.in(0), about, out);
  } else {
    by_teams(b.images * b.groups(), b.points * b.each, [&](auto threads, unsigned blocks) {
      constexpr int size = decltype(threads)::value;
      moments_of_sets<size, T, W>
          <<<blocks, size == warp_threads ? size * rows_in_block : size, 0, stream>>>(b, at, k.in(0), about, out);
    });
  }
}
}  // namespace channel_norms
}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace cuda

template <>
struct device_kernel<custom::channel_moments> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    cuda::channel_norms::launch_moments<computed_in<T>>(k, nullptr, stream);
  }
};
template <>
struct device_kernel<custom::channel_moments_about> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    cuda::channel_norms::launch_moments(k, cuda::channel_norms::wide<computed_in<T>>(k.in(1)), stream);
  }
};
template <>
struct device_kernel<custom::channel_norm> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    namespace norms = cuda::channel_norms;
    using W = computed_in<T>;
    const norms::norm_element<T, W> e{host::channel_block_of(k, 0),
                                      host::channel_strides_of(k, 0),
                                      host::channel_strides_of_result(k),
                                      k.in(0),
                                      k.in(3),
                                      k.in(4),
                                      norms::wide<W>(k.in(1)),
                                      norms::wide<W>(k.in(2)),
                                      k.out()};
    norms::put_all(e, e.x.in_channels() && e.y.in_channels(), stream);
  }
};
template <>
struct device_kernel<custom::channel_norm_sums> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    namespace norms = cuda::channel_norms;
    using W = computed_in<T>;
    const host::channel_block b = host::channel_block_of(k, 1);
    const host::channel_strides d = host::channel_strides_of(k, 0), at = host::channel_strides_of(k, 1);
    const W *const mean = norms::wide<W>(k.in(2)), *const inverse = norms::wide<W>(k.in(3));
    W* const out = norms::wide<W>(k.out());
    if (k.size() == 0) return;
    if (at.in_channels() && d.in_channels()) {
      norms::sums_of_tiles<T, W><<<norms::tiles_of(b), dim3(norms::tile_channels, norms::tile_rows), 0, stream>>>(
          b, d, at, k.in(0), k.in(1), mean, inverse, out);
    } else {
      norms::by_teams(b.images * b.channels, b.points, [&](auto threads, unsigned blocks) {
        constexpr int size = decltype(threads)::value;
        norms::sums_of_planes<size, T, W>
            <<<blocks, size == cuda::warp_threads ? size * cuda::rows_in_block : size, 0, stream>>>(
                b, d, at, k.in(0), k.in(1), mean, inverse, out);
      });
    }
  }
};
template <>
struct device_kernel<custom::channel_norm_dx> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    namespace norms = cuda::channel_norms;
    using W = computed_in<T>;
    const norms::norm_dx_element<T, W> e{host::channel_block_of(k, 1),
                                         host::channel_strides_of(k, 0),
                                         host::channel_strides_of(k, 1),
                                         host::channel_strides_of_result(k),
                                         k.in(0),
                                         k.in(1),
                                         k.in(4),
                                         norms::wide<W>(k.in(2)),
                                         norms::wide<W>(k.in(3)),
                                         norms::wide<W>(k.in(5)),
                                         k.out()};
    norms::put_all(e, e.d.in_channels() && e.x.in_channels() && e.y.in_channels(), stream);
  }
};

namespace cuda {
inline namespace SHARDWISE_DEVICE_BUILD {
namespace channel_norms {
template <class T>
__global__ void __launch_bounds__(256) unbiased(const T* x, T* y, std::int64_t size, computed_in<T> factor) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * 256 + threadIdx.x; i < size; i += std::int64_t{gridDim.x} * 256)
    y[i] = static_cast<T>(static_cast<computed_in<T>>(x[i]) * factor);
}
}  // namespace channel_norms
}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace cuda

template <>
struct device_kernel<custom::unbiased_variance> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    const auto n = static_cast<double>(host::elements_of_variance(k));
    if (k.size() > 0)
      cuda::channel_norms::unbiased<T><<<cuda::channel_norms::at_most((k.size() + 255) / 256, 1024), 256, 0, stream>>>(
          k.in(0), k.out(), k.size(), static_cast<computed_in<T>>(n / (n - 1)));
  }
};

}  // namespace shardwise::inline v0_1

SHARDWISE_DEVICE_KERNELS(shardwise::custom::channel_moments, shardwise::custom::channel_moments_about,
                         shardwise::custom::channel_norm, shardwise::custom::channel_norm_sums,
                         shardwise::custom::channel_norm_dx, shardwise::custom::unbiased_variance)
