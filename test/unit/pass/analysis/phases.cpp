// SPDX-License-Identifier: Apache-2.0
// Phases of a step whose passes have put a parameter's gradient and an activation's into one node of several results: what goes on
// from the activation's is backward, not the optimizer's.
#include <doctest/doctest.h>
#include <shardwise/pass/analysis/phases.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <train_text/model.hpp>

namespace {

namespace sw = shardwise;
namespace tt = train_text;

struct dp : sw::axis<1> {};
using size = tt::config<2, 8, 16, 2, 1>;
template <class... Passes>
using step = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp>, sw::plan<sw::data_parallel<dp>>, sw::mesh<dp>,
                            sw::clip_norm<sw::adamw<true>>, sw::pipeline<Passes...>>;

// How many nodes of a phase are of one operation, or of any.
template <class Step>
int nodes_of(sw::program_phase phase, sw::op_code op) {
  const auto& g = Step::program;
  sw::passes::phase_marks<std::remove_cvref_t<decltype(g)>::node_capacity> m;
  sw::passes::mark_phases(m, g);
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) n += m.of(i) == phase && g.nodes[i].op == op;
  return n;
}

using plain = step<>;
using joined = step<sw::join_norm_adjoints>;
using every = step<sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>;

}  // namespace

TEST_CASE("phases: what reads one of several results is not taken for the reader of another") {
  using enum sw::program_phase;
  CHECK(nodes_of<joined>(backward, sw::op_code::norm_dx_dw) == 3);  // or there would be nothing to see
  CHECK(nodes_of<plain>(forward, sw::op_code::einsum) == 7);        // q, k, v, out, up, down, head
  CHECK(nodes_of<plain>(backward, sw::op_code::einsum) == 14);
  CHECK(nodes_of<joined>(forward, sw::op_code::einsum) == 7);
  CHECK(nodes_of<joined>(backward, sw::op_code::einsum) == 14);
  CHECK(nodes_of<every>(optimizer, sw::op_code::einsum) == 0);
  CHECK(nodes_of<every>(backward, sw::op_code::einsum) >= 8);
  CHECK(nodes_of<joined>(optimizer, sw::op_code::adam) == nodes_of<plain>(optimizer, sw::op_code::adam));
}
