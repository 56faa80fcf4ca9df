// SPDX-License-Identifier: Apache-2.0
// A graph's names and its text, as plain program, Graphviz and Mermaid, written to anything with push_back(char).
#pragma once

#include <shardwise/graph/units.hpp>
#include <shardwise/propagation/transition.hpp>
#include <shardwise/support/words.hpp>

namespace shardwise::inline v0_1 {

enum class text_format : std::uint8_t { program, graphviz, mermaid };

// Names are given as fx gives them: the operation's own for its first node, then relu_1, relu_2, ... in program order. A
// redistribution that communicates is named after its collective.
namespace detail {

inline constexpr int collective_names = static_cast<int>(sizeof(collectives) / sizeof(transition));
inline constexpr int custom_names = static_cast<int>(op_code::count) + collective_names;  // the first custom operation's
inline constexpr int base_names = custom_names + max_custom;

template <class Graph>
constexpr int base_of(const Graph& g, int i) {
  const transition moved = transition_at(g, i);
  if (communicates(moved))
    for (int k = 0; k < collective_names; ++k)
      if (collectives[k] == moved) return static_cast<int>(op_code::count) + k;
  const node& n = g.nodes[i];
  return n.op == op_code::custom ? custom_names + static_cast<int>(n.a.v[custom_word]) : static_cast<int>(n.op);
}

template <class Graph>
constexpr const char* base_name(const Graph& g, int base) {
  if (base >= custom_names)
    return base - custom_names < g.custom_count ? g.customs[base - custom_names]->name.value : "custom";
  const int collective = base - static_cast<int>(op_code::count);
  return collective >= 0 ? name_of(collectives[collective]) : name_of(static_cast<op_code>(base));
}

}  // namespace detail

// Gives nodes their numbers one by one, in program order.
struct name_counter {
  int used[detail::base_names]{};

  template <class Graph>
  constexpr int next(const Graph& g, int i) {
    return used[detail::base_of(g, i)]++;
  }
};

// Number of every node among those of its base name, 0 for the first.
template <class Graph>
constexpr void number_nodes(const Graph& g, int* number) {
  name_counter names;
  for (int i = 0; i < g.node_count; ++i) number[i] = names.next(g, i);
}

namespace detail {

constexpr bool begins_with(const char* name, const char* base) {
  while (*base != '\0' && *base == *name) ++base, ++name;
  return *base == '\0';
}

// Whether `want` is the name of number `number` of those with base name `have`.
constexpr bool is_name(const char* want, const char* have, int number) {
  while (*have != '\0' && *have == *want) ++have, ++want;
  if (*have != '\0') return false;
  if (number == 0 && *want == '\0') return true;
  if (number == 0 || *want != '_') return false;
  int value = 0;
  const char* digit = ++want;
  while (*digit >= '0' && *digit <= '9' && value < 100'000'000) value = value * 10 + (*digit++ - '0');
  return digit != want && *digit == '\0' && *want != '0' && value == number;
}

}  // namespace detail

// The nodes that names[0], ... name, -1 where there is none.
template <class Graph>
constexpr void find_nodes(const Graph& g, const char* const* names, int count, int* found) {
  for (int k = 0; k < count; ++k) found[k] = -1;
  bool wanted[detail::base_names]{};  // few operations are: the others are passed over
  for (int b = 0; b < detail::custom_names + g.custom_count; ++b)
    for (int k = 0; k < count; ++k) wanted[b] = wanted[b] || detail::begins_with(names[k], detail::base_name(g, b));
  bool& redistributions = wanted[static_cast<int>(op_code::redistribute)];
  bool& customs = wanted[static_cast<int>(op_code::custom)];
  for (int b = static_cast<int>(op_code::count); b < detail::custom_names; ++b)
    redistributions = redistributions || wanted[b];
  for (int b = detail::custom_names; b < detail::base_names; ++b) customs = customs || wanted[b];
  name_counter counter;
  for (int i = 0, left = count; left > 0 && i < g.node_count; ++i) {
    if (!wanted[static_cast<int>(g.nodes[i].op)]) continue;
    const int base = detail::base_of(g, i), number = counter.used[base]++;
    const char* const have = detail::base_name(g, base);
    for (int k = 0; k < count; ++k)
      if (found[k] < 0 && *names[k] == *have && detail::is_name(names[k], have, number)) {
        found[k] = i;
        --left;
      }
  }
}
template <class Graph>
constexpr int find_node(const Graph& g, const char* name) {
  int found = -1;
  find_nodes(g, &name, 1, &found);
  return found;
}

namespace text {

// Mermaid labels are HTML: angle brackets are entities there.
template <class Sink>
constexpr void put_placement(Sink& out, const placement& p, bool html = false) {
  const char* const open = html ? "#lt;" : "<";
  const char* const close = html ? "#gt;" : ">";
  switch (p.kind) {
    case placement_kind::replicate: return put(out, "replicate");
    case placement_kind::reduced: return put(out, "reduced");
    case placement_kind::partial:
      put(out, p.is_norm() ? "partial_norm" : "partial");
      if (p.op == reduction::sum) return;
      put(out, open);
      if (p.is_norm()) {
        put(out, std::int64_t{p.order()});
        return put(out, close);
      }
      put(out, p.op == reduction::avg       ? "avg"
               : p.op == reduction::product ? "product"
               : p.op == reduction::max     ? "max"
                                            : "min");
      return put(out, close);
    case placement_kind::windows:
    case placement_kind::readers:
      put(out, "halo");
      put(out, open);
      put(out, std::int64_t{p.dim});
      put(out, ", ");
      put(out, std::int64_t{p.before()});
      put(out, ", ");
      put(out, std::int64_t{p.behind()});
      return put(out, close);
    case placement_kind::shard:
      put(out, p.is_strided() ? "strided_shard" : "shard");
      put(out, open);
      put(out, std::int64_t{p.dim});
      if (p.is_strided()) {
        put(out, ", ");
        put(out, std::int64_t{p.factor});
      }
      if (p.block != 1) {
        put(out, ", ");
        put(out, std::int64_t{p.block});
      }
      return put(out, close);
  }
}

template <class Sink>
constexpr void put_extents(Sink& out, const spec& s) {
  out.push_back('(');
  for (int d = 0; d < s.rank; ++d) {
    if (d > 0) put(out, ", ");
    put(out, s.extent[d]);
  }
  out.push_back(')');
}

template <class Sink>
constexpr void put_placements(Sink& out, const spec& s, bool html = false) {
  out.push_back('[');
  for (int a = 0; a < s.axes; ++a) {
    if (a > 0) put(out, ", ");
    put_placement(out, s.place[a], html);
  }
  out.push_back(']');
}

// "layers.3.attn" from the module tree; the model itself has an empty name.
template <class Sink, class Graph>
constexpr void put_module(Sink& out, const Graph& g, int at) {
  const auto is_named = [&g](int s) { return !is_unit(g.scopes[s]) && (!g.scopes[s].name || g.scopes[s].name[0] != '\0'); };
  while (at >= 0 && !is_named(at)) at = g.scopes[at].parent;
  if (at < 0) return;
  int above = g.scopes[at].parent;
  while (above >= 0 && !is_named(above)) above = g.scopes[above].parent;
  if (above >= 0) {
    put_module(out, g, above);
    out.push_back('.');
  }
  if (g.scopes[at].name) put(out, g.scopes[at].name);
  else put(out, std::int64_t{g.scopes[at].index});
}

template <class Graph>
constexpr bool has_module(const Graph& g, int at) {
  for (; at >= 0; at = g.scopes[at].parent)
    if (!is_unit(g.scopes[at]) && (!g.scopes[at].name || g.scopes[at].name[0] != '\0')) return true;
  return false;
}

template <class Sink, class Graph>
constexpr void put_name(Sink& out, const Graph& g, int i, const int* number) {
  put(out, detail::base_name(g, detail::base_of(g, i)));
  if (number[i] == 0) return;
  out.push_back('_');
  put(out, std::int64_t{number[i]});
}

template <class Sink>
constexpr void put_head(Sink& out, text_format f) {
  if (f == text_format::graphviz) put(out, "digraph program {\n  node [shape=box];\n");
  if (f == text_format::mermaid) put(out, "flowchart TD\n");
}

// "[add, gelu_tanh]"; a step whose value is also stored has a star.
template <class Sink>
constexpr void put_expression(Sink& out, const expression& e) {
  for (int i = 0; i < e.steps(); ++i) {
    put(out, i == 0 ? "[" : ", ");
    put(out, name_of(e.at(i).op));
    if (e.at(i).store > 0) out.push_back('*');
  }
  out.push_back(']');
}

template <class Sink>
constexpr void put_unit(Sink& out, int unit) {
  put(out, unit_name);
  out.push_back('_');
  put(out, std::int64_t{unit});
}

// The element type where it may be another one than those of the program's parameters: "bfloat16(4, 8)".
template <class Sink>
constexpr void put_element(Sink& out, const node& n, const spec& s) {
  if (n.op == op_code::cast || is_low_precision(s.type)) put(out, name_of(s.type));
}

// Behind the last node of a unit's run: all of them as one cluster. A long run is written in parts, which are drawn as one.
template <class Sink, class Graph>
constexpr void put_cluster(Sink& out, text_format f, const Graph& g, int i, const int* number) {
  constexpr int part = 512;
  const int unit = unit_of(g, i);
  if (unit < 0 || (i + 1 < g.node_count && unit_of(g, i + 1) == unit && i % part != part - 1)) return;
  int first = i;
  while (first % part != 0 && unit_of(g, first - 1) == unit) --first;
  const bool dot = f == text_format::graphviz;
  put(out, dot ? "  subgraph cluster_" : "  subgraph ");
  put_unit(out, unit);
  if (dot) {
    put(out, " { label=\"");
    put_unit(out, unit);
    put(out, "\";");
  } else {
    out.push_back('\n');
  }
  for (int k = first; k <= i; ++k) {
    put(out, dot ? " " : "    ");
    put_name(out, g, k, number);
    out.push_back(dot ? ';' : '\n');
  }
  put(out, dot ? " }\n" : "  end\n");
}

// Node i; `number` must hold the numbers of nodes 0 to i.
template <class Sink, class Graph>
constexpr void put_node(Sink& out, text_format f, const Graph& g, int i, const int* number) {
  const node& n = g.nodes[i];
  const spec& s = g.specs[n.spec];
  if (f == text_format::program) {
    out.push_back('%');
    put_name(out, g, i, number);
    put(out, " = ");
    put(out, name_of(g, n));
    if (n.expression >= 0) put_expression(out, g.expressions[n.expression]);
    out.push_back('(');
    for (int k = 0; k < n.inputs; ++k) {
      put(out, k > 0 ? ", %" : "%");
      put_name(out, g, n.in[k], number);
    }
    if (n.op == op_code::getitem) {
      put(out, ", ");
      put(out, attributes_of<getitem_attributes>(n.a).result);
    }
    put(out, ") ");
    put_element(out, n, s);
    put_extents(out, s);
    out.push_back(' ');
    put_placements(out, s);
    if (is_channels_last(s) && !is_contiguous(s)) put(out, " channels_last");
    if (has_module(g, n.scope)) {
      put(out, "  # ");
      put_module(out, g, n.scope);
    }
    if (const int unit = unit_of(g, i); unit >= 0) {
      put(out, has_module(g, n.scope) ? " in " : "  # in ");
      put_unit(out, unit);
    }
    out.push_back('\n');
    return;
  }
  const bool html = f == text_format::mermaid;
  const bool collective = communicates(detail::transition_at(g, i));
  put(out, "  ");
  put_name(out, g, i, number);
  put(out, !html ? " [label=\"" : collective ? "{{\"" : "[\"");
  put_name(out, g, i, number);
  out.push_back(' ');
  put_element(out, n, s);
  put_extents(out, s);
  put(out, html ? "<br/>" : "\\n");
  put_placements(out, s, html);
  put(out, !html ? collective ? "\", shape=hexagon];\n" : "\"];\n" : collective ? "\"}}\n" : "\"]\n");
  for (int k = 0; k < n.inputs; ++k) {
    put(out, "  ");
    put_name(out, g, n.in[k], number);
    put(out, html ? " --> " : " -> ");
    put_name(out, g, i, number);
    put(out, html ? "\n" : ";\n");
  }
  put_cluster(out, f, g, i, number);
}

template <class Sink, class Graph>
constexpr void put_tail(Sink& out, text_format f, const Graph& g, const int* number) {
  for (int k = 0; k < g.output_count; ++k) {
    put(out, f == text_format::program ? "return %" : "  ");
    put_name(out, g, g.outputs[k], number);
    if (f != text_format::program) {
      put(out, f == text_format::mermaid ? " --> output" : " -> output");
      put(out, std::int64_t{k});
      if (f == text_format::graphviz) out.push_back(';');
    }
    out.push_back('\n');
  }
  if (f == text_format::graphviz) put(out, "}\n");
}

}  // namespace text

}  // namespace shardwise::inline v0_1
