// SPDX-License-Identifier: Apache-2.0
// Scratch that kernels want beside operands and results: how a record says it, for which blocks it is counted, how it is aligned.
#pragma once

#include <type_traits>

#include <shardwise/propagation/op.hpp>
#include <shardwise/vocabulary/spec.hpp>

namespace shardwise::inline v0_1 {

// Scratch that a kernel wants beside its operands and results: none, or bytes as a function of (attributes, operands, how many,
// result), counted on the ranks at coordinate 0, whose blocks are largest. Law: it grows with every extent, so that what
// suffices there suffices for every rank, and for every size below a bound. The arena holds the most that any call wants.
struct no_scratch_t {};
inline constexpr no_scratch_t no_scratch;

class scratch_rule {
  using bytes_t = std::int64_t (*)(const op_attr&, const spec* const*, int, const spec&);

 public:
  constexpr scratch_rule(no_scratch_t) : bytes_(&nothing), any_(false) {}  // not explicit: a record states either
  template <class F>
    requires std::is_convertible_v<F, bytes_t>
  constexpr scratch_rule(F f) : bytes_(f), any_(true) {}

  constexpr explicit operator bool() const { return any_; }
  constexpr std::int64_t operator()(const op_attr& a, const spec* const* in, int n, const spec& out) const {
    return any_ ? bytes_(a, in, n, out) : 0;
  }

 private:
  static constexpr std::int64_t nothing(const op_attr&, const spec* const*, int, const spec&) { return 0; }

  bytes_t bytes_;
  bool any_;
};

namespace device_scratch {

inline constexpr std::int64_t alignment = 256;  // of every part

constexpr std::int64_t align(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace device_scratch

namespace operations {

// Extents of the largest block of a tensor.
struct largest_block {
  std::int64_t extent[max_rank]{};

  constexpr explicit largest_block(const spec& s) {
    for (int d = 0; d < s.rank; ++d) extent[d] = largest_extent(s, d);
  }
};

}  // namespace operations

// Host kernels of elements of two bytes run on floats (runtime/host/widened.hpp): a block's copy, as many bytes as of the largest.
struct widened_block {
  static constexpr std::int64_t align(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
  static constexpr std::int64_t bytes(const spec& s) {
    if (!is_low_precision(s.type)) return 0;
    std::int64_t n = 4;
    const operations::largest_block b(s);
    for (int d = 0; d < s.rank; ++d) n *= b.extent[d];
    return align(n);
  }
  static constexpr std::int64_t bytes(const spec* const* in, int n, const spec& out) {
    std::int64_t all = bytes(out);
    for (int k = 0; k < n; ++k) all += bytes(*in[k]);
    return all;
  }
};

}  // namespace shardwise::inline v0_1
