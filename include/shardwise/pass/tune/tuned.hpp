// SPDX-License-Identifier: Apache-2.0
// tuned: the pipeline of fusions for a device, as its table of measured times decides.
#pragma once

#include <shardwise/pass/fuse/cross_entropy.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/join_casts.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/tune/h100.hpp>
#include <shardwise/pass/tune/h200.hpp>
#include <shardwise/pass/tune/where_faster.hpp>

namespace shardwise::inline v0_1 {

// merge_products for those products alone that the device's table says gain by it: sw::merge_products_where_faster<sw::h200>.
template <class Device>
struct merge_products_where_faster : passes::merging<passes::where_faster<Device>> {
  using key = merge_products;
  static constexpr bool tf32 = Device::tf32;  // a backend that does otherwise is refused
};

// join_norm_adjoints for those norms alone that gain by it.
template <class Device>
struct join_norm_adjoints_where_faster : passes::joining_norm_adjoints<passes::where_faster<Device>> {
  using key = join_norm_adjoints;
};

// join_cross_entropy for those rows of logits alone that gain by it.
template <class Device>
struct join_cross_entropy_where_faster : passes::joining_cross_entropy<passes::where_faster<Device>> {
  using key = join_cross_entropy;
};

// A device is a table of times: h100, h200, h100_tf32 and h200_tf32 (for cuda_backend_tf32), or your own, which
// bench/tune/tune.cu writes. Everything is decided while the program is compiled. Passes that pack gradients or gather parameters
// stand before these, those that order collectives behind: pass them as `Behind`.
template <class Device, class... Behind>
using tuned = pipeline<merge_products_where_faster<Device>, fuse_kernels, join_norm_adjoints_where_faster<Device>,
                       join_cross_entropy_where_faster<Device>, join_casts, Behind...>;

}  // namespace shardwise::inline v0_1
