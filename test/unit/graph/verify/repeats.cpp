// SPDX-License-Identifier: Apache-2.0
// What verification remembers of nodes that repeat, and of a graph that was verified before, hides nothing: wherever a graph
// of several layers is broken, the finding is that of looking at the node alone.
#include <shardwise/graph/verify/verify.hpp>

#include <shardwise/pass/fuse/fuse.hpp>

#include <doctest/doctest.h>

#include <gpt.hpp>

#include <memory>
#include <train_text/model.hpp>

namespace {

namespace sw = shardwise;
namespace tt = train_text;
using step = test::gpt::step<float, 2, 2, test::gpt::tensor_parallel, test::gpt::deep_sizes<4>>;
// Its attention has several results, forward and back; kernels are fused, so there are rooms, parts and expressions.
struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using sizes = tt::config<16, 128, 128, 4, 4>;
using fused = sw::train_step<tt::gpt_of<sizes>::gpt, tt::next_byte<sizes, dp>, tt::megatron_plan<sizes, dp, tp>,
                             sw::mesh<dp, tp>, sw::clip_norm<sw::adamw<true>>, sw::pipeline<sw::fuse_kernels>, float>;

// The first node at which looking at it alone finds something.
template <class Program>
sw::finding one_by_one(const Program& g, int from) {
  for (int i = from; i < g.node_count; ++i)
    if (const sw::finding f = sw::verify(g, i, i + 1)) return f;
  return {};
}

template <class Step>
void break_each_node() {
  using program = std::remove_cvref_t<decltype(Step::program)>;
  const auto right = std::make_unique<program>(Step::program);
  sw::checked_applications seen;
  REQUIRE(!sw::verify(*right, 0, right->node_count, seen, sw::nothing_verified{}));
  const sw::verified_graph<program> before{*right, seen, right->spec_count};
  const auto g = std::make_unique<program>(Step::program);
  int broken = 0, others = 0;
  for (int i = 0; i < g->node_count; ++i) {
    sw::node& n = g->nodes[i];
    if (n.inputs == 0) continue;
    for (int way = 0; way < 8; ++way) {
      const sw::node was = n;
      if (way == 0) n.spec = (n.spec + 1) % g->spec_count;
      if (way == 1) n.in[n.inputs - 1] = i;           // itself
      if (way == 2) n.in[0] = (n.in[0] * 7 + 3) % i;  // another operand
      if (way > 2) n.a.v[way - 3] ^= 1;
      const sw::finding alone = one_by_one(*g, i), whole = sw::verify(*g);
      sw::checked_applications memory;
      const sw::finding after = sw::verify(*g, 0, g->node_count, memory, before);
      CHECK(whole.what == alone.what);
      CHECK(after.what == alone.what);
      if (alone) {
        CHECK(whole.operand == alone.operand);
        CHECK(after.operand == alone.operand);
        ++broken;
      } else {
        ++others;
      }
      n = was;
    }
  }
  CHECK(broken > 1000);
  CHECK(others > 0);
}

TEST_CASE("one node that is wrong is found wherever it stands") { break_each_node<step>(); }
TEST_CASE("one node that is wrong is found wherever it stands, among fused ones and nodes with several results") {
  break_each_node<fused>();
}

}  // namespace
