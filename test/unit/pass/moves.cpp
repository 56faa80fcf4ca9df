// SPDX-License-Identifier: Apache-2.0
// What passes write, moved to the next iteration: kernels that store more than their result, and the values stored so; updates
// whose value stays behind.
#include <shardwise/module/hana.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/optimizer/optimizer_blocks.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/runtime/executor/iterated.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  using weight_type = sw::parameter<sw::shape<4>, sw::init::normal<1, 1>, sw::child<Bound, 0>>;
  using factor_type = sw::parameter<sw::shape<4>, sw::init::normal<1, 1>, sw::child<Bound, 1>>;
  BOOST_HANA_DEFINE_STRUCT(net, (weight_type, weight), (factor_type, factor));
  constexpr auto forward(const auto& x) const { return sw::sum(sw::exp(factor * sw::tanh(weight * x))); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<4, 4>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
template <class Optimizer, class... P>
using step = sw::train_step<net, task, sw::plan<sw::data_parallel<dp>>, mesh, Optimizer, sw::pipeline<P...>, double>;

// Losses of all calls, then the parameters.
template <class Step>
std::vector<double> train(int iterations) {
  std::vector<double> all;
  sw::launch<mesh>([&](auto& rank) {
    constexpr bool moved = requires { typename Step::setup; };
    std::conditional_t<moved, sw::iterated_executor<Step>, sw::executor<Step>> ex(rank, sw::executor_checks::poison);
    auto& main = [&]() -> auto& {
      if constexpr (moved) return ex.main();
      else return ex;
    }();
    main.initialise(3);
    sw::step_env env;
    env.lr = 0.05;
    for (int s = 1; s <= iterations; ++s) {
      std::vector<double> x(16);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i) + s);
      main.set_input(0, x);
      env.step = s;
      if constexpr (moved) ex.run(env, s == iterations);
      else ex.run(env);
      if (rank.index() == 0) all.push_back(ex.loss());
    }
    for (int p = 0; rank.index() == 0 && p < 2; ++p)
      all.insert(all.end(), main.parameter(p).begin(), main.parameter(p).end());
  });
  return all;
}
template <class Plain, class Moved>
void check_same() {
  for (const int iterations : {2, 3, 5}) {
    const std::vector<double> want = train<Plain>(iterations), got = train<Moved>(iterations);
    REQUIRE(got.size() == want.size());
    CHECK(std::memcmp(got.data(), want.data(), got.size() * sizeof(double)) == 0);
  }
}

template <class Program>
constexpr int count(op_code op) {
  int n = 0;
  for (int i = 0; i < Program::program.node_count; ++i) n += Program::program.nodes[i].op == op ? 1 : 0;
  return n;
}

// buffer, fused = fused[mul, tanh*, mul, exp](.., buffer), part; .. buffer_1, fused_1 = fused[mul*, mul](.., part, buffer_1), part_1;
// fused_2(part_1, .., part), two updates.
using fused = step<sw::sgd<>, sw::fuse_pointwise>;
static_assert(count<fused>(op_code::room) == 2 && count<fused>(op_code::part) == 2);

// A part stays where its writer stays: it is what is kept, and the buffer and the writer's own result are not.
using reads_parts = sw::iterated<fused, sw::move_descendants<"fused", "fused_2", "sgd_1">>;
static_assert(reads_parts::kept_values == 4);  // part, part_1, the input, the other gradient
static_assert(count<reads_parts::main>(op_code::room) == 2 && count<reads_parts::main>(op_code::part) == 2);
using names_part =
    sw::iterated<fused, sw::move_descendants<"fused", "part_1", "sgd_1">>;  // as a descendant of what is asked for
static_assert(names_part::kept_values == 4);

// A buffer goes where its writer goes.
using moves_writer = sw::iterated<fused, sw::move_descendants<"fused", "fused_1">>;
static_assert(moves_writer::kept_values == 4);  // expand, the result of fused, its part, the input
static_assert(count<moves_writer::setup>(op_code::room) == 1 && count<moves_writer::main>(op_code::room) == 2 &&
              count<moves_writer::cleanup>(op_code::room) == 3);

TEST_CASE("what a fused kernel stores besides its result is read, and is stored, in the next iteration") {
  check_same<fused, reads_parts>();
  check_same<fused, names_part>();
  check_same<fused, moves_writer>();
}

// An update in place whose value is computed before it moves: the value is kept, and copied where it belongs.
using listed = step<sw::adam<>, sw::foreach_optimizer, sw::remove_copy_from_optimizer>;
static_assert(count<listed>(op_code::in_place) == 3);
using late_updates = sw::iterated<listed, sw::move_descendants<"mul", "in_place", "in_place_1", "in_place_2">>;
static_assert(late_updates::kept_values == 3 && count<late_updates::main>(op_code::in_place) == 0);

TEST_CASE("updates in place whose values stay behind keep them") { check_same<listed, late_updates>(); }

TEST_CASE("a learning rate that changes between calls is refused where updates have moved") {
  sw::launch<mesh>([](auto& rank) {
    sw::iterated_executor<moves_writer> ex(rank);
    ex.main().initialise(3);
    ex.main().set_input(0, std::vector<double>(16, 1));
    sw::step_env env;
    env.lr = 0.5;
    ex.run(env);
    env.lr = 0.25;
    std::string said;
    try {
      ex.run(env);
    } catch (const std::invalid_argument& e) {
      said = e.what();
    }
    CHECK(
        said ==
        "shardwise: run: env.lr is 0.25 and was 0.5 in the call before, whose moved updates run in this call and would take it; keep it "
        "until the last call, or run the step without moves");
    env.lr = 0.5;
    ex.run(env, true);
    env.lr = 0.25;  // nothing is under way
    ex.run(env);
    ex.run(env, true);
  });
}

// A wait that moves without its collective: the sum has come, and is kept; packed, it is copied.
using waited = step<sw::adam<>, sw::fused_optimizer, sw::schedule_comm_wait>;
static_assert(count<waited>(op_code::wait) >= 2 && count<waited>(op_code::pack) == 5);
using late_waits = sw::iterated<waited, sw::move_descendants<"mul", "wait", "wait_1", "advance">>;
static_assert(count<late_waits::setup>(op_code::wait) == 1);

TEST_CASE("a wait moves without what it waits for") { check_same<waited, late_waits>(); }

// An input that is written after a moved node reads it: what the next iteration would find of it is what was written.
struct writes_input {
  using inputs = task::inputs;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto loss = model(x);
    sw::mul_(x, 2.);
    return loss;
  }
};
using writing = sw::train_step<net, writes_input, sw::plan<sw::data_parallel<dp>>, mesh, sw::sgd<>, sw::pipeline<>, double>;
template <class... Moves>
constexpr sw::problem refusal() {
  sw::iteration_moves<sw::graph_type_of<sw::detail::step_program<writing>>::node_capacity> moves;
  sw::problem first = sw::problem::none;
  ((first = first == sw::problem::none ? sw::passes::add_move(writing::program, moves, Moves::request(writing::program)).what
                                       : first),
   ...);
  return first;
}
static_assert(refusal<sw::move_descendants<"mul", "mul_5">>() == sw::problem::move_hazard);   // mul_5 reads the input
static_assert(refusal<sw::move_descendants<"mul", "assign">>() == sw::problem::move_hazard);  // writes the next one's
static_assert(refusal<sw::move_descendants<"mul", "all_reduce_1", "all_reduce_2">>() == sw::problem::none);

}  // namespace
