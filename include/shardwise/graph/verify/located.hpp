// SPDX-License-Identifier: Apache-2.0
// located: where in a program something is refused, as facts of the error: module path, node, what it reads. Source has the
// graph as its static `value`. All of it is computed only where there is an error.
#pragma once

#include <shardwise/graph/verify/refused.hpp>
#include <shardwise/graph/text/text.hpp>
#include <shardwise/support/facts.hpp>

namespace shardwise::inline v0_1::detail {

template <std::size_t N>
struct text_writer {
  fixed_string<N + 1> r;
  std::size_t at = 0;
  constexpr void push_back(char c) { r.text[at++] = c; }
};

// What Text::put(sink) writes, in its own length.
template <class Text>
struct exact_text {
  static constexpr std::size_t size = [] {
    text_buffer<0> count;
    Text::put(count);
    return static_cast<std::size_t>(count.size());
  }();
  static constexpr fixed_string<size + 1> value = [] {
    text_writer<size> w;
    Text::put(w);
    w.push_back('\0');  // clang prints as numbers what ends in an element that nobody has written
    return w.r;
  }();
};

template <class Source, int Scope>
struct module_text {
  template <class Sink>
  static constexpr void put(Sink& out) {
    text::put_module(out, Source::value, Scope);
  }
};

// Nodes before `end` that have this base name.
template <class Graph>
constexpr int count_named(const Graph& g, int base, int end) {
  int n = 0;
  for (int i = 0; i < end && i < g.node_count; ++i) n += base_of(g, i) == base ? 1 : 0;
  return n;
}
template <class Sink, class Graph>
constexpr void put_numbered(Sink& out, const Graph& g, int base, int number) {
  text::put(out, base_name(g, base));
  if (number == 0) return;
  out.push_back('_');
  text::put(out, std::int64_t{number});
}

template <class Source, int Node>
struct node_text {
  template <class Sink>
  static constexpr void put(Sink& out) {
    const int base = base_of(Source::value, Node);
    put_numbered(out, Source::value, base, count_named(Source::value, base, Node));
  }
};
// A node that there would be behind At others.
template <class Source, op_code Op, int At>
struct next_node_text {
  template <class Sink>
  static constexpr void put(Sink& out) {
    put_numbered(out, Source::value, static_cast<int>(Op), count_named(Source::value, static_cast<int>(Op), At));
  }
};
// A module's call is named after the module, as fx does it: "layers_3_attn"; the model's own "model".
template <class Source, int Scope>
struct call_text {
  template <class Sink>
  struct underscored {
    Sink& out;
    constexpr void push_back(char c) { out.push_back(c == '.' ? '_' : c); }
  };
  template <class Sink>
  static constexpr void put(Sink& out) {
    underscored<Sink> u{out};
    if (text::has_module(Source::value, Scope)) text::put_module(u, Source::value, Scope);
    else text::put(u, "model");
  }
};

template <class Source, class Nodes>
struct reading_of;
template <class Source, int... Node>
struct reading_of<Source, std::integer_sequence<int, Node...>> {
  using type = reading<exact_text<node_text<Source, Node>>::value...>;
};

template <class Source, int Node, class Inputs = std::make_integer_sequence<int, Source::value.nodes[Node].inputs>>
struct inputs_of;
template <class Source, int Node, int... K>
struct inputs_of<Source, Node, std::integer_sequence<int, K...>> {
  using type = std::integer_sequence<int, Source::value.nodes[Node].in[K]...>;
};

// Of a node that stands in the graph.
template <class Source, int Node>
struct located {
  static constexpr int scope = Source::value.nodes[Node].scope;
  using module = in_module<exact_text<module_text<Source, scope>>::value>;
  using node = at_node<exact_text<node_text<Source, Node>>::value>;
  using operands = typename reading_of<Source, typename inputs_of<Source, Node>::type>::type;
};

// Where an error of a graph was found, if that was at a node.
template <class Graph>
constexpr void place_error(graph_finding& f, const Graph& g, int node) {
  if (!f || f.base >= 0 || node < 0 || node >= g.node_count) return;
  f.scope = g.nodes[node].scope;
  f.base = base_of(g, node);
  f.number = count_named(g, f.base, node);
}

template <class Source>
struct error_text {
  template <class Sink>
  static constexpr void put(Sink& out) {
    put_numbered(out, Source::value, Source::value.error.base, Source::value.error.number);
  }
};
// The error of Source's graph, with the numbers that it speaks of and its place.
template <class Source, bool Placed, class... Facts>
struct error_facts {
  static constexpr bool ok =
      refused_program<Source::value.error.what, Source::value.error.have, Source::value.error.want, Facts...>::ok;
};
template <class Source, class... Facts>
struct error_facts<Source, true, Facts...> {
  static constexpr int scope = Source::value.error.scope;
  static constexpr bool ok = refused_program<Source::value.error.what, Source::value.error.have, Source::value.error.want,
                                             Facts..., in_module<exact_text<module_text<Source, scope>>::value>,
                                             at_node<exact_text<error_text<Source>>::value>>::ok;
};
template <bool Any, class Source, class... Facts>
struct refused_graph_of {
  static constexpr bool ok = true;
};
template <class Source, class... Facts>
struct refused_graph_of<true, Source, Facts...> : error_facts<Source, (Source::value.error.base >= 0), Facts...> {};
template <class Source, class... Facts>
using refused_graph =
    refused_graph_of<(Source::value.error.what != problem::none && !Source::value.error.said), Source, Facts...>;

// Raises P, with the place of node Node of Source if there is one.
template <bool Wrong, bool Placed, problem P, long long Have, long long Want, class Source, int Node, class... Facts>
struct refused_at_node {
  static constexpr bool ok = true;
};
template <problem P, long long Have, long long Want, class Source, int Node, class... Facts>
struct refused_at_node<true, false, P, Have, Want, Source, Node, Facts...> : refused_program<P, Have, Want, Facts...> {};
template <problem P, long long Have, long long Want, class Source, int Node, class... Facts>
struct refused_at_node<true, true, P, Have, Want, Source, Node, Facts...>
    : refused_program<P, Have, Want, Facts..., typename located<Source, Node>::module, typename located<Source, Node>::node,
                      typename located<Source, Node>::operands> {};
template <problem P, long long Have, long long Want, class Source, int Node, class... Facts>
using refused_at = refused_at_node<P != problem::none, (Node >= 0 && Node < Source::value.node_count), P, Have, Want, Source,
                                   Node, Facts...>;
template <problem P, class Source, int Node, class... Facts>
using raise_at = refused_at<P, 0, 0, Source, Node, Facts...>;

// That no write in place is left.
template <class Source, class... Facts>
struct no_mutation {
  static constexpr int at = first_mutation(Source::value);
  static constexpr bool ok = raise_at<(at >= 0 ? problem::mutation_left : problem::none), Source, at, Facts...>::ok;
};

}  // namespace shardwise::inline v0_1::detail
