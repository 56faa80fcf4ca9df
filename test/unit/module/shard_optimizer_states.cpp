// SPDX-License-Identifier: Apache-2.0
// shard_optimizer_states in graphs: how states are stored beside whole parameters, which collectives a step has and what they send,
// the memory that is left, and what passes may do with rows that are written.
#include <doctest/doctest.h>

#include <fsdp.hpp>
#include <shardwise/io/dump.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

#include <cmath>

namespace {

using namespace test;
using namespace test::fsdp;
using sw::program_phase;
using sw::shard_optimizer_states;
using sw::transition;

template <class Plan, class Mesh = sw::mesh<dp<2>>, class Optimizer = sw::adam<>, class Pipeline = sw::pipeline<>>
using mlp_step =
    sw::train_step<three_linears, scaled_sum<double, 4, batch_axes<dp<2>>>, Plan, Mesh, Optimizer, Pipeline, double>;

using whole = mlp_step<sw::plan<sw::data_parallel<dp<2>>>>;
using states = mlp_step<sw::plan<sw::data_parallel<dp<2>, shard_optimizer_states>>>;

// --- how states are stored ------------------------------------------------------------------------------------------------

template <class Step>
constexpr sw::spec stored(int parameter) {
  return Step::program.spec_of(Step::parameters.item[parameter].node);
}
template <class Step>
constexpr sw::spec state_of(int parameter, int which = 0) {
  for (int i = 0; i < Step::program.node_count; ++i) {
    if (Step::program.nodes[i].op != sw::op_code::state) continue;
    const auto of = sw::attributes_of<sw::leaf_attributes>(Step::program.nodes[i].a);
    if (of.parameter == parameter && of.which == which) return Step::program.spec_of(i);
  }
  return sw::spec{};
}
// Of a rank, all states together.
template <class Step>
constexpr std::int64_t state_bytes(const int (&at)[sw::max_axes]) {
  std::int64_t bytes = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    if (Step::program.nodes[i].op == sw::op_code::state)
      bytes += sw::local_numel(Step::program.spec_of(i), at) * static_cast<std::int64_t>(sizeof(double));
  return bytes;
}
constexpr int first[sw::max_axes]{};

static_assert(stored<states>(0).place[0].is_reduced() && stored<states>(1).place[0].is_reduced());
static_assert(state_of<states>(0).place[0] == sw::shard_value(0) && state_of<states>(5, 1).place[0] == sw::shard_value(0));
static_assert(stored<states>(0) == stored<whole>(0));

// One nth on n ranks, and the largest chunk where they do not divide the rows.
template <int N, class... Options>
using on =
    sw::train_step<three_linears, scaled_sum<double, 4, batch_axes<dp<N>>>, sw::plan<sw::data_parallel<dp<N>, Options...>>,
                   sw::mesh<dp<N>>, sw::adam<>, sw::pipeline<>, double>;
constexpr std::int64_t all_states = 2 * 816 * 8;
static_assert(state_bytes<on<4>>(first) == all_states);
static_assert(state_bytes<on<1, shard_optimizer_states>>(first) == all_states);
static_assert(state_bytes<on<2, shard_optimizer_states>>(first) * 2 == all_states);
static_assert(state_bytes<on<4, shard_optimizer_states>>(first) * 4 == all_states);
static_assert(state_bytes<on<3, shard_optimizer_states>>(first) == 2 * 3 * 6 * 17 * 8);  // 6, 6 and 4 rows of 16
constexpr int third[sw::max_axes]{2};
static_assert(state_bytes<on<3, shard_optimizer_states>>(third) == 2 * 3 * 4 * 17 * 8);
static_assert(on<2, shard_optimizer_states>::peak_bytes < on<2>::peak_bytes);
static_assert(on<4, shard_optimizer_states>::peak_bytes < on<2, shard_optimizer_states>::peak_bytes);
// on one rank there is nothing to split
static_assert(on<1, shard_optimizer_states>::peak_bytes == on<1>::peak_bytes &&
              on<1, shard_optimizer_states>::program.node_count == on<1>::program.node_count);

TEST_CASE("shard_optimizer_states: rows are split after tensor parallelism has split them") {
  using plan = sw::plan<sw::data_parallel<dp<2>, shard_optimizer_states>, sw::at<"fc0", sw::colwise<tp<2>, 4>>,
                        sw::at<"fc1", sw::rowwise<tp<2>>>>;
  using step = mlp_step<plan, sw::mesh<dp<2>, tp<2>>>;
  const sw::spec weight0 = state_of<step>(0), weight1 = state_of<step>(2), bias1 = state_of<step>(3);
  CHECK(weight0.place[0] == sw::strided_shard_value(0, 2));
  CHECK(weight0.place[1].is_shard(0));
  CHECK(weight1.place[0] == sw::shard_value(0));
  CHECK(weight1.place[1].is_shard(1));
  CHECK(bias1.place[0] == sw::shard_value(0));
  CHECK(bias1.place[1].is_replicate());
  const int second[sw::max_axes]{1};
  CHECK(sw::local_interval(weight0, 0, second).begin == 4);  // the second half of the first rank's rows 0 to 7
  CHECK(stored<step>(0).place[0].is_reduced());
  using other = mlp_step<plan, sw::mesh<tp<2>, dp<2>>>;
  CHECK(state_of<other>(0).place[1] == sw::shard_value(0));
}

// Over two axes: what the first one leaves, the second one splits.
TEST_CASE("shard_optimizer_states over two axes of three") {
  using task = scaled_sum<double, 4, batch_axes<rep<2>, dp<2>>>;
  using plan = sw::plan<sw::data_parallel<rep<2>, shard_optimizer_states>, sw::data_parallel<dp<2>, shard_optimizer_states>,
                        sw::at<"fc0", sw::colwise<tp<2>, 1, sw::output<sw::replicate>>>>;
  using step = sw::train_step<three_linears, task, plan, sw::mesh<rep<2>, tp<2>, dp<2>>, sw::adam<>, sw::pipeline<>, double>;
  const sw::spec s = state_of<step>(0);
  for (int r = 0; r < 2; ++r)
    for (int t = 0; t < 2; ++t)
      for (int d = 0; d < 2; ++d) {
        const int at[sw::max_axes]{r, t, d};
        CHECK(sw::local_interval(s, 0, at).begin == 8 * t + 4 * r + 2 * d);
        CHECK(sw::local_interval(s, 0, at).size == 2);
      }
}

// --- what has no rows -----------------------------------------------------------------------------------------------------

template <class Bound = sw::unbound>
struct scaled_layer : sw::module<scaled_layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<3, 4>, inner), (sw::parameter<sw::shape<>, sw::init::ones>, gain));
  constexpr auto forward(const auto& x) const { return inner(x) * gain; }
};
struct sum_of_rows {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<4, 3>, sw::on<dp<2>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::sum(m(x)); }
};
TEST_CASE("shard_optimizer_states: a parameter without dims has whole states: zero_scalar") {
  using step = sw::train_step<scaled_layer, sum_of_rows, sw::plan<sw::data_parallel<dp<2>, shard_optimizer_states>>,
                              sw::mesh<dp<2>>, sw::adam<>, sw::pipeline<>, double>;
  CHECK(state_of<step>(2).rank == 0);
  CHECK(state_of<step>(2).place[0].is_replicate());
  CHECK(step::comm_bytes_of<dp<2>>(transition::all_reduce) == 16);  // its gradient, and the loss
}

// --- what a step sends ----------------------------------------------------------------------------------------------------

// Half of everything once each way, as the all-reduces that they stand for.
static_assert(states::comm_bytes_of<dp<2>>(transition::reduce_scatter, program_phase::backward) == 408 * 8);
static_assert(states::comm_bytes_of<dp<2>>(transition::all_gather, program_phase::optimizer) == 408 * 8);
static_assert(states::comm_bytes<dp<2>> == whole::comm_bytes<dp<2>>);
static_assert(on<4, shard_optimizer_states>::comm_bytes<dp<4>> == on<4>::comm_bytes<dp<4>>);
// the loss alone is still all-reduced; with clipping the norm, once
static_assert(states::comm_bytes_of<dp<2>>(transition::all_reduce) == 8);
static_assert(mlp_step<sw::plan<sw::data_parallel<dp<2>, shard_optimizer_states>>, sw::mesh<dp<2>>,
                       sw::clip_norm<sw::adam<>>>::comm_bytes_of<dp<2>>(transition::all_reduce) == 16);

template <class Step>
int batches() {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    n += batch_number(Step::program.nodes[i]) != 0 && !joins_batch(Step::program, i) ? 1 : 0;
  return n;
}
// Updates, gathers of parameters and writes into them, as they come.
template <class Step>
std::string order_of() {
  std::string order;
  for (int i = 0; i < Step::program.node_count; ++i) {
    const sw::node& n = Step::program.nodes[i];
    const bool gathers = sw::detail::transition_at(Step::program, i) == transition::all_gather;
    const bool updates = n.op == sw::op_code::adam || n.op == sw::op_code::adam_term;
    if (updates || gathers || (n.op == sw::op_code::assign && Step::program.nodes[n.in[0]].op == sw::op_code::param))
      order += updates ? 'u' : gathers ? 'g' : 'w';
  }
  return order;
}
TEST_CASE("shard_optimizer_states: a module's gradients are scattered side by side, its parameters gathered so") {
  CHECK(group_text<states>(transition::reduce_scatter) ==
        "backward: fc0 2 of 272 to 136; fc1 2 of 272 to 136; fc2 2 of 272 to 136;");
  CHECK(group_text<states>(transition::all_gather) ==
        "optimizer: fc0 2 of 136 to 272; fc1 2 of 136 to 272; fc2 2 of 136 to 272;");
  CHECK(batches<states>() == 6);
  // a module is done before the next one begins: updates, gathers and writes in turns
  CHECK(order_of<states>() == "uuggwwuuggwwuuggww");
  using clipped =
      mlp_step<sw::plan<sw::data_parallel<dp<2>, shard_optimizer_states>>, sw::mesh<dp<2>>, sw::clip_norm<sw::adam<>>>;
  CHECK(batches<clipped>() == 6);
}

// All rows are one list, and still gathered module by module; what keeps its states whole is another list.
TEST_CASE("shard_optimizer_states over lists") {
  using plan = sw::plan<sw::data_parallel<dp<2>, shard_optimizer_states>>;
  using mixed = sw::plan<sw::data_parallel<dp<2>, shard_optimizer_states>, sw::at<"fc1", sw::data_parallel<dp<2>>>>;
  using fused = mlp_step<plan, sw::mesh<dp<2>>, sw::adam<>, sw::pipeline<sw::fused_optimizer>>;
  using foreach = mlp_step<plan, sw::mesh<dp<2>>, sw::adam<>, sw::pipeline<sw::foreach_optimizer>>;
  using batched = mlp_step<plan, sw::mesh<dp<2>>, sw::adam<>, sw::pipeline<sw::batch_collectives, sw::fused_optimizer>>;
  using clipped = mlp_step<plan, sw::mesh<dp<2>>, sw::clip_norm<sw::adamw<true>>, sw::pipeline<sw::fused_optimizer>>;
  using two = mlp_step<mixed, sw::mesh<dp<2>>, sw::adam<>, sw::pipeline<sw::fused_optimizer>>;
  CHECK(order_of<fused>() == "uggwwggwwggww");
  CHECK(order_of<batched>() == "uggwwggwwggww");
  CHECK(order_of<foreach>() == "uuuggwwggwwggww");
  CHECK(order_of<clipped>() == "uuggwwggwwggww");  // AdamW takes nothing off vectors: a list of weights, one of biases
  CHECK(order_of<two>() == "uuggwwggww");
  for (const transition t : {transition::reduce_scatter, transition::all_gather})
    CHECK(group_text<fused>(t) == group_text<states>(t));
  CHECK(batches<fused>() == 6);
  CHECK(batches<batched>() == 6);
  static_assert(fused::comm_bytes<dp<2>> == states::comm_bytes<dp<2>>);
  // beside what is stored for good, the rows of all modules, and alignment
  static_assert(fused::peak_bytes <= states::peak_bytes + 408 * 8 + 40 * 256);
}
// What dump shows is what the step runs; a forward pass updates nothing.
static_assert(std::is_same_v<sw::detail::pipeline_of<states>::type, sw::pipeline<sw::batch_collectives>>);
static_assert(std::is_same_v<sw::detail::pipeline_of<whole>::type, sw::pipeline<>>);
static_assert(
    std::is_same_v<sw::detail::pipeline_of<sw::forward_step<three_linears, row_sums<double, 4, batch_axes<dp<2>>>,
                                                            sw::plan<sw::data_parallel<dp<2>, shard_optimizer_states>>,
                                                            sw::mesh<dp<2>>, sw::pipeline<>, double>>::type,
                   sw::pipeline<>>);

// --- beside other entries -------------------------------------------------------------------------------------------------

TEST_CASE("shard_optimizer_states: of several styles of an axis the last one holds") {
  using one = mlp_step<sw::plan<sw::data_parallel<dp<2>>, sw::at<"fc1", sw::data_parallel<dp<2>, shard_optimizer_states>>>>;
  using others =
      mlp_step<sw::plan<sw::data_parallel<dp<2>, shard_optimizer_states>, sw::at<"fc1", sw::data_parallel<dp<2>>>>>;
  CHECK(group_text<one>(transition::all_gather) == "optimizer: fc1 2 of 136 to 272;");
  CHECK(group_text<others>(transition::all_gather) == "optimizer: fc0 2 of 136 to 272; fc2 2 of 136 to 272;");
  CHECK(state_of<others>(2).place[0].is_replicate());
  CHECK(one::comm_bytes<dp<2>> == whole::comm_bytes<dp<2>>);
}

// Shards' rows are split once more, and what the backward pass reads is gathered again.
TEST_CASE("shard_optimizer_states over the axis on which shards are copied") {
  using task = scaled_sum<double, 4, batch_axes<rep<2>, dp<2>>>;
  using shards = sw::fully_shard<dp<2>, sw::reshard_after_forward<true>>;
  using mesh = sw::mesh<rep<2>, dp<2>>;
  using copied = sw::train_step<three_linears, task, sw::plan<sw::data_parallel<rep<2>>, shards>, mesh, sw::adam<>,
                                sw::pipeline<>, double>;
  using split = sw::train_step<three_linears, task, sw::plan<sw::data_parallel<rep<2>, shard_optimizer_states>, shards>,
                               mesh, sw::adam<>, sw::pipeline<>, double>;
  const auto again = [](const std::string& text) { return text.substr(text.find("backward"), 31); };
  CHECK(again(group_text<split>(transition::all_gather)) == again(group_text<copied>(transition::all_gather)));
  CHECK(state_bytes<split>(first) * 2 == state_bytes<copied>(first));
  CHECK(stored<split>(0) == stored<copied>(0));
  CHECK(split::comm_bytes<rep<2>> == copied::comm_bytes<rep<2>>);
}

// --- rows that are written ------------------------------------------------------------------------------------------------

// A task that asks for the very rows that the step updates: it gets them as they were.
struct with_rows {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<4, 3>, sw::on<dp<2>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    return sw::outputs(sw::named<"loss">(sw::sum(m(x))), sw::named<"rows">(sw::redistribute<dp<2>, sw::shard<0>>(m.weight)));
  }
};
template <class B>
using layer = sw::linear<3, 4, B>;
using asked = sw::train_step<layer, with_rows, sw::plan<sw::data_parallel<dp<2>, shard_optimizer_states>>, sw::mesh<dp<2>>,
                             sw::sgd<>, sw::pipeline<sw::cancel_redistributions, sw::merge_common>, double>;
TEST_CASE("shard_optimizer_states: rows that a task reads are not those that are written: zero_rows_read") {
  sw::launch<sw::mesh<dp<2>>>([](auto& rank) {
    sw::executor<asked> run(rank);
    run.initialise(3);
    run.set_input(0, std::vector<double>(12, 1.0));
    const auto weight = run.full_parameter("weight");
    sw::step_env env;
    env.lr = 0.5;
    run.run(env);
    const auto rows = run.template output<"rows">();
    const std::size_t begin = rank.index() == 0 ? 0 : 6;
    for (std::size_t i = 0; i < 6; ++i) CHECK(rows[i] == weight[begin + i]);
    const auto now = run.full_parameter("weight");
    for (std::size_t i = 0; i < 12; ++i) CHECK(now[i] == doctest::Approx(weight[i] - 0.5 * 4));  // four rows of ones
  });
}

// --- phases ---------------------------------------------------------------------------------------------------------------

template <class Graph>
auto phases_of(const Graph& g) {
  sw::passes::phase_marks<Graph::node_capacity> marks{};
  sw::passes::mark_phases(marks, g);
  return marks;
}
TEST_CASE("shard_optimizer_states: what takes, updates and gathers rows is the optimizer's") {
  const auto marks = phases_of(states::program);
  int taken = 0, written = 0;
  for (int i = 0; i < states::program.node_count; ++i) {
    const sw::node& n = states::program.nodes[i];
    if (n.op != sw::op_code::assign && n.op != sw::op_code::adam) continue;
    CHECK(marks.of(i) == program_phase::optimizer);
    (n.op == sw::op_code::adam ? taken : written) += 1;
    CHECK(marks.of(n.in[n.op == sw::op_code::adam ? 0 : 1]) == program_phase::optimizer);
  }
  CHECK(taken == 6);
  CHECK(written == 6);
}

}  // namespace
