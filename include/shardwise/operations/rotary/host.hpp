// SPDX-License-Identifier: Apache-2.0
// Rotations of pairs on the host: sines and cosines of a position once for all heads. Angles are doubles, whatever is turned: a float
// has no digits left for those of late positions.
#pragma once

#include <type_traits>

#include <shardwise/graph/functions/rotary.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/support/elementary.hpp>

namespace shardwise::inline v0_1 {

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

// Extents of a block (batch, outer, inner, size) whose positions are along outer or inner, and where they begin.
struct rotary_block {
  std::int64_t batch = 0, times = 0, others = 0, size = 0;  // others: heads
  std::int64_t time_step = 0, other_step = 0;
  double first = 0, base = 0;
  bool interleaved = false, back = false;

  constexpr std::int64_t at(std::int64_t b, std::int64_t t, std::int64_t h) const {
    return b * times * others * size + t * time_step + h * other_step;
  }
  // The two numbers of pair i.
  constexpr std::int64_t one(std::int64_t i) const { return interleaved ? 2 * i : i; }
  constexpr std::int64_t two(std::int64_t i) const { return interleaved ? 2 * i + 1 : i + size / 2; }
};
template <class T>
constexpr rotary_block rotary_block_of(const kernel_arguments<T>& k) {
  const auto a = k.template attributes<rotary_attributes>();
  const int t = static_cast<int>(a.time), h = 3 - t;
  rotary_block r;
  r.batch = k.extent(0);
  r.times = k.extent(t);
  r.others = k.extent(h);
  r.size = k.extent(3);
  r.time_step = t == 1 ? r.others * r.size : r.size;
  r.other_step = t == 1 ? r.size : r.times * r.size;
  r.first = k.number() + static_cast<double>(k.origin(0, t));
  r.base = a.base;
  r.interleaved = a.interleaved != 0;
  r.back = a.back != 0;
  return r;
}

template <class T>
constexpr void rotary_turn(const rotary_block& r, std::int64_t t, T* cosine, T* sine) {
  for (std::int64_t i = 0; i < r.size / 2; ++i) {
    const double angle = (r.first + static_cast<double>(t)) *
                         math<T>::power(r.base, -2 * static_cast<double>(i) / static_cast<double>(r.size));
    if constexpr (std::is_floating_point_v<T>) {
      cosine[i] = static_cast<T>(elementary::cos(angle));
      sine[i] = static_cast<T>(elementary::sin(angle));
    } else {
      cosine[i] = math<T>::cos(math<T>::from(angle));
      sine[i] = math<T>::sin(math<T>::from(angle));
    }
    if (r.back) sine[i] = T(0) - sine[i];
  }
}

// The pairs of one position of one head, which begins at `at`.
template <class T>
constexpr void rotate_pairs(const rotary_block& r, const T* x, T* y, std::int64_t at, const T* cosine, const T* sine) {
  for (std::int64_t i = 0; i < r.size / 2; ++i) {
    const T u = x[at + r.one(i)], v = x[at + r.two(i)];
    y[at + r.one(i)] = u * cosine[i] - v * sine[i];
    y[at + r.two(i)] = v * cosine[i] + u * sine[i];
  }
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::rotary_embedding> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const host::rotary_block r = host::rotary_block_of(k);
    T *const cosine = k.scratch(), *const sine = cosine + r.size / 2;
    const interval of = k.share(r.times);
    for (std::int64_t t = of.begin; t < of.begin + of.size; ++t) {
      host::rotary_turn(r, t, cosine, sine);
      for (std::int64_t b = 0; b < r.batch; ++b)
        for (std::int64_t h = 0; h < r.others; ++h) host::rotate_pairs(r, k.in(0), k.out(), r.at(b, t, h), cosine, sine);
    }
  }
};

}  // namespace shardwise::inline v0_1
