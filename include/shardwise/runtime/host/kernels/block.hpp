// SPDX-License-Identifier: Apache-2.0
// Blocks moved within a rank: copies, pads, the redistributions that need no peer.
#pragma once

#include <shardwise/support/config.hpp>
#include <shardwise/runtime/host/kernels/kernel.hpp>

namespace shardwise::host {
inline namespace SHARDWISE_HOST_BUILD {

// Copies the block of `x` that begins at x_begin into that of `o` beginning at o_begin, `ext` elements a dim.
template <class T>
constexpr void copy_block(const T* x, const layout& lx, const std::int64_t* x_begin, T* o, const layout& lo,
                          const std::int64_t* o_begin, const std::int64_t* ext) {
  walk<2> w;
  for (int d = 0; d < lx.rank; ++d) {
    const std::int64_t s[2] = {lo.str[d], lx.str[d]};
    w.push(ext[d], s);
    x += x_begin[d] * lx.str[d];
    o += o_begin[d] * lo.str[d];
  }
  w.merge();
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    if (s[0] == 1 && s[1] == 1) {
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) o[off[0] + i] = x[off[1] + i];
    } else {
      for (std::int64_t i = 0; i < n; ++i) o[off[0] + i * s[0]] = x[off[1] + i * s[1]];
    }
  });
}

// Adjoint of slice: the operand in a frame of zeros.
template <>
struct kernel<op_code::pad> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const std::int64_t n = c.l[result].numel();
    for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = T(0);
    std::int64_t zero[max_rank]{}, begin[max_rank]{};
    begin[c.a.v[0]] = c.a.v[1];
    copy_block<T>(q.p[0], c.l[0], zero, q.p[result], c.l[result], begin, c.l[0].ext);
  }
};

// The second operand in its place within the first, which may be where the result is already.
template <>
struct kernel<op_code::slice_scatter> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    std::int64_t zero[max_rank]{}, begin[max_rank]{};
    begin[c.a.v[0]] = c.a.v[1];
    if (q.p[0] != q.p[result]) copy_block<T>(q.p[0], c.l[0], zero, q.p[result], c.l[result], zero, c.l[0].ext);
    copy_block<T>(q.p[1], c.l[1], zero, q.p[result], c.l[result], begin, c.l[1].ext);
  }
};

// The redistributions that need no peer; the others are the backend's collectives.
template <>
struct kernel<op_code::redistribute> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& x = c.l[0];
    const layout& o = c.l[result];
    const std::int64_t n = o.numel();
    std::int64_t zero[max_rank]{}, begin[max_rank]{};
    if (c.kind == transition::take_chunk) {
      const int d = c.to.dim;
      begin[d] = o.origin[d] - x.origin[d];
      copy_block<T>(q.p[0], x, begin, q.p[result], o, zero, o.ext);
    } else if (c.kind == transition::place_chunk) {
      const int d = c.from.dim;
      for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = T(0);
      begin[d] = x.origin[d] - o.origin[d];
      copy_block<T>(q.p[0], x, zero, q.p[result], o, begin, x.ext);
    } else if (c.coordinate == 0) {  // to_partial, or a copy
      copy_block<T>(q.p[0], x, zero, q.p[result], o, zero, o.ext);
    } else {
      for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = T(0);
    }
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::host
