// SPDX-License-Identifier: Apache-2.0
// explain: what a step costs, from its constants alone: collectives in order, memory by kind and phase, kernels before and
// after each pass of its pipeline, subgraphs that are units. Nothing is run.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <shardwise/io/lowered_subgraphs.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/memory/memory_breakdown.hpp>
#include <shardwise/runtime/program/describe.hpp>

namespace shardwise::inline v0_1 {

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
      for (std::size_t k = 0; k < cells.size(); ++k)
        line += " " + padded(cells[k], width_[k], k >= left_) + (k + 1 < cells.size() ? " " : "");
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
    line += "; after " + to.after + ": " + count(to.kernels) + ", " + std::to_string(hundredths / 100) +
            (rest.size() < 2 ? ".0" : ".") + rest + " times fewer";
  }
  return line + "\n";
}

}  // namespace detail

// Every collective, a batch as one, in program order with its axis, the phase that it belongs to and the bytes that rank 0 sends; neighbours
// that are alike are one line. Then the sums of each phase.
template <class Step>
std::string explain_collectives(const std::vector<std::string>& axes = {}) {
  using mesh_type = typename Step::mesh_type;
  const auto& g = Step::program;
  const std::vector<std::string> names = detail::axis_names(axes, mesh_type::axes);
  passes::phase_marks<std::remove_cvref_t<decltype(g)>::node_capacity> marks;
  passes::mark_phases(marks, g);
  constexpr int origin[max_axes]{};
  struct sum {
    std::int64_t times = 0, bytes = 0;
    void add(std::int64_t t, std::int64_t b) {
      times += t;
      bytes += b;
    }
  };
  detail::text_table t(4);
  t.row({"collective", "axis", "tensor", "phase", "times", "bytes"});
  const auto line = [&](std::vector<std::string> cells, const sum& s) {
    cells.push_back(std::to_string(s.times));
    cells.push_back(std::to_string(s.bytes));
    t.row(std::move(cells));
  };
  std::vector<std::string> open;
  sum run, by_phase[program_phases], all;
  for (int i = 0; i < g.node_count; ++i) {
    if (!communicates(detail::transition_at(g, i))) continue;
    if (joins_batch(g, i)) continue;  // with its first member
    const int axis = static_cast<int>(attributes_of<redistribute_attributes>(g.nodes[i].a).axis);
    std::int64_t sent = 0;
    int members = 0;
    each_member(g, i, [&](int j) {
      sent += bytes_sent(g.spec_of(g.nodes[j].in[0]), g.spec_of(j), axis, origin);
      ++members;
    });
    const std::string more = members > 1 ? " and " + std::to_string(members - 1) + " more" : "";
    std::vector<std::string> cells{detail::base_name(g, detail::base_of(g, i)), names[static_cast<std::size_t>(axis)],
                                   extents_text(g.spec_of(g.nodes[i].in[0])) + more, name_of(marks.of(i))};
    if (run.times > 0 && (cells != open || sent * run.times != run.bytes)) {
      line(open, run);
      run = {};
    }
    open = std::move(cells);
    run.add(1, sent);
    by_phase[static_cast<int>(marks.of(i))].add(1, sent);
    all.add(1, sent);
  }
  if (run.times > 0) line(open, run);
  for (int p = 0; p < program_phases; ++p)
    if (by_phase[p].times > 0) line({"all", "", "", name_of(static_cast<program_phase>(p))}, by_phase[p]);
  line({"all", "", "", ""}, all);
  return "collectives of a step, bytes sent by rank 0\n" + t.text();
}

// What the arena holds where most of it is live, and the most that is live in each phase.
template <class Step>
std::string explain_memory() {
  constexpr const memory_breakdown& use = Step::memory_use::value;
  detail::text_table t(1);
  t.row({"kind", "bytes"});
  for (int k = 0; k < memory_kinds; ++k)
    if (use.kind[k] > 0) t.row({name_of(static_cast<memory_kind>(k)), std::to_string(use.kind[k])});
  if (use.live() < Step::peak_bytes) t.row({"free between buffers", std::to_string(Step::peak_bytes - use.live())});
  t.row({"all", std::to_string(Step::peak_bytes)});
  detail::text_table by(1);
  by.row({"phase", "most bytes live"});
  for (int p = 0; p < program_phases; ++p)
    if (use.phase[p] > 0) by.row({name_of(static_cast<program_phase>(p)), std::to_string(use.phase[p])});
  return "memory of a rank, by kind where it is fullest and by phase\n" + t.text() + by.text();
}

// Kernels of a step by operation, as written and after each pass; kernels that start together count once, and `kernels`
// counts them singly.
template <class Step>
std::string explain_kernels() {
  using from = detail::pipeline_of<Step>;
  std::vector<detail::counted_graph> all{
      {"as written", passes::kernel_calls(from::source::value), from::source::value.node_count}};
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

// The subgraphs that were lowered to one unit each; empty where there are none.
template <class Step>
std::string explain_subgraphs() {
  const auto& all = lowered_subgraphs<Step>();
  if (all.count == 0) return {};
  detail::text_table t(1);
  t.row({"subgraph", "nodes", "inputs", "outputs", "kernels before", "after"});
  int k = 0;
  for (const lowered_subgraph& u : all)
    t.row({unit_name + ("_" + std::to_string(k++)), std::to_string(u.nodes), std::to_string(u.inputs),
           std::to_string(u.outputs), std::to_string(u.kernels_before), std::to_string(u.kernels_after)});
  return "subgraphs lowered to one unit each\n" + t.text();
}

// All of it. `axes` names the mesh's axes in order.
template <class Step>
std::string explain(const std::vector<std::string>& axes = {}) {
  const std::string subgraphs = explain_subgraphs<Step>();
  return explain_collectives<Step>(axes) + "\n" + explain_memory<Step>() + "\n" + explain_kernels<Step>() +
         (subgraphs.empty() ? "" : "\n" + subgraphs);
}

}  // namespace shardwise::inline v0_1
