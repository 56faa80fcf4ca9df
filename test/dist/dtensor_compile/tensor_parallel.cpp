// SPDX-License-Identifier: Apache-2.0
// Two perceptrons, each split column-wise and then row-wise, without and with a sharded sequence, with parameters in shards over a
// second axis, and checkpointed.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <both_ways.hpp>
#include <models.hpp>
#include <shardwise/module/eager_gradient.hpp>

namespace {

using namespace test;
using sw::transition;

template <int N>
struct tp : sw::axis<N> {};
using R = sw::replicate;
template <int D>
using S = sw::shard<D>;
using numbers = std::vector<double>;

template <class B>
using model = simple_model<B>;

template <class Axis>
using split_plan = sw::plan<sw::at<"*.net1", sw::colwise<Axis>>, sw::at<"*.net2", sw::rowwise<Axis>>>;

template <class Axis>
using sequence_plan = sw::plan<sw::at<"mlp_0", sw::prepare_input<Axis, R, S<0>>>, sw::at<"mlp_0.net1", sw::colwise<Axis>>,
                               sw::at<"mlp_0.net2", sw::rowwise<Axis, 1, sw::output<S<0>>>>,
                               sw::at<"mlp_1.net1", sw::colwise<Axis, 1, sw::input<S<0>>>>,
                               sw::at<"mlp_1.net2", sw::rowwise<Axis>>, sw::at<"mlp_1", sw::prepare_output<Axis, S<0>>>>;

template <int Rows, class Placement>
struct forward_task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<Rows, 10>, Placement>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return m(x); }
};

template <class Program>
constexpr sw::spec output_spec = Program::program.spec_of(Program::program.outputs[0]);

// Small integers: every sum is exact in any order, so ranks and programs must agree to the bit.
numbers integers(std::int64_t n, int salt) {
  numbers v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<double>((i * 7 + i / 5 + static_cast<std::size_t>(salt) * 3) % 5) - 2;
  return v;
}
numbers parameter_values(int index) {
  constexpr int sizes[4] = {16 * 10, 16, 10 * 16, 10};
  return integers(sizes[index % 4], index + 1);
}

// net2(relu(net1(x))) for one row, from whole parameters first..first + 3.
numbers by_hand(const numbers& row, int first) {
  const numbers w1 = parameter_values(first), b1 = parameter_values(first + 1), w2 = parameter_values(first + 2),
                b2 = parameter_values(first + 3);
  numbers h(16), y(10);
  for (std::size_t i = 0; i < 16; ++i) {
    h[i] = b1[i];
    for (std::size_t k = 0; k < 10; ++k) h[i] += w1[i * 10 + k] * row[k];
    h[i] = std::max(h[i], 0.0);
  }
  for (std::size_t i = 0; i < 10; ++i) {
    y[i] = b2[i];
    for (std::size_t k = 0; k < 16; ++k) y[i] += w2[i * 16 + k] * h[k];
  }
  return y;
}

template <class Executor>
void set_parameters(Executor& program) {
  REQUIRE(program.parameter_count() == 8);
  for (int i = 0; i < 8; ++i) program.set_parameter(i, parameter_values(i));
}

// Whole parameters after one step of SGD with rate 1: initial values minus gradients.
template <class Step, class Mesh>
std::vector<numbers> stepped(const numbers& x) {
  std::vector<numbers> whole(8);
  for (int i = 0; i < 8; ++i) whole[static_cast<std::size_t>(i)].resize(parameter_values(i).size());
  sw::launch<Mesh>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> step(rank, sw::executor_checks::poison);
    set_parameters(step);
    step.set_input(0, x);
    sw::step_env env;
    env.lr = 1;
    env.step = 1;
    step.run(env);
    for (int i = 0; i < 8; ++i) step.gather_parameter(i, whole[static_cast<std::size_t>(i)]);
  });
  return whole;
}

// Runs the plan's forward at once and as a program, and a training step; against one device.
template <template <class> class Plan, int Rows, class Placement>
void check(transition last_of_forward) {
  using mesh = sw::mesh<tp<4>>;
  using plan = Plan<tp<4>>;
  using task = forward_task<Rows, Placement>;
  using forward = sw::forward_step<model, task, plan, mesh, sw::pipeline<>, double>;
  using step = sw::train_step<model, sum_task<double, Rows, 10, sw::on<tp<4>, Placement>>, plan, mesh, sw::sgd<>,
                              sw::pipeline<>, double>;
  static_assert(!sw::verify(forward::program) && !sw::verify(step::program));
  const numbers x = integers(Rows * 10, 0);
  sw::launch<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<forward, rank_type> program(rank, sw::executor_checks::poison);
    set_parameters(program);
    program.set_input(0, x);
    rank.reset_counts();
    program.run({});
    const auto c = rank.coordinate();
    CHECK(rank.bytes_written(0) == sw::passes::sent_bytes(forward::program, forward::traffic, 0, c.data()));
    // local shapes: net1 (4, 10) and (4), net2 (10, 4) and (10)
    for (int m = 0; m < 8; m += 4) {
      CHECK(program.parameter_layout(m).ext[0] == 4);
      CHECK(program.parameter_layout(m).ext[1] == 10);
      CHECK(program.parameter_layout(m + 1).ext[0] == 4);
      CHECK(program.parameter_layout(m + 2).ext[0] == 10);
      CHECK(program.parameter_layout(m + 2).ext[1] == 4);
      CHECK(program.parameter_layout(m + 3).ext[0] == 10);
    }
    sw::eager on(rank);
    sw::bind_eager<model, plan, mesh, double> eager_model{};
    sw::load_parameters(eager_model, on, program);
    rank.reset_counts();
    const auto y = task{}(eager_model, sw::dtensor_of<double, sw::shape<Rows, 10>, mesh, Placement>::distribute(on, x));
    CHECK(rank.bytes_written(0) == sw::passes::sent_bytes(forward::program, forward::traffic, 0, c.data()));
    static_assert(decltype(y)::sp == output_spec<forward>);
    CHECK(same_bits(y.to_local(), program.output(0)));
    // this rank's rows of the single-device result
    const auto mine = y.to_local();
    CHECK(mine.layout.ext[0] == 20);
    for (std::int64_t r = 0; r < mine.layout.ext[0]; ++r) {
      const auto begin = x.begin() + (mine.layout.origin[0] + r) * 10;
      const numbers wanted = by_hand(by_hand(numbers(begin, begin + 10), 0), 4);
      for (int k = 0; k < 10; ++k) CHECK(mine(r, k) == wanted[static_cast<std::size_t>(k)]);
    }
  });
  CHECK(collectives_of<forward>().kind[collectives_of<forward>().count - 1] == last_of_forward);
  using single_mesh = sw::mesh<tp<1>>;
  using single_step = sw::train_step<model, sum_task<double, Rows, 10, sw::on<tp<1>, R>>, sw::plan<>, single_mesh, sw::sgd<>,
                                     sw::pipeline<>, double>;
  const auto many = stepped<step, mesh>(x), one = stepped<single_step, single_mesh>(x);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(many[i] == one[i]);
    CHECK(one[i] != parameter_values(static_cast<int>(i)));
  }
}

using mesh4 = sw::mesh<tp<4>>;
template <template <class> class Plan, int Rows, class Placement>
using forward_of = sw::forward_step<model, forward_task<Rows, Placement>, Plan<tp<4>>, mesh4, sw::pipeline<>, double>;
template <template <class> class Plan, int Rows, class Placement>
using step_of = sw::train_step<model, sum_task<double, Rows, 10, sw::on<tp<4>, Placement>>, Plan<tp<4>>, mesh4, sw::sgd<>,
                               sw::pipeline<>, double>;

}  // namespace

TEST_CASE("dtensor compile: test_tp_compile_fullgraph") {
  constexpr transition ar = transition::all_reduce, ag = transition::all_gather, rs = transition::reduce_scatter;
  SUBCASE("seq_parallel False") {
    static_assert(collectives_of<forward_of<split_plan, 20, R>>() == in_order(ar, ar));
    // backward: the gradient into mlp_1's whole input; the model's input needs none
    static_assert(collectives_of<step_of<split_plan, 20, R>>() == in_order(ar, ar, ar));
    check<split_plan, 20, R>(ar);
  }
  SUBCASE("seq_parallel True") {
    static_assert(collectives_of<forward_of<sequence_plan, 80, S<0>>>() == in_order(ag, rs, ag, ar));
    // backward: of the chunk, of mlp_1's gather, of mlp_0's scatter; the step then sums the loss for reporting, and the
    // gradient of the bias that met sharded rows
    static_assert(collectives_of<step_of<sequence_plan, 80, S<0>>>() == in_order(ag, rs, ag, ar, ag, rs, ag, ar, ar));
    static_assert(output_spec<forward_of<sequence_plan, 80, S<0>>>.place[0] == sw::shard_value(0));
    check<sequence_plan, 80, S<0>>(ar);
  }
}

namespace {

template <class Plan>
struct as_checkpoint;
template <class... E>
struct as_checkpoint<sw::plan<E...>> {
  using type = sw::plan<E..., sw::checkpoint>;
};
template <class Axis>
using checkpointed_sequence_plan = typename as_checkpoint<sequence_plan<Axis>>::type;
// The model as one checkpoint, and each perceptron as its own.
template <class Axis>
using checkpointed_plan = typename as_checkpoint<split_plan<Axis>>::type;
template <class Axis>
using checkpoints_plan =
    sw::plan<sw::at<"*.net1", sw::colwise<Axis>>, sw::at<"*.net2", sw::rowwise<Axis>>, sw::at<"mlp_?", sw::checkpoint>>;

}  // namespace

TEST_CASE("dtensor compile: checkpointed perceptrons have the gradients of the plain ones") {
  constexpr transition ar = transition::all_reduce;
  using plain = step_of<split_plan, 20, R>;
  using whole = step_of<checkpointed_plan, 20, R>;
  using parts = step_of<checkpoints_plan, 20, R>;
  // The model is computed again as far as the backward pass reads it: the first perceptron's sum, which the second one's weights
  // meet. Nothing reads the second sum any more, as where PyTorch's recomputation stops early.
  static_assert(collectives_of<whole>() == in_order(ar, ar, ar, ar));
  static_assert(whole::comm_bytes_of<tp<4>>(ar, sw::program_phase::backward) ==
                2 * plain::comm_bytes_of<tp<4>>(ar, sw::program_phase::backward));
  static_assert(whole::comm_bytes_of<tp<4>>(ar, sw::program_phase::forward) ==
                plain::comm_bytes_of<tp<4>>(ar, sw::program_phase::forward));
  static_assert(collectives_of<parts>() == collectives_of<plain>());
  static_assert(count_of<whole>(sw::op_code::einsum) == count_of<plain>(sw::op_code::einsum) + 3);
  static_assert(count_of<parts>(sw::op_code::einsum) == count_of<plain>(sw::op_code::einsum) + 2);
  const numbers x = integers(20 * 10, 0);
  const auto want = stepped<plain, mesh4>(x), one_region = stepped<whole, mesh4>(x), two_regions = stepped<parts, mesh4>(x);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(want[i] != parameter_values(static_cast<int>(i)));
    CHECK(one_region[i] == want[i]);
    CHECK(two_regions[i] == want[i]);
  }
  // sharded rows: all of the forward pass's collectives but the last, whose result nothing reads
  using sequence = step_of<checkpointed_sequence_plan, 80, S<0>>;
  static_assert(sequence::comm_bytes_of<tp<4>>(transition::all_gather, sw::program_phase::backward) >
                step_of<sequence_plan, 80, S<0>>::comm_bytes_of<tp<4>>(transition::all_gather, sw::program_phase::backward));
  const numbers rows = integers(80 * 10, 0);
  const auto scattered = stepped<step_of<sequence_plan, 80, S<0>>, mesh4>(rows), again = stepped<sequence, mesh4>(rows);
  for (std::size_t i = 0; i < 8; ++i) CHECK(again[i] == scattered[i]);
}

// --- with parameters in shards over a second axis -----------------------------------------------------------------------------

namespace {

struct dp : sw::axis<2> {};
using mesh22 = sw::mesh<dp, tp<2>>;
using sharded_plan =
    sw::plan<sw::fully_shard<dp>, sw::at<"*.net1", sw::colwise<tp<2>>>, sw::at<"*.net2", sw::rowwise<tp<2>>>>;
using sharded_checkpoint_plan = typename as_checkpoint<sharded_plan>::type;

using rows_of_dp = sw::on<dp, S<0>>;
using sharded_forward = sw::forward_step<model, forward_task<40, rows_of_dp>, sharded_plan, mesh22, sw::pipeline<>, double>;
template <class Plan>
using sharded_step =
    sw::train_step<model, sum_task<double, 40, 10, rows_of_dp>, Plan, mesh22, sw::sgd<>, sw::pipeline<>, double>;

// One step, compiled under Plan and eager under EagerPlan, from equal parameters: every parameter, and so every gradient, is the same
// to the bit, and what one device computes.
template <class Plan, class EagerPlan>
void check_sharded() {
  using step = sharded_step<Plan>;
  using task = sum_task<double, 40, 10, rows_of_dp>;
  using batch = sw::dtensor_of<double, sw::shape<40, 10>, mesh22, rows_of_dp>;
  using single_step = sw::train_step<model, sum_task<double, 40, 10, sw::on<tp<1>, R>>, sw::plan<>, sw::mesh<tp<1>>,
                                     sw::sgd<>, sw::pipeline<>, double>;
  const numbers x = integers(40 * 10, 0);
  const auto one = stepped<single_step, sw::mesh<tp<1>>>(x);
  sw::launch<mesh22>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<step, rank_type> program(rank, sw::executor_checks::poison);
    set_parameters(program);
    sw::eager on(rank);
    sw::bind_eager<model, EagerPlan, mesh22, double, rank_type> eager_model{};
    sw::load_parameters(eager_model, on, program);
    program.set_input(0, x);
    sw::step_env env;
    env.lr = 1;
    env.step = 1;
    program.run(env);
    on.start_step(env.seed, env.step);
    const auto [loss, gradients] = sw::value_and_grad(task{})(eager_model, batch::distribute(on, x));
    CHECK(loss.item() == program.loss());
    sw::eager_optimizer<sw::sgd<>, decltype(eager_model)> optimizer;
    optimizer.step(eager_model, gradients, env);
    sw::for_each_parameter(eager_model, [&](const std::string& path, auto& p) {
      const auto mine = p.to_local();
      const auto theirs = program.parameter(program.parameter_index(path));
      CHECK(numbers(mine.data.begin(), mine.data.end()) == numbers(theirs.begin(), theirs.end()));
    });
  });
  const auto many = stepped<step, mesh22>(x);
  for (std::size_t i = 0; i < 8; ++i) CHECK(many[i] == one[i]);
}

}  // namespace

TEST_CASE("dtensor compile: test_2d_fsdp_tp_compile") {
  // [[0, 1], [2, 3]]
  static_assert(mesh22::group<tp<2>>(0) == std::array{0, 1} && mesh22::group<tp<2>>(3) == std::array{2, 3} &&
                mesh22::group<dp>(0) == std::array{0, 2});
  constexpr transition ar = transition::all_reduce, ag = transition::all_gather;
  // 80 + 8 + 80 + 10 elements of each perceptron on a rank of tp: 356, gathered out of 178 on each rank of dp
  static_assert(sharded_forward::comm_bytes_of<dp>(ag) == 178 * 8);
  static_assert(sharded_step<sharded_plan>::comm_bytes_of<dp>(transition::reduce_scatter) == 178 * 8);
  // one all-gather over dp, two all-reduces over tp
  static_assert(sw::passes::order_of(sharded_forward::program).collectives == 3);
  static_assert(sw::passes::order_of(sharded_forward::program).members == 8 + 2);
  static_assert(collectives_of<sharded_forward>() == in_order(ag, ag, ag, ag, ag, ag, ag, ag, ar, ar));
  check_sharded<sharded_plan, sharded_plan>();
}

TEST_CASE("dtensor compile: test_2d_fsdp_tp_ac_compile") {
  constexpr transition ar = transition::all_reduce, ag = transition::all_gather, rs = transition::reduce_scatter;
  using plain = sharded_step<sharded_plan>;
  using checkpointed = sharded_step<sharded_checkpoint_plan>;
  constexpr sw::program_phase backward = sw::program_phase::backward;
  // The model is computed again with its collectives over tp, as far as the backward pass reads it (as where PyTorch's recomputation
  // stops early): the first perceptron's sum, 20 rows of 10. Parameters are gathered no more often than without.
  static_assert(checkpointed::comm_bytes_of<tp<2>>(ar, backward) ==
                plain::comm_bytes_of<tp<2>>(ar, backward) + sharded_forward::comm_bytes_of<tp<2>>(ar) / 2);
  static_assert(sw::passes::order_of(checkpointed::program).collectives ==
                sw::passes::order_of(plain::program).collectives + 1);
  static_assert(checkpointed::comm_bytes_of<dp>(ag) == plain::comm_bytes_of<dp>(ag));
  static_assert(checkpointed::comm_bytes_of<dp>(rs) == plain::comm_bytes_of<dp>(rs));
  // gradients of the checkpointed eager copy against those of the compiled one, and of both compiled
  check_sharded<sharded_plan, sharded_checkpoint_plan>();
  check_sharded<sharded_checkpoint_plan, sharded_checkpoint_plan>();
}
