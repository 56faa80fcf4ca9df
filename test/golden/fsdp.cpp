// SPDX-License-Identifier: Apache-2.0
// fully_shard against the reference: a perceptron and the tied transformer, whose gradients are averaged over two ranks, in
// shards, over one axis and over two, in hybrid shards, beside tensor parallelism, and under data parallelism.
#include <doctest/doctest.h>

#include <string>

#include <fsdp.hpp>
#include <golden.hpp>

namespace {

using namespace test;
using namespace test::fsdp;

inline constexpr int world = 2;        // ranks of the reference
inline constexpr int iterations = 10;  // of its run
inline constexpr int batch = 4;        // rows of both ranks

// A mesh, the axes that split the batch, and a plan that averages gradients over them.
template <class Mesh, class Axes, class Plan>
struct setting {
  using mesh = Mesh;
  using axes = Axes;
  using plan = Plan;
  // A rank of the reference is so many ranks here. Its loss, a sum over its rows, is the sum of theirs, whose gradients are averaged
  // over all of them: so theirs count as many times.
  static constexpr int scale = axes::ranks / world;
};

using sw::average_gradients;
template <class... Options>
using shards = sw::fully_shard<dp<2>, average_gradients, Options...>;
template <class... Entries>
using sharded = setting<sw::mesh<dp<2>>, batch_axes<dp<2>>, sw::plan<shards<>, Entries...>>;
template <class... Entries>
using hybrid =
    setting<sw::mesh<rep<2>, dp<2>>, batch_axes<rep<2>, dp<2>>, sw::plan<shards<sw::replicate_over<rep<2>>>, Entries...>>;
template <class... Options>
using inner_shards =
    sw::fully_shard<node<2>, sw::shard_over<local<2>>, sw::reshard_after_forward<2>, average_gradients, Options...>;
template <class... Entries>
using over_two = setting<sw::mesh<node<2>, local<2>>, batch_axes<node<2>, local<2>>, sw::plan<inner_shards<>, Entries...>>;
using whole = setting<sw::mesh<dp<2>>, batch_axes<dp<2>>, sw::plan<sw::data_parallel<dp<2>, average_gradients>>>;
template <class... Entries>
using beside_tensor_parallel = setting<sw::mesh<dp<2>, tp<2>>, batch_axes<dp<2>>, sw::plan<shards<>, Entries...>>;

struct tolerances {
  double loss = 1e-10, gradient = 1e-11, final = 1e-10;
};

template <class Step, class Rows>
void check(const safetensors& file, const char* name, double lr, bool batch_mean, double loss_factor, tolerances allowed,
           double amplification, const std::function<std::string(const std::string&)>& golden_name, const auto& feed) {
  if (!place::has(Step::mesh_type::size)) return;
  CHECK(file.metadata("grad_reduce") == "mean");
  CHECK(file.metadata("world") == "2");
  const auto run = [&] { return run_golden<Step, Rows>(file, world, iterations, lr, batch_mean, golden_name, feed); };
  const golden_run first = run(), second = run();
  CHECK(first.replicas_equal);
  CHECK(first.losses == second.losses);
  CHECK(first.program_loss == second.program_loss);
  CHECK(first.gradient == second.gradient);
  CHECK(first.final == second.final);
  const golden_errors e = compare(first, file, world, loss_factor, 1e-9, amplification);
  MESSAGE(std::string(name) << ": losses " << e.loss << ", step's loss " << e.program_loss << ", gradients " << e.gradient
                            << ", parameters " << e.final);
  CHECK(e.tensors == static_cast<std::size_t>(Step::parameter_total));
  CHECK(e.loss <= allowed.loss);
  CHECK(e.program_loss <= allowed.loss);
  CHECK(e.gradient <= allowed.gradient);
  CHECK(e.final <= allowed.final);
  CHECK(e.final_excess <= 1);
}

// fc<k> here is <2k> there, where the activations count too.
std::string sequential(const std::string& name) {
  return std::to_string(2 * (name[2] - '0')) + name.substr(name.rfind('.'));
}

template <class Setting>
void check_mlp() {
  using step =
      sw::train_step<three_linears, scaled_sum<double, batch, typename Setting::axes, Setting::scale>,
                     typename Setting::plan, typename Setting::mesh, sw::sgd<true>, sw::pipeline<>, double, place::backend>;
  using rows = sw::forward_step<three_linears, row_sums<double, batch, typename Setting::axes>, typename Setting::plan,
                                typename Setting::mesh, sw::pipeline<>, double, place::backend>;
  const safetensors file(data_file("fsdp_mlp_3x16_sgd"));
  CHECK(file.metadata("optimizer") == "SGD lr=1e-4");
  check<step, rows>(file, "perceptron", 1e-4, false, Setting::scale, {}, 0, sequential, [&](auto& ex, int k) {
    ex.set_input(0, whole_batch<double>(file, world, 0, static_cast<std::size_t>(k), iterations));
  });
}

TEST_CASE("fsdp reference: perceptron in shards of two ranks") { check_mlp<sharded<>>(); }
TEST_CASE("fsdp reference: perceptron in shards, a group for each layer") {
  check_mlp<sharded<sw::at<"fc*", shards<>>>>();
  check_mlp<sharded<sw::at<"fc1", shards<sw::reshard_after_forward<false>>>>>();
}
#if !defined(SHARDWISE_TEST_DEVICES)  // flat parameters are the host's
template <class... Entries>
using flat = setting<sw::mesh<dp<2>>, batch_axes<dp<2>>, sw::plan<shards<sw::flat_parameters>, Entries...>>;
TEST_CASE("fsdp reference: perceptron in flat parameters") {
  check_mlp<flat<>>();
  check_mlp<flat<sw::at<"fc*", shards<sw::flat_parameters>>>>();
}
#endif
TEST_CASE("fsdp reference: perceptron in hybrid shards of two times two ranks") { check_mlp<hybrid<>>(); }
TEST_CASE("fsdp reference: perceptron in shards over two axes of two ranks, kept over one of them") {
  check_mlp<over_two<sw::at<"fc1", inner_shards<>>>>();
}
TEST_CASE("fsdp reference: perceptron under data parallelism with averaged gradients") { check_mlp<whole>(); }
TEST_CASE("fsdp reference: perceptron in shards beside tensor parallelism") {
  check_mlp<beside_tensor_parallel<sw::at<"fc0", sw::colwise<tp<2>>>, sw::at<"fc1", sw::rowwise<tp<2>>>>>();
}

// --- the transformer ------------------------------------------------------------------------------------------------------

template <class Setting>
struct logits_sum {
  using inputs = language<sizes, batch, typename Setting::axes>;
  constexpr auto operator()(const auto& m, const auto& tokens, const auto&, const auto& positions) const {
    return sw::scale(sw::sum(m(tokens, positions)), double{Setting::scale});
  }
};
template <class Setting>
struct logits_rows {
  using inputs = language<sizes, batch, typename Setting::axes>;
  constexpr auto operator()(const auto& m, const auto& tokens, const auto&, const auto& positions) const {
    return sw::sum<1>(sw::sum<2>(m(tokens, positions)));
  }
};
// A rank's loss is the mean of its rows: as many times the whole batch's as there are ranks.
template <class Setting>
struct mean_of_ranks {
  using inputs = language<sizes, batch, typename Setting::axes>;
  constexpr auto operator()(const auto& m, const auto& tokens, const auto& targets, const auto& positions) const {
    return sw::scale(sw::cross_entropy(m(tokens, positions), targets), double{Setting::axes::ranks});
  }
};
template <class Setting>
struct entropy_rows {
  using inputs = language<sizes, batch, typename Setting::axes>;
  constexpr auto operator()(const auto& m, const auto& tokens, const auto& targets, const auto& positions) const {
    return sw::cross_entropy_rows(m(tokens, positions), targets);
  }
};

template <class Setting, class Task, class Optimizer>
using training = sw::train_step<tied_transformer, Task, typename Setting::plan, typename Setting::mesh, Optimizer,
                                sw::pipeline<>, double, place::backend>;
template <class Setting, class Task>
using evaluation = sw::forward_step<tied_transformer, Task, typename Setting::plan, typename Setting::mesh, sw::pipeline<>,
                                    double, place::backend>;

std::string same_name(const std::string& name) { return name; }

// Inputs of a step; the reference of the sum has no targets, and nothing reads them.
auto feed(const safetensors& file, int targets) {
  return [&file, targets](auto& ex, int k) {
    std::vector<std::int32_t> positions;
    for (int i = 0; i < sizes::time; ++i) positions.push_back(i);
    ex.set_input(0, whole_batch<std::int32_t>(file, world, 0, static_cast<std::size_t>(k), iterations));
    ex.set_input(1, whole_batch<std::int32_t>(file, world, targets, static_cast<std::size_t>(k), iterations));
    ex.set_input(2, positions);
  };
}

// The reference casts its logits to float32 before they are summed, whose gradients are exact all the same.
template <class Setting>
void check_sum() {
  const safetensors file(data_file("fsdp_transformer_sgd"));
  CHECK(file.metadata("optimizer") == "SGD lr=1e-4");
  check<training<Setting, logits_sum<Setting>, sw::sgd<true>>, evaluation<Setting, logits_rows<Setting>>>(
      file, "transformer, SGD", 1e-4, false, Setting::scale, {.loss = 2e-6}, 0, same_name, feed(file, 0));
}
// And before the cross entropy, whose gradients are not; the second is the same run in float64 throughout.
template <class Setting>
void check_entropy() {
  using step = training<Setting, mean_of_ranks<Setting>, sw::adam<>>;
  using rows = evaluation<Setting, entropy_rows<Setting>>;
  for (const char* name : {"fsdp_transformer_xent_adam", "fsdp_transformer_xent_adam_f64"}) {
    const safetensors file(data_file(name));
    const bool cast = file.metadata("loss").find("float64") == std::string::npos;
    const tolerances allowed = cast ? tolerances{2e-7, 2e-7, 1e-8} : tolerances{1e-10, 1e-11, 1e-9};
    check<step, rows>(file, name, 1e-3, true, static_cast<double>(Setting::axes::ranks) / world, allowed,
                      iterations * 1e-3 / 1e-8, same_name, feed(file, 1));
  }
}

template <class... Options>
using blocks = sw::at<"layers.*", shards<Options...>>;
using by_blocks = sharded<blocks<>>;
using hybrid_blocks = hybrid<blocks<sw::replicate_over<rep<2>>>>;
using inner_blocks = over_two<sw::at<"layers.*", inner_shards<>>>;
using by_blocks_and_heads = beside_tensor_parallel<
    blocks<>, sw::at<"layers.*.attention.wq", sw::colwise<tp<2>, 4>>, sw::at<"layers.*.attention.wk", sw::colwise<tp<2>, 4>>,
    sw::at<"layers.*.attention.wv", sw::colwise<tp<2>, 4>>, sw::at<"layers.*.attention.wo", sw::rowwise<tp<2>, 4>>,
    sw::at<"layers.*.feed_forward.w1", sw::colwise<tp<2>>>, sw::at<"layers.*.feed_forward.w2", sw::rowwise<tp<2>>>>;

#if !defined(SHARDWISE_TEST_DEVICES)
using flat_blocks = flat<blocks<sw::flat_parameters>>;
TEST_CASE("fsdp reference: transformer in flat parameters") {
  check_sum<flat_blocks>();
  check_entropy<flat_blocks>();
}
#endif
TEST_CASE("fsdp reference: transformer, sum of logits, in shards of two ranks") { check_sum<by_blocks>(); }
TEST_CASE("fsdp reference: transformer, sum of logits, in hybrid shards") { check_sum<hybrid_blocks>(); }
TEST_CASE("fsdp reference: transformer, sum of logits, in shards over two axes") { check_sum<inner_blocks>(); }
TEST_CASE("fsdp reference: transformer, sum of logits, under data parallelism") { check_sum<whole>(); }
TEST_CASE("fsdp reference: transformer, sum of logits, in shards beside tensor parallelism") {
  check_sum<by_blocks_and_heads>();
}
TEST_CASE("fsdp reference: transformer, cross entropy, in shards of two ranks") { check_entropy<by_blocks>(); }
TEST_CASE("fsdp reference: transformer, cross entropy, in hybrid shards") { check_entropy<hybrid_blocks>(); }
TEST_CASE("fsdp reference: transformer, cross entropy, in shards over two axes") { check_entropy<inner_blocks>(); }
TEST_CASE("fsdp reference: transformer, cross entropy, under data parallelism") { check_entropy<whole>(); }
TEST_CASE("fsdp reference: transformer, cross entropy, in shards beside tensor parallelism") {
  check_entropy<by_blocks_and_heads>();
}

}  // namespace
