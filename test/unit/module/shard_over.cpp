// SPDX-License-Identifier: Apache-2.0
// fully_shard over two axes: how parameters are stored, what is kept between the passes, which collectives a program has on each
// axis, what they send, and the memory that is left.
#include <doctest/doctest.h>

#include <fsdp.hpp>
#include <gpt.hpp>
#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/partial_lower.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>

namespace {

using namespace test;
using namespace test::fsdp;
using sw::program_phase;
using sw::transition;

template <int Outer, int Inner>
using machines = sw::mesh<node<Outer>, local<Inner>>;
template <int Outer, int Inner>
using all_ranks = batch_axes<node<Outer>, local<Inner>>;

template <class Sizes, int Batch, class Axes>
struct entropy {
  using inputs = language<Sizes, Batch, Axes>;
  constexpr auto operator()(const auto& m, const auto& tokens, const auto& targets, const auto& positions) const {
    return sw::cross_entropy(m(tokens, positions), targets);
  }
};

template <class Plan, class Mesh = machines<2, 2>, class Axes = all_ranks<2, 2>>
using mlp_step = sw::train_step<three_linears, scaled_sum<double, 4, Axes>, Plan, Mesh, sw::sgd<>, sw::pipeline<>, double>;
template <class Plan, class Pipeline = sw::pipeline<>, class Mesh = machines<2, 2>, class Axes = all_ranks<2, 2>>
using transformer_step = sw::train_step<tied_transformer, entropy<sizes, 4, Axes>, Plan, Mesh, sw::sgd<>, Pipeline, double>;

template <class... Options>
using shards = sw::fully_shard<node<2>, sw::shard_over<local<2>>, Options...>;
template <class... Options>
using blocks = sw::at<"layers.*", shards<Options...>>;
using over_local = sw::reshard_after_forward<local<2>::size>;
using freed = sw::reshard_after_forward<true>;
using whole = sw::reshard_after_forward<false>;

using kept_step = transformer_step<sw::plan<shards<>, blocks<over_local>>>;
using freed_step = transformer_step<sw::plan<shards<>, blocks<freed>>>;
using whole_step = transformer_step<sw::plan<shards<>, blocks<whole>>>;

const std::string forward =
    "forward: model 4 of 104 to 208; model 4 of 208 to 416; layers.0 12 of 804 to 1608; layers.0 12 of 1608 to 3216; "
    "layers.1 12 of 804 to 1608; layers.1 12 of 1608 to 3216;";

TEST_CASE("shard_over: the forward pass gathers over both axes, the backward pass over the inner one alone") {
  CHECK(group_text<kept_step>(transition::all_gather) ==
        forward + "\nbackward: layers.1 8 of 1552 to 3104; layers.0 8 of 1552 to 3104;");
  CHECK(group_text<kept_step>(transition::reduce_scatter) ==
        "backward: layers.1 12 of 3216 to 1608; layers.1 12 of 1608 to 804; layers.0 12 of 3216 to 1608; "
        "layers.0 12 of 1608 to 804; model 4 of 416 to 208; model 4 of 208 to 104;");
  // bytes, axis by axis
  constexpr std::int64_t shard = (104 + 2 * 804) * 8, part = 2 * shard;
  static_assert(kept_step::comm_bytes_of<node<2>>(transition::all_gather, program_phase::forward) == shard);
  static_assert(kept_step::comm_bytes_of<local<2>>(transition::all_gather, program_phase::forward) == part);
  static_assert(kept_step::comm_bytes_of<node<2>>(transition::all_gather, program_phase::backward) == 0);
  static_assert(kept_step::comm_bytes_of<local<2>>(transition::all_gather, program_phase::backward) == 2 * 1552 * 8);
  static_assert(kept_step::comm_bytes_of<node<2>>(transition::reduce_scatter) == shard);
  static_assert(kept_step::comm_bytes_of<local<2>>(transition::reduce_scatter) == part);
}

TEST_CASE("shard_over: all ranks free, one keeps the whole, and where nothing is said a block frees") {
  const std::string again =
      "\nbackward: layers.1 8 of 776 to 1552; layers.1 8 of 1552 to 3104; layers.0 8 of 776 to 1552; "
      "layers.0 8 of 1552 to 3104;";
  CHECK(group_text<freed_step>(transition::all_gather) == forward + again);
  CHECK(group_text<whole_step>(transition::all_gather) == forward);
  const auto same = []<class A, class B>(const A*, const B*) { return to_text(A::program) == to_text(B::program); };
  const auto step_of = []<class... Options>(sw::style_list<Options...>) {
    return static_cast<const transformer_step<sw::plan<shards<>, blocks<Options...>>>*>(nullptr);
  };
  CHECK(same(step_of(sw::style_list<>{}), static_cast<const freed_step*>(nullptr)));
  CHECK(same(step_of(sw::style_list<sw::reshard_after_forward<4>>{}), static_cast<const freed_step*>(nullptr)));
  CHECK(same(step_of(sw::style_list<sw::reshard_after_forward<1>>{}), static_cast<const whole_step*>(nullptr)));
}

// Law: over the two axes a rank sends what it would over one of all these ranks, each way.
using one_axis = transformer_step<sw::plan<sw::fully_shard<dp<4>>, sw::at<"layers.*", sw::fully_shard<dp<4>>>>,
                                  sw::pipeline<>, sw::mesh<dp<4>>, batch_axes<dp<4>>>;
template <class Step>
constexpr std::int64_t on_both(transition t) {
  return Step::template comm_bytes_of<node<2>>(t) + Step::template comm_bytes_of<local<2>>(t);
}
static_assert(on_both<freed_step>(transition::all_gather) == one_axis::comm_bytes_of<dp<4>>(transition::all_gather));
static_assert(on_both<kept_step>(transition::reduce_scatter) == one_axis::comm_bytes_of<dp<4>>(transition::reduce_scatter));

TEST_CASE("shard_over: an axis of one rank is none") {
  using outer = transformer_step<
      sw::plan<sw::fully_shard<node<1>, sw::shard_over<local<4>>>,
               sw::at<"layers.*", sw::fully_shard<node<1>, sw::shard_over<local<4>>, sw::reshard_after_forward<4>>>>,
      sw::pipeline<>, machines<1, 4>, all_ranks<1, 4>>;
  using inner = transformer_step<sw::plan<sw::fully_shard<node<4>, sw::shard_over<local<1>>>,
                                          sw::at<"layers.*", sw::fully_shard<node<4>, sw::shard_over<local<1>>, freed>>>,
                                 sw::pipeline<>, machines<4, 1>, all_ranks<4, 1>>;
  for (const transition t : {transition::all_gather, transition::reduce_scatter}) {
    CHECK(group_text<outer>(t) == group_text<one_axis>(t));
    CHECK(group_text<inner>(t) == group_text<one_axis>(t));
  }
}

TEST_CASE("shard_over: what is computed again reads what is gathered again over the inner axis") {
  using checkpointed = transformer_step<sw::plan<shards<>, blocks<over_local>, sw::at<"layers.*", sw::checkpoint>>>;
  using again = transformer_step<sw::plan<shards<>, blocks<over_local>>, sw::pipeline<sw::rematerialise<0>>>;
  CHECK(group_text<checkpointed>(transition::all_gather) ==
        forward + "\nbackward: layers.1 11 of 1600 to 3200; layers.0 11 of 1600 to 3200;");
  CHECK(group_text<again>(transition::all_gather) ==
        forward + "\nbackward: layers.0 12 of 1608 to 3216; layers.1 12 of 1608 to 3216;");
}

TEST_CASE("shard_over: each axis' collectives of a group are one batch") {
  const auto batches = []<class Step>(const Step*) {
    std::int64_t most = 0;
    for (int i = 0; i < Step::program.node_count; ++i) most = std::max(most, sw::batch_number(Step::program.nodes[i]));
    return most;
  };
  // three groups each way over both axes, and two of them once more over one, or over both
  CHECK(batches(static_cast<const kept_step*>(nullptr)) == 12 + 2);
  CHECK(batches(static_cast<const freed_step*>(nullptr)) == 12 + 4);
}

// The first node of a layer's collectives on an axis, from the graph's node `from` on.
template <class Step>
int first_of(transition t, std::string_view layer, int axis, int from = 0) {
  for (int i = from; i < Step::program.node_count; ++i) {
    const sw::node& n = Step::program.nodes[i];
    const sw::scope& at = Step::program.scopes[n.scope];
    if (sw::detail::transition_at(Step::program, i) == t && !at.name && std::to_string(at.index) == layer &&
        sw::attributes_of<sw::redistribute_attributes>(n.a).axis == axis)
      return i;
  }
  return Step::program.node_count;
}
TEST_CASE("shard_over: a layer is gathered again over the inner axis while the layer before it computes") {
  using ahead = transformer_step<sw::plan<shards<>, blocks<over_local>>, sw::pipeline<sw::prefetch<1>>>;
  const auto again = []<class Step>(const Step*) {
    const int forward = first_of<Step>(transition::all_gather, "0", 1);
    return first_of<Step>(transition::all_gather, "0", 1, forward + 12) - first_of<Step>(transition::reduce_scatter, "1", 1);
  };
  CHECK(again(static_cast<const kept_step*>(nullptr)) > 0);
  CHECK(again(static_cast<const ahead*>(nullptr)) < 0);
  static_assert(ahead::comm_bytes<node<2>> == kept_step::comm_bytes<node<2>>);
  static_assert(ahead::comm_bytes<local<2>> == kept_step::comm_bytes<local<2>>);
}

// Units take collectives out of their batches: those that stand together are one still, and what is sent is the same.
TEST_CASE("shard_over: batches under partial_lower") {
  using plan = sw::plan<shards<freed>, blocks<over_local>>;
  using lowers = sw::pipeline<sw::schedule_comm_wait, sw::partial_lower<sw::core_operations, 2>>;
  using step = sw::train_step<tied_transformer, entropy<sizes, 4, all_ranks<2, 2>>, plan, machines<2, 2>, sw::adamw<>,
                              lowers, double>;
  using as_written = transformer_step<plan>;
  static_assert(step::comm_bytes<node<2>> == as_written::comm_bytes<node<2>>);
  static_assert(step::comm_bytes<local<2>> == as_written::comm_bytes<local<2>>);
  std::int64_t last = 0;
  for (int i = 0; i < step::program.node_count; ++i)
    if (sw::batch_number(step::program.nodes[i]) != 0) CHECK(sw::batch_problem(step::program, i, last) == sw::problem::none);
  CHECK(last > 0);
}

// Gathers that a pass moves behind the batches, as one that computes again does, are batches of their own, behind the waits of what
// they read; with and without a second rank on the outer axis, where its gathers are views.
template <class Step>
void check_again() {
  std::int64_t last = 0;
  int again = 0;
  for (int i = 0; i < Step::program.node_count; ++i) {
    const sw::node& n = Step::program.nodes[i];
    if (sw::batch_number(n) == 0) continue;
    CHECK(sw::batch_problem(Step::program, i, last) == sw::problem::none);
    again += sw::unsharding_of(n) == sw::unsharding::again && sw::joins_batch(Step::program, i) ? 1 : 0;
  }
  CHECK(again > 0);
}
TEST_CASE("shard_over: batches are gathered again behind their waits") {
  using recomputes = sw::pipeline<sw::schedule_comm_wait, sw::rematerialise<0>, sw::fuse_pointwise>;
  using two = transformer_step<sw::plan<shards<>, blocks<freed>>, recomputes>;
  check_again<two>();
  static_assert(two::comm_bytes<node<2>> >= freed_step::comm_bytes<node<2>>);
  using over_one = sw::fully_shard<node<1>, sw::shard_over<local<2>>, freed>;
  check_again<transformer_step<sw::plan<over_one>, recomputes, machines<1, 2>, all_ranks<1, 2>>>();
}

template <class traced>  // in a template nvcc writes no type out
void check_in_stages() {
  using all = sw::reshard_parameters::in_stages<traced>;
  using small = sw::reshard_parameters::in_stages<traced, 50>;
  using from = sw::graph_type_of<traced>;
  static sw::resized<from, 2 * from::node_capacity, from::spec_capacity> g;
  copy_into(g, traced::value);
  CHECK(!sw::reshard_parameters::apply(g));
  CHECK(to_text(all::value) == to_text(small::value));
  CHECK(to_text(all::value) == to_text(g));
  CHECK(all::value.node_count == traced::value.node_count + 32);
}
TEST_CASE("shard_over: gathering again on a graph made at run time, in stages of any size") {
  check_in_stages<
      sw::detail::step_graph<tied_transformer, entropy<sizes, 4, all_ranks<2, 2>>, sw::plan<shards<>, blocks<freed>>,
                             machines<2, 2>, sw::sgd<>, sw::pipeline<>, double>::written>();
}

// --- how parameters are stored --------------------------------------------------------------------------------------------

template <class Step>
sw::spec stored(int parameter) {
  return Step::program.spec_of(Step::parameters.item[parameter].node);
}

TEST_CASE("shard_over: rows are split over tensor parallelism, then the inner axis, then the outer one") {
  using mesh = sw::mesh<node<2>, local<2>, tp<2>>;
  using plan = sw::plan<shards<>, sw::at<"fc0", sw::colwise<tp<2>>>, sw::at<"fc1", sw::rowwise<tp<2>>>>;
  using step = mlp_step<plan, mesh>;
  const sw::spec weight0 = stored<step>(0), weight1 = stored<step>(2);
  CHECK(weight0.place[0] == sw::strided_shard_value(0, 4));
  CHECK(weight0.place[1] == sw::strided_shard_value(0, 2));
  CHECK(weight0.place[2] == sw::shard_value(0));
  CHECK(weight1.place[0] == sw::strided_shard_value(0, 2));
  CHECK(weight1.place[1] == sw::shard_value(0));
  CHECK(weight1.place[2] == sw::shard_value(1));
  const int outer[] = {1, 0, 0, 0}, inner[] = {0, 1, 0, 0};
  CHECK(sw::local_interval(weight0, 0, outer).begin == 2);
  CHECK(sw::local_interval(weight0, 0, inner).begin == 4);
  CHECK(sw::local_interval(weight1, 0, outer).begin == 4);
  CHECK(sw::local_interval(weight1, 0, inner).begin == 8);
  CHECK(group_text<step>(transition::all_gather) == "forward: model 6 of 138 to 276; model 6 of 276 to 552;");
  // whatever the order of the mesh's axes
  using turned = mlp_step<plan, sw::mesh<local<2>, tp<2>, node<2>>>;
  CHECK(stored<turned>(0).place[0] == sw::strided_shard_value(0, 2));
  CHECK(stored<turned>(0).place[2] == sw::shard_value(0));
  CHECK(group_text<turned>(transition::all_gather) == group_text<step>(transition::all_gather));
}

TEST_CASE("shard_over: hybrid shards are reduced where they are replicated") {
  using mesh = sw::mesh<rep<2>, node<2>, local<2>>;
  using axes = batch_axes<rep<2>, node<2>, local<2>>;
  using step = mlp_step<sw::plan<shards<over_local, sw::replicate_over<rep<2>>>>, mesh, axes>;
  CHECK(stored<step>(0).place[0].is_reduced());
  CHECK(group_text<step>(transition::all_gather) ==
        "forward: model 6 of 204 to 408; model 6 of 408 to 816;\nbackward: model 2 of 256 to 512;");
  CHECK(group_text<step>(transition::reduce_scatter) == "backward: model 6 of 816 to 408; model 6 of 408 to 204;");
  CHECK(step::comm_bytes_of<rep<2>>(transition::all_reduce) == 204 * 8 + 8);  // shards' gradients, and the loss
}

TEST_CASE("shard_over: gradients are averaged over the ranks of all axes that split the batch") {
  using step = mlp_step<sw::plan<shards<sw::average_gradients>>>;
  double first = 0;
  for (int i = 0; i < step::program.node_count; ++i)
    if (step::program.nodes[i].op == sw::op_code::fill) first = step::program.nodes[i].f;
  CHECK(first == 0.25);
}

// --- memory ---------------------------------------------------------------------------------------------------------------

struct twelve_layers : gpt::sizes {
  static constexpr int layers = 12;
};
template <class Option>
using deep = sw::train_step<transformer<twelve_layers>::template model, entropy<twelve_layers, 8, all_ranks<2, 2>>,
                            sw::plan<shards<>, blocks<Option>>, machines<2, 2>, sw::adam<>, sw::pipeline<>>;

TEST_CASE("shard_over: what is kept takes part of what the whole takes") {
  constexpr std::int64_t width = 64, block = (12 * width * width + 9 * width) * 4;  // bytes of float
  constexpr std::int64_t free = deep<freed>::peak_bytes, part = deep<over_local>::peak_bytes, all = deep<whole>::peak_bytes;
  MESSAGE("2 x 2 ranks, bytes: whole " << all << ", kept over two ranks " << part << ", freed " << free);
  // half of all blocks but one or two, which are whole when the peak is reached; and the other half, but what is freed by then
  CHECK(part - free >= 10 * block / 2);
  CHECK(part - free <= 12 * block / 2);
  CHECK(all - part >= 9 * block / 2);
  CHECK(all - part <= 12 * block / 2);
}

}  // namespace
