// SPDX-License-Identifier: Apache-2.0
// updates_last: of a program that keeps gradients, what every run computes stands before what an update computes.
#pragma once

#include <shardwise/graph/batches.hpp>
#include <shardwise/graph/kept_gradients.hpp>
#include <shardwise/pass/framework/dce.hpp>

namespace shardwise::inline v0_1::passes {

// Source's nodes, those of an update behind all others, and each part in its order. Law: it computes the same, since what every
// run needs reads nothing of an update (mark_every_run), and an update writes parameters and states, which are read before. Members
// of a batch that are of both parts become two batches.
template <class Source>
struct updates_last {
 private:
  static constexpr int capacity = graph_type_of<Source>::node_capacity > 0 ? graph_type_of<Source>::node_capacity : 1;
  struct marks {
    unsigned char every[capacity]{};
  };
  static constexpr marks marked = [] {
    marks m;
    mark_every_run(Source::value, m.every);
    return m;
  }();

 public:
  static constexpr bool all_live = true;  // Source is what eliminate_dead gives
  static constexpr auto value = [] {
    using type = graph_type_of<Source>;
    type r(typename type::unfilled{});
    detail::keep(r, Source::value, marked.every);  // all but the nodes
    const int size = Source::value.node_count;
    int to[capacity]{};
    int count = 0;
    std::int64_t batches = 0;
    for (int part = 1; part >= 0; --part) {
      const std::int64_t before = batches;
      for (int i = 0; i < size; ++i) {
        if (marked.every[i] != part) continue;
        node& n = r.nodes[count];
        n = Source::value.nodes[i];
        for (int k = 0; k < n.inputs; ++k) n.in[k] = to[n.in[k]];
        if (const std::int64_t number = batch_number(n); number != 0) {
          set_batch(n, before + number);
          batches = before + number > batches ? before + number : batches;
        }
        to[i] = count++;
      }
    }
    r.node_count = count;
    for (int k = 0; k < r.output_count; ++k) r.outputs[k] = to[Source::value.outputs[k]];
    number_batches(r);
    return r;
  }();
};

}  // namespace shardwise::inline v0_1::passes
