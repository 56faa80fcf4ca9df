// SPDX-License-Identifier: Apache-2.0
// describe: a program's plan as text, from its constants alone: parameters, placements, communication, memory.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/analysis/communication.hpp>
#include <shardwise/runtime/program/lowered.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

inline std::string padded(std::string s, std::size_t width, bool right = false) {
  if (s.size() < width) s.insert(right ? 0 : s.size(), width - s.size(), ' ');
  return s;
}

inline std::vector<std::string> axis_names(std::vector<std::string> names, int axes) {
  for (int a = static_cast<int>(names.size()); a < axes; ++a) names.push_back("axis " + std::to_string(a));
  return names;
}

}  // namespace detail

// One line for each parameter and each buffer (global shape, placement on every axis, shape on rank 0), then bytes sent on
// every axis by the busiest rank, and the arena. `axes` names the mesh's axes in order.
template <class Step>
std::string describe_plan(const std::vector<std::string>& axes) {
  using mesh_type = typename Step::mesh_type;
  using ex = runtime::lowered<Step>;
  const auto& g = Step::program;
  const std::vector<std::string> names = detail::axis_names(axes, mesh_type::axes);
  std::string out = "mesh:";
  for (int a = 0; a < mesh_type::axes; ++a)
    out += " " + names[static_cast<std::size_t>(a)] + "=" + std::to_string(mesh_type::sizes[static_cast<unsigned>(a)]);
  out += " (" + std::to_string(mesh_type::size) + " ranks)\n";
  std::size_t wide = 9;
  for (int i = 0; i < ex::parameter_count(); ++i) wide = std::max(wide, ex::parameter_name(i).size());
  for (int i = 0; i < ex::buffer_count(); ++i) wide = std::max(wide, ex::buffer_name(i).size());
  const int origin[max_axes]{};
  // Of so many tensors: a headed line each, and the sum of their elements.
  const auto lines = [&](const char* what, int count, auto&& name_of_tensor, auto&& spec_of_tensor) {
    std::size_t shapes = 12, places = 14;
    for (const auto& n : names) places = std::max(places, 3 + n.size());
    for (int i = 0; i < count; ++i) {
      shapes = std::max(shapes, extents_text(spec_of_tensor(i)).size());
      for (int a = 0; a < mesh_type::axes; ++a) places = std::max(places, to_string(spec_of_tensor(i).place[a]).size());
    }
    out += detail::padded(what, wide + 2) + detail::padded("shape", shapes + 2);
    for (const auto& n : names) out += detail::padded("on " + n, places + 2);
    out += "on rank 0\n";
    std::int64_t elements = 0, local = 0;
    for (int i = 0; i < count; ++i) {
      const spec& s = spec_of_tensor(i);
      spec block = s;
      for (int d = 0; d < s.rank; ++d) block.extent[d] = local_interval(s, d, origin).size;
      const std::int64_t own = numel(block);
      elements += numel(s);
      local += own;
      out += detail::padded(name_of_tensor(i), wide + 2) + detail::padded(extents_text(s), shapes + 2);
      for (int a = 0; a < mesh_type::axes; ++a) out += detail::padded(to_string(s.place[a]), places + 2);
      out += extents_text(block) + "\n";
    }
    out += what + ("s: " + std::to_string(elements)) + ", on rank 0: " + std::to_string(local) + "\n";
  };
  lines("parameter", ex::parameter_count(), ex::parameter_name, ex::parameter_spec);
  if (ex::buffer_count() > 0) lines("buffer", ex::buffer_count(), ex::buffer_name, ex::buffer_spec);
  for (int a = 0; a < mesh_type::axes; ++a)
    out += "communication on " + names[static_cast<std::size_t>(a)] + ": " +
           std::to_string(passes::busiest_bytes<mesh_type>(g, Step::traffic, a, -1)) +
           " bytes sent per step by the busiest rank\n";
  out += "collectives per step: " + std::to_string(Step::traffic.collectives) + "\n";
  out += "peak memory per rank: " + std::to_string(Step::peak_bytes) + " bytes\n";
  return out;
}

}  // namespace shardwise::inline v0_1
