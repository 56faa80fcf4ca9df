// SPDX-License-Identifier: Apache-2.0
// explain: what a step costs, from its constants alone: collectives in order, memory by phase, kernels before and after
// each pass of its pipeline. Nothing is run.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <shardwise/io/dump.hpp>
#include <shardwise/pass/kernels.hpp>
#include <shardwise/runtime/describe.hpp>

namespace shardwise {

namespace detail {

// Rows of cells, columns as wide as they need; the first `left` columns begin at the left, numbers end at the right.
class text_table {
 public:
  explicit text_table(std::size_t left) : left_(left) {}
  void row(std::vector<std::string> cells) {
    width_.resize(std::max(width_.size(), cells.size()), 0);
    for (std::size_t k = 0; k < cells.size(); ++k) width_[k] = std::max(width_[k], cells[k].size());
    rows_.push_back(std::move(cells));
  }
  std::string text() const {
    std::string out;
    for (const auto& cells : rows_) {
      std::string line = " ";
      for (std::size_t k = 0; k < cells.size(); ++k) line += " " + padded(cells[k], width_[k], k >= left_) + (k + 1 < cells.size() ? " " : "");
      while (line.back() == ' ') line.pop_back();
      out += line + "\n";
    }
    return out;
  }

 private:
  std::size_t left_;
  std::vector<std::size_t> width_;
  std::vector<std::vector<std::string>> rows_;
};

struct counted_graph {
  std::string after;  // the pass, "" for the graph that the pipeline begins with
  passes::kernel_counts kernels;
  int nodes = 0;
};

template <class Source, class Pipeline, class Applied = passes_list<>>
struct count_passes {
  static void run(std::vector<counted_graph>&) {}
};
template <class Source, class P, class... Rest, class Applied>
struct count_passes<Source, pipeline<P, Rest...>, Applied> {
  static void run(std::vector<counted_graph>& all) {
    using done = typename one_pass<P, Source, Applied>::done;
    all.push_back({file_stem(type_name<P>()), passes::kernel_calls(done::type::value), done::type::value.node_count});
    count_passes<typename done::type, pipeline<Rest...>, typename appended<Applied, P>::type>::run(all);
  }
};

// Kernels and launches before a pipeline and behind it, and how many times fewer launches these are.
inline std::string kernels_line(const counted_graph& from, const counted_graph& to) {
  const auto count = [](const passes::kernel_counts& c) {
    return std::to_string(c.kernels) + " kernels in " + std::to_string(c.launches) + " launches";
  };
  std::string line = "as written, one kernel for each operation: " + count(from.kernels);
  if (to.after != from.after && to.kernels.launches > 0) {
    const long hundredths = (100L * from.kernels.launches + to.kernels.launches / 2) / to.kernels.launches;
    const std::string rest = std::to_string(hundredths % 100);
    line += "; after " + to.after + ": " + count(to.kernels) + ", " + std::to_string(hundredths / 100) + (rest.size() < 2 ? ".0" : ".") +
            rest + " times fewer";
  }
  return line + "\n";
}

// The first node of the backward part (the seed of differentiation) and of the optimizer; node_count where there is none.
struct phases {
  int backward = 0, optimizer = 0;
};
template <class Graph>
constexpr phases phases_of(const Graph& g) {
  phases p{g.node_count, g.node_count};
  int last_fill = -1;
  bool updates = false;
  for (int i = 0; i < g.node_count; ++i) updates = updates || is_update(g.nodes[i].op);
  for (int i = g.node_count - 1; i >= 0; --i) {
    const op_code op = g.nodes[i].op;
    if (updates && (is_update(op) || op == op_code::sumsq)) p.optimizer = i;
    if (op == op_code::fill && g.spec_of(i).rank == 0) last_fill = i;
  }
  if (last_fill >= 0 && last_fill < p.optimizer) p.backward = last_fill;
  if (p.backward > p.optimizer) p.backward = p.optimizer;
  return p;
}

}  // namespace detail

// Every collective in program order with its axis and the bytes that rank 0 sends; neighbours that are alike are one line.
template <class Step>
std::string explain_collectives(const std::vector<std::string>& axes = {}) {
  using mesh_type = typename Step::mesh_type;
  const auto& g = Step::program;
  const std::vector<std::string> names = detail::axis_names(axes, mesh_type::axes);
  constexpr int origin[max_axes]{};
  detail::text_table t(3);
  t.row({"collective", "axis", "tensor", "times", "bytes"});
  std::vector<std::string> open;
  std::int64_t times = 0, bytes = 0, total = 0;
  int count = 0;
  const auto close = [&] {
    if (times == 0) return;
    std::vector<std::string> cells = open;
    cells.push_back(std::to_string(times));
    cells.push_back(std::to_string(times * bytes));
    t.row(std::move(cells));
    times = 0;
  };
  for (int i = 0; i < g.node_count; ++i) {
    if (!communicates(detail::transition_at(g, i))) continue;
    const int axis = static_cast<int>(g.nodes[i].a.v[0]);
    const spec& from = g.spec_of(g.nodes[i].in[0]);
    std::vector<std::string> cells{detail::base_name(detail::base_of(g, i)), names[static_cast<std::size_t>(axis)], extents_text(from)};
    const std::int64_t sent = bytes_sent(from, g.spec_of(i), axis, origin);
    if (times > 0 && (cells != open || sent != bytes)) close();
    open = std::move(cells);
    bytes = sent;
    total += sent;
    ++times;
    ++count;
  }
  close();
  t.row({"all", "", "", std::to_string(count), std::to_string(total)});
  return "collectives of a step, bytes sent by rank 0\n" + t.text();
}

// The arena's parts, and how high each phase of a step reaches.
template <class Step>
std::string explain_memory() {
  const auto& g = Step::program;
  const auto& plan = Step::memory::value;
  std::int64_t parameters = 0, states = 0, inputs = 0;
  const detail::phases p = detail::phases_of(g);
  std::int64_t top[3]{}, largest[3]{};
  for (int i = 0; i < g.node_count; ++i) {
    const op_code op = g.nodes[i].op;
    if (op == op_code::param) parameters += plan.bytes[i];
    else if (op == op_code::state) states += plan.bytes[i];
    else if (op == op_code::input) inputs += plan.bytes[i];
    else {
      const int phase = i >= p.optimizer ? 2 : i >= p.backward ? 1 : 0;
      top[phase] = std::max(top[phase], plan.bytes[i] > 0 ? plan.offset[i] + plan.bytes[i] : 0);
      largest[phase] = std::max(largest[phase], plan.bytes[i]);
    }
  }
  detail::text_table t(1);
  t.row({"part of the arena", "bytes"});
  t.row({"workspace", std::to_string(plan.workspace)});
  t.row({"parameters", std::to_string(parameters)});
  t.row({"optimizer states", std::to_string(states)});
  t.row({"inputs", std::to_string(inputs)});
  t.row({"values of a step", std::to_string(Step::peak_bytes - plan.persistent_end)});
  t.row({"all", std::to_string(Step::peak_bytes)});
  detail::text_table by(1);
  by.row({"phase", "reaches", "largest value"});
  const char* const phase[3] = {"forward", "backward", "optimizer"};
  for (std::size_t k = 0; k < 3; ++k)
    if (largest[k] > 0) by.row({phase[k], std::to_string(top[k]), std::to_string(largest[k])});
  return "memory of a rank\n" + t.text() + by.text();
}

// Kernels of a step by operation, as written and after each pass; kernels that start together count once, and `kernels`
// counts them singly.
template <class Step>
std::string explain_kernels() {
  using from = detail::pipeline_of<Step>;
  std::vector<detail::counted_graph> all{{"as written", passes::kernel_calls(from::source::value), from::source::value.node_count}};
  detail::count_passes<typename from::source, typename from::type>::run(all);
  detail::text_table t(1);
  std::vector<std::string> head{"operation"}, launches{"launches"}, kernels{"kernels"}, nodes{"nodes"};
  for (const auto& c : all) {
    head.push_back(c.after);
    launches.push_back(std::to_string(c.kernels.launches));
    kernels.push_back(std::to_string(c.kernels.kernels));
    nodes.push_back(std::to_string(c.nodes));
  }
  t.row(std::move(head));
  for (int op = 0; op < static_cast<int>(op_code::count); ++op) {
    std::vector<std::string> cells{name_of(static_cast<op_code>(op))};
    bool any = false;
    for (const auto& c : all) {
      any = any || c.kernels.of[op] > 0;
      cells.push_back(std::to_string(c.kernels.of[op]));
    }
    if (any) t.row(std::move(cells));
  }
  t.row(std::move(launches));
  t.row(std::move(kernels));
  t.row(std::move(nodes));
  return "kernels of a step\n" + detail::kernels_line(all.front(), all.back()) + t.text();
}

// All of it. `axes` names the mesh's axes in order.
template <class Step>
std::string explain(const std::vector<std::string>& axes = {}) {
  return explain_collectives<Step>(axes) + "\n" + explain_memory<Step>() + "\n" + explain_kernels<Step>();
}

}  // namespace shardwise
