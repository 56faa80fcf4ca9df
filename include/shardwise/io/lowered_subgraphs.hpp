// SPDX-License-Identifier: Apache-2.0
// lowered_subgraphs: what partial_lower made of a step's subgraphs, as a constant and as text.
#pragma once

#include <string>
#include <vector>

#include <shardwise/io/dump.hpp>
#include <shardwise/pass/fuse/partial_lower.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

struct nothing_lowered {
  static constexpr lowered_partition<0> facts{};
  static constexpr graph<1, 1> ordered{};
};

template <class P, class Source>
struct lowering_by {
  static constexpr const auto& facts = P::template subgraphs<Source>::value;
  static constexpr const auto& ordered = P::template ordered<Source>::value;
};

// The first pass of a pipeline that lowers subgraphs, on the graph that it found.
template <class Source, class Pipeline, class Applied = passes_list<>>
struct find_lowering {
  using type = nothing_lowered;
};
template <class Source, class P, class... Rest, class Applied>
struct find_lowering<Source, pipeline<P, Rest...>, Applied>
    : find_lowering<typename one_pass<P, Source, Applied>::done::type, pipeline<Rest...>,
                    typename appended<Applied, P>::type> {};
template <class Source, class Supported, int MinOps, class... Rest, class Applied>
struct find_lowering<Source, pipeline<partial_lower<Supported, MinOps>, Rest...>, Applied> {
  using type = lowering_by<partial_lower<Supported, MinOps>, Source>;
};

template <class Step>
using lowering_of = typename find_lowering<typename pipeline_of<Step>::source, typename pipeline_of<Step>::type>::type;

}  // namespace detail

// Of a step whose pipeline has partial_lower, or of an iterated step's main phase: for each subgraph its nodes, inputs and
// outputs, and its kernels before and after. None where there is no such pass.
template <class Step>
constexpr const auto& lowered_subgraphs() {
  return detail::lowering_of<Step>::facts;
}

// One subgraph by the names of its nodes, as they stood in order before kernels were generated.
struct subgraph_names {
  std::string name;
  std::vector<std::string> members, inputs, outputs;
};

template <class Step>
std::vector<subgraph_names> lowered_subgraph_names() {
  using from = detail::lowering_of<Step>;
  const auto& g = from::ordered;
  const std::vector<std::string> names = node_names(g);
  std::vector<subgraph_names> all;
  std::vector<int> reader(names.size(), -1);  // the subgraph that read a value from outside last
  std::vector<bool> leaves(names.size());
  const auto read = [&](int x, int unit) {
    const auto at = static_cast<std::size_t>(x);
    const int own = unit_of(g, x);
    if (own == unit) return;
    if (own >= 0) leaves[at] = true;
    if (unit < 0 || reader[at] == unit) return;
    reader[at] = unit;
    all[static_cast<std::size_t>(unit)].inputs.push_back(names[at]);
  };
  for (const lowered_subgraph& u : from::facts) {
    const int unit = static_cast<int>(all.size());
    all.push_back({unit_name + ("_" + std::to_string(unit)), {}, {}, {}});
    for (int i = u.first; i < u.first + u.nodes; ++i) all.back().members.push_back(names[static_cast<std::size_t>(i)]);
  }
  for (int i = 0; i < g.node_count; ++i)
    for (int k = 0; k < g.nodes[i].inputs; ++k) read(g.nodes[i].in[k], unit_of(g, i));
  for (int k = 0; k < g.output_count; ++k) read(g.outputs[k], -1);
  for (int i = 0; i < g.node_count; ++i)
    if (leaves[static_cast<std::size_t>(i)])
      all[static_cast<std::size_t>(unit_of(g, i))].outputs.push_back(names[static_cast<std::size_t>(i)]);
  return all;
}

}  // namespace shardwise::inline v0_1
