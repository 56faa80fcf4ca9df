// SPDX-License-Identifier: Apache-2.0
// fuse_writer: the graph in which each region is one node.
#pragma once

#include <bit>

#include <shardwise/graph/batches.hpp>
#include <shardwise/pass/fuse/regions.hpp>

namespace shardwise::inline v0_1::passes {

// Writes the new graph: roots as fused nodes, rooms before them, what the rooms hold behind them.
template <class Graph, int From>
struct fuse_writer {
  Graph g{typename Graph::unfilled{}};
  int to[From > 0 ? From : 1];
  static constexpr int most_held = 256;  // all are written in one step, which compilers bound
  int held[From > 0 ? From : 1];         // sums of squares not yet written
  int holds = 0;
  static constexpr int most_waiting = 16;  // beyond that they are written when they are read
  int waiting[most_waiting]{};             // casts whose sum over rows is computed later than where it stood
  int waits = 0;
  int cursor = 0;
  bool full = false;  // more expressions than a graph holds: their regions stay as they were, which takes more nodes

  template <class Source>
  constexpr void begin(const Source& from) {
    for (int& x : to) x = -1;
    for (int& x : held) x = -1;
    begin_anew(g, from);
  }

  constexpr int append(const node& n) {
    if (g.node_count < Graph::node_capacity) g.nodes[g.node_count] = n;
    return g.node_count++;
  }
  constexpr int find(const expression& e) {
    for (int i = 0; i < g.expression_count; ++i)
      if (g.expressions[i] == e) return i;
    if (g.expression_count == max_expressions) return -1;
    g.expressions[g.expression_count] = e;
    return g.expression_count++;
  }

  // Sums of squares wait for the first node that reads one, so that reductions of gradients do not stand between them; their
  // operands, the gradients, are kept for the updates anyway.
  template <class Source, class Table>
  constexpr void step(const Source& from, const Table& t, stage_work& work) {
    const int i = cursor++;
    if (t.is_skipped(i) && from.nodes[i].op == op_code::cast && waits < most_waiting) waiting[waits++] = i;
    if (waits > 0) end_waits(from);
    if (t.of[i].root != i || t.is_skipped(i)) return;  // what is skipped is written where it is read
    const node& n = from.nodes[i];
    if (is_update(n.op) || (t.within && holds > 0 && unit_of(from, i) != unit_of(from, held[0]))) flush(from, t, work);
    if (t.leads && (!t.within || unit_of(from, i) >= 0) && (n.op == op_code::sumsq || ends_squares(from, t, i))) {
      held[holds++] = i;
      if (holds == most_held) flush(from, t, work);
    } else {
      place(from, t, i, work);
    }
  }
  // Those of sums that have been written by now.
  template <class Source>
  constexpr void end_waits(const Source& from) {
    int left = 0;
    for (int k = 0; k < waits; ++k) {
      const int i = waiting[k];
      node n = from.nodes[i];
      if (to[i] >= 0) continue;
      if (to[n.in[0]] < 0) {
        waiting[left++] = i;
        continue;
      }
      n.in[0] = to[n.in[0]];
      to[i] = append(n);
    }
    waits = left;
  }
  template <class Source, class Table>
  static constexpr bool ends_squares(const Source& from, const Table& t, int i) {
    for (int m = t.of[i].next; m >= 0; m = t.of[m].next)
      if (from.nodes[m].op == op_code::sumsq) return true;
    return false;
  }
  template <class Source, class Table>
  constexpr void flush(const Source& from, const Table& t, stage_work& work) {
    const int n = holds;
    holds = 0;
    for (int k = 0; k < n; ++k) {
      work.take(40);
      place(from, t, held[k], work);
    }
  }
  template <class Source, class Table>
  constexpr void place(const Source& from, const Table& t, int i, stage_work& work) {
    if (t.of[i].next < 0) {
      copy(from, t, i, work);
      return;
    }
    region r;
    insert_region(t, i, r);
    complete(from, t, r);
    work.take(300 + 40 * r.count + 12 * r.count * r.count);
    write(from, t, r, i, work);
  }
  template <class Source, class Table>
  constexpr void copy(const Source& from, const Table& t, int i, stage_work& work) {
    node n = from.nodes[i];
    if (batch_number(n) != 0)  // a batch stays whole: what its members read is written before the first
      each_starting(from, i, [&](int j) { written(from, t, from.nodes[j].in[0], work); });
    for (int k = 0; k < n.inputs; ++k) n.in[k] = written(from, t, n.in[k], work);
    to[i] = append(n);
  }
  // What is skipped is written, with all it reads, when the first node reads it.
  template <class Source, class Table>
  constexpr int written(const Source& from, const Table& t, int i, stage_work& work) {
    if (to[i] < 0 && holds > 0) flush(from, t, work);
    while (to[i] < 0) {
      int first = i;
      while (to[from.nodes[first].in[0]] < 0) first = from.nodes[first].in[0];
      node v = from.nodes[first];
      v.in[0] = to[v.in[0]];
      to[first] = append(v);
    }
    return to[i];
  }

  template <class Source, class Table>
  constexpr void write(const Source& from, const Table& t, const region& r, int i, stage_work& work) {
    node n = from.nodes[r.lead >= 0 ? r.lead : i];
    double constants[max_constants]{};
    int id = -1;
    if (r.steps > 0) {
      const expression e = expression_of(from, t, r, constants);
      id = find(e);
      if (id < 0) {  // the table is full: as they were
        full = true;
        for (int k = 0; k < r.count; ++k) copy(from, t, r.member[k], work);
        return;
      }
    }
    if (r.lead < 0) {
      n.op = op_code::fused;
      n.f = 0;
      fused_attributes of{};
      for (int k = 0; k < max_constants; ++k) of.constant[k] = constants[k];
      n.a = pack_attributes(of);
    } else if (r.second >= 0) {
      if (n.op == op_code::norm_apply) {
        n.op = op_code::norm;
        n.f = from.nodes[r.second].f;
        auto of = attributes_of<norm_attributes>(n.a);
        of.keeps_statistics = r.keeps_second ? 1 : 0;
        n.a = pack_attributes(of);
      } else if (n.op == op_code::sum) {
        n.op = op_code::norm_dw_db;
        n.a = from.nodes[r.second].a;
      } else {
        auto of = attributes_of<einsum_attributes>(n.a);
        of.keeps_sums = 1;
        n.a = pack_attributes(of);
      }
    }
    n.expression = id;
    n.spec = from.nodes[i].spec;
    n.scope = from.nodes[i].scope;
    int kept[max_inputs]{}, writes = 0;
    if (r.keeps_second) kept[writes++] = r.second;
    for (int k = 0; k < r.stores; ++k) kept[writes++] = r.stored[k];
    for (int k = 0; k < writes; ++k) {
      node b = empty_node;
      b.op = op_code::room;
      b.spec = from.nodes[kept[k]].spec;
      b.scope = from.nodes[kept[k]].scope;
      to[kept[k]] = append(b);
    }
    n.inputs = 0;
    for (int k = 0; k < r.own + r.values; ++k) n.in[n.inputs++] = written(from, t, r.operands[k], work);
    for (int k = 0; k < r.stores; ++k) n.in[n.inputs++] = to[r.stored[k]];
    for (int k = n.inputs; k < max_inputs; ++k) n.in[k] = -1;
    to[i] = append(n);
    for (int k = 0; k < writes; ++k) {
      node p = empty_node;
      p.op = op_code::part;
      p.inputs = 2;
      p.in[0] = to[kept[k]];
      p.in[1] = to[i];
      p.spec = from.nodes[kept[k]].spec;
      p.scope = from.nodes[kept[k]].scope;
      to[kept[k]] = append(p);
    }
  }

  template <class Source, class Table>
  constexpr void finish(const Source& from, const Table& t, stage_work& work) {
    flush(from, t, work);
    for (int k = 0; k < from.output_count; ++k) g.outputs[k] = written(from, t, from.outputs[k], work);
    g.output_count = from.output_count;
  }
};

}  // namespace shardwise::inline v0_1::passes
