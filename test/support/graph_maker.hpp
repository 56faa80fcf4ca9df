// SPDX-License-Identifier: Apache-2.0
// graph_maker: graphs written node by node while a test runs. One axis of two ranks, tensors of 4 x 6 unless said otherwise.
#pragma once

#include <shardwise/graph/graph.hpp>
#include <shardwise/operations/infer.hpp>

#include <doctest/doctest.h>

namespace test {

namespace sw = shardwise;

template <int Nodes>
struct graph_maker {
  using graph_type = sw::graph<Nodes, Nodes>;
  graph_type g{};
  sw::builder b = g.edit();

  int leaf(sw::op_code op, sw::placement p, int index = 0, sw::dtype type = sw::dtype::f32, std::int64_t rows = 4,
           std::int64_t columns = 6) {
    const std::int32_t sizes[] = {2};
    sw::spec s = sw::empty_spec(type, 1, sizes, sw::device_kind::host);
    s.rank = 2;
    s.extent[0] = rows;
    s.extent[1] = columns;
    sw::make_contiguous(s);
    s.place[0] = p;
    sw::node n = sw::empty_node;
    n.op = op;
    n.a.v[0] = index;
    n.spec = b.intern(s);
    return b.append(n);
  }
  // A node whose extents and placement are its rule's; an update has its first operand's.
  int apply(sw::op_code op, const sw::op_attr& a, std::initializer_list<int> operands) {
    sw::node n = sw::empty_node;
    n.op = op;
    n.a = a;
    sw::spec in[sw::max_inputs]{};
    for (const int x : operands) {
      in[n.inputs] = b.specs[b.nodes[x].spec];
      n.in[n.inputs++] = x;
    }
    if (sw::is_update(op)) {
      n.spec = b.nodes[n.in[0]].spec;
      return b.append(n);
    }
    const sw::outcome o = sw::infer(op, n.a, in, n.inputs);
    REQUIRE(!o.error);
    n.spec = b.intern(o.out);
    return b.append(n);
  }
  int apply(sw::op_code op, int x, int y = -1) {
    if (y < 0) return apply(op, sw::op_attr{}, {x});
    return apply(op, sw::op_attr{}, {x, y});
  }
  int to(int x, sw::placement p) { return apply(sw::op_code::redistribute, {{0, sw::pack(p), 0, 0, 0, 0}}, {x}); }
  template <class... Id>
  graph_type finish(Id... id) {
    REQUIRE(!b.overflowed());
    g.finish(b);
    ((g.outputs[g.output_count++] = id), ...);
    return g;
  }
};

}  // namespace test
