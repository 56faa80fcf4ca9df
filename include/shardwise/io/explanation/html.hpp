// SPDX-License-Identifier: Apache-2.0
// explanation_html: an explanation as one page that needs nothing but itself: tables, and as SVG the graph, memory over time,
// communication by axis and kernels. Well-formed XML, readable in light and dark.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <shardwise/io/explanation/markdown.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

inline std::string escaped(std::string_view s) {
  std::string out;
  for (const char c : s) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') out += ' ';
    else out += c;
  }
  return out;
}

// "1.2 MB": for labels beside exact numbers.
inline std::string short_bytes(std::int64_t n) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  double x = static_cast<double>(n);
  int u = 0;
  for (; x >= 1000 && u < 4; ++u) x /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, u == 0 || x >= 100 ? "%.0f %s" : "%.1f %s", x, units[u]);
  return text;
}

inline std::string coordinate_text(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", x);
  return text;
}

inline constexpr const char* page_style =
    ":root{color-scheme:light dark;--page:#fff;--ink:#1c2024;--soft:#60676f;--line:#d5d9de;--band:#f3f5f7;"
    "--forward:#2f6fb5;--backward:#b5572f;--optimizer:#4b8a3f;--leaf:#8a8f96;--view:#c3c8ce;--collective:#8a3fa8;--peak:#c22}"
    "@media (prefers-color-scheme:dark){:root{--page:#16181b;--ink:#e6e8ea;--soft:#9aa1a9;--line:#363b41;--band:#1f2327;"
    "--forward:#6aa5e6;--backward:#e68d66;--optimizer:#83c276;--leaf:#8d949c;--view:#565d65;--collective:#c98ae0;--peak:#f66}}"
    "body{margin:2em auto;max-width:72em;padding:0 1em;background:var(--page);color:var(--ink);font:15px/1.45 system-ui,sans-serif}"
    "h1,h2{line-height:1.2}p{color:var(--soft)}table{border-collapse:collapse;font-size:13px}"
    "th,td{padding:.2em .7em;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.scroll{overflow:auto;max-height:44em;border:1px solid var(--line)}"
    "svg{display:block}svg text{fill:var(--ink);font:11px system-ui,sans-serif}svg .soft{fill:var(--soft)}"
    "pre{background:var(--band);padding:.8em;overflow:auto;font-size:12px}details{margin:1em 0}"
    ".forward{fill:var(--forward)}.backward{fill:var(--backward)}.optimizer{fill:var(--optimizer)}.leaf{fill:var(--leaf)}"
    ".view{fill:var(--view)}.collective{fill:var(--collective)}.box{fill:var(--band);stroke:var(--line)}"
    ".edge{fill:none;stroke:var(--soft);stroke-opacity:.45}.axis{stroke:var(--line)}.peak{stroke:var(--peak);stroke-dasharray:5 4}"
    ".all_reduce{fill:#8a3fa8}.reduce_scatter{fill:#3f6fa8}.all_gather{fill:#3fa88a}.all_to_all{fill:#a8893f}.exchange_halo{fill:#a83f5b}";

inline void put_html(std::string& out, const explained_table& t, const char* id) {
  out += "<h2>" + escaped(t.title) + "</h2>\n<p>" + escaped(t.note) + "</p>\n";
  if (t.rows.size() == 1) {
    out += "<p>None.</p>\n";
    return;
  }
  out += "<div class=\"scroll\"><table id=\"" + std::string(id) + "\">\n";
  for (std::size_t r = 0; r < t.rows.size(); ++r) {
    const std::string tag = r == 0 ? "th" : "td";
    out += "<tr>";
    for (std::size_t k = 0; k < t.rows[r].size(); ++k)
      out += "<" + tag + (k < t.left ? ">" : " class=\"n\">") + escaped(t.rows[r][k]) + "</" + tag + ">";
    out += "</tr>\n";
  }
  out += "</table></div>\n";
}

inline std::string svg_open(const char* id, double width, double height, const std::string& label) {
  const std::string w = coordinate_text(width), h = coordinate_text(height);
  return "<svg id=\"" + std::string(id) + "\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"" +
         escaped(label) + "\" width=\"" + w + "\" height=\"" + h + "\" viewBox=\"0 0 " + w + " " + h + "\">\n";
}
inline std::string svg_text(double x, double y, std::string_view text, const char* more = "") {
  return "<text x=\"" + coordinate_text(x) + "\" y=\"" + coordinate_text(y) + "\"" + more + ">" + escaped(text) + "</text>";
}
inline std::string svg_rect(double x, double y, double w, double h, const std::string& kind, const std::string& title) {
  return "<rect class=\"" + kind + "\" x=\"" + coordinate_text(x) + "\" y=\"" + coordinate_text(y) + "\" width=\"" +
         coordinate_text(w) + "\" height=\"" + coordinate_text(h) + "\"><title>" + escaped(title) + "</title></rect>\n";
}

// A bar for each kernel and collective in program order, in the colour of its phase; a program of more than 1500 is drawn in stretches.
inline void put_memory_picture(std::string& out, const explanation& e) {
  const auto stretches = memory_stretches(e, 1500);
  const double width = 960, height = 260, left = 70, low = height - 30, high = 20;
  const double top = static_cast<double>(std::max<std::int64_t>(e.peak, 1));
  const auto y = [&](std::int64_t bytes) { return low - (low - high) * static_cast<double>(bytes) / top; };
  out +=
      "<h2>Memory over time</h2>\n<p>Bytes of a rank's arena in use while each kernel and collective runs, in program order. "
      "The grey foot is what lives as long as the program; the dashed line is the arena's size.</p>\n<div class=\"scroll\">";
  out += svg_open("memory", width, height, "memory over time");
  const double step = (width - left - 10) / static_cast<double>(std::max<std::size_t>(1, stretches.size()));
  for (std::size_t k = 0; k < stretches.size(); ++k) {
    const auto& s = stretches[k];
    const auto& n = e.nodes[static_cast<std::size_t>(s.first)];
    const std::string upto = s.last == s.first ? "" : " to " + e.nodes[static_cast<std::size_t>(s.last)].name;
    out += svg_rect(left + step * static_cast<double>(k), y(s.live), step, low - y(s.live), name_of(n.phase),
                    n.name + upto + (n.module.empty() ? "" : " in " + n.module) + ": " + std::to_string(s.live) + " bytes");
  }
  out += svg_rect(left, y(e.persistent), width - left - 10, low - y(e.persistent), "leaf",
                  "all the time: " + std::to_string(e.persistent) + " bytes");
  for (int k = 0; k <= 4; ++k) {
    const std::int64_t bytes = e.peak * k / 4;
    const std::string at = coordinate_text(y(bytes));
    out += "<line class=\"" + std::string(k == 4 ? "peak" : "axis") + "\" x1=\"" + coordinate_text(left) + "\" x2=\"" +
           coordinate_text(width - 10) + "\" y1=\"" + at + "\" y2=\"" + at + "\"/>" +
           svg_text(left - 6, y(bytes) + 4, short_bytes(bytes), " text-anchor=\"end\"") + "\n";
  }
  double x = left;
  for (int p = 0; p < program_phases; ++p) {
    const char* const name = name_of(static_cast<program_phase>(p));
    out += svg_rect(x, height - 16, 10, 10, name, name) + svg_text(x + 14, height - 7, name, " class=\"soft\"");
    x += 90;
  }
  out += "</svg></div>\n";
}

// A bar for each axis, cut by the kind of collective.
inline void put_communication_picture(std::string& out, const explanation& e) {
  std::int64_t most = 1;
  std::size_t wide = 4;
  for (const auto& a : e.axes) {
    most = std::max(most, a.bytes);
    wide = std::max(wide, a.name.size());
  }
  const double left = 20 + 7 * static_cast<double>(wide), width = 960;
  const double height = 30 * static_cast<double>(e.axes.size()) + 30;
  out += "<div class=\"scroll\">" + svg_open("communication", width, height, "communication by axis");
  for (std::size_t a = 0; a < e.axes.size(); ++a) {
    double x = left;
    const double at = 30 * static_cast<double>(a) + 6;
    out += svg_text(left - 8, at + 14, e.axes[a].name, " text-anchor=\"end\"");
    for (const transition moved : collectives)
      if (const std::int64_t bytes = e.sent(static_cast<int>(a), name_of(moved)); bytes > 0) {
        const double w = (width - left - 110) * static_cast<double>(bytes) / static_cast<double>(most);
        out += svg_rect(x, at, w, 20, name_of(moved),
                        std::string(name_of(moved)) + " on " + e.axes[a].name + ": " + std::to_string(bytes) + " bytes");
        x += w;
      }
    out += svg_text(x + 6, at + 14, short_bytes(e.axes[a].bytes)) + "\n";
  }
  double x = left;
  for (const transition moved : collectives) {
    bool any = false;
    for (std::size_t a = 0; a < e.axes.size(); ++a) any = any || e.sent(static_cast<int>(a), name_of(moved)) > 0;
    if (!any) continue;
    out += svg_rect(x, height - 16, 10, 10, name_of(moved), name_of(moved)) +
           svg_text(x + 14, height - 7, name_of(moved), " class=\"soft\"");
    x += 120;
  }
  out += "</svg></div>\n";
}

// A bar for each operation of the program, by its launches.
inline void put_kernels_picture(std::string& out, const explanation& e) {
  std::vector<const explanation::count*> bars;
  for (const auto& c : e.kernels)
    if (c.launches.back() > 0) bars.push_back(&c);
  std::sort(bars.begin(), bars.end(), [](const auto* a, const auto* b) {
    return a->launches.back() != b->launches.back() ? a->launches.back() > b->launches.back() : a->name < b->name;
  });
  const double most = bars.empty() ? 1 : static_cast<double>(bars.front()->launches.back());
  std::size_t wide = 4;
  for (const auto* c : bars) wide = std::max(wide, c->name.size());
  const double left = 20 + 7 * static_cast<double>(wide), width = 960;
  out += "<div class=\"scroll\">" +
         svg_open("kernels", width, 18 * static_cast<double>(bars.size()) + 10, "kernel launches by operation");
  for (std::size_t k = 0; k < bars.size(); ++k) {
    const double at = 18 * static_cast<double>(k) + 4, w = (width - left - 60) * bars[k]->launches.back() / most;
    out +=
        svg_text(left - 8, at + 11, bars[k]->name, " text-anchor=\"end\"") +
        svg_text(left + w + 6, at + 11, std::to_string(bars[k]->launches.back())) + "\n" +
        svg_rect(left, at, w, 14, "forward", bars[k]->name + ": " + std::to_string(bars[k]->launches.back()) + " launches");
  }
  out += "</svg></div>\n";
}

struct node_place {
  int row = 0;
  double x = 0;
};

// Nodes in rows: below all that they read; leaves, and what reads leaves alone, right above the first row that reads them. In a row
// from left to right by the mean of what they read, so that chains stay straight. Price: a sort of each row.
inline std::vector<node_place> graph_places(const explanation& e) {
  const std::size_t n = e.nodes.size();
  std::vector<node_place> at(n);
  std::vector<int> reader(n, -1);     // that stands highest
  std::vector<bool> floats(n, true);  // its row follows from its readers
  for (std::size_t i = 0; i < n; ++i)
    for (const int k : e.nodes[i].inputs) {
      at[i].row = std::max(at[i].row, at[static_cast<std::size_t>(k)].row + 1);
      floats[i] = floats[i] && e.nodes[static_cast<std::size_t>(k)].kind == explanation::kind::leaf;
    }
  int rows = 1;
  for (std::size_t i = n; i-- > 0;) {
    if (floats[i] && reader[i] >= 0) at[i].row = at[static_cast<std::size_t>(reader[i])].row - 1;
    rows = std::max(rows, at[i].row + 1);
    for (const int k : e.nodes[i].inputs) {
      int& r = reader[static_cast<std::size_t>(k)];
      if (r < 0 || at[i].row <= at[static_cast<std::size_t>(r)].row) r = static_cast<int>(i);
    }
  }
  std::vector<std::vector<std::size_t>> row(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < n; ++i) row[static_cast<std::size_t>(at[i].row)].push_back(i);
  for (auto& members : row) {
    for (const std::size_t i : members) {
      const bool beside = floats[i] && reader[i] >= 0;  // as what its reader reads besides
      const std::size_t of = beside ? static_cast<std::size_t>(reader[i]) : i;
      double sum = 0;
      int count = 0;
      for (const int k : e.nodes[of].inputs) {
        const auto from = static_cast<std::size_t>(k);
        if ((beside && floats[from]) || at[from].row > at[i].row) continue;
        sum += at[from].x;
        ++count;
      }
      at[i].x = (count > 0 ? sum / count : 0) + (beside ? 0.5 : 0);
    }
    std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) { return at[a].x < at[b].x; });
    double next = 0;
    for (const std::size_t i : members) next = (at[i].x = std::max(at[i].x, next)) + 1;
  }
  return at;
}

inline void put_graph_picture(std::string& out, const explanation& e) {
  const std::vector<node_place> places = graph_places(e);
  const double wide = 170, tall = 54;
  double columns = 1;
  int rows = 1;
  for (const auto& p : places) {
    columns = std::max(columns, p.x + 1);
    rows = std::max(rows, p.row + 1);
  }
  out +=
      "<h2>Graph</h2>\n<p>Each node below what it reads; hover for its line of the program. The stripe's colour: leaf, view, "
      "kernel by phase, collective.</p>\n<div class=\"scroll\">";
  out += svg_open("graph", columns * wide + 20, rows * tall + 10, "the program's graph");
  for (std::size_t i = 0; i < e.nodes.size(); ++i)
    for (const int k : e.nodes[i].inputs) {
      const node_place &a = places[static_cast<std::size_t>(k)], &b = places[i];
      const double x1 = a.x * wide + wide / 2, y1 = a.row * tall + 44, x2 = b.x * wide + wide / 2, y2 = b.row * tall + 10;
      const double bend = std::max(6.0, (y2 - y1) / 2);
      out += "<path class=\"edge\" d=\"M" + coordinate_text(x1) + " " + coordinate_text(y1) + "C" + coordinate_text(x1) +
             " " + coordinate_text(y1 + bend) + " " + coordinate_text(x2) + " " + coordinate_text(y2 - bend) + " " +
             coordinate_text(x2) + " " + coordinate_text(y2) + "\"/>\n";
    }
  for (std::size_t i = 0; i < e.nodes.size(); ++i) {
    const auto& n = e.nodes[i];
    const double x = places[i].x * wide + 6, y = places[i].row * tall + 10;
    const char* const kind = n.kind == explanation::kind::leaf         ? "leaf"
                             : n.kind == explanation::kind::view       ? "view"
                             : n.kind == explanation::kind::collective ? "collective"
                                                                       : name_of(n.phase);
    const std::string second = n.kind == explanation::kind::collective
                                   ? e.axes[static_cast<std::size_t>(n.axis)].name + ": " + short_bytes(n.bytes)
                                   : n.tensor;
    out += "<g class=\"node\"><title>" + escaped(n.text) + "</title><rect class=\"box\" x=\"" + coordinate_text(x) +
           "\" y=\"" + coordinate_text(y) + "\" width=\"" + coordinate_text(wide - 12) + "\" height=\"34\"/><rect class=\"" +
           kind + "\" x=\"" + coordinate_text(x) + "\" y=\"" + coordinate_text(y) + "\" width=\"5\" height=\"34\"/>" +
           svg_text(x + 11, y + 14, n.name.size() > 24 ? n.name.substr(0, 23) + "~" : n.name) +
           svg_text(x + 11, y + 28, second, " class=\"soft\"") + "</g>\n";
  }
  out += "</svg></div>\n";
}

}  // namespace detail

inline std::string explanation_html(const explanation& e) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
      detail::escaped(e.name) + "</title>\n<style>" + detail::page_style + "</style>\n</head>\n<body>\n<h1>" +
      detail::escaped(e.name) + "</h1>\n<p id=\"sums\">" + detail::escaped(detail::sum_text(e)) + "</p>\n";
  detail::put_html(out, detail::plan_table(e), "plan-table");
  detail::put_html(out, detail::axes_table(e), "axes-table");
  detail::put_communication_picture(out, e);
  detail::put_html(out, detail::collectives_table(e), "collectives-table");
  detail::put_memory_picture(out, e);
  detail::put_html(out, detail::memory_table(e), "memory-table");
  detail::put_html(out, detail::phases_table(e), "phases-table");
  detail::put_html(out, detail::kernels_table(e), "kernels-table");
  detail::put_kernels_picture(out, e);
  if (!e.subgraphs.empty()) out += "<pre>" + detail::escaped(e.subgraphs) + "</pre>\n";
  detail::put_graph_picture(out, e);
  out += "<details><summary>The program as text</summary><pre>";
  for (const auto& n : e.nodes) out += detail::escaped(n.text) + "\n";
  for (const int o : e.outputs) out += "return %" + detail::escaped(e.nodes[static_cast<std::size_t>(o)].name) + "\n";
  return out + "</pre></details>\n<details><summary>Its type</summary><pre>" + detail::escaped(e.type) +
         "</pre></details>\n</body>\n</html>\n";
}

}  // namespace shardwise::inline v0_1
