// SPDX-License-Identifier: Apache-2.0
// explanation_markdown: an explanation as Markdown: tables, memory over time as bars, the graph as the program's text.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <shardwise/io/explanation/figures.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// A table of Markdown and of HTML alike: the first `left` columns are texts, the others numbers.
struct explained_table {
  std::string title, note;
  std::size_t left = 1;
  std::vector<std::vector<std::string>> rows;  // the first one is the head

  void row(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
};

inline std::string sum_text(const explanation& e) {
  std::string mesh;
  for (const auto& a : e.axes) mesh += (mesh.empty() ? "" : ", ") + a.name + " = " + std::to_string(a.size);
  const auto& last = e.passes.back();
  return std::to_string(e.ranks) + (e.ranks == 1 ? " rank" : " ranks") + " (" + mesh + "); " + std::to_string(last.nodes) +
         " nodes, " + std::to_string(last.launches) + " kernel launches, " + std::to_string(e.collectives) +
         (e.collectives == 1 ? " collective" : " collectives") + "; " + std::to_string(e.total_bytes) +
         " bytes sent by the busiest rank; " + std::to_string(e.peak) + " bytes of memory on each rank.";
}

inline explained_table plan_table(const explanation& e) {
  explained_table t{"Plan", "What the program holds and is given, and where it lies.", 3 + e.axes.size(), {}};
  std::vector<std::string> head{"kind", "name", "shape"};
  for (const auto& a : e.axes) head.push_back("on " + a.name);
  head.push_back("on rank 0");
  t.left = head.size();
  head.push_back("elements");
  head.push_back("of them on rank 0");
  t.row(std::move(head));
  for (const auto& x : e.tensors) {
    std::vector<std::string> cells{x.kind, x.name, x.shape};
    cells.insert(cells.end(), x.places.begin(), x.places.end());
    cells.push_back(x.block);
    cells.push_back(std::to_string(x.elements));
    cells.push_back(std::to_string(x.own));
    t.row(std::move(cells));
  }
  return t;
}

inline explained_table axes_table(const explanation& e) {
  explained_table t{"Communication by axis", "Bytes sent in one run, by the rank that sends most on the axis.", 3, {}};
  t.row({"axis", "collective", "phase", "times", "bytes"});
  for (int a = 0; a < static_cast<int>(e.axes.size()); ++a) {
    for (const transition moved : collectives)
      for (int p = 0; p < program_phases; ++p) {
        const auto phase = static_cast<program_phase>(p);
        int times = 0;
        for (const auto& n : e.nodes)
          times += n.axis == a && n.phase == phase && std::string_view(n.moved) == name_of(moved) ? 1 : 0;
        if (times > 0)
          t.row({e.axes[static_cast<std::size_t>(a)].name, name_of(moved), name_of(phase), std::to_string(times),
                 std::to_string(e.sent(a, name_of(moved), phase))});
      }
    int times = 0;
    for (const auto& n : e.nodes) times += n.axis == a ? 1 : 0;
    t.row({e.axes[static_cast<std::size_t>(a)].name, "all", "", std::to_string(times),
           std::to_string(e.axes[static_cast<std::size_t>(a)].bytes)});
  }
  return t;
}

inline explained_table collectives_table(const explanation& e) {
  explained_table t{"Collectives in order", "Those of one batch go out together: the later ones are marked with +.", 6, {}};
  t.row({"node", "collective", "axis", "tensor", "module", "phase", "bytes"});
  for (const auto& n : e.nodes)
    if (n.kind == explanation::kind::collective)
      t.row({(n.with_before ? "+ " : "") + n.name, n.moved, e.axes[static_cast<std::size_t>(n.axis)].name, n.tensor,
             n.module, name_of(n.phase), std::to_string(n.bytes)});
  return t;
}

inline explained_table memory_table(const explanation& e) {
  explained_table t{"Memory by kind", "The arena of a rank where most of it is live.", 1, {}};
  t.row({"kind", "bytes"});
  for (const auto& x : e.memory) t.row({x.name, std::to_string(x.bytes)});
  t.row({"all", std::to_string(e.peak)});
  return t;
}

inline explained_table phases_table(const explanation& e) {
  explained_table t{"Memory by phase", "The most that is live while a node of the phase runs.", 1, {}};
  t.row({"phase", "bytes"});
  for (const auto& x : e.most) t.row({x.name, std::to_string(x.bytes)});
  return t;
}

inline explained_table kernels_table(const explanation& e) {
  explained_table t{"Kernels", "Launches by operation, after each pass; kernels that start together are one launch.", 1, {}};
  std::vector<std::string> head{"operation"}, launches{"launches"}, kernels{"kernels"}, nodes{"nodes"};
  for (const auto& p : e.passes) {
    head.push_back(p.name);
    launches.push_back(std::to_string(p.launches));
    kernels.push_back(std::to_string(p.kernels));
    nodes.push_back(std::to_string(p.nodes));
  }
  t.row(std::move(head));
  for (const auto& c : e.kernels) {
    std::vector<std::string> cells{c.name};
    for (const int n : c.launches) cells.push_back(std::to_string(n));
    t.row(std::move(cells));
  }
  t.row(std::move(launches));
  t.row(std::move(kernels));
  t.row(std::move(nodes));
  return t;
}

// The most that is live in each of at most `most` equal stretches of what runs, in program order.
struct memory_stretch {
  int first = 0, last = 0;  // nodes
  std::int64_t live = 0;
};
inline std::vector<memory_stretch> memory_stretches(const explanation& e, std::size_t most) {
  std::vector<int> run;
  for (int i = 0; i < static_cast<int>(e.nodes.size()); ++i)
    if (const auto k = e.nodes[static_cast<std::size_t>(i)].kind;
        k == explanation::kind::kernel || k == explanation::kind::collective)
      run.push_back(i);
  std::vector<memory_stretch> out;
  const std::size_t length = std::max<std::size_t>(1, (run.size() + most - 1) / most);
  for (std::size_t at = 0; at < run.size(); at += length) {
    memory_stretch s{run[at], run[std::min(at + length, run.size()) - 1], 0};
    for (std::size_t k = at; k < std::min(at + length, run.size()); ++k)
      s.live = std::max(s.live, e.nodes[static_cast<std::size_t>(run[k])].live);
    out.push_back(s);
  }
  return out;
}

inline std::string markdown_cell(std::string_view s) {
  std::string out;
  for (const char c : s) {
    if (c == '|' || c == '\\' || c == '*' || c == '_' || c == '<' || c == '`') out += '\\';
    out += c;
  }
  return out;
}

inline void put_markdown(std::string& out, const explained_table& t) {
  out += "\n## " + t.title + "\n\n" + t.note + "\n\n";
  if (t.rows.size() == 1) {
    out += "None.\n";
    return;
  }
  for (std::size_t r = 0; r < t.rows.size(); ++r) {
    out += "|";
    for (const auto& c : t.rows[r]) out += " " + markdown_cell(c) + " |";
    out += "\n";
    if (r != 0) continue;
    out += "|";
    for (std::size_t k = 0; k < t.rows[0].size(); ++k) out += k < t.left ? " --- |" : " ---: |";
    out += "\n";
  }
}

}  // namespace detail

inline std::string explanation_markdown(const explanation& e) {
  std::string out = "# " + detail::markdown_cell(e.name) + "\n\n" + detail::markdown_cell(detail::sum_text(e)) + "\n";
  detail::put_markdown(out, detail::plan_table(e));
  detail::put_markdown(out, detail::axes_table(e));
  detail::put_markdown(out, detail::collectives_table(e));
  detail::put_markdown(out, detail::memory_table(e));
  detail::put_markdown(out, detail::phases_table(e));
  out +=
      "\n## Memory over time\n\nBytes of the arena in use, in program order; a stretch of nodes is as its fullest one.\n\n```text\n";
  const auto stretches = detail::memory_stretches(e, 40);
  std::size_t wide = 0;
  for (const auto& s : stretches) wide = std::max(wide, e.nodes[static_cast<std::size_t>(s.first)].name.size());
  for (const auto& s : stretches) {
    const std::int64_t bar = e.peak > 0 ? (50 * s.live + e.peak / 2) / e.peak : 0;
    out += detail::padded(e.nodes[static_cast<std::size_t>(s.first)].name, wide) + " " +
           detail::padded(std::to_string(s.live), std::to_string(e.peak).size(), true) + " " +
           std::string(static_cast<std::size_t>(bar), '#') + "\n";
  }
  out += "```\n";
  detail::put_markdown(out, detail::kernels_table(e));
  if (!e.subgraphs.empty()) out += "\n```text\n" + e.subgraphs + "```\n";
  out += "\n## Graph\n\n```text\n";
  for (const auto& n : e.nodes) out += n.text + "\n";
  for (const int o : e.outputs) out += "return %" + e.nodes[static_cast<std::size_t>(o)].name + "\n";
  return out + "```\n\n## Type\n\n```text\n" + e.type + "\n```\n";
}

}  // namespace shardwise::inline v0_1
