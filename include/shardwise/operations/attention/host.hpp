// SPDX-License-Identifier: Apache-2.0
// Kernels of attention and its adjoint on the host: numbers in tiles, exact integers plainly.
#pragma once

#include <type_traits>

#include <shardwise/graph/functions/attention.hpp>
#include <shardwise/operations/attention/host_tiles.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

struct attention_kernel {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const attention_call<T> x = attention_call_of(k, operations::attention_inputs);
    if (!k.wanted(0)) return lse_alone(k, x);
    const attention_block<T> out(k.out(0), x.a, x.heads, x.queries, x.value_size);
    if constexpr (std::is_floating_point_v<T>) attend(x, out, k.out(1), k.scratch());
    else each_group(x, [&](std::int64_t b, std::int64_t h) { attend_group<T>(x, b, h, out, k.out(1)); });
  }

 private:
  // Somebody wants the statistics and not what they are of.
  template <class T>
  static constexpr void lse_alone(const kernel_arguments<T>& k, attention_call<T> x) {
    if (!k.wanted(1)) return;
    x.value_size = 0;
    each_group(x, [&](std::int64_t b, std::int64_t kh) {
      for (std::int64_t h = kh * x.group; h < (kh + 1) * x.group; ++h)
        for (std::int64_t i = 0; i < x.queries; ++i)
          attend_query<T>(x, b, h, i, static_cast<T*>(nullptr), k.out(1) + (b * x.heads + h) * x.queries + i);
    });
  }
};

struct attention_adjoint_kernel {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const attention_call<T> x = attention_call_of(k, operations::attention_adjoint_inputs);
    const attention_gradients<T> g(k, x);
    if constexpr (std::is_floating_point_v<T>) attend_back(x, g, k.scratch());
    else each_group(x, [&](std::int64_t b, std::int64_t h) { attend_group_back<T>(x, g, b, h); });
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

// Of (dout, out).
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_delta> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    using acc = typename host::math<T>::accumulator;
    const auto a = k.template attributes<attention_attributes>();
    const std::int64_t heads = k.extent(0, a.heads()), times = k.extent(0, a.time()), n = k.extent(0, 3);
    const host::attention_block<const T> x(k.in(0), a, heads, times, n), y(k.in(1), a, heads, times, n);
    const auto rows = [&](auto one) {
      const interval of = k.share(k.extent(0, 0) * heads);
      T* to = k.out() + of.begin * times;
      for (std::int64_t bh = of.begin; bh < of.begin + of.size; ++bh)
        for (std::int64_t t = 0; t < times; ++t) {
          const T *const p = x.at(bh / heads, bh % heads, t), *const q = y.at(bh / heads, bh % heads, t);
          *to++ = static_cast<T>(host::sum_terms<T>(
              n, [=](std::int64_t i) { return static_cast<acc>(p[i * one]) * static_cast<acc>(q[i * one]); }));
        }
    };
    host::by_strides<T>(rows, std::int64_t{1});
  }
};

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention> : host::attention_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_biased> : host::attention_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_marked> : host::attention_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_biased_marked> : host::attention_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_dropped> : host::attention_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_biased_dropped> : host::attention_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_marked_dropped> : host::attention_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_adjoint> : host::attention_adjoint_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_adjoint_biased> : host::attention_adjoint_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_adjoint_marked> : host::attention_adjoint_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_adjoint_biased_marked> : host::attention_adjoint_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_adjoint_dropped> : host::attention_adjoint_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_adjoint_biased_dropped> : host::attention_adjoint_kernel {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::attention_adjoint_marked_dropped> : host::attention_adjoint_kernel {};

}  // namespace shardwise::inline v0_1
