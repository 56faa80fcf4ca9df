// SPDX-License-Identifier: Apache-2.0
// Sums of squares of many tensors in one launch, as a gradient's norm has them: each is cut into chunks, a block each, and the last
// block adds the chunks in their order, then to each sum the sums that it is added to.
#pragma once

#include <cstddef>
#include <cstdint>

#include <shardwise/operations/reduction/scratch.hpp>
#include <shardwise/runtime/cuda/device/arrival.cuh>
#include <shardwise/runtime/cuda/device/row_packs.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

using device_scratch::squares_at_once;
inline constexpr std::int64_t square_chunk = std::int64_t{1}
                                             << 15;  // elements of a block, more of what has too many of them

template <class T>
struct square_item {
  using sum_type = computed_in<T>;
  const T* x;  // null: summed already, aside
  std::int64_t n, length;
  sum_type* out;
  const sum_type* add[max_fused_inputs - 1];  // added to the sum, in this order; null: none
  std::int16_t of[max_fused_inputs - 1];      // the item whose sum that is; -1: it lies at `add`
  std::int32_t first_part, parts;
};
template <class T>
struct square_list {
  square_item<T> item[squares_at_once];
  int count;
};

// Of elements begin to end, by one thread's share.
template <class T>
__device__ double squares_of(const T* x, std::int64_t begin, std::int64_t end, int lane) {
  using S = added_in<T>;
  constexpr int V = vector_of<T>;
  S total = 0;
  const auto add = [&](T v) {
    const S s = static_cast<S>(static_cast<computed_in<T>>(v));
    total += s * s;
  };
  const bool whole = reinterpret_cast<std::uintptr_t>(x + begin) % 16 == 0;
  const std::int64_t packed = whole ? begin + (end - begin) / V * V : begin;
#pragma unroll 4
  for (std::int64_t i = begin + lane * V; i < packed; i += block_threads * V) {
    const pack<T, V> p = *reinterpret_cast<const pack<T, V>*>(x + i);
#pragma unroll
    for (int k = 0; k < V; ++k) add(p.v[k]);
  }
  for (std::int64_t i = packed + lane; i < end; i += block_threads) add(x[i]);
  return static_cast<double>(total);
}

// An item may add what an item before it has become, and a result may lie where a value was that only items before it read: so one
// thread adds, one item after the other.
template <class T>
__global__ void __launch_bounds__(block_threads)
    squares_kernel(const __grid_constant__ square_list<T> list, const computed_in<T>* aside, double* parts,
                   std::uint32_t* ticket) {
  using C = computed_in<T>;
  __shared__ C sums[squares_at_once];
  const team<block_threads> t;
  const int block = static_cast<int>(blockIdx.x);
  int k = 0;  // the last item that begins no later than this block
  for (int end = list.count; end - k > 1;) {
    const int middle = (k + end) / 2;
    if (block >= list.item[middle].first_part) k = middle;
    else end = middle;
  }
  const square_item<T>& s = list.item[k];
  if (s.x) {
    const std::int64_t begin = (block - s.first_part) * s.length, end = begin + s.length < s.n ? begin + s.length : s.n;
    const double total = t.sum(squares_of(s.x, begin, end, t.lane()));
    if (t.lane() == 0) parts[block] = total;
  }
  if (!last_to_arrive(ticket, gridDim.x)) return;
  for (int i = t.lane(); i < list.count; i += block_threads) {
    const square_item<T>& item = list.item[i];
    double total = 0;
    for (int p = 0; p < item.parts; ++p) total += arrived(parts + item.first_part + p);
    sums[i] = item.x ? static_cast<C>(total) : arrived(aside + i);
  }
  __syncthreads();
  if (t.lane() != 0) return;
  for (int i = 0; i < list.count; ++i) {
    const square_item<T>& item = list.item[i];
    C total = sums[i];
    for (int j = 0; j < max_fused_inputs - 1; ++j)
      if (item.add[j]) total = total + (item.of[j] >= 0 ? sums[item.of[j]] : *item.add[j]);
    *item.out = sums[i] = total;
  }
}

// The list while it is made.
template <class T>
class squares {
  using C = computed_in<T>;

 public:
  squares(C* aside, double* parts) : aside_(aside), parts_(parts) { list_.count = 0; }

  // Where the sum of the next item goes that is computed elsewhere.
  C* aside() const { return aside_ + list_.count; }
  // Launches what there is if an item of n elements would not fit.
  void make_room(std::int64_t n, context& ctx) {
    if (list_.count == squares_at_once || blocks_ + parts_of(n) > device_scratch::square_parts) flush(ctx);
  }
  void append(const T* x, std::int64_t n, C* out, const C* const (&add)[max_fused_inputs - 1]) {
    square_item<T>& item = list_.item[list_.count];
    const std::int64_t parts = parts_of(x ? n : 0);
    item = {x,  n,  ((n + parts - 1) / parts + 15) / 16 * 16, out,
            {}, {}, static_cast<std::int32_t>(blocks_),       static_cast<std::int32_t>(parts)};
    for (int j = 0; j < max_fused_inputs - 1; ++j) {
      item.add[j] = add[j];
      item.of[j] = -1;
      for (int i = 0; add[j] && i < list_.count; ++i)
        if (list_.item[i].out == add[j]) item.of[j] = static_cast<std::int16_t>(i);  // the last that writes there
    }
    blocks_ += parts;
    ++list_.count;
  }
  void flush(context& ctx) {
    if (list_.count > 0)
      launch(op_code::sumsq, &squares_kernel<T>, static_cast<unsigned>(blocks_), block_threads, ctx.stream, list_, aside_,
             parts_, ctx.tickets);
    list_.count = 0;
    blocks_ = 0;
  }

 private:
  // At least one, and at most half of those of a launch.
  static std::int64_t parts_of(std::int64_t n) {
    const std::int64_t parts = (n + square_chunk - 1) / square_chunk, most = device_scratch::square_parts / 2;
    return parts < 1 ? 1 : parts < most ? parts : most;
  }

  square_list<T> list_;
  C* aside_;
  double* parts_;
  std::int64_t blocks_ = 0;
};

}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
