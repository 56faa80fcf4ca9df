// SPDX-License-Identifier: Apache-2.0
// What a staged pass computes does not depend on the size of its stages: differentiation, optimizer, memory plan.
#include <doctest/doctest.h>

#include <gpt.hpp>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

using program = step<float, 2, 2, sequence_parallel, dropout_sizes>;
using trace = program::trace_type;

template <int Nodes>
struct in_stages_of {
  using joint = sw::staged<sw::autodiff::grad, trace, Nodes>;
  using updated = sw::staged<sw::apply_optimizer<program::optimizer, trace::parameters>, joint, Nodes>;
  using source = sw::passes::eliminate_dead<sw::detail::graph_of<updated>>;
  static constexpr const auto& graph = source::value;
  static constexpr const auto& memory = sw::passes::planned_memory<sw::host_backend, source, Nodes>::value;
};

bool equal(const sw::node& x, const sw::node& y) {
  bool same = x.op == y.op && x.inputs == y.inputs && x.spec == y.spec && x.scope == y.scope && x.f == y.f && x.a == y.a;
  for (int k = 0; k < x.inputs; ++k) same = same && x.in[k] == y.in[k];
  return same;
}

template <class A, class B>
void check_graphs(const A& a, const B& b) {
  REQUIRE(a.node_count == b.node_count);
  REQUIRE(a.spec_count == b.spec_count);
  CHECK(a.outputs[0] == b.outputs[0]);
  CHECK(a.sites == b.sites);
  int nodes = 0, specs = 0;
  for (int i = 0; i < a.node_count; ++i) nodes += equal(a.nodes[i], b.nodes[i]) ? 0 : 1;
  for (int i = 0; i < a.spec_count; ++i) specs += a.specs[i] == b.specs[i] ? 0 : 1;
  CHECK(nodes == 0);
  CHECK(specs == 0);
}

template <class A, class B>
void check_memory(const A& a, const B& b, int nodes) {
  CHECK(a.peak == b.peak);
  CHECK(a.workspace == b.workspace);
  CHECK(a.persistent_end == b.persistent_end);
  int different = 0;
  for (int i = 0; i < nodes; ++i)
    different +=
        a.offset[i] == b.offset[i] && a.bytes[i] == b.bytes[i] && a.owner[i] == b.owner[i] && a.last_use[i] == b.last_use[i]
            ? 0
            : 1;
  CHECK(different == 0);
}

template <int Nodes>
void check_stages() {
  using small = in_stages_of<Nodes>;
  check_graphs(small::graph, program::program);
  check_memory(small::memory, program::memory::value, program::program.node_count);
}

TEST_CASE("graph and memory plan are the same in stages of 16 nodes") { check_stages<16>(); }
TEST_CASE("graph and memory plan are the same in stages of 64 nodes") { check_stages<64>(); }
TEST_CASE("graph and memory plan are the same in stages of 1000 nodes") { check_stages<1000>(); }

}  // namespace
