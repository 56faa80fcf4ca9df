// SPDX-License-Identifier: Apache-2.0
// What a pass makes of a constant graph does not depend on the size of its stages, and is what it makes of the same graph at
// run time: every pass, on the steps of two models.
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/iteration/iter_move.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/cross_entropy.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/fuse/partition.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/pass/communication/waits.hpp>

#include <doctest/doctest.h>

#include <gpt.hpp>
#include <memory>

namespace {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};
using stack = sw::train_step<test::relu_stack<6, 256>::model, test::sum_task<float, 8, 256, sw::on<dp<2>, sw::shard<0>>>,
                             sw::plan<sw::data_parallel<dp<2>>>, sw::mesh<dp<2>>, sw::adam<>>;
using transformer = test::gpt::step<float, 2, 2, test::gpt::tensor_parallel, test::gpt::deep_sizes<1>>;

template <class Step>
struct program {
  static constexpr const auto& value = Step::program;
};

template <class A, class B>
bool same(const A& a, const B& b) {
  if (a.node_count != b.node_count || a.output_count != b.output_count || a.error.what != b.error.what) return false;
  for (int i = 0; i < a.node_count; ++i) {
    const sw::node &x = a.nodes[i], &y = b.nodes[i];
    if (x.op != y.op || x.inputs != y.inputs || x.scope != y.scope || x.f != y.f || !(x.a == y.a) ||
        x.expression != y.expression || !(a.spec_of(i) == b.spec_of(i)))
      return false;
    for (int k = 0; k < x.inputs; ++k)
      if (x.in[k] != y.in[k]) return false;
  }
  for (int k = 0; k < a.output_count; ++k)
    if (a.outputs[k] != b.outputs[k]) return false;
  for (int k = 0; k < a.expression_count; ++k)
    if (!(a.expressions[k] == b.expressions[k])) return false;
  return a.expression_count == b.expression_count;
}

// Room for what passes add.
template <class Source>
using large = sw::graph<3 * Source::value.node_count + 64, 2 * Source::value.spec_count + 64,
                        sw::graph_type_of<Source>::scope_capacity>;

template <class Pass, class Source>
void check_pass() {
  const auto& whole = Pass::template in_stages<Source>::value;
  CHECK(same(Pass::template in_stages<Source, 16>::value, whole));
  CHECK(same(Pass::template in_stages<Source, 100>::value, whole));
  const auto g = std::make_unique<large<Source>>();
  sw::copy_into(*g, Source::value);
  CHECK(!Pass::apply(*g));
  CHECK(same(*g, whole));
}
template <class Source, class... P>
void check_each() {
  (check_pass<P, Source>(), ...);
}

template <class Step>
void check_passes() {
  using source = program<Step>;
  check_each<source, sw::cancel_redistributions, sw::merge_common>();
  check_each<source, sw::schedule_comm_wait, sw::sink_waits, sw::raise_comms, sw::expedite_comms,
             sw::reorder_compute_for_overlap<>>();
  check_each<source, sw::fuse_pointwise, sw::fuse_kernels>();
  check_each<source, sw::rematerialise<>, sw::rematerialise<50>>();
  check_each<source, sw::comm_fusion_with_concat<1>, sw::comm_fusion_in_place<1>, sw::foreach_optimizer,
             sw::fused_optimizer>();
  using listed = sw::fused_optimizer::run<source>;
  using joined = sw::comm_fusion_in_place<1>::run<listed>;
  check_each<joined, sw::remove_copy_from_optimizer>();
  using bare = sw::remove_copy_from_optimizer::run<joined>;
  check_each<bare, sw::split_fused_optimizer<0, 0>>();
  check_each<source, sw::merge_products>();
  using merged = sw::fuse_kernels::run<sw::merge_products::run<source>>;
  check_each<merged, sw::join_norm_adjoints, sw::join_cross_entropy>();
}

TEST_CASE("passes: a stack of layers becomes the same in stages of any size, and at run time") { check_passes<stack>(); }
TEST_CASE("passes: a transformer becomes the same in stages of any size, and at run time") { check_passes<transformer>(); }

template <class Source, int Nodes>
int differently_parted() {
  const auto g = std::make_unique<large<Source>>();
  sw::copy_into(*g, Source::value);
  const auto at_run_time = sw::supported_subgraphs(*g, 2);
  const auto &few = sw::supported_subgraphs_of<Source, 2, Nodes>::value,
             &whole = sw::supported_subgraphs_of<Source, 2>::value;
  int different = few.count == whole.count && at_run_time.count == whole.count && whole.count > 0 ? 0 : 1;
  for (int i = 0; i < Source::value.node_count; ++i)
    different += few.of[i] == whole.of[i] && at_run_time.of[i] == whole.of[i] ? 0 : 1;
  return different;
}
TEST_CASE("passes: subgraphs are the same in stages of any size, and at run time") {
  CHECK(differently_parted<program<stack>, 3>() == 0);
  CHECK(differently_parted<program<transformer>, 40>() == 0);
}

// --- iterations ------------------------------------------------------------------------------------------------------

template <class Source>
struct none {
  static constexpr sw::iteration_moves<sw::graph_type_of<Source>::node_capacity> value{};
};
template <class Move, class Source, int Nodes>
struct marked {
  static constexpr const auto& value = sw::staged<sw::passes::mark_staged<none<Source>, Move>, Source, Nodes>::value.moves;
};
template <class Moves, sw::iteration_phase Phase, class Source, int Nodes>
using phase = typename sw::passes::rewriting<sw::passes::moved_phase<Moves, Phase>>::template in_stages<Source, Nodes>;

template <class Move, class Source, sw::iteration_phase... Phase>
void check_moves() {
  using moves = marked<Move, Source, sw::stage_nodes>;
  using few = marked<Move, Source, 1>;
  REQUIRE(static_cast<int>(moves::value.error.what) == 0);
  REQUIRE(moves::value.count == 1);
  const auto module = std::make_unique<sw::iteration_module<large<Source>>>();
  sw::copy_into(module->g, Source::value);
  CHECK(!sw::passes::add_move(module->g, module->moves, Move::request(module->g)));
  CHECK(few::value.destination[1] == moves::value.destination[1]);
  CHECK(module->moves.destination[1] == moves::value.destination[1]);
  int different = 0;
  for (int i = 0; i < Source::value.node_count; ++i)
    different += few::value.group[i] == moves::value.group[i] && module->moves.group[i] == moves::value.group[i] ? 0 : 1;
  CHECK(different == 0);
  const auto check_phase = [&]<sw::iteration_phase P>(std::integral_constant<sw::iteration_phase, P>) {
    const auto& whole = phase<moves, P, Source, sw::stage_nodes>::value;
    CHECK(same(phase<moves, P, Source, 8>::value, whole));
    CHECK(same(phase<moves, P, Source, 100>::value, whole));
    const auto g = std::make_unique<large<Source>>();
    CHECK(!module->template phase<P>(*g));
    CHECK(same(*g, whole));
  };
  (check_phase(std::integral_constant<sw::iteration_phase, Phase>{}), ...);
}

TEST_CASE("passes: iterations become the same in stages of any size, and at run time") {
  using joined = sw::comm_fusion_in_place<1>::run<sw::fused_optimizer::run<program<stack>>>;
  using moved_last = sw::split_fused_optimizer<0, 0>::run<sw::remove_copy_from_optimizer::run<joined>>;
  check_moves<sw::move_descendants<"einsum", "advance", "advance_1">, moved_last, sw::iteration_phase::setup,
              sw::iteration_phase::main, sw::iteration_phase::cleanup>();
}

}  // namespace
