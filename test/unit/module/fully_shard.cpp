// SPDX-License-Identifier: Apache-2.0
// fully_shard in graphs: how parameters are stored, which collectives a program has, where they stand, what they send, and the
// memory that is left.
#include <doctest/doctest.h>

#include <fsdp_memory.hpp>
#include <shardwise/io/dump.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>

namespace {

using namespace test;
using namespace test::fsdp;
using sw::program_phase;
using sw::transition;

template <class Plan, class Mesh = sw::mesh<dp<2>>, class Pipeline = sw::pipeline<>>
using mlp_step =
    sw::train_step<three_linears, scaled_sum<double, 4, batch_axes<dp<2>>>, Plan, Mesh, sw::sgd<>, Pipeline, double>;
template <class Plan, class Pipeline = sw::pipeline<>, class Axes = batch_axes<dp<2>>, class Mesh = sw::mesh<dp<2>>>
using transformer_step =
    sw::train_step<tied_transformer, language_task<sizes, 4, dp<2>>, Plan, Mesh, sw::sgd<>, Pipeline, double>;

template <class... Options>
using whole_model = sw::fully_shard<dp<2>, Options...>;
template <class... Options>
using blocks = sw::at<"layers.*", sw::fully_shard<dp<2>, Options...>>;

TEST_CASE("fully_shard: the perceptron is one group of 816 elements, gathered once and reduced once") {
  using step = mlp_step<sw::plan<whole_model<>>>;
  CHECK(group_text<step>(transition::all_gather) == "forward: model 6 of 408 to 816;");
  CHECK(group_text<step>(transition::reduce_scatter) == "backward: model 6 of 816 to 408;");
  // half of everything once each way, and the loss
  static_assert(step::comm_bytes_of<dp<2>>(transition::all_gather) == 408 * 8);
  static_assert(step::comm_bytes_of<dp<2>>(transition::reduce_scatter) == 408 * 8);
  static_assert(step::comm_bytes<dp<2>> == 2 * 408 * 8 + 8);
  static_assert(step::comm_bytes<dp<2>> == mlp_step<sw::plan<sw::data_parallel<dp<2>>>>::comm_bytes<dp<2>>);
}

TEST_CASE("fully_shard: a group for each block and one of the rest") {
  using step = transformer_step<sw::plan<whole_model<>, blocks<>>>;
  // the backward pass reads no biases: 3216 - 16 - 64 - 2 * 16 elements of a block
  CHECK(group_text<step>(transition::all_gather) ==
        "forward: model 4 of 208 to 416; layers.0 12 of 1608 to 3216; layers.1 12 of 1608 to 3216;\n"
        "backward: layers.1 8 of 1552 to 3104; layers.0 8 of 1552 to 3104;");
  CHECK(group_text<step>(transition::reduce_scatter) ==
        "backward: layers.1 12 of 3216 to 1608; layers.0 12 of 3216 to 1608; model 4 of 416 to 208;");
  static_assert(step::comm_bytes_of<dp<2>>(transition::all_gather) == (208 + 2 * 1608 + 2 * 1552) * 8);
  static_assert(step::comm_bytes_of<dp<2>>(transition::all_gather, program_phase::backward) == 2 * 1552 * 8);
  static_assert(step::comm_bytes_of<dp<2>>(transition::reduce_scatter) == (208 + 2 * 1608) * 8);
}

// Gradients that a list of updates places are scattered in one batch a group, as without.
TEST_CASE("fully_shard: lists of updates take no batch apart") {
  const auto batches = []<class Step>(const Step*) {
    std::int64_t most = 0;
    for (int i = 0; i < Step::program.node_count; ++i) most = std::max(most, sw::batch_number(Step::program.nodes[i]));
    return most;
  };
  using task = scaled_sum<double, 4, batch_axes<dp<2>>>;
  using plan = sw::plan<whole_model<>>;
  using each = sw::train_step<three_linears, task, plan, sw::mesh<dp<2>>, sw::adam<>, sw::pipeline<>, double>;
  using lists =
      sw::train_step<three_linears, task, plan, sw::mesh<dp<2>>, sw::adam<>, sw::pipeline<sw::fused_optimizer>, double>;
  CHECK(batches(static_cast<const each*>(nullptr)) == 2);
  CHECK(batches(static_cast<const lists*>(nullptr)) == 2);
}

// What dump shows is what the step runs.
static_assert(std::is_same_v<sw::detail::pipeline_of<transformer_step<sw::plan<whole_model<>, blocks<>>>>::type,
                             sw::pipeline<sw::reshard_parameters, sw::batch_collectives>>);
struct behind_batches {  // a user's pass
  using shardwise_pass = void;
  using apply_after = sw::passes_list<sw::batch_collectives>;
  template <class Graph>
  static constexpr sw::finding apply(Graph&) {
    return {};
  }
};
static_assert(
    std::is_same_v<
        sw::detail::pipeline_of<transformer_step<sw::plan<whole_model<>, blocks<>>, sw::pipeline<behind_batches>>>::type,
        sw::pipeline<sw::reshard_parameters, sw::batch_collectives, behind_batches>>);

TEST_CASE("fully_shard: a checkpointed block is gathered once more, with what its replay reads") {
  using step = transformer_step<sw::plan<whole_model<>, blocks<>, sw::at<"layers.*", sw::checkpoint>>>;
  CHECK(group_text<step>(transition::all_gather) ==
        "forward: model 4 of 208 to 416; layers.0 12 of 1608 to 3216; layers.1 12 of 1608 to 3216;\n"
        "backward: layers.1 11 of 1600 to 3200; layers.0 11 of 1600 to 3200;");
  CHECK(step::peak_bytes < transformer_step<sw::plan<whole_model<>, blocks<>>>::peak_bytes);
}

TEST_CASE("fully_shard: who keeps what the forward pass has gathered") {
  const std::string forward = "forward: model 4 of 208 to 416; layers.0 12 of 1608 to 3216; layers.1 12 of 1608 to 3216;";
  CHECK(group_text<transformer_step<sw::plan<whole_model<>, blocks<sw::reshard_after_forward<false>>>>>(
            transition::all_gather) == forward);
  CHECK(group_text<transformer_step<sw::plan<whole_model<>, blocks<sw::reshard_after_forward<1>>>>>(
            transition::all_gather) == forward);
  CHECK(
      group_text<transformer_step<sw::plan<whole_model<>, blocks<sw::reshard_after_forward<2>>>>>(transition::all_gather) ==
      group_text<transformer_step<sw::plan<whole_model<>, blocks<>>>>(transition::all_gather));
  // one block alone; of two entries that name a module the last one has it
  CHECK(
      group_text<transformer_step<
          sw::plan<whole_model<>, blocks<>, sw::at<"layers.1", sw::fully_shard<dp<2>, sw::reshard_after_forward<false>>>>>>(
          transition::all_gather) == forward + "\nbackward: layers.0 8 of 1552 to 3104;");
  // the whole model's group frees its parameters where that is said: the final norm's weight and the tied table are read again
  CHECK(group_text<transformer_step<
            sw::plan<whole_model<sw::reshard_after_forward<true>>, blocks<sw::reshard_after_forward<false>>>>>(
            transition::all_gather) == forward + "\nbackward: model 2 of 72 to 144;");
}

TEST_CASE("fully_shard: an inner group takes its parameters from the outer one, however deep") {
  using inner = sw::at<"layers.1.feed_forward", sw::fully_shard<dp<2>>>;
  using attention = sw::at<"layers.*.attention", sw::fully_shard<dp<2>>>;
  const std::string expected =
      "forward: model 4 of 208 to 416; layers.0 8 of 1096 to 2192; layers.0.attention 4 of 512 to 1024; "
      "layers.1 4 of 32 to 64; layers.1.attention 4 of 512 to 1024; layers.1.feed_forward 4 of 1064 to 2128;";
  const auto forward_of = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  CHECK(forward_of(group_text<transformer_step<sw::plan<whole_model<>, blocks<>, inner, attention>>>(
            transition::all_gather)) == expected);
  // whatever the order of the entries
  CHECK(forward_of(group_text<transformer_step<sw::plan<attention, inner, whole_model<>, blocks<>>>>(
            transition::all_gather)) == expected);
}

TEST_CASE("fully_shard: what computes values of the forward pass again reads what is gathered again") {
  using plain = transformer_step<sw::plan<whole_model<>, blocks<>>>;
  using again = transformer_step<sw::plan<whole_model<>, blocks<>>, sw::pipeline<sw::rematerialise<0>>>;
  using fused = transformer_step<sw::plan<whole_model<>, blocks<>>, sw::pipeline<sw::rematerialise<100>, sw::fuse_kernels>>;
  // the whole forward pass is done twice, from the first layer on, and reads biases too
  CHECK(group_text<again>(transition::all_gather) ==
        "forward: model 4 of 208 to 416; layers.0 12 of 1608 to 3216; layers.1 12 of 1608 to 3216;\n"
        "backward: layers.0 12 of 1608 to 3216; layers.1 12 of 1608 to 3216;");
  CHECK(again::program.node_count > plain::program.node_count);
  // norms are applied again, and read their biases
  CHECK(group_text<fused>(transition::all_gather) ==
        "forward: model 4 of 208 to 416; layers.0 12 of 1608 to 3216; layers.1 12 of 1608 to 3216;\n"
        "backward: layers.1 10 of 1568 to 3136; layers.0 10 of 1568 to 3136;");
  // nothing behind the forward pass reads what it has gathered, but of the group that keeps it
  const auto freed_reads = []<class Step>(const Step*) {
    static sw::passes::phase_marks<std::remove_cvref_t<decltype(Step::program)>::node_capacity> marks;
    sw::passes::mark_phases(marks, Step::program);
    int reads = 0;
    for (int i = 0; i < Step::program.node_count; ++i) {
      if (marks.of(i) == program_phase::forward) continue;
      const sw::node& n = Step::program.nodes[i];
      for (int k = 0; k < n.inputs; ++k) reads += sw::gathers_freed(Step::program, n.in[k]) ? 1 : 0;
    }
    return reads;
  };
  CHECK(freed_reads(static_cast<const plain*>(nullptr)) == 0);
  CHECK(freed_reads(static_cast<const again*>(nullptr)) == 0);
  CHECK(freed_reads(static_cast<const fused*>(nullptr)) == 0);
}

template <class Plan>
void check_stages() {
  using traced = typename sw::detail::step_graph<tied_transformer, language_task<sizes, 4, dp<2>>, Plan, sw::mesh<dp<2>>,
                                                 sw::sgd<>, sw::pipeline<>, double>::written;
  using whole = sw::reshard_parameters::in_stages<traced>;
  using small = sw::reshard_parameters::in_stages<traced, 50>;
  using from = sw::graph_type_of<traced>;
  static sw::resized<from, 2 * from::node_capacity, from::spec_capacity> g;
  copy_into(g, traced::value);
  CHECK(!sw::reshard_parameters::apply(g));
  const auto same = [](const auto& a, const auto& b) {
    bool equal = a.node_count == b.node_count;
    for (int i = 0; equal && i < a.node_count; ++i) {
      equal = a.nodes[i].op == b.nodes[i].op && a.nodes[i].a == b.nodes[i].a && a.spec_of(i) == b.spec_of(i) &&
              a.nodes[i].inputs == b.nodes[i].inputs && a.nodes[i].scope == b.nodes[i].scope;
      for (int k = 0; equal && k < a.nodes[i].inputs; ++k) equal = a.nodes[i].in[k] == b.nodes[i].in[k];
    }
    return equal;
  };
  CHECK(same(whole::value, small::value));
  CHECK(same(whole::value, g));
  CHECK(whole::value.node_count == traced::value.node_count + 16);
}
TEST_CASE("fully_shard: the pass that gathers again on a graph made at run time, in stages of any size") {
  check_stages<sw::plan<whole_model<>, blocks<>>>();
}

// --- how parameters are stored --------------------------------------------------------------------------------------------

template <class Step>
sw::spec stored(int parameter) {
  return Step::program.spec_of(Step::parameters.item[parameter].node);
}
constexpr sw::placement by_rows = sw::shard_value(0);

TEST_CASE("fully_shard: rows are split after tensor parallelism has split them") {
  using plan = sw::plan<sw::fully_shard<dp<2>>, sw::at<"fc0", sw::colwise<tp<2>, 4>>, sw::at<"fc1", sw::rowwise<tp<2>>>>;
  using step = mlp_step<plan, sw::mesh<dp<2>, tp<2>>>;
  const sw::spec weight0 = stored<step>(0), weight1 = stored<step>(2), bias1 = stored<step>(3);
  CHECK(weight0.place[0] == sw::strided_shard_value(0, 2));
  CHECK(weight0.place[1].is_shard(0));
  CHECK(weight1.place[0] == by_rows);
  CHECK(weight1.place[1].is_shard(1));
  CHECK(bias1.place[0] == by_rows);
  CHECK(bias1.place[1].is_replicate());
  const int second[] = {1, 0, 0, 0};
  CHECK(sw::local_interval(weight0, 0, second).begin == 4);  // the second half of the first rank's rows 0 to 7
  CHECK(sw::local_interval(weight1, 0, second).begin == 8);
  // an axis before it splits first anyway
  using other = mlp_step<plan, sw::mesh<tp<2>, dp<2>>>;
  CHECK(stored<other>(0).place[1] == by_rows);
  CHECK(!stored<other>(0).place[1].is_strided());
}

TEST_CASE("fully_shard: hybrid shards are reduced where they are replicated") {
  using mesh = sw::mesh<rep<2>, dp<2>>;
  using step = sw::train_step<three_linears, scaled_sum<double, 4, batch_axes<rep<2>, dp<2>>>,
                              sw::plan<whole_model<sw::replicate_over<rep<2>>>>, mesh, sw::sgd<>, sw::pipeline<>, double>;
  CHECK(stored<step>(0).place[0].is_reduced());
  CHECK(stored<step>(0).place[1] == by_rows);
  // gradients: scattered over the shards, then shards are summed over their copies
  CHECK(group_text<step>(transition::reduce_scatter) == "backward: model 6 of 816 to 408;");
  CHECK(step::comm_bytes_of<rep<2>>(transition::all_reduce) == 408 * 8 + 8);
  // the same as sharding under data parallelism on the other axis
  using beside = sw::train_step<three_linears, scaled_sum<double, 4, batch_axes<rep<2>, dp<2>>>,
                                sw::plan<sw::data_parallel<rep<2>>, whole_model<>>, mesh, sw::sgd<>, sw::pipeline<>, double>;
  CHECK(to_text(beside::program) == to_text(step::program));
}

// The number that the backward pass begins with.
template <class Step>
double first_cotangent() {
  double value = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    if (Step::program.nodes[i].op == sw::op_code::fill) value = Step::program.nodes[i].f;
  return value;
}
TEST_CASE("average_gradients: the loss's cotangent is divided by the ranks that split the batch") {
  using mesh = sw::mesh<rep<2>, dp<2>>;
  using task = scaled_sum<double, 4, batch_axes<rep<2>, dp<2>>>;
  const auto of = []<class... Entries>(sw::plan<Entries...>) {
    return first_cotangent<
        sw::train_step<three_linears, task, sw::plan<Entries...>, mesh, sw::sgd<>, sw::pipeline<>, double>>();
  };
  CHECK(of(sw::plan<whole_model<sw::replicate_over<rep<2>>>>{}) == 1);
  CHECK(of(sw::plan<whole_model<sw::replicate_over<rep<2>>, sw::average_gradients>>{}) == 0.25);
  CHECK(of(sw::plan<sw::data_parallel<rep<2>>, whole_model<sw::average_gradients>>{}) == 0.5);
  CHECK(of(sw::plan<sw::data_parallel<rep<2>, sw::average_gradients>, sw::data_parallel<dp<2>, sw::average_gradients>>{}) ==
        0.25);
}

// A parameter without dims, a buffer, and a layer.
template <class Bound = sw::unbound>
struct scaled_layer : sw::module<scaled_layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<>, sw::init::ones>, factor), (sw::linear<16, 16>, fc),
                    (sw::buffer<sw::shape<16>, sw::init::zeros>, shift));
  constexpr auto forward(const auto& x) const { return fc(x) * factor + shift; }
};

TEST_CASE("fully_shard: what has no rows stays whole, and so do buffers: fsdp_scalar") {
  using step = sw::train_step<scaled_layer, scaled_sum<double, 4, batch_axes<dp<2>>>, sw::plan<whole_model<>>,
                              sw::mesh<dp<2>>, sw::sgd<>, sw::pipeline<>, double>;
  CHECK(stored<step>(0).place[0].is_reduced());
  CHECK(stored<step>(1).place[0] == by_rows);
  CHECK(step::program.spec_of(step::parameters.item[step::parameter_total].node).place[0].is_reduced());
  CHECK(group_text<step>(transition::all_gather) == "forward: model 2 of 136 to 272;");
}

TEST_CASE("fully_shard: a frozen parameter of a group is gathered with it, and its gradient is not there to be reduced") {
  using step = mlp_step<sw::plan<whole_model<>, sw::at<"fc1.weight", sw::frozen>>>;
  CHECK(group_text<step>(transition::all_gather) == "forward: model 6 of 408 to 816;");
  CHECK(group_text<step>(transition::reduce_scatter) == "backward: model 5 of 560 to 280;");
}

TEST_CASE("fully_shard: a forward step gathers each group once") {
  using step = sw::forward_step<tied_transformer, language_task<sizes, 4, dp<2>>, sw::plan<whole_model<>, blocks<>>,
                                sw::mesh<dp<2>>, sw::pipeline<>, double>;
  CHECK(group_text<step>(transition::all_gather) ==
        "forward: model 4 of 208 to 416; layers.0 12 of 1608 to 3216; layers.1 12 of 1608 to 3216;");
  CHECK(group_text<step>(transition::reduce_scatter) == "");
}

// The output of the model is a parameter: it is whole.
struct weight_itself {
  using inputs = sw::inputs<split_rows_t<double, sw::shape<4, 16>, batch_axes<dp<2>>>>;
  constexpr auto operator()(const auto& m, const auto&) const { return m.fc1.weight; }
};
TEST_CASE("fully_shard: an output that is a parameter is the whole one") {
  using step = sw::forward_step<three_linears, weight_itself, sw::plan<sw::at<"fc1", sw::fully_shard<dp<2>>>>,
                                sw::mesh<dp<2>>, sw::pipeline<>, double>;
  CHECK(step::program.spec_of(step::program.outputs[0]).place[0].is_reduced());
  CHECK(group_text<step>(transition::all_gather) == "forward: fc1 1 of 128 to 256;");  // nothing reads the bias
}

// One parameter redistributed twice in the same way is one tensor, as any other.
struct weight_twice {
  using inputs = weight_itself::inputs;
  constexpr auto operator()(const auto& m, const auto&) const {
    const auto whole = [&] { return sw::redistribute<dp<2>, sw::replicate>(m.fc1.weight); };
    return sw::sum(whole() * whole());
  }
};
TEST_CASE("fully_shard: a gathered parameter that is redistributed twice") {
  using step = sw::forward_step<three_linears, weight_twice, sw::plan<sw::fully_shard<dp<2>>>, sw::mesh<dp<2>>,
                                sw::pipeline<>, double>;
  int redistributed = 0;
  for (int i = 0; i < step::program.node_count; ++i) redistributed += step::program.nodes[i].op == sw::op_code::redistribute;
  CHECK(redistributed == 2);  // gathered, and renamed
}

// Gradients that are not densely stored before they are scattered: of what was read transposed.
template <class Bound = sw::unbound>
struct transposing : sw::module<transposing<Bound>, Bound> {
  using square = sw::parameter<sw::shape<16, 16>, sw::init::ones>;
  SHARDWISE_MEMBERS(Bound, (square, a), (square, b), (square, c));
  constexpr auto forward(const auto& x) const {
    return sw::matmul(sw::matmul(x, sw::permute<1, 0>(b) * a), sw::permute<1, 0>(c) * a);
  }
};
TEST_CASE("fully_shard: gradients that are made dense are scattered side by side all the same") {
  using step = sw::train_step<transposing, scaled_sum<double, 4, batch_axes<dp<2>>>, sw::plan<whole_model<>>,
                              sw::mesh<dp<2>>, sw::sgd<>, sw::pipeline<>, double>;
  int dense = 0;
  for (int i = 0; i < step::program.node_count; ++i) dense += step::program.nodes[i].op == sw::op_code::contiguous;
  CHECK(dense > 0);
  CHECK(group_text<step>(transition::reduce_scatter) == "backward: model 3 of 768 to 384;");
}

// --- memory ---------------------------------------------------------------------------------------------------------------

template <class Step>
constexpr std::int64_t bytes_for(sw::memory_kind kind) {
  return Step::memory_use::value.kind[static_cast<int>(kind)];
}

TEST_CASE("fully_shard: memory of a deep model falls to shards and one gathered block") {
  using whole = deep<4, sw::data_parallel<dp<4>>>;
  using kept = deep<4, sw::fully_shard<dp<4>>, sw::at<"layers.*", sw::fully_shard<dp<4>, sw::reshard_after_forward<false>>>>;
  using freed = deep_in_shards<4>;
  constexpr std::int64_t width = 64, block = 12 * width * width + 9 * width, rest = (256 + 16 + 2) * width;
  constexpr std::int64_t all = (12 * block + rest) * 4;  // bytes of float
  CHECK(bytes_for<whole>(sw::memory_kind::parameters) == all);
  CHECK(bytes_for<freed>(sw::memory_kind::parameters) == all / 4);
  CHECK(bytes_for<freed>(sw::memory_kind::optimizer) == 2 * all / 4);
  MESSAGE("4 ranks, bytes: whole " << whole::peak_bytes << ", kept " << kept::peak_bytes << ", freed " << freed::peak_bytes);
  // parameters, both moments and the gradients
  CHECK(whole::peak_bytes >= 4 * all);
  // shards of parameters and moments, activations, and whole for a while: all parameters, or two blocks at most, with the
  // gradients of as many
  const auto beside = []<class Step>(const Step*) {
    return 3 * all / 4 + bytes_for<Step>(sw::memory_kind::activations) + bytes_for<Step>(sw::memory_kind::cotangents) +
           bytes_for<Step>(sw::memory_kind::workspace);
  };
  CHECK(kept::peak_bytes <= beside(static_cast<const kept*>(nullptr)) + all + 2 * block * 4);
  CHECK(freed::peak_bytes <= beside(static_cast<const freed*>(nullptr)) + 4 * block * 4 + rest * 4);
  CHECK(kept::peak_bytes - freed::peak_bytes >= 10 * block * 4);
}

}  // namespace
