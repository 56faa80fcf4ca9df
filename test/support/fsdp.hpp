// SPDX-License-Identifier: Apache-2.0
// What tests of fully_shard share: axes, the perceptron of the reference suite, its tasks, plans, and the groups of collectives that
// a program has.
#pragma once

#include <cstdint>
#include <models.hpp>
#include <shardwise/shardwise.hpp>
#include <string>
#include <vector>

namespace test::fsdp {

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct rep : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
// Of machines, and of ranks in one.
template <int N>
struct node : sw::axis<N> {};
template <int N>
struct local : sw::axis<N> {};

// Linear, ReLU, Linear, ReLU, Linear, all of width 16.
template <class Bound = sw::unbound>
struct three_linears : sw::module<three_linears<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<16, 16>, fc0), (sw::linear<16, 16>, fc1), (sw::linear<16, 16>, fc2));
  constexpr auto forward(const auto& x) const { return fc2(sw::relu(fc1(sw::relu(fc0(x))))); }
};

using sizes = transformer_sizes;
template <class B>
using tied_transformer = transformer<sizes>::model<B>;

// The axes over which the batch is split.
template <class... Axes>
struct batch_axes {
  static constexpr int ranks = (1 * ... * Axes::size);
};

// Rows of a batch split over the axes.
template <class T, class Shape, class Axes>
struct split_rows;
template <class T, class Shape, class... Axes>
struct split_rows<T, Shape, batch_axes<Axes...>> {
  using type = sw::input_tensor<T, Shape, sw::on<Axes, sw::shard<0>>...>;
};
template <class T, class Shape, class Axes>
using split_rows_t = typename split_rows<T, Shape, Axes>::type;

// Sum of all outputs times Scale, and its rows; the batch is split over Axes.
template <class T, int Batch, class Axes, int Scale = 1>
struct scaled_sum {
  using inputs = sw::inputs<split_rows_t<T, sw::shape<Batch, 16>, Axes>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::scale(sw::sum(m(x)), double{Scale}); }
};
template <class T, int Batch, class Axes>
struct row_sums {
  using inputs = sw::inputs<split_rows_t<T, sw::shape<Batch, 16>, Axes>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::sum<1>(m(x)); }
};

// Of a language model: tokens, targets, positions.
template <class Sizes, int Batch, class Axes>
using language = sw::inputs<split_rows_t<std::int32_t, sw::shape<Batch, Sizes::time>, Axes>,
                            split_rows_t<std::int32_t, sw::shape<Batch, Sizes::time>, Axes>,
                            sw::input_tensor<std::int32_t, sw::shape<Sizes::time>>>;

// --- the groups of a program's collectives --------------------------------------------------------------------------------

// Collectives of one kind, on one axis, that stand side by side in the name of one module, as they come.
struct collective_group {
  sw::transition kind;
  sw::program_phase phase;
  int scope;
  std::int64_t axis;
  int members;
  std::int64_t sent;      // elements that rank 0 gives to it
  std::int64_t received;  // and gets from it

  bool operator==(const collective_group&) const = default;
};

template <class Graph>
std::vector<collective_group> groups_of(const Graph& g, sw::transition kind) {
  static sw::passes::phase_marks<Graph::node_capacity> marks;
  marks = {};
  sw::passes::mark_phases(marks, g);
  const int origin[sw::max_axes]{};
  std::vector<collective_group> r;
  int last = -2;
  for (int i = 0; i < g.node_count; ++i) {
    if (sw::detail::transition_at(g, i) != kind) continue;
    const sw::node& n = g.nodes[i];
    const std::int64_t axis = sw::attributes_of<sw::redistribute_attributes>(n.a).axis;
    const bool goes_on = last == i - 1 && r.back().scope == n.scope && r.back().axis == axis;
    if (!goes_on) r.push_back({kind, marks.of(i), n.scope, axis, 0, 0, 0});
    ++r.back().members;
    r.back().sent += sw::local_numel(g.spec_of(n.in[0]), origin);
    r.back().received += sw::local_numel(g.spec_of(i), origin);
    last = i;
  }
  return r;
}

// The groups of one kind, as "module: members, sent -> received" in order, a phase a line.
template <class Step>
std::string group_text(sw::transition kind) {
  std::string text;
  sw::program_phase before = sw::program_phase::count;
  for (const collective_group& c : groups_of(Step::program, kind)) {
    if (c.phase != before) text += (text.empty() ? "" : "\n") + std::string(name_of(c.phase)) + ":";
    before = c.phase;
    std::string module;
    for (int s = c.scope; s > 0; s = Step::program.scopes[s].parent) {
      const sw::scope& at = Step::program.scopes[s];
      module = (at.name ? std::string(at.name) : std::to_string(at.index)) + (module.empty() ? "" : "." + module);
    }
    text += " " + (module.empty() ? "model" : module) + " " + std::to_string(c.members) + " of " + std::to_string(c.sent) +
            " to " + std::to_string(c.received) + ";";
  }
  return text;
}

}  // namespace test::fsdp
