// SPDX-License-Identifier: Apache-2.0
// to_text: what optimize_layout decided of a program, why, and both estimates, as a sentence.
#pragma once

#include <string>

#include <shardwise/pass/layout/decision.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// Three digits, in microseconds or milliseconds.
inline std::string time_text(double microseconds) {
  const bool large = microseconds >= 1000;
  const double x = large ? microseconds / 1000 : microseconds;
  const int digits = x < 10 ? 2 : x < 100 ? 1 : 0;
  std::int64_t scaled = static_cast<std::int64_t>(x * (digits == 2 ? 100 : digits == 1 ? 10 : 1) + 0.5);
  std::string s = std::to_string(scaled);
  while (static_cast<int>(s.size()) <= digits) s.insert(0, 1, '0');
  if (digits > 0) s.insert(s.size() - static_cast<std::size_t>(digits), 1, '.');
  return s + (large ? " ms" : " us");
}
inline const char* reason_text(layout_reason why) {
  switch (why) {
    case layout_reason::off: return "the pass is off";
    case layout_reason::forced: return "forced";
    case layout_reason::no_convolution: return "there is no convolution";
    case layout_reason::unmeasured: return "no rates are known of the kernels that compute it";
    case layout_reason::faster: return "estimated to be faster";
    case layout_reason::no_gain: return "channels-last is not estimated to be faster by a tenth";
    case layout_reason::loses_below: return "channels-last is estimated to lose by more than a tenth at a smaller size";
    case layout_reason::library: return "oneDNN computes all convolutions";
    case layout_reason::many_nodes: return "most of the time goes elsewhere, at 300 nodes or more a convolution";
    case layout_reason::run_time_size: return "a convolution's size is known at run time alone";
    case layout_reason::inference: return "by the rule's factors for a forward pass";
    case layout_reason::grouped: return "a grouped convolution is trained";
    case layout_reason::narrowing: return "a convolution that halves its channels is trained";
    case layout_reason::all_small: return "all convolutions that are trained have 64 channels or fewer";
    case layout_reason::training: return "no convolution that is trained speaks against it";
  }
  return "unknown";
}

// " at size 16", " at sizes 4, 512"; nothing where there are none.
inline std::string sizes_text(const run_sizes& at) {
  std::string s;
  int count = 0;
  for (const std::int64_t n : at.n)
    if (n >= 0) s += (count++ > 0 ? ", " : "") + std::to_string(n);
  return count == 0 ? s : (count > 1 ? " at sizes " : " at size ") + s;
}

}  // namespace detail

// "channels-last: estimated to be faster, 47.1 us (3.20 us of it copies) in place of 157 us". Of a rank's convolutions in one run.
inline std::string to_text(const layout_decision& d) {
  std::string s = std::string(d.channels_last ? "channels-last: " : "as it is: ") + detail::reason_text(d.why);
  if (d.time_as_it_is > 0)
    s += ", " + detail::time_text(d.time_channels_last) + " (" + detail::time_text(d.time_of_copies) +
         " of it copies) in place of " + detail::time_text(d.time_as_it_is) + detail::sizes_text(d.at);
  if (d.least_as_it_is > 0)
    s += ", " + detail::time_text(d.least_channels_last) + " in place of " + detail::time_text(d.least_as_it_is) +
         detail::sizes_text(d.least_at);
  return s;
}

}  // namespace shardwise::inline v0_1
