// SPDX-License-Identifier: Apache-2.0
// Elements read and written by index along one dim on a device, and the adjoints; one-hot rows. Sums and writes are in the host's
// order; sums of two-byte elements are floats in scratch and rounded when they are whole.
#pragma once

#include <shardwise/runtime/cuda/device/index_guard.cuh>
#include <shardwise/runtime/cuda/device/convert.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// Strides of the index of a call along dim d of its other operands: one of rank 1 lies along `dim` alone.
inline std::int64_t index_stride(const call& c, int dim, int d) {
  const layout& index = c.l[1];
  return index.rank == c.l[0].rank ? index.str[d] : d == dim ? index.str[0] : 0;
}

// at: result, what is read (its element 0 along the dim), index; a thread for each element
template <class T>
__global__ void __launch_bounds__(256)
    gather_kernel(const __grid_constant__ strided<3> w, const T* x, const std::int32_t* index, T* o, std::int64_t limit,
                  std::int64_t step, const index_guard guard) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t at[3];
    w.offsets(i, at);
    const std::int64_t id = guard.checked(index[at[2]], limit);
    o[at[0]] = limit > 0 ? x[at[1] + id * step] : T(0);
  }
}

template <class T>
void gather_elements(op_code op, const call& c, context& ctx) {
  const layout &x = c.l[0], &o = c.l[result];
  const int dim = static_cast<int>(attributes_of<index_attributes>(c.a).dim);
  walk<3> w;
  for (int d = 0; d < o.rank; ++d) {
    const std::int64_t s[3] = {o.str[d], d == dim ? 0 : x.str[d], index_stride(c, dim, d)};
    w.push(o.ext[d], s);
  }
  w.merge();
  each_piece(w, [&](const walk<3>& piece, const std::int64_t* base) {
    const strided<3> s = make_strided(piece, base);
    launch(op, &gather_kernel<T>, grid_for((std::int64_t{s.count} + 255) / 256, ctx), 256, ctx.stream, s,
           static_cast<const T*>(c.p[0]), static_cast<const std::int32_t*>(c.p[1]), as<T>(c.p[result]), x.ext[dim],
           x.str[dim], index_guard{ctx.fault, c.node});
  });
}

// A thread owns a line and goes along the index in its order, so no addition or write depends on the schedule. Price: the
// lines are all the parallelism there is.
struct line_steps {
  std::int64_t count, limit, src, index, out;
};

template <class T, class Sum>
__global__ void __launch_bounds__(128)
    add_lines_kernel(const __grid_constant__ strided<3> w, const line_steps s, const T* src, const std::int32_t* index,
                     Sum* o, const index_guard guard) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t at[3];
    w.offsets(i, at);
    for (std::int64_t k = 0; k < s.count && s.limit > 0; ++k)
      o[at[2] + guard.checked(index[at[1] + k * s.index], s.limit) * s.out] += static_cast<Sum>(src[at[0] + k * s.src]);
  }
}

template <class T>
__global__ void __launch_bounds__(128)
    write_lines_kernel(const __grid_constant__ strided<3> w, const line_steps s, const T* src, T number,
                       const std::int32_t* index, T* o, const index_guard guard) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t at[3];
    w.offsets(i, at);
    for (std::int64_t k = 0; k < s.count && s.limit > 0; ++k)
      o[at[2] + guard.checked(index[at[1] + k * s.index], s.limit) * s.out] = src ? src[at[0] + k * s.src] : number;
  }
}

// `last` has `limit` places for each line; at[3] is the line's number.
template <class T>
__global__ void __launch_bounds__(128)
    last_lines_kernel(const __grid_constant__ strided<4> w, const line_steps s, const T* dy, const std::int32_t* index, T* o,
                      std::int32_t* last, const index_guard guard) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t at[4];
    w.offsets(i, at);
    std::int32_t* const own = last + at[3] * s.limit;
    if (s.limit == 0) continue;
    for (std::int64_t k = 0; k < s.count; ++k)
      own[guard.checked(index[at[1] + k * s.index], s.limit)] = static_cast<std::int32_t>(k);
    for (std::int64_t k = 0; k < s.count; ++k) {
      const std::int64_t id = guard.checked(index[at[1] + k * s.index], s.limit);
      o[at[2] + k * s.out] = own[id] == k ? dy[at[0] + id * s.src] : T(0);
    }
  }
}

// Walk over lines of operand 0 or `first`, the index and the result.
inline walk<3> line_walk(const call& c, int dim, const layout& first) {
  walk<3> w;
  for (int d = 0; d < first.rank; ++d) {
    if (d == dim) continue;
    const std::int64_t s[3] = {first.str[d], index_stride(c, dim, d), c.l[result].str[d]};
    w.push(first.ext[d], s);
  }
  w.merge();
  return w;
}

template <class T>
void add_by_index(op_code op, const call& c, context& ctx) {
  const int dim = static_cast<int>(attributes_of<index_attributes>(c.a).dim);
  const layout &src = c.l[0], &o = c.l[result];
  using Sum = computed_in<T>;
  constexpr bool apart = !std::is_same_v<Sum, T>;
  call sums = c;
  if (apart) sums.p[result] = c.workspace;
  zero<Sum>(sums, ctx);
  const line_steps steps{src.ext[dim], o.ext[dim], src.str[dim], index_stride(c, dim, dim), o.str[dim]};
  each_piece(line_walk(c, dim, src), [&](const walk<3>& piece, const std::int64_t* base) {
    const strided<3> s = make_strided(piece, base);
    launch(op, &add_lines_kernel<T, Sum>, grid_for((std::int64_t{s.count} + 127) / 128, ctx), 128, ctx.stream, s, steps,
           static_cast<const T*>(c.p[0]), static_cast<const std::int32_t*>(c.p[1]), as<Sum>(sums.p[result]),
           index_guard{ctx.fault, c.node});
  });
  if constexpr (apart) convert(op, o.numel(), as<T>(c.p[result]), as<const Sum>(c.workspace), ctx);
}

}  // namespace detail

template <>
struct kernel<op_code::gather> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::gather_elements<T>(op_code::gather, c, ctx);
  }
};
template <>
struct kernel<op_code::index_select> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::gather_elements<T>(op_code::index_select, c, ctx);
  }
};
template <>
struct kernel<op_code::scatter_add> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::add_by_index<T>(op_code::scatter_add, c, ctx);
  }
};
template <>
struct kernel<op_code::index_add> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::add_by_index<T>(op_code::index_add, c, ctx);
  }
};

template <>
struct kernel<op_code::scatter> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const int dim = static_cast<int>(attributes_of<scatter_attributes>(c.a).dim);
    const layout &x = c.l[0], &o = c.l[result];
    const bool number = c.inputs < 3;
    const layout& src = number ? c.l[1] : c.l[2];
    const std::int64_t zeros[max_rank]{};
    copy_block<T>(op_code::scatter, as<T>(c.p[0]), x, zeros, as<T>(c.p[result]), o, zeros, o.ext, ctx);
    const detail::line_steps steps{src.ext[dim], o.ext[dim], src.str[dim], c.l[1].str[dim], o.str[dim]};
    each_piece(detail::line_walk(c, dim, src), [&](const walk<3>& piece, const std::int64_t* base) {
      const strided<3> s = make_strided(piece, base);
      launch(op_code::scatter, &detail::write_lines_kernel<T>, grid_for((std::int64_t{s.count} + 127) / 128, ctx), 128,
             ctx.stream, s, steps, number ? nullptr : static_cast<const T*>(c.p[2]), static_cast<T>(c.f),
             static_cast<const std::int32_t*>(c.p[1]), as<T>(c.p[result]), index_guard{ctx.fault, c.node});
    });
  }
};

template <>
struct kernel<op_code::scatter_dsrc> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const int dim = static_cast<int>(attributes_of<index_attributes>(c.a).dim);
    const layout &dy = c.l[0], &o = c.l[result];
    walk<4> w;
    std::int64_t number[max_rank]{}, below = 1;
    for (int d = dy.rank - 1; d >= 0; --d) {
      if (d == dim) continue;
      number[d] = below;
      below *= dy.ext[d];
    }
    for (int d = 0; d < dy.rank; ++d) {
      if (d == dim) continue;
      const std::int64_t s[4] = {dy.str[d], c.l[1].str[d], o.str[d], number[d]};
      w.push(dy.ext[d], s);
    }
    w.merge();
    const detail::line_steps steps{o.ext[dim], dy.ext[dim], dy.str[dim], c.l[1].str[dim], o.str[dim]};
    each_piece(w, [&](const walk<4>& piece, const std::int64_t* base) {
      const strided<4> s = make_strided(piece, base);
      launch(op_code::scatter_dsrc, &detail::last_lines_kernel<T>, grid_for((std::int64_t{s.count} + 127) / 128, ctx), 128,
             ctx.stream, s, steps, static_cast<const T*>(c.p[0]), static_cast<const std::int32_t*>(c.p[1]),
             as<T>(c.p[result]), static_cast<std::int32_t*>(c.workspace), index_guard{ctx.fault, c.node});
    });
  }
};

namespace detail {

// at: result, index, and, which is no memory, the class
template <class T>
__global__ void __launch_bounds__(256) one_hot_kernel(const __grid_constant__ strided<3> w, const std::int32_t* index, T* o,
                                                      std::int64_t classes, const index_guard guard) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t at[3];
    w.offsets(i, at);
    o[at[0]] = guard.checked(index[at[1]], classes) == at[2] ? T(1) : T(0);
  }
}

}  // namespace detail

template <>
struct kernel<op_code::one_hot> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout &index = c.l[0], &o = c.l[result];
    walk<3> w;
    for (int d = 0; d < o.rank; ++d) {
      const bool class_dim = d == o.rank - 1;
      const std::int64_t s[3] = {o.str[d], class_dim ? 0 : index.str[d], class_dim ? 1 : 0};
      w.push(o.ext[d], s);
    }
    w.merge();
    each_piece(w, [&](const walk<3>& piece, const std::int64_t* base) {
      const strided<3> s = make_strided(piece, base);
      launch(op_code::one_hot, &detail::one_hot_kernel<T>, grid_for((std::int64_t{s.count} + 255) / 256, ctx), 256,
             ctx.stream, s, static_cast<const std::int32_t*>(c.p[0]), as<T>(c.p[result]),
             attributes_of<one_hot_attributes>(c.a).classes, index_guard{ctx.fault, c.node});
    });
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
