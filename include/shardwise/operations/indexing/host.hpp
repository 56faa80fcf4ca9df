// SPDX-License-Identifier: Apache-2.0
// Elements read and written by index along one dim on the host, and the adjoints; one-hot rows.
#pragma once

#include <shardwise/runtime/host/kernel.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

// The lines along one dim of K operands whose other extents are equal: offsets of a line's first element in each.
// Strides of an index of rank 1 are 0 but along the dim.
template <int K, class F>
constexpr void each_line(const layout* const (&x)[K], int dim, F&& f) {
  walk<K> w;
  for (int d = 0; d < x[0]->rank; ++d) {
    if (d == dim) continue;
    std::int64_t s[K]{};
    for (int k = 0; k < K; ++k) s[k] = x[k]->rank == x[0]->rank ? x[k]->str[d] : 0;
    w.push(x[0]->ext[d], s);
  }
  each_offset(w, f);
}

struct line_steps {
  std::int64_t count, limit, x, index, out;
};
// `places` are what an index may name: along the dim of the operand that is read, or of the result that is written.
constexpr line_steps line_steps_of(const call& c, int dim, const layout& places) {
  const layout& index = c.l[1];
  const int along = index.rank == c.l[0].rank ? dim : 0;
  return {index.ext[along], places.ext[dim], c.l[0].str[dim], index.str[along], c.l[result].str[dim]};
}

constexpr std::int64_t checked_index(const char* what, std::int64_t id, std::int64_t limit) {
  if (id < 0 || id >= limit) refuse_index(what, id, limit);
  return id;
}

template <class T>
constexpr void gather_lines(const char* what, const call& c, const operands<T>& q) {
  const int dim = static_cast<int>(attributes_of<index_attributes>(c.a).dim);
  const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
  const line_steps s = line_steps_of(c, dim, c.l[0]);
  each_line<3>(all, dim, [&](const std::int64_t* at) {
    for (std::int64_t i = 0; i < s.count; ++i)
      q.p[result][at[2] + i * s.out] = q.p[0][at[0] + checked_index(what, q.index[at[1] + i * s.index], s.limit) * s.x];
  });
}

// In the order of the index, so that sums are the same every time.
template <class T>
constexpr void add_lines(const char* what, const call& c, const operands<T>& q) {
  const int dim = static_cast<int>(attributes_of<index_attributes>(c.a).dim);
  const std::int64_t n = c.l[result].numel();
  for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = T(0);
  const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
  const line_steps s = line_steps_of(c, dim, c.l[result]);
  each_line<3>(all, dim, [&](const std::int64_t* at) {
    for (std::int64_t i = 0; i < s.count; ++i) {
      T& to = q.p[result][at[2] + checked_index(what, q.index[at[1] + i * s.index], s.limit) * s.out];
      to = to + q.p[0][at[0] + i * s.x];
    }
  });
}

}  // namespace detail

template <>
struct kernel<op_code::gather> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::gather_lines<T>("gather", c, q);
  }
};
template <>
struct kernel<op_code::index_select> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::gather_lines<T>("index_select", c, q);
  }
};
template <>
struct kernel<op_code::scatter_add> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::add_lines<T>("scatter_add", c, q);
  }
};
template <>
struct kernel<op_code::index_add> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::add_lines<T>("index_add", c, q);
  }
};

// Operand 0 with elements of operand 2, or the number f, written over it in the order of the index.
template <>
struct kernel<op_code::scatter> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const int dim = static_cast<int>(attributes_of<scatter_attributes>(c.a).dim);
    const bool number = c.inputs < 3;
    const T value = math<T>::from(c.f);
    const layout* const all[4] = {&c.l[0], &c.l[1], number ? &c.l[1] : &c.l[2], &c.l[result]};
    const detail::line_steps s = detail::line_steps_of(c, dim, c.l[result]);
    const std::int64_t places = c.l[result].ext[dim], step = all[2]->str[dim];
    detail::each_line<4>(all, dim, [&](const std::int64_t* at) {
      T* const to = q.p[result] + at[3];
      for (std::int64_t i = 0; i < places; ++i) to[i * s.out] = q.p[0][at[0] + i * s.x];
      for (std::int64_t i = 0; i < s.count; ++i)
        to[detail::checked_index("scatter", q.index[at[1] + i * s.index], s.limit) * s.out] =
            number ? value : q.p[2][at[2] + i * step];
    });
  }
};

// Adjoint of scatter for what is written: an element that a later one of its line overwrote has no share of the result.
// Scratch: the last writer of each place of a line; a call that has none, as in constants, makes its own.
template <>
struct kernel<op_code::scatter_dsrc> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const int dim = static_cast<int>(attributes_of<index_attributes>(c.a).dim);
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const detail::line_steps s = detail::line_steps_of(c, dim, c.l[0]);
    std::int32_t* last = nullptr;
    if (!c.workspace) last = new std::int32_t[static_cast<unsigned long>(s.limit + 1)];
    else last = static_cast<std::int32_t*>(c.workspace);
    detail::each_line<3>(all, dim, [&](const std::int64_t* at) {
      for (std::int64_t i = 0; i < s.count; ++i)
        last[detail::checked_index("scatter", q.index[at[1] + i * s.index], s.limit)] = static_cast<std::int32_t>(i);
      for (std::int64_t i = 0; i < s.count; ++i) {
        const std::int64_t id = q.index[at[1] + i * s.index];
        q.p[result][at[2] + i * s.out] = last[id] == i ? q.p[0][at[0] + id * s.x] : T(0);
      }
    });
    if (!c.workspace) delete[] last;
  }
};

template <>
struct kernel<op_code::one_hot> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const std::int64_t n = c.l[result].numel(), classes = attributes_of<one_hot_attributes>(c.a).classes;
    for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = T(0);
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    each_row<2>(both, c.l[0].rank, [&](const std::int64_t* at) {
      q.p[result][at[1] + detail::checked_index("one_hot", q.index[at[0]], classes)] = T(1);
    });
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
