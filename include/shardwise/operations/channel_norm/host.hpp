// SPDX-License-Identifier: Apache-2.0
// Kernels of norms over channels on the host: planes of one channel where they lie side by side, pixels of up to 64 channels where
// tensors are channels-last. Each channel of an image is added up by itself, so that neither threads nor ranks alter a bit.
#pragma once

#include <stdexcept>
#include <string>

#include <shardwise/graph/functions/channel_norms.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/runtime/host/sums.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1 {

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

// Where element (image, channel, point) of a block lies.
struct channel_strides {
  std::int64_t image = 0, channel = 0, point = 0;
  constexpr std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t p) const {
    return n * image + c * channel + p * point;
  }
  constexpr bool in_channels() const { return channel == 1 && point != 1; }
};
// A rank's block: images, channels and elements of a channel; groups of `each` channels.
struct channel_block {
  std::int64_t images = 0, channels = 0, points = 1, each = 1;
  bool over_batch = false;
  std::int64_t norm = 1;  // elements that a statistic is of, on all ranks

  constexpr std::int64_t groups() const { return channels / each; }
  // Where in a tensor of statistics those of a channel are.
  constexpr std::int64_t statistic(std::int64_t n, std::int64_t c) const {
    return (over_batch ? 0 : n * groups()) + c / each;
  }
};
// x: which operand has the tensor's extents.
template <class T>
constexpr channel_block channel_block_of(const kernel_arguments<T>& k, int x) {
  const auto a = k.template attributes<channel_norm_attributes>();
  channel_block b;
  b.images = k.extent(x, 0);
  b.channels = k.extent(x, 1);
  for (int d = 2; d < k.rank(x); ++d) b.points *= k.extent(x, d);
  b.each = a.groups > 0 ? k.whole_extent(x, 1) / a.groups : 1;
  b.over_batch = a.over_batch != 0;
  b.norm = b.over_batch ? k.whole_extent(x, 0) : b.each;
  for (int d = 2; d < k.rank(x); ++d) b.norm *= k.whole_extent(x, d);
  return b;
}
template <class T>
constexpr channel_strides channel_strides_of(const kernel_arguments<T>& k, int x) {
  return {k.stride(x, 0), k.stride(x, 1), k.rank(x) > 2 ? k.stride(x, k.rank(x) - 1) : 1};
}
template <class T>
constexpr channel_strides channel_strides_of_result(const kernel_arguments<T>& k) {
  return {k.stride(0), k.stride(1), k.rank() > 2 ? k.stride(k.rank() - 1) : 1};
}

inline constexpr std::int64_t channels_at_once = 64;

// f(image, first channel, end) for runs of the block's channels from `of`, of one image: channels_at_once of pixels, of planes as many
// as stay in a processor's cache.
template <class F>
constexpr void each_channel_run(const channel_block& b, bool in_channels, interval of, F&& f) {
  const std::int64_t fit = in_channels || b.points < 256 ? channels_at_once : 1;
  for (std::int64_t i = of.begin, end = of.begin + of.size; i < end;) {
    const std::int64_t n = i / b.channels, c = i % b.channels;
    std::int64_t m = b.channels - c;
    if (m > fit) m = fit;
    if (m > end - i) m = end - i;
    f(n, c, c + m);
    i += m;
  }
}

// Sums over the points of each channel of a run: value(image, channel, point, channel's place in the run).
template <class T, class Value>
constexpr void sum_channels(const channel_block& b, bool in_channels, std::int64_t first, std::int64_t end,
                            typename math<T>::accumulator* sum, const Value& value) {
  const auto add = [&](auto one) {
    using acc = typename math<T>::accumulator;
    for (std::int64_t c = first; c < end; ++c) sum[c - first] = acc(0);
    if (in_channels) {
      for (std::int64_t p = 0; p < b.points; ++p) {
        SHARDWISE_IVDEP
        for (std::int64_t c = first; c < end; ++c) sum[c - first] = sum[c - first] + value(c, p, one);
      }
    } else {
      for (std::int64_t c = first; c < end; ++c)
        sum[c - first] = sum_terms<T>(b.points, [&](std::int64_t p) { return value(c, p, one); });
    }
  };
  by_strides<T>(add, std::int64_t{1});
}

// Of each channel of a run of one image: the sums over its points of what it is apart from `about`, a number for each, and of that squared.
template <class T, class A>
constexpr void sum_apart(const channel_block& b, const channel_strides& at, const T* from, std::int64_t first,
                         std::int64_t end, const A* about, A* apart, A* squares) {
  const auto apart_at = [&](std::int64_t c, std::int64_t p) {
    return static_cast<A>(from[c * at.channel + p * at.point]) - about[c - first];
  };
  sum_channels<T>(b, at.in_channels(), first, end, apart,
                  [&](std::int64_t c, std::int64_t p, auto) { return apart_at(c, p); });
  sum_channels<T>(b, at.in_channels(), first, end, squares, [&](std::int64_t c, std::int64_t p, auto) {
    const A d = apart_at(c, p);
    return d * d;
  });
}

// An element of a result for each of a run's: put(channel, point).
template <class T, class Put>
constexpr void put_channels(const channel_block& b, bool in_channels, std::int64_t first, std::int64_t end, const Put& put) {
  const auto all = [&](auto) {
    if (in_channels) {
      for (std::int64_t p = 0; p < b.points; ++p) {
        SHARDWISE_IVDEP
        for (std::int64_t c = first; c < end; ++c) put(c, p);
      }
    } else {
      for (std::int64_t c = first; c < end; ++c) {
        SHARDWISE_IVDEP
        for (std::int64_t p = 0; p < b.points; ++p) put(c, p);
      }
    }
  };
  by_strides<T>(all, std::int64_t{1});
}

// Mean and sum of squares about it of elements met so far, by Chan's formula.
template <class M, class A>
struct moments {
  std::int64_t count = 0;
  A mean = A(0), squares = A(0);

  constexpr void add(std::int64_t n, A m, A s) {
    if (n == 0) return;
    const A part = A(M::from_count(n)) / A(M::from_count(count + n)), apart = m - mean;
    squares = squares + s + apart * apart * (part * A(M::from_count(count)));
    mean = mean + apart * part;
    count += n;
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::channel_moments> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    using M = host::math<T>;
    using acc = typename M::accumulator;
    const host::channel_block b = host::channel_block_of(k, 0);
    const host::channel_strides at = host::channel_strides_of(k, 0);
    const T* const x = k.in(0);
    const std::int64_t all = b.images * b.groups();
    const interval groups = k.share(all);
    acc sum[host::channels_at_once]{}, apart[host::channels_at_once]{}, squares[host::channels_at_once]{};
    acc mean[host::channels_at_once]{};
    host::moments<M, acc> of_group;
    host::each_channel_run(b, at.in_channels(), {groups.begin * b.each, groups.size * b.each},
                           [&](std::int64_t n, std::int64_t first, std::int64_t end) {
                             const T* const from = x + n * at.image;
                             const acc points = acc(M::from_count(b.points));
                             host::sum_channels<T>(b, at.in_channels(), first, end, sum,
                                                   [&](std::int64_t c, std::int64_t p, auto) {
                                                     return static_cast<acc>(from[c * at.channel + p * at.point]);
                                                   });
                             for (std::int64_t c = first; c < end; ++c) mean[c - first] = sum[c - first] / points;
                             host::sum_apart(b, at, from, first, end, mean, apart, squares);
                             for (std::int64_t c = first; c < end; ++c) {
                               const std::int64_t i = c - first;
                               if (c % b.each == 0) of_group = {};
                               // what rounding the mean has lost
                               const acc lost = b.points > 0 ? apart[i] / points : acc(0);
                               of_group.add(b.points, mean[i] + lost, squares[i] - apart[i] * lost);
                               if (c % b.each != b.each - 1) continue;
                               const std::int64_t to = n * b.groups() + c / b.each;
                               k.out()[to] = static_cast<T>(of_group.mean);
                               k.out()[all + to] = static_cast<T>(of_group.squares);
                             }
                           });
  }
};

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::channel_moments_about> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    using acc = typename host::math<T>::accumulator;
    const host::channel_block b = host::channel_block_of(k, 0);
    const host::channel_strides at = host::channel_strides_of(k, 0);
    const std::int64_t all = b.images * b.groups();
    const interval groups = k.share(all);
    acc about[host::channels_at_once]{}, apart[host::channels_at_once]{}, squares[host::channels_at_once]{};
    acc sum = acc(0), sum_of_squares = acc(0);
    host::each_channel_run(b, at.in_channels(), {groups.begin * b.each, groups.size * b.each},
                           [&](std::int64_t n, std::int64_t first, std::int64_t end) {
                             for (std::int64_t c = first; c < end; ++c)
                               about[c - first] = static_cast<acc>(k.in(1)[b.statistic(n, c)]);
                             host::sum_apart(b, at, k.in(0) + n * at.image, first, end, about, apart, squares);
                             for (std::int64_t c = first; c < end; ++c) {
                               if (c % b.each == 0) sum = sum_of_squares = acc(0);
                               sum = sum + apart[c - first];
                               sum_of_squares = sum_of_squares + squares[c - first];
                               if (c % b.each != b.each - 1) continue;
                               const std::int64_t to = n * b.groups() + c / b.each;
                               k.out()[to] = static_cast<T>(sum);
                               k.out()[all + to] = static_cast<T>(sum_of_squares);
                             }
                           });
  }
};

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::channel_norm> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const host::channel_block b = host::channel_block_of(k, 0);
    const host::channel_strides x = host::channel_strides_of(k, 0), y = host::channel_strides_of_result(k);
    T mean[host::channels_at_once]{}, slope[host::channels_at_once]{}, shift[host::channels_at_once]{};
    const bool in_channels = x.in_channels() && y.in_channels();
    host::each_channel_run(
        b, in_channels, k.share(b.images * b.channels), [&](std::int64_t n, std::int64_t first, std::int64_t end) {
          for (std::int64_t c = first; c < end; ++c) {
            const std::int64_t s = b.statistic(n, c);
            mean[c - first] = k.in(1)[s];
            slope[c - first] = k.in(2)[s] * k.in(3)[c];
            shift[c - first] = k.in(4)[c];
          }
          const T* const from = k.in(0) + n * x.image;
          T* const to = k.out() + n * y.image;
          host::put_channels<T>(b, in_channels, first, end, [&](std::int64_t c, std::int64_t p) {
            const std::int64_t i = c - first;
            to[c * y.channel + p * y.point] = (from[c * x.channel + p * x.point] - mean[i]) * slope[i] + shift[i];
          });
        });
  }
};

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::channel_norm_sums> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    using acc = typename host::math<T>::accumulator;
    const host::channel_block b = host::channel_block_of(k, 1);
    const host::channel_strides dy = host::channel_strides_of(k, 0), x = host::channel_strides_of(k, 1);
    const bool in_channels = x.in_channels() && dy.in_channels();
    acc sum[host::channels_at_once]{}, product[host::channels_at_once]{}, mean[host::channels_at_once]{};
    const std::int64_t all = b.images * b.channels;
    host::each_channel_run(b, in_channels, k.share(all), [&](std::int64_t n, std::int64_t first, std::int64_t end) {
      for (std::int64_t c = first; c < end; ++c) mean[c - first] = static_cast<acc>(k.in(2)[b.statistic(n, c)]);
      const T *const d = k.in(0) + n * dy.image, *const from = k.in(1) + n * x.image;
      host::sum_channels<T>(b, in_channels, first, end, sum, [&](std::int64_t c, std::int64_t p, auto) {
        return static_cast<acc>(d[c * dy.channel + p * dy.point]);
      });
      host::sum_channels<T>(b, in_channels, first, end, product, [&](std::int64_t c, std::int64_t p, auto) {
        return static_cast<acc>(d[c * dy.channel + p * dy.point]) *
               (static_cast<acc>(from[c * x.channel + p * x.point]) - mean[c - first]);
      });
      for (std::int64_t c = first; c < end; ++c) {
        const std::int64_t to = n * b.channels + c;
        k.out()[to] = static_cast<T>(sum[c - first]);
        k.out()[all + to] = static_cast<T>(product[c - first] * static_cast<acc>(k.in(3)[b.statistic(n, c)]));
      }
    });
  }
};

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

// dx = slope dy - constant - (x - mean) factor.
template <class A>
struct norm_gradient {
  A mean, slope, constant, factor;
};
// W: the statistics' elements, in which the weight is read. Of channel c of image n; `sums`: of dy and of dy times the normalised x, weighted here, over what the statistic is of.
template <class M, class A, class T, class W>
constexpr norm_gradient<A> norm_gradient_of(const channel_block& b, std::int64_t n, std::int64_t c, const W* mean,
                                            const W* inverse, const T* weight, const W* sums) {
  const std::int64_t s = b.statistic(n, c), all = (b.over_batch ? 1 : b.images) * b.channels;
  const A r = static_cast<A>(inverse[s]), count = A(M::from_count(b.norm));
  A first = A(0), second = A(0);
  for (std::int64_t e = c - c % b.each; e < c - c % b.each + b.each; ++e) {
    const std::int64_t at = (b.over_batch ? 0 : n * b.channels) + e;
    first = first + static_cast<A>(sums[at]) * static_cast<A>(static_cast<W>(weight[e]));
    second = second + static_cast<A>(sums[all + at]) * static_cast<A>(static_cast<W>(weight[e]));
  }
  return {static_cast<A>(mean[s]), r * static_cast<A>(static_cast<W>(weight[c])), r * first / count, r * r * second / count};
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::channel_norm_dx> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    using M = host::math<T>;
    const host::channel_block b = host::channel_block_of(k, 1);
    const host::channel_strides dy = host::channel_strides_of(k, 0), x = host::channel_strides_of(k, 1),
                                dx = host::channel_strides_of_result(k);
    const bool in_channels = x.in_channels() && dy.in_channels() && dx.in_channels();
    T mean[host::channels_at_once]{}, slope[host::channels_at_once]{}, constant[host::channels_at_once]{};
    T factor[host::channels_at_once]{};
    host::each_channel_run(
        b, in_channels, k.share(b.images * b.channels), [&](std::int64_t n, std::int64_t first, std::int64_t end) {
          for (std::int64_t c = first; c < end; ++c) {
            const auto g = host::norm_gradient_of<M, typename M::accumulator>(b, n, c, k.in(2), k.in(3), k.in(4), k.in(5));
            mean[c - first] = k.in(2)[b.statistic(n, c)];
            slope[c - first] = static_cast<T>(g.slope);
            constant[c - first] = static_cast<T>(g.constant);
            factor[c - first] = static_cast<T>(g.factor);
          }
          const T *const d = k.in(0) + n * dy.image, *const from = k.in(1) + n * x.image;
          T* const to = k.out() + n * dx.image;
          host::put_channels<T>(b, in_channels, first, end, [&](std::int64_t c, std::int64_t p) {
            const std::int64_t i = c - first;
            to[c * dx.channel + p * dx.point] = d[c * dy.channel + p * dy.point] * slope[i] - constant[i] -
                                                (from[c * x.channel + p * x.point] - mean[i]) * factor[i];
          });
        });
  }
};

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

// Elements of a channel, of which a run has to have more than one.
template <class T>
constexpr std::int64_t elements_of_variance(const kernel_arguments<T>& k) {
  const std::int64_t n = k.attribute(0) * k.whole_extent(1, 1);
  if (n < 2)
    throw std::invalid_argument("shardwise: batch_norm: training needs more than 1 value per channel, and this batch has " +
                                std::to_string(n) + "; give a larger batch or image, or evaluate");
  return n;
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::unbiased_variance> {
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    using M = host::math<T>;
    const std::int64_t n = host::elements_of_variance(k);
    for (std::int64_t i = 0; i < k.size(); ++i) k.out()[i] = k.in(0)[i] * M::from_count(n) / M::from_count(n - 1);
  }
};

}  // namespace shardwise::inline v0_1

SHARDWISE_UNFUSED_END
