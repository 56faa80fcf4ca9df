// SPDX-License-Identifier: Apache-2.0
// decide_layout: whether a graph's convolutions are to be computed channels-last, by estimated time or by the rule of torch.compile.
#pragma once

#include <shardwise/graph/functions/convolution.hpp>
#include <shardwise/pass/analysis/phases.hpp>
#include <shardwise/pass/layout/rates.hpp>
#include <shardwise/pass/layout/rates_cudnn.hpp>

namespace shardwise::inline v0_1 {

// automatic: by estimated time (estimate.hpp beside this one); torch: by the rule that torch.compile has.
enum class layout_mode : std::uint8_t { off, automatic, torch, force };

// By what convolutions are computed. built_in: the library's own kernels, on hosts and GPUs. onednn: on hosts; what it does not take, of
// elements of eight bytes, is the built-in kernels'. cudnn: on GPUs, cudnn_tf32 with factors of float rounded to TF32. The first of these
// that this source is linked with is the default; a program for the other device than it computes on takes that device's first.
enum class convolution_kernels : std::uint8_t { built_in, onednn, cudnn, cudnn_tf32 };
constexpr bool is_on_devices(convolution_kernels k) {
  return k == convolution_kernels::cudnn || k == convolution_kernels::cudnn_tf32;
}
// shardwise::onednn and shardwise::cudnn define the macros.
#if defined(SHARDWISE_WITH_ONEDNN)
constexpr convolution_kernels linked_host_convolutions = convolution_kernels::onednn;
#else
constexpr convolution_kernels linked_host_convolutions = convolution_kernels::built_in;
#endif
#if defined(SHARDWISE_WITH_CUDNN)
constexpr convolution_kernels linked_device_convolutions = convolution_kernels::cudnn;
#else
constexpr convolution_kernels linked_device_convolutions = convolution_kernels::built_in;
#endif
constexpr convolution_kernels linked_convolutions =
    linked_host_convolutions != convolution_kernels::built_in ? linked_host_convolutions : linked_device_convolutions;
// What computes on such a device where `k` is named.
constexpr convolution_kernels convolutions_on(device_kind device, convolution_kernels k) {
  if (device == device_kind::host) return is_on_devices(k) ? linked_host_convolutions : k;
  return k == convolution_kernels::onednn ? linked_device_convolutions : k;
}

// An estimate errs: channels-last has to win by this factor. Half of the convolutions that rates.hpp does not have are estimated within
// 13 % (bench/results/convolution.md).
inline constexpr double layout_margin = 1.1;
// Of a program whose sizes a run decides: at no smaller size that is looked at may it lose by more than this.
inline constexpr double layout_tolerance = 1.1;

// What torch.compile's rule asks of one convolution: the channels of its weight, those read for one group, rows of its kernel, and its work.
struct convolution_shape {
  std::int64_t outputs = 0, inputs = 0, rows = 1;
  std::int32_t groups = 1;
  double flops = 0;

  // Of a depthwise one every group reads one channel, which makes it none of these.
  constexpr bool is_grouped() const { return groups > 1 && inputs > 1; }
  constexpr bool is_small() const { return outputs <= 64 && inputs <= 64; }
  constexpr bool narrows() const { return outputs * 2 <= inputs && rows > 1; }
};

// Measured by torch.compile's authors: the time of such convolutions channels-last, of that contiguous.
namespace layout_factor {
inline constexpr double grouped = 1.358, small = 0.783, narrowing = 0.725, other = 0.823;
}

// What the modes ask of a graph.
struct layout_facts {
  int nodes = 0, convolutions = 0, adjoints = 0;  // adjoints of convolutions
  bool library = false;                           // oneDNN computes all of it
  bool measured = true;                           // there are rates of what computes it
  bool run_time = false;                          // a convolution's operand has a run-time extent
  bool training = false;                          // gradients of convolutions are computed
  // Estimated microseconds of a rank's convolutions as they are stored, and channels-last with the copies for that, and of those copies.
  double as_it_is = 0, channels_last = 0, copies = 0;
  // At which run-time sizes, if there are any; and the same of the smaller sizes at which channels-last gains least.
  run_sizes at{}, least_at{};
  double least_as_it_is = 0, least_channels_last = 0;
  bool any_grouped = false, any_narrows = false, all_small = true;
  double flops = 0, weighted = 0;  // of all convolutions; each multiplied by the factor of the first kind that it is of

  constexpr void add(const convolution_shape& c) {
    ++convolutions;
    any_grouped = any_grouped || c.is_grouped();
    any_narrows = any_narrows || c.narrows();
    all_small = all_small && c.is_small();
    flops += c.flops;
    weighted += c.flops * (c.is_grouped() ? layout_factor::grouped
                           : c.is_small() ? layout_factor::small
                           : c.narrows()  ? layout_factor::narrowing
                                          : layout_factor::other);
  }
};

// The first of these that is met, in this order, decides.
enum class layout_reason : std::uint8_t {
  off,
  forced,
  no_convolution,
  // automatic
  unmeasured,  // of own kernels on GPUs
  faster,
  no_gain,
  loses_below,  // a gain at the largest run-time size, too much of a loss at a smaller one
  // torch
  library,
  many_nodes,  // at least 300 for each convolution: most of the time goes elsewhere
  run_time_size,
  inference,  // by the work, in time contiguous and channels-last
  grouped,    // and these of a graph that is trained
  narrowing,
  all_small,
  training
};
struct layout_decision {
  bool channels_last = false;
  layout_reason why{};
  double time_as_it_is = 0, time_channels_last = 0,
         time_of_copies = 0;  // microseconds, of layout_facts; 0: nothing was estimated
  // At run-time sizes, -1 where there are none: those that the times are of, and of the smaller ones those that gain least, with their times.
  run_sizes at{}, least_at{};
  double least_as_it_is = 0, least_channels_last = 0;

  constexpr bool operator==(const layout_decision& o) const { return channels_last == o.channels_last && why == o.why; }
};

// Law: channels-last is chosen where its estimate, copies included, is less than the other one by layout_margin, and, where sizes are
// known at run time alone, at none of the smaller sizes (layout_points) more than the other one by layout_tolerance.
constexpr layout_decision decide_layout_by_time(const layout_facts& f) {
  if (f.convolutions + f.adjoints == 0) return {false, layout_reason::no_convolution};
  if (!f.measured) return {false, layout_reason::unmeasured};
  const bool gains = (f.channels_last * layout_margin) < f.as_it_is;
  const bool loses = f.least_channels_last > (f.least_as_it_is * layout_tolerance);
  return {gains && !loses,
          !gains  ? layout_reason::no_gain
          : loses ? layout_reason::loses_below
                  : layout_reason::faster,
          f.as_it_is,
          f.channels_last,
          f.copies,
          f.at,
          f.least_at,
          f.least_as_it_is,
          f.least_channels_last};
}

constexpr layout_decision decide_layout(layout_mode mode, const layout_facts& f) {
  if (mode == layout_mode::off) return {false, layout_reason::off};
  if (mode == layout_mode::force) return {true, layout_reason::forced};
  if (mode == layout_mode::automatic) return decide_layout_by_time(f);
  if (f.convolutions == 0) return {false, layout_reason::no_convolution};
  if (f.library) return {true, layout_reason::library};
  if (f.nodes >= 300 * f.convolutions) return {false, layout_reason::many_nodes};
  if (f.run_time) return {false, layout_reason::run_time_size};
  if (!f.training) return {f.weighted <= f.flops, layout_reason::inference};
  if (f.any_grouped) return {false, layout_reason::grouped};
  if (f.any_narrows) return {false, layout_reason::narrowing};
  if (f.all_small) return {false, layout_reason::all_small};
  return {true, layout_reason::training};
}

namespace passes {

enum class convolving : std::uint8_t { none, forward, dx, dw };

// Which of the three convolutions a node is.
template <class Graph>
constexpr convolving convolving_of(const Graph& g, const node& n) {
  if (!is_custom(g, n)) return convolving::none;
  const custom_operation* const o = custom_of(g, n);
  return is_same_operation(o, &custom::conv2d)      ? convolving::forward
         : is_same_operation(o, &custom::conv2d_dx) ? convolving::dx
         : is_same_operation(o, &custom::conv2d_dw) ? convolving::dw
                                                    : convolving::none;
}

// Whether a table has what such kernels take.
constexpr bool has_rates(device_kind device, dtype type, convolution_kernels kernels) {
  if (device == device_kind::host) return true;
  return is_on_devices(kernels) && layout_rates_cudnn::is_measured && type != dtype::f64;
}

// Of nodes in part `part` (`of` says each node's; null: of all nodes), and of whole tensors, so that all ranks decide alike. Where
// torch.compile decides it has the forward pass alone: adjoints say that a graph is trained, and are not among its convolutions.
template <class Graph>
constexpr layout_facts layout_facts_of(const Graph& g, const int* of = nullptr, int part = 0,
                                       convolution_kernels kernels = linked_convolutions) {
  layout_facts f;
  bool taken = true;  // by oneDNN
  for (int i = 0; i < g.node_count && g.custom_count > 0; ++i) {
    const node& n = g.nodes[i];
    const convolving what = convolving_of(g, n);
    if (what == convolving::none || (of && of[i] != part)) continue;
    for (int k = 0; k < n.inputs; ++k) f.run_time = f.run_time || g.spec_of(n.in[k]).dyn != 0;
    const spec& result = g.specs[n.spec];
    f.measured = f.measured && has_rates(result.device, result.type, convolutions_on(result.device, kernels));
    taken = taken && result.device == device_kind::host && result.type != dtype::f64;
    if (what != convolving::forward) {
      f.training = true;
      ++f.adjoints;
      continue;
    }
    const spec& w = g.spec_of(n.in[1]);
    const double window = static_cast<double>(w.extent[1]) * static_cast<double>(w.extent[2] * w.extent[3]);
    f.add({w.extent[0], w.extent[1], w.extent[2], attributes_of<convolution_attributes>(n.a).groups,
           2.0 * static_cast<double>(numel(g.specs[n.spec])) * window});
  }
  f.library = convolutions_on(device_kind::host, kernels) == convolution_kernels::onednn && taken && f.convolutions > 0;
  if (f.convolutions == 0) return f;
  phase_marks<Graph::node_capacity> phase;
  if (f.training) mark_phases(phase, g);
  for (int i = 0; i < g.node_count; ++i)
    if ((!f.training || phase.of(i) == program_phase::forward) && (!of || of[i] == part)) ++f.nodes;
  return f;
}

}  // namespace passes

}  // namespace shardwise::inline v0_1
