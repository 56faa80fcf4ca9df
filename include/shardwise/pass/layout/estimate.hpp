// SPDX-License-Identifier: Apache-2.0
// layout_times: what a program's convolutions are estimated to take on a host as they are stored and as a layout_plan stores them, with
// the copies that it asks for.
#pragma once

#include <shardwise/pass/layout/plan.hpp>

namespace shardwise::inline v0_1 {

// Of the convolutions that rates.hpp has. Kernels treat these apart.
enum class convolution_kind : std::uint8_t { windows, few_inputs, pixels, depthwise, small_groups, large_groups };
// Of a group's channels and the kernel's elements.
constexpr convolution_kind convolution_kind_of(std::int64_t inputs, std::int64_t outputs, std::int64_t kernel,
                                               std::int64_t groups) {
  if (groups > 1)
    return inputs == 1 && outputs == 1 ? convolution_kind::depthwise
           : inputs * outputs <= 64    ? convolution_kind::small_groups
                                       : convolution_kind::large_groups;
  return inputs <= 4 ? convolution_kind::few_inputs : kernel == 1 ? convolution_kind::pixels : convolution_kind::windows;
}

namespace passes {

// Between powers of two a straight line; 0 of 0.
constexpr double log2_of(std::int64_t n) {
  if (n < 2) return 0;
  const int whole = 63 - __builtin_clzll(static_cast<unsigned long long>(n));
  return whole - 1 + static_cast<double>(n) / static_cast<double>(std::int64_t{1} << whole);
}

// What decides how fast a convolution is beside its kind, as logarithms: images, inputs and outputs of a group, places of the result,
// elements of the kernel, strides, groups.
struct convolution_place {
  static constexpr int dims = 7;
  double log[dims];

  constexpr double squared_distance(const convolution_place& o) const {
    double d = 0;
    for (int k = 0; k < dims; ++k) d += weight[k] * (log[k] - o.log[k]) * (log[k] - o.log[k]);
    return d;
  }

 private:
  static constexpr double weight[dims] = {0.25, 1, 1, 0.25, 1, 1, 0.1};
};

namespace layout_rates_found {

struct located {
  convolution_kind kind;
  convolution_place at;
};
inline constexpr int count = static_cast<int>(sizeof(layout_rates::rows) / sizeof(layout_rates::rows[0]));
struct list {
  located of[count];
};
inline constexpr list all = [] {
  list l{};
  for (int r = 0; r < count; ++r) {
    const std::int64_t(&s)[7] = layout_rates::rows[r].shape;
    const std::int64_t out = (s[3] + s[5] - 1) / s[5];
    l.of[r].kind = convolution_kind_of(s[1], s[2], s[4] * s[4], s[6]);
    const std::int64_t by[] = {s[0], s[1], s[2], out * out, s[4] * s[4], s[5] * s[5], s[6]};
    for (int k = 0; k < convolution_place::dims; ++k) l.of[r].at.log[k] = log2_of(by[k]);
  }
  return l;
}();

}  // namespace layout_rates_found

// A rank's convolution, the largest block of any rank.
struct convolution_work {
  convolution_kind kind{};
  convolution_place at{};
  double multiplications = 0;

  // Nanoseconds that the multiplications take at two columns of rates.hpp: the mean of the four nearest rows of the kind, the nearer the
  // more. Both columns by the same rows, so that what they err by is mostly common.
  struct pair {
    double first, second;
  };
  constexpr pair nanoseconds(convolution_kernels kernels, int first, int second) const {
    constexpr int most = 4;
    int row[most] = {-1, -1, -1, -1};
    double distance[most]{};
    for (int r = 0; r < layout_rates_found::count; ++r) {
      if (layout_rates_found::all.of[r].kind != kind) continue;
      double d = at.squared_distance(layout_rates_found::all.of[r].at);
      int moved = r;
      for (int k = 0; k < most; ++k) {
        if (row[k] >= 0 && distance[k] <= d) continue;
        const int later = row[k];
        const double further = distance[k];
        row[k] = moved;
        distance[k] = d;
        if (later < 0) break;
        moved = later;
        d = further;
      }
    }
    double total = 0, a = 0, b = 0;
    for (int k = 0; k < most && row[k] >= 0; ++k) {
      const double(&rate)[8] = layout_rates::rows[row[k]].picoseconds[static_cast<int>(kernels)];
      const double share = 1 / (distance[k] + 0.05);
      total += share;
      a += share * rate[first];
      b += share * rate[second];
    }
    return {multiplications * a / total / 1e3, multiplications * b / total / 1e3};
  }
};

template <class Graph>
constexpr convolution_work convolution_work_of(const Graph& g, const node& n, convolving what) {
  constexpr int origin[max_axes]{};
  const spec& result = g.specs[n.spec];
  const spec& y = what == convolving::forward ? result : g.spec_of(n.in[0]);
  const spec& w = what == convolving::dw ? result : g.spec_of(n.in[1]);
  const auto of = [&](const spec& s, int d) { return local_interval(s, d, origin).size; };
  const auto a = attributes_of<convolution_attributes>(n.a);
  const std::int64_t inputs = of(w, 1), outputs = of(w, 0) / a.groups, places = of(y, 2) * of(y, 3),
                     kernel = of(w, 2) * of(w, 3);
  const std::int64_t by[] = {of(y, 0), inputs, outputs, places, kernel, std::int64_t{a.stride[0]} * a.stride[1], a.groups};
  convolution_work r;
  r.kind = convolution_kind_of(inputs, outputs, kernel, a.groups);
  for (int k = 0; k < convolution_place::dims; ++k) r.at.log[k] = log2_of(by[k]);
  r.multiplications =
      static_cast<double>(of(y, 0) * of(w, 0)) * static_cast<double>(places) * static_cast<double>(inputs * kernel);
  return r;
}

// Of one copy between the formats: between two rows of the table by a straight line, beyond its ends as at them.
constexpr double copy_nanoseconds(double elements) {
  constexpr int count = static_cast<int>(sizeof(layout_rates::copies) / sizeof(layout_rates::copies[0]));
  const layout_rates::copy_row(&c)[count] = layout_rates::copies;
  int k = 0;
  while (k < count && c[k].elements < elements) ++k;
  if (k == 0) return c[0].nanoseconds * elements;
  if (k == count) return c[count - 1].nanoseconds * elements;
  const double part = (elements - c[k - 1].elements) / (c[k].elements - c[k - 1].elements);
  return elements * (c[k - 1].nanoseconds + part * (c[k].nanoseconds - c[k - 1].nanoseconds));
}
// Elements of eight bytes take twice as long, those of two bytes are computed as of four.
constexpr double element_factor(dtype t) { return t == dtype::f64 ? 2 : 1; }

// Nanoseconds, by part of a splitter. What is not counted takes the same either way, or nearly so: functions of elements, norms, pooling.
template <int Parts>
struct layout_times {
  static constexpr int capacity = Parts > 0 ? Parts : 1;
  double as_it_is[capacity], turned[capacity], copies[capacity];

  constexpr void clear() {
    for (int p = 0; p < capacity; ++p) as_it_is[p] = turned[p] = copies[p] = 0;
  }
  constexpr void add(const layout_times& o) {
    for (int p = 0; p < capacity; ++p) {
      as_it_is[p] += o.as_it_is[p];
      turned[p] += o.turned[p];
      copies[p] += o.copies[p];
    }
  }
  constexpr bool gains(int p) const { return (turned[p] + copies[p]) * layout_margin < as_it_is[p]; }

  // Of nodes [begin, end).
  template <class Graph, class Plan>
  constexpr void add_convolutions(const Graph& g, const int* part, const Plan& plan, convolution_kernels kernels, int begin,
                                  int end) {
    for (int i = begin; i < end && i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      const convolving what = convolving_of(g, n);
      if (what == convolving::none) continue;
      const spec& result = g.specs[n.spec];
      const int now = column(what, is_last(g.spec_of(n.in[what == convolving::dw ? 1 : 0])), is_last(result));
      const int then = plan.convolves[i] ? column(what, true, plan.last[i]) : now;
      const convolution_kernels by = result.type == dtype::f64 ? convolution_kernels::built_in : kernels;
      const auto t = convolution_work_of(g, n, what).nanoseconds(by, now, then);
      as_it_is[part[i]] += t.first * element_factor(result.type);
      turned[part[i]] += t.second * element_factor(result.type);
    }
  }
  // A copy counts in each part that reads it.
  template <class Graph, class Plan>
  constexpr void add_copies(const Graph& g, const int* part, const Plan& plan) {
    constexpr int nodes = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
    constexpr int origin[max_axes]{};
    int copied[nodes]{};  // one more than the part that a value was last copied for
    for (int i = 0; i < g.node_count; ++i) {
      if (part[i] < 0) continue;
      const node& n = g.nodes[i];
      for (int k = 0; k < n.inputs; ++k) {
        const int x = n.in[k];
        if (copied[x] == part[i] + 1 || (!plan.convolves[i] && !plan.last[x] && !plan.last[i])) continue;
        if (plan.copy_of(g, i, k) == layout_copy::none) continue;
        const spec& s = g.spec_of(x);
        copied[x] = part[i] + 1;
        copies[part[i]] += copy_nanoseconds(static_cast<double>(local_numel(s, origin))) * element_factor(s.type);
      }
    }
  }

 private:
  static constexpr bool is_last(const spec& s) { return is_channels_last(s) && !is_contiguous(s); }
  // Of rates.hpp.
  static constexpr int column(convolving what, bool operands_last, bool result_last) {
    const int first = what == convolving::forward ? 0 : what == convolving::dx ? 3 : 6;
    if (!operands_last) return first;
    return what == convolving::dw || result_last ? first + 1 : first + 2;
  }
};

}  // namespace passes

}  // namespace shardwise::inline v0_1
