// SPDX-License-Identifier: Apache-2.0
// fully_shard with flat_parameters computes what it computes without, bit for bit: on ranks that divide the flat parameter or not, with
// SGD and Adam, clipped, decayed; parameters, states and initial values go by name; padding holds zeros.
#include <doctest/doctest.h>

#include <shardwise/pass/optimizer/list_optimizer.hpp>

#include <flat_parameters.hpp>

namespace {

using namespace test;
using namespace test::fsdp;
using namespace test::flat;

template <int D>
void check_ranks() {
  CAPTURE(D);
  check_same<D, one, sw::sgd<true>>(0);
  check_same<D, three, sw::adam<>>(0);
}

TEST_CASE("flat_parameters on 1, 2, 3 and 4 ranks") {
  check_ranks<1>();
  check_ranks<2>();
  check_ranks<3>();
  check_ranks<4>();
}
TEST_CASE("flat_parameters: freed after the forward pass, and beside groups that are not flat") {
  check_same<3, freed, sw::sgd<true>>(0);
  check_same<4, some, sw::adam<>>(0);
}
TEST_CASE("flat_parameters under a clipped norm, which adds in another order") {
  check_same<3, one, sw::clip_norm<sw::adam<>>>(1e-13);
  check_same<4, three, sw::clip_norm<sw::adam<>>>(1e-13);
}
// Lists have room between tensors, which holds NaN here: what is computed of it is nobody's.
TEST_CASE("flat_parameters under list optimizers") {
  check_same<3, three, sw::adam<>, sw::fused_optimizer>(0);
  check_same<3, three, sw::adam<>, sw::foreach_optimizer>(0);
}

// Blocks by name: runs of elements, which together are the parameter.
TEST_CASE("flat_parameters: a rank's blocks") {
  using program = step<4, one<4, sw::flat_parameters>, sw::adam<>>;
  std::vector<std::int64_t> held(4 * 9, 0);
  sw::launch<program::mesh_type>([&](auto& rank) {
    sw::executor<program> run(rank);
    run.initialise(3);
    std::vector<double> weight(42);
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<double>(i) - 20;
    run.set_parameter("up.weight", weight);
    CHECK(run.full_parameter("up.weight") == weight);
    CHECK(run.full_parameter("up.weight", 2) == (rank.index() == 2 ? weight : std::vector<double>{}));
    std::vector<double> shared(42);
    static std::vector<double> gathered(42);
    run.gather_parameter(run.parameter_index("up.weight"), gathered);
    CHECK(gathered == weight);
    run.set_state("up.weight", sw::moment::second, weight);
    CHECK(run.full_state("up.weight", sw::moment::second) == weight);
    CHECK(run.full_state("up.weight", sw::moment::first) == std::vector<double>(42, 0));
    const auto& l = run.parameter_layout(run.parameter_index("up.weight"));
    const auto block = std::as_const(run).parameter("up.weight");
    CHECK(static_cast<std::int64_t>(block.size()) == l.ext[0]);
    for (std::size_t i = 0; i < block.size(); ++i) CHECK(block[i] == weight[static_cast<std::size_t>(l.origin[0]) + i]);
    for (int i = 0; i < run.parameter_count(); ++i)
      held[static_cast<std::size_t>(rank.index() * 9 + i)] = run.parameter_layout(i).ext[0];
    CHECK(run.parameter_count() == 9);
    CHECK(run.parameter_spec(0).rank == 2);
    CHECK_THROWS_WITH_AS(run.full_parameter("up.wait"), doctest::Contains("up.weight"), std::out_of_range);
  });
  // 126 elements, padded to 128, 32 of them a rank's: in.weight has 35
  for (int i = 0; i < program::program.node_count; ++i)
    if (program::program.nodes[i].op == sw::op_code::param) CHECK(program::program.spec_of(i).extent[0] == 128);
  CHECK(held[0] == 32);
  CHECK(held[9] == 3);
  for (int r = 0; r < 4; ++r) {
    std::int64_t all = 0;
    for (int i = 0; i < 9; ++i) all += held[static_cast<std::size_t>(r * 9 + i)];
    CHECK(all == (r < 3 ? 32 : 30));
  }
}

TEST_CASE("flat_parameters: padding is zero in memory that was not, whoever sets the parameters") {
  using program = step<4, one<4, sw::flat_parameters>, sw::adam<>>;
  sw::launch<program::mesh_type>([&](auto& rank) {
    dynamic_bytes arena(program::peak_bytes);
    sw::executor<program> run(rank, arena.span());
    CHECK(padding_is_zero(run));
    for (int i = 0; i < run.parameter_count(); ++i)
      run.set_parameter(i, numbers<double>(static_cast<std::size_t>(numel(run.parameter_spec(i))), i));
    one_step(run, 1);
    CHECK(padding_is_zero(run));
  });
}

template <class From, class To>
void check_copy() {
  sw::launch<typename From::mesh_type>([&](auto& rank) {
    sw::executor<From> from(rank);
    sw::executor<To> to(rank);
    from.initialise(5);
    to.initialise(6);
    for (int s = 1; s <= 2; ++s) one_step(from, s);
    to.copy_parameters(from);
    to.copy_state(from);
    CHECK(all_of(to) == all_of(from));
    CHECK(moments_of(to) == moments_of(from));
    for (int s = 3; s <= 4; ++s) {
      one_step(from, s);
      one_step(to, s);
      CHECK(to.loss() == from.loss());
    }
    CHECK(all_of(to) == all_of(from));
    CHECK(padding_is_zero(to));
  });
}
TEST_CASE("flat_parameters: copies between programs, with and without") {
  using flat = step<3, one<3, sw::flat_parameters>, sw::adam<>>;
  using in_three = step<3, three<3, sw::flat_parameters>, sw::adam<>>;
  using plain = step<3, one<3>, sw::adam<>>;
  check_copy<flat, plain>();
  check_copy<plain, flat>();
  check_copy<flat, in_three>();
  check_copy<flat, flat>();
}

// --- collectives ----------------------------------------------------------------------------------------------------------

// 80 + 8 + 80 + 10 elements, twice.
template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 8>, net1), (sw::linear<8, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
template <class Bound = sw::unbound>
struct two_mlps : sw::module<two_mlps<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (mlp<>, mlp0), (mlp<>, mlp1));
  constexpr auto forward(const auto& x) const { return mlp1(mlp0(x)); }
};
struct sum_of_two {
  using inputs = sw::inputs<split_rows_t<double, sw::shape<4, 10>, batch<2>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::sum(m(x)); }
};
template <class Plan>
using mlps = sw::train_step<two_mlps, sum_of_two, Plan, sw::mesh<dp<2>>, sw::sgd<>, sw::pipeline<>, double>;

template <class Step>
constexpr int count_of(sw::transition kind) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += sw::detail::transition_at(Step::program, i) == kind ? 1 : 0;
  return n;
}
template <class Step>
constexpr int count_of(sw::op_code op) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op ? 1 : 0;
  return n;
}

TEST_CASE("flat_parameters: one gather and one scatter of even parts for each group") {
  using whole = mlps<one<2, sw::flat_parameters>>;
  static_assert(count_of<whole>(sw::transition::all_gather) == 1);
  static_assert(count_of<whole>(sw::transition::reduce_scatter) == 1);
  static_assert(count_of<whole>(sw::op_code::param) == 1);
  static_assert(count_of<whole>(sw::op_code::sgd) == 1);
  static_assert(count_of<whole>(sw::op_code::pad) == 1 && count_of<whole>(sw::op_code::slice_scatter) == 7);
  static_assert(count_of<whole>(sw::op_code::contiguous) == count_of<mlps<one<2>>>(sw::op_code::contiguous));
  static_assert(whole::comm_bytes<dp<2>> == mlps<one<2>>::comm_bytes<dp<2>>);  // nothing is padded here
  CHECK(group_text<whole>(sw::transition::all_gather) == "forward: model 1 of 178 to 356;");
  CHECK(group_text<whole>(sw::transition::reduce_scatter) == "backward: model 1 of 356 to 178;");
  using layers = mlps<
      sw::plan<sw::fully_shard<dp<2>, sw::flat_parameters>, sw::at<"mlp*", sw::fully_shard<dp<2>, sw::flat_parameters>>>>;
  static_assert(count_of<layers>(sw::transition::all_gather) == 4);
  static_assert(count_of<layers>(sw::transition::reduce_scatter) == 2);
  CHECK(group_text<layers>(sw::transition::all_gather) ==
        "forward: mlp0 1 of 89 to 178; mlp1 1 of 89 to 178;\nbackward: mlp1 1 of 89 to 178; mlp0 1 of 89 to 178;");
  CHECK(group_text<layers>(sw::transition::reduce_scatter) == "backward: mlp1 1 of 178 to 89; mlp0 1 of 178 to 89;");
}

}  // namespace
