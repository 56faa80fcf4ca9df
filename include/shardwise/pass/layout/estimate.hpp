// SPDX-License-Identifier: Apache-2.0
// layout_times: what a program's convolutions are estimated to take as they are stored and as a layout_plan stores them, with the copies
// that it asks for; layout_points: at which run-time sizes.
#pragma once

#include <shardwise/pass/analysis/nearest_rows.hpp>
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
template <int Count>
struct list {
  static constexpr int count = Count;
  located of[Count];
};
template <class Row, std::size_t Count>
constexpr auto located_rows(const Row (&rows)[Count]) {
  list<static_cast<int>(Count)> l{};
  for (std::size_t r = 0; r < Count; ++r) {
    const std::int64_t(&s)[7] = rows[r].shape;
    const std::int64_t out = (s[3] + s[5] - 1) / s[5];
    l.of[r].kind = convolution_kind_of(s[1], s[2], s[4] * s[4], s[6]);
    const std::int64_t by[] = {s[0], s[1], s[2], out * out, s[4] * s[4], s[5] * s[5], s[6]};
    for (int k = 0; k < convolution_place::dims; ++k) l.of[r].at.log[k] = log2_of(by[k]);
  }
  return l;
}
inline constexpr auto all = located_rows(layout_rates::rows);
inline constexpr auto of_cudnn = located_rows(layout_rates_cudnn::rows);
inline constexpr int count = all.count;

}  // namespace layout_rates_found

// Which of a row's lists is meant.
constexpr int rates_of_elements(dtype type, convolution_kernels kernels) {
  return is_low_precision(type) ? 2 : kernels == convolution_kernels::cudnn_tf32 ? 1 : 0;
}

// A rank's convolution, the largest block of any rank.
struct convolution_work {
  convolution_kind kind{};
  convolution_place at{};
  double multiplications = 0;

  struct pair {
    double first, second;
  };

 private:
  template <class List, class Rows>
  constexpr pair nearest(const List& known, const Rows& rows, int of, int first, int second) const {
    nearest_rows near;
    for (int r = 0; r < List::count; ++r)
      if (known.of[r].kind == kind) near.add(r, at.squared_distance(known.of[r].at));
    const auto mean = [&](int column) { return near.mean([&](int r) { return rows[r].picoseconds[of][column]; }); };
    return {multiplications * mean(first) / 1e3, multiplications * mean(second) / 1e3};
  }

 public:
  // Nanoseconds that the multiplications take at two columns of rates.hpp: the mean of the four nearest rows of the kind, the nearer the
  // more. Both columns by the same rows, so that what they err by is mostly common.
  constexpr pair nanoseconds(convolution_kernels kernels, int first, int second, dtype type = dtype::f32) const {
    if (is_on_devices(kernels))
      return nearest(layout_rates_found::of_cudnn, layout_rates_cudnn::rows, rates_of_elements(type, kernels), first,
                     second);
    return nearest(layout_rates_found::all, layout_rates::rows, static_cast<int>(kernels), first, second);
  }
};

template <class Graph>
constexpr convolution_work convolution_work_of(const Graph& g, const node& n, convolving what, const run_sizes& sizes = {}) {
  constexpr int origin[max_axes]{};
  const spec& result = g.specs[n.spec];
  const spec& y = what == convolving::forward ? result : g.spec_of(n.in[0]);
  const spec& w = what == convolving::dw ? result : g.spec_of(n.in[1]);
  const auto of = [&](const spec& s, int d) { return local_interval(s, d, origin, sizes).size; };
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
template <class Row, std::size_t Count, class Each>
constexpr double copy_nanoseconds(const Row (&c)[Count], double elements, const Each& each) {
  std::size_t k = 0;
  while (k < Count && c[k].elements < elements) ++k;
  if (k == 0) return each(c[0]) * elements;
  if (k == Count) return each(c[Count - 1]) * elements;
  const double part = (elements - c[k - 1].elements) / (c[k].elements - c[k - 1].elements);
  return elements * (each(c[k - 1]) + part * (each(c[k]) - each(c[k - 1])));
}
constexpr double copy_nanoseconds(double elements) {
  return copy_nanoseconds(layout_rates::copies, elements, [](const auto& c) { return c.nanoseconds; });
}
// Elements of eight bytes take twice as long, those of two bytes are computed on hosts as of four.
constexpr double element_factor(dtype t) { return t == dtype::f64 ? 2 : 1; }
constexpr double copy_nanoseconds(double elements, device_kind device, dtype type) {
  if (device == device_kind::host) return copy_nanoseconds(elements) * element_factor(type);
  const auto each = [type](const auto& c) { return c.nanoseconds[is_low_precision(type) ? 1 : 0]; };
  return copy_nanoseconds(layout_rates_cudnn::copies, elements, each) * element_factor(type);
}

// Of a graph's run-time sizes, whichever values have them.
template <class Graph>
constexpr dyn_bounds dyn_bounds_of(const Graph& g) {
  dyn_bounds bounds{};
  for (int s = 0; s < g.spec_count; ++s)
    for (int i = 0; i < max_dyn_sizes; ++i)
      if (const std::int64_t b = g.specs[s].dyn_bound[i]; b > bounds[i]) bounds[i] = b;
  return bounds;
}

// Run-time sizes at which times are estimated: what is expected, or all at their bounds, at a quarter of those and at 1.
struct layout_points {
  static constexpr int most = 3;
  run_sizes at[most]{};
  int count = 1;

  template <class Sizes, class Graph>
  constexpr void find(const Graph& g) {
    const dyn_bounds bounds = dyn_bounds_of(g);
    const unsigned known = bounds.sizes();
    if (known == 0) return;
    if constexpr (Sizes::is_named) {
      for (int i = 0; i < max_dyn_sizes; ++i)
        if ((known >> i) & 1U) at[0].n[i] = i < Sizes::count && Sizes::n[i] < bounds[i] ? Sizes::n[i] : bounds[i];
    } else {
      count = most;
      for (int i = 0; i < max_dyn_sizes; ++i) {
        if (!((known >> i) & 1U)) continue;
        at[0].n[i] = bounds[i];
        at[1].n[i] = bounds[i] < 4 ? 1 : bounds[i] / 4;
        at[2].n[i] = 1;
      }
    }
  }
};

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
  constexpr double all_turned(int p) const { return turned[p] + copies[p]; }
  constexpr bool gains(int p) const { return all_turned(p) * layout_margin < as_it_is[p]; }
  constexpr bool loses(int p) const { return all_turned(p) > as_it_is[p] * layout_tolerance; }

  // Of nodes [begin, end).
  template <class Graph, class Plan>
  constexpr void add_convolutions(const Graph& g, const int* part, const Plan& plan, convolution_kernels kernels, int begin,
                                  int end, const run_sizes& sizes = {}) {
    for (int i = begin; i < end && i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      const convolving what = convolving_of(g, n);
      if (what == convolving::none) continue;
      const spec& result = g.specs[n.spec];
      const int now = column(what, is_last(g.spec_of(n.in[what == convolving::dw ? 1 : 0])), is_last(result));
      const int then = plan.convolves[i] ? column(what, true, plan.last[i]) : now;
      const convolution_kernels linked = convolutions_on(result.device, kernels),
                                by = result.type == dtype::f64 ? convolution_kernels::built_in : linked;
      const auto t = convolution_work_of(g, n, what, sizes).nanoseconds(by, now, then, result.type);
      as_it_is[part[i]] += t.first * element_factor(result.type);
      turned[part[i]] += t.second * element_factor(result.type);
    }
  }
  // A copy counts in each part that reads it.
  template <class Graph, class Plan>
  constexpr void add_copies(const Graph& g, const int* part, const Plan& plan, const run_sizes& sizes = {}) {
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
        copies[part[i]] += copy_nanoseconds(static_cast<double>(local_numel(s, origin, sizes)), s.device, s.type);
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

// The same at several run-time sizes, of which the first decides and the others may not lose.
template <int Parts, int Points>
struct layout_times_at {
  layout_times<Parts> at[Points > 0 ? Points : 1]{};  // nvcc takes elements that are written one by one for unset

  constexpr bool gains(int p) const {
    bool all = at[0].gains(p);
    for (int k = 1; k < Points; ++k) all = all && !at[k].loses(p);
    return all;
  }
  // The number of the point, beside the first, at which part p gains least; 0: there is none.
  constexpr int least(int p, int points) const {
    int k = points > 1 ? 1 : 0;
    for (int i = 2; i < points; ++i)
      if (at[i].all_turned(p) * at[k].as_it_is[p] > at[k].all_turned(p) * at[i].as_it_is[p]) k = i;
    return k;
  }
};

}  // namespace passes

}  // namespace shardwise::inline v0_1
