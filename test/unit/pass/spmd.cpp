// SPDX-License-Identifier: Apache-2.0
// Whole steps of linear and ReLU layers with Adam under data parallelism, through the passes: their structure at the sizes
// of the reference, as constants; their results on twins small enough to run, bit by bit against the step without passes.
#include <shardwise/io/dump.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <golden.hpp>
#include <models.hpp>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using namespace test;
using sw::op_code;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;
template <int N, int Layers, int Dim, class T, int Batch, class... Passes>
using step_on = sw::train_step<relu_stack<Layers, Dim>::template model, sum_task<T, Batch, Dim, sw::on<dp<N>, sw::shard<0>>>,
                               sw::plan<sw::data_parallel<dp<N>>>, mesh<N>, sw::adam<>, sw::pipeline<Passes...>, T>;
template <int Layers, int Dim, class... Passes>
using step = step_on<2, Layers, Dim, float, 8, Passes...>;

template <class Step>
constexpr int gradient_sums = sw::comm_fusion_buckets(Step::program, 0).items;
template <class Step>
constexpr int count_of_op(op_code op) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op ? 1 : 0;
  return n;
}
template <class Step>
constexpr auto blocks_of = sw::get_all_fused_optimizer_blocks(Step::program);

// Final parameters of rank 0 after some iterations; all ranks' must be equal.
template <class S, int N = 2>
auto train(int iterations) {
  using T = typename S::element;
  std::vector<T> all[N];
  sw::launch<mesh<N>>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    const auto feed = [&](auto& ex, int k) {
      auto in = ex.template input<T>(0);
      const std::size_t first =
          in.size() * static_cast<std::size_t>(rank.index());  // of the whole batch, on any number of ranks
      for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<T>(
            static_cast<int>(sw::philox(5, static_cast<std::uint32_t>(first + i), static_cast<std::uint32_t>(k), 0, 0).w[0] %
                             9U) -
            4);
    };
    const auto take = [&](auto& ex) {
      for (int i = 0; i < ex.parameter_count(); ++i)
        for (const T x : ex.parameter(i)) all[rank.index()].push_back(x);
    };
    sw::step_env env;
    env.lr = 0.01;
    if constexpr (requires { typename S::main; }) {
      sw::iterated_executor<S, rank_type> ex(rank, sw::executor_checks::poison);
      ex.main().initialise(3);
      for (int k = 0; k < iterations; ++k) {
        env.step = k + 1;
        feed(ex.main(), k);
        ex.run(env, k + 1 == iterations);
      }
      take(ex.main());
    } else {
      sw::executor<S, rank_type> ex(rank, sw::executor_checks::poison);
      ex.initialise(3);
      for (int k = 0; k < iterations; ++k) {
        env.step = k + 1;
        feed(ex, k);
        ex.run(env);
      }
      take(ex);
    }
  });
  for (const auto& v : all) CHECK(v == all[0]);
  return all[0];
}
// REQUIRE prints no vectors of a million numbers.
template <class A, class B>
void check_same(int iterations) {
  const bool same = train<A>(iterations) == train<B>(iterations);
  CHECK(same);
}

// Against the reference on one device: ten layers of 100, five iterations, in double precision.
template <class... Passes>
void check_golden() {
  using program = step_on<2, 10, 100, double, 200, Passes...>;
  using rows = sw::forward_step<relu_stack<10, 100>::model, sum_rows<double, 200, 100, sw::on<dp<2>, sw::shard<0>>>,
                                sw::plan<sw::data_parallel<dp<2>>>, mesh<2>, sw::pipeline<>, double>;
  const safetensors file(data_file("spmd_mlp_10x100_adam"));
  const auto name = [](const std::string& own) {
    return "mod." + std::to_string(2 * std::stoi(own.substr(4))) + own.substr(own.rfind('.'));
  };
  const auto run = run_golden<program, rows>(file, 2, 5, 0.01, false, name, [&](auto& ex, int k) {
    ex.set_input(0, whole_batch<double>(file, 2, 0, static_cast<std::size_t>(k), 5));
  });
  const golden_errors e = compare(run, file, 2, 1.0, 1e-9, 5 * 0.01 / 1e-8);
  CHECK(run.replicas_equal);
  CHECK(e.tensors == 20);
  CHECK(e.loss <= 1e-10);
  CHECK(e.gradient <= 1e-11);
  CHECK(e.final_excess <= 1);
}
// --- test_basic_transformation ---------------------------------------------------------------------------------------

using plain_10x100 = step<10, 100>;
using foreach_10x100 = step<10, 100, sw::foreach_optimizer>;
using phases_10x100 = sw::iterated<foreach_10x100>;
static_assert(gradient_sums<foreach_10x100> == 20 && foreach_10x100::traffic.collectives == 21);  // and the loss
static_assert(count_of_op<foreach_10x100>(op_code::advance) == 1 && count_of_op<foreach_10x100>(op_code::adam_term) == 3);
static_assert(count_of_op<foreach_10x100>(op_code::assign) == 3 && count_of_op<foreach_10x100>(op_code::adam) == 0);
static_assert(phases_10x100::kept_values == 0);

TEST_CASE("spmd passes: test_basic_transformation") {
  // nothing is moved: setup, main and cleanup are the same graph
  const std::string main = sw::to_text(phases_10x100::main::program);
  CHECK(sw::to_text(phases_10x100::setup::program) == main);
  CHECK(sw::to_text(phases_10x100::cleanup::program) == main);
  check_same<plain_10x100, foreach_10x100>(5);
  check_same<plain_10x100, phases_10x100>(5);
  check_golden<sw::foreach_optimizer>();
}

// --- test_graph_optimization_with_foreach, test_graph_optimization_with_fused ------------------------------------------

// Two layers of 4096: {b1 w1} {b0 w0}. Of 512, one MiB each with the bias, the same buckets.
template <class Form, int Dim, std::int64_t Cap, bool Copies>
using optimized =
    step<2, Dim, Form, std::conditional_t<Copies, sw::comm_fusion_with_concat<Cap>, sw::comm_fusion_in_place<Cap>>,
         sw::remove_copy_from_optimizer>;

template <class Step>
constexpr int sums_of_loss_and_buckets = Step::traffic.collectives;
// No assignment is left whose value a list operation gives: all are computed where they go.
template <class Step>
constexpr bool copies_are_gone = count_of_op<Step>(op_code::assign) == 0;

template <class Form>
constexpr bool structure_at_4096() {
  using concat = optimized<Form, 4096, 100, true>;
  using in_place = optimized<Form, 4096, 100, false>;
  static_assert(sums_of_loss_and_buckets<concat> == 3 && sums_of_loss_and_buckets<in_place> == 3);
  static_assert(copies_are_gone<concat> && copies_are_gone<in_place>);
  // four gradients are copied into their buckets, none is copied out; in place, none is copied at all
  static_assert(count_of_op<concat>(op_code::contiguous) == 4 && count_of_op<in_place>(op_code::contiguous) == 0);
  static_assert(in_place::peak_bytes < concat::peak_bytes);
  using moved = sw::train_step<relu_stack<2, 4096>::template model, sum_task<float, 8, 4096, sw::on<dp<2>, sw::shard<0>>>,
                               sw::plan<sw::data_parallel<dp<2>>>, mesh<2>, sw::adam<>, sw::pipeline<Form>>;
  static_assert(moved::traffic.collectives == 5);
  // the same bytes on the wire: every slot is a multiple of 64 bytes long
  static_assert(moved::template comm_bytes<dp<2>> == in_place::template comm_bytes<dp<2>>);
  return true;
}
static_assert(structure_at_4096<sw::foreach_optimizer>());
static_assert(structure_at_4096<sw::fused_optimizer>());

template <class Form>
void check_optimized() {
  check_same<step<2, 512>, optimized<Form, 512, 1, true>>(5);
  check_same<step<2, 512>, optimized<Form, 512, 1, false>>(5);
  static_assert(optimized<Form, 512, 1, false>::traffic.collectives == 3);
  check_golden<Form, sw::comm_fusion_with_concat<>, sw::remove_copy_from_optimizer>();
  check_golden<Form, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>();
}
TEST_CASE("spmd passes: test_graph_optimization_with_foreach") { check_optimized<sw::foreach_optimizer>(); }
TEST_CASE("spmd passes: test_graph_optimization_with_fused") { check_optimized<sw::fused_optimizer>(); }

// --- test_split_fused_optimizer ----------------------------------------------------------------------------------------

template <int Dim>
using whole = step<2, Dim, sw::remove_copy_from_optimizer, sw::fused_optimizer>;
template <int Dim>
using parted = step<2, Dim, sw::remove_copy_from_optimizer, sw::fused_optimizer, sw::split_fused_optimizer<0, 1, 2>>;

template <class Step>
constexpr sw::optimizer_block block(int k) {
  return sw::fused_block(Step::program, blocks_of<Step>.id[k]).block;
}
// What is no fused update has no block, and it is said at which node.
template <class Step>
constexpr bool only_updates_have_blocks() {
  for (int i = -1; i <= Step::program.node_count; ++i) {
    const sw::block_outcome found = sw::fused_block(Step::program, i);
    if (blocks_of<Step>.contains(i) ? found.error || found.block.update != i
                                    : found.error.what != sw::problem::split_unsupported || found.error.operand != i)
      return false;
  }
  return true;
}
static_assert(only_updates_have_blocks<whole<8>>() && only_updates_have_blocks<parted<8>>() &&
              only_updates_have_blocks<step<2, 8>>());
// Parameters' indices in a block's list, as decimal digits after a 1.
template <class Step>
constexpr int parameters_of(int k) {
  int digits = 1;
  for (const int p : sw::packed_tensors(Step::program, block<Step>(k).parameters))
    digits = 10 * digits + static_cast<int>(Step::program.nodes[p].a.v[0]);
  return digits;
}
template <int Dim>
constexpr bool is_split() {
  static_assert(blocks_of<whole<Dim>>.count == 1 && blocks_of<parted<Dim>>.count == 2);
  static_assert(parameters_of<whole<Dim>>(0) == 10123);
  static_assert(parameters_of<parted<Dim>>(0) == 112 && parameters_of<parted<Dim>>(1) == 103);
  constexpr const auto& g = parted<Dim>::program;
  for (int k = 0; k < 2; ++k) {
    const sw::optimizer_block b = block<parted<Dim>>(k);
    if (b.step < 0 || sw::packed_tensors(g, b.steps).count != 2 || sw::packed_tensors(g, b.gradients).count != 2)
      return false;
    // every list names the same parameters in the same order
    const auto p = sw::packed_tensors(g, b.parameters), m = sw::packed_tensors(g, b.first_moments),
               s = sw::packed_tensors(g, b.steps);
    for (int i = 0; i < 2; ++i)
      if (g.nodes[m.id[i]].a.v[1] != g.nodes[p.id[i]].a.v[0] || g.nodes[s.id[i]].a.v[1] != g.nodes[p.id[i]].a.v[0])
        return false;
  }
  return block<parted<Dim>>(0).step != block<parted<Dim>>(1).step;
}
static_assert(is_split<4096>() && is_split<64>());

TEST_CASE("spmd passes: test_split_fused_optimizer") {
  check_same<step<2, 64>, parted<64>>(5);
  check_golden<sw::fused_optimizer, sw::split_fused_optimizer<0, 1, 2, 7>>();
}

// --- test_iter_move_blocks_and_optimizers ------------------------------------------------------------------------------

template <int Dim, std::int64_t Cap>
using fused_five = step<5, Dim, sw::fused_optimizer, sw::comm_fusion_in_place<Cap>, sw::remove_copy_from_optimizer>;
template <int Dim, std::int64_t Cap>
using moved_five = sw::iterated<fused_five<Dim, Cap>, sw::iter_move_grads_and_optimizers<"all_reduce_1", "relu">>;

template <int Dim, std::int64_t Cap>
constexpr bool is_moved() {
  using before = fused_five<Dim, Cap>;
  using after = moved_five<Dim, Cap>;
  // {b4 w4} {b3 w3 b2 w2} {b1 w1 b0 w0} and the loss; the update is split 4 to 6
  static_assert(before::traffic.collectives == 4 && blocks_of<before>.count == 1);
  static_assert(after::kept_values == 1);  // the bucket
  static_assert(after::setup::traffic.collectives == 3 && after::main::traffic.collectives == 4 &&
                after::cleanup::traffic.collectives == 5);
  static_assert(blocks_of<typename after::setup>.count == 1 && blocks_of<typename after::main>.count == 2 &&
                blocks_of<typename after::cleanup>.count == 3);
  static_assert(sw::packed_tensors(after::main::program, block<typename after::main>(0).parameters).count == 4);
  static_assert(sw::packed_tensors(after::main::program, block<typename after::main>(1).parameters).count == 6);
  // the previous iteration's part runs before the first relu, and reads what was kept
  constexpr const auto& g = after::main::program;
  constexpr int relu = sw::find_node(g, "relu"), sum = sw::find_node(g, "all_reduce");
  static_assert(sum < relu && blocks_of<typename after::main>.id[0] < relu && blocks_of<typename after::main>.id[1] > relu);
  static_assert(g.nodes[g.nodes[sum].in[0]].op == op_code::state);
  return true;
}
static_assert(is_moved<4096, 100>() && is_moved<512, 2>());

TEST_CASE("spmd passes: test_iter_move_blocks_and_optimizers") {
  using before = fused_five<512, 2>;
  using after = moved_five<512, 2>;
  for (const int iterations : {2, 3, 5}) check_same<before, after>(iterations);
  check_same<step<5, 512>, after>(5);
  using single = sw::iterated<step_on<1, 5, 512, float, 8, sw::fused_optimizer, sw::remove_copy_from_optimizer>>;
  CHECK(train<single, 1>(2).size() == 5 * (512 * 512 + 512));
  sw::launch<mesh<2>>([](auto& rank) {
    sw::iterated_executor<after, std::remove_reference_t<decltype(rank)>> ex(rank);
    CHECK_THROWS_AS(ex.run({}, true), std::logic_error);  // nothing was kept yet
  });
}

// --- test_find_all_descendants -----------------------------------------------------------------------------------------

template <int Dim, std::int64_t Cap>
struct five_layers {
  static constexpr const auto& value = fused_five<Dim, Cap>::program;
};
template <int Dim, std::int64_t Cap>
constexpr bool closure_holds() {
  using source = five_layers<Dim, Cap>;
  constexpr int sum = sw::find_node(source::value, "all_reduce"), count = sw::find_node(source::value, "advance");
  using found = sw::all_descendants<source, sum, count>;
  static_assert(sw::is_leaf_subgraph(source::value, found::value));
  // exactly what can be reached, in the graph's order
  bool reached[source::value.node_count]{};
  int at = 0;
  for (int i = 0; i < source::value.node_count; ++i) {
    const sw::node& n = source::value.nodes[i];
    reached[i] = i == sum || i == count;
    for (int k = 0; k < n.inputs; ++k) reached[i] = reached[i] || reached[n.in[k]];
    if (reached[i] && found::value.id[at++] != i) return false;
  }
  return at == found::value.count;
}
static_assert(closure_holds<4096, 100>() && closure_holds<512, 2>());

// Before the first relu, layer 0 would read its parameters stale: what is written is named.
template <int Dim, std::int64_t Cap>
constexpr sw::finding literal_move = [] {
  using source = five_layers<Dim, Cap>;
  sw::iteration_moves<sw::graph_type_of<source>::node_capacity> moves;
  return sw::passes::add_move(source::value, moves,
                              sw::move_descendants<"relu", "all_reduce", "advance">::request(source::value));
}();
static_assert(literal_move<4096, 100>.what == sw::problem::move_hazard);

TEST_CASE("spmd passes: test_find_all_descendants") {
  const sw::finding f = literal_move<512, 2>;
  REQUIRE(static_cast<int>(f.what) == static_cast<int>(sw::problem::move_hazard));
  const auto& g = five_layers<512, 2>::value;
  CHECK(g.nodes[f.operand].op == op_code::einsum);  // layer 0 reads
  CHECK(g.nodes[g.nodes[f.operand].in[1]].op == op_code::param);
  CHECK(g.nodes[g.nodes[f.operand].in[1]].a.v[0] == 0);
  // before the first layer the same nodes may run
  using after = sw::iterated<fused_five<512, 2>, sw::move_descendants<"einsum", "all_reduce", "advance">>;
  check_same<fused_five<512, 2>, after>(2);
  CHECK(sw::find_all_descendants(g, nullptr, 0).error.what == sw::problem::descendants_of_nothing);
}

// --- at the reference's sizes ------------------------------------------------------------------------------------------

// Minutes and gigabytes: with SHARDWISE_TEST_LARGE in the environment of configuration and run.
const bool small_only = std::getenv("SHARDWISE_TEST_LARGE") == nullptr;

TEST_CASE("spmd passes: test_graph_optimization_with_fused at 4096" * doctest::skip(small_only)) {
  check_same<step<2, 4096>, optimized<sw::fused_optimizer, 4096, 100, true>>(2);
}
TEST_CASE("spmd passes: test_graph_optimization_with_foreach at 4096" * doctest::skip(small_only)) {
  check_same<step<2, 4096>, optimized<sw::foreach_optimizer, 4096, 100, true>>(2);
}
TEST_CASE("spmd passes: test_iter_move_blocks_and_optimizers at 4096" * doctest::skip(small_only)) {
  check_same<fused_five<4096, 100>, moved_five<4096, 100>>(5);
}

}  // namespace
