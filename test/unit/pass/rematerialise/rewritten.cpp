// SPDX-License-Identifier: Apache-2.0
// rematerialise on what other passes have rewritten: what a program may hold once is not copied, and steps train to the same values.
#include <accumulated.hpp>
#include <doctest/doctest.h>

#include <shardwise/graph/verify/verify.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>

#include <memory>

namespace {

namespace acc = test::accumulated;
namespace sw = shardwise;
using sw::op_code;

template <class... P>
using step = acc::step<acc::replicated<2>, sw::mesh<acc::dp<2>>, acc::batch_axes<acc::dp<2>>, sw::pipeline<P...>>;

const acc::history& plain() {
  static const acc::history h = acc::train<step<>>(3);
  return h;
}

template <class Graph>
int count_of(const Graph& g, op_code op) {
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) n += g.nodes[i].op == op ? 1 : 0;
  return n;
}

// Kernels that store into a room beside their result.
template <class Graph>
int writers_of_rooms(const Graph& g) {
  int n = 0;
  for (int i = 0; i < g.node_count; ++i)
    for (int k = 0; k < g.nodes[i].inputs; ++k)
      n += g.nodes[i].op != op_code::part && g.nodes[g.nodes[i].in[k]].op == op_code::room ? 1 : 0;
  return n;
}

// As many nodes of kind `Once` as before, and with NaN in all that is not written, the same training.
template <op_code Once, class First, class Then>
void check() {
  constexpr const auto& before = step<First>::program;
  constexpr const auto& after = step<First, Then>::program;
  CHECK(count_of(before, Once) > 0);
  CHECK(count_of(after, Once) == count_of(before, Once));
  CHECK(writers_of_rooms(after) == count_of(after, op_code::room));
  CHECK(after.node_count > before.node_count);
  CHECK(acc::difference(acc::train<step<First, Then>>(3), plain()) <= 1e-12);
}

TEST_CASE("packs of merged products") {
  check<op_code::pack, sw::merge_products, sw::rematerialise<30>>();
  check<op_code::pack, sw::merge_products, sw::rematerialise<0>>();
}
TEST_CASE("rooms of fused kernels, which hold their parts") {
  check<op_code::room, sw::fuse_kernels, sw::rematerialise<50>>();
  check<op_code::part, sw::fuse_kernels, sw::rematerialise<0>>();
}

template <class Step>
void check_placed_twice() {
  constexpr const auto& program = Step::program;
  const auto g = std::make_unique<std::remove_cvref_t<decltype(program)>>(program);
  REQUIRE(!sw::verify(*g));
  int before = -1, copies = 0;
  for (int i = 0; i < g->node_count; ++i) {
    if (g->nodes[i].op != op_code::pack) continue;
    if (before >= 0 && g->nodes[before].spec == g->nodes[i].spec) {
      const sw::node was = g->nodes[i];
      g->nodes[i] = g->nodes[before];
      const sw::finding f = sw::verify(*g);
      CHECK(f.what == sw::problem::graph_packed_twice);
      CHECK(f.operand == i);
      g->nodes[i] = was;
      ++copies;
    }
    before = i;
  }
  CHECK(copies > 0);
}
TEST_CASE("the verifier finds a tensor that is placed twice") { check_placed_twice<step<sw::merge_products>>(); }

}  // namespace
