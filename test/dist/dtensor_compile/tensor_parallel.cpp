// SPDX-License-Identifier: Apache-2.0
// Two perceptrons, each split column-wise and then row-wise over four ranks, without and with a sharded sequence.
#include <doctest/doctest.h>

#include <algorithm>
#include <both_ways.hpp>
#include <models.hpp>

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
