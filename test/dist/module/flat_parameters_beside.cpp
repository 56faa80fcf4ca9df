// SPDX-License-Identifier: Apache-2.0
// flat_parameters beside an axis that replicates, in hybrid shards, under a moving average of the weights and without elements: what is
// computed without them; and copies of their states.
#include <doctest/doctest.h>

#include <algorithm>

#include <shardwise/runtime/executor/weight_average.hpp>

#include <flat_parameters.hpp>
#include <thrown.hpp>

#include <shardwise/pass/optimizer/list_optimizer.hpp>

namespace {

using namespace test;
using namespace test::flat;

template <class... Options>
using beside = sw::plan<sw::fully_shard<dp<2>, Options...>, sw::data_parallel<copies>>;
template <class... Options>
using beside_step =
    sw::train_step<net, fit_both, beside<Options...>, sw::mesh<dp<2>, copies>, sw::adam<>, sw::pipeline<>, double>;

TEST_CASE("flat_parameters beside data_parallel over another axis") {
  const record flat = trained<beside_step<sw::flat_parameters>>(4, every_check);
  const record plain = trained<beside_step<>>(4, every_check);
  CHECK(flat.first == plain.first);
  CHECK(flat.losses == plain.losses);
  CHECK(flat.last == plain.last);
  CHECK(flat.moments == plain.moments);
}

// Hybrid shards: of the whole model, of a module beside the rest, and beside a group that is not flat.
template <class... Options>
using hybrid = sw::fully_shard<dp<2>, sw::replicate_over<copies>, Options...>;
template <class Optimizer, class... E>
using hybrid_step =
    sw::train_step<net, fit_both, sw::plan<E...>, sw::mesh<dp<2>, copies>, Optimizer, sw::pipeline<>, double>;
template <class Flat, class Plain>
void check_hybrid() {
  const record flat = trained<Flat>(4, every_check);
  const record plain = trained<Plain>(4, every_check);
  CHECK(flat.first == plain.first);
  CHECK(flat.losses == plain.losses);
  CHECK(flat.last == plain.last);
  CHECK(flat.moments == plain.moments);
  CHECK(plain.losses.front() != plain.losses.back());
}
TEST_CASE("flat_parameters in hybrid shards") {
  using flat = hybrid<sw::flat_parameters>;
  check_hybrid<hybrid_step<sw::adam<>, flat>, hybrid_step<sw::adam<>, hybrid<>>>();
  check_hybrid<hybrid_step<sw::sgd<>, flat, sw::at<"up", flat>>, hybrid_step<sw::sgd<>, hybrid<>, sw::at<"up", hybrid<>>>>();
  check_hybrid<hybrid_step<sw::adam<>, hybrid<>, sw::at<"in", hybrid<sw::reshard_after_forward<true>, sw::flat_parameters>>>,
               hybrid_step<sw::adam<>, hybrid<>, sw::at<"in", hybrid<sw::reshard_after_forward<true>>>>>();
}

template <class Step>
std::vector<double> averaged() {
  std::vector<double> all;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> run(rank);
    run.initialise(5);
    sw::weight_average average(run);
    for (int s = 1; s <= 3; ++s) {
      one_step(run, s);
      average.update(run, 0.75);
    }
    const std::vector<double> weights = all_of(run);
    average.exchange(run);
    const std::vector<double> own = all_of(run);
    CHECK(own != weights);
    CHECK(padding_is_zero(run));
    average.exchange(run);
    CHECK(all_of(run) == weights);
    if (rank.index() == 0) all = own;
  });
  return all;
}
TEST_CASE("flat_parameters: a moving average of the weights") {
  CHECK(averaged<step<4, one<4, sw::flat_parameters>, sw::adam<>>>() == averaged<step<4, one<4>, sw::adam<>>>());
}

TEST_CASE("flat_parameters: a group has one count of steps, so copy_state refuses different ones") {
  using from = step<2, one<2>, sw::adam<>, sw::fused_optimizer>;
  using to = step<2, one<2, sw::flat_parameters>, sw::adam<>, sw::fused_optimizer>;
  sw::launch<to::mesh_type>([&](auto& rank) {
    sw::executor<from> source(rank);
    sw::executor<to> run(rank);
    source.initialise(5);
    one_step(source, 1);
    run.copy_parameters(source);
    run.copy_state(source);
    CHECK(run.full_state("gain", sw::moment::steps) == std::vector<double>{1});
    source.set_state("gain", sw::moment::steps, std::vector<double>{7});
    CHECK(
        thrown([&] { run.copy_state(source); }) ==
        "shardwise: copy_state: 'in.weight' and 'gain' lie in one flat group here and have different counts of steps in the other "
        "program, and the group has one; copy the states to a program without flat_parameters");
    CHECK(run.full_state("gain", sw::moment::steps) == std::vector<double>{1});
  });
}

TEST_CASE("flat_parameters: ranks without peers copy states from an equal program") {
  using both = step<2, one<2, sw::flat_parameters>, sw::adam<>, sw::fused_optimizer>;
  sw::fake_rank<both::mesh_type> rank{1};
  sw::executor<both, sw::fake_rank<both::mesh_type>> source(rank), run(rank);
  source.initialise(5);
  run.copy_parameters(source);
  run.copy_state(source);
  for (int i = 0; i < both::program.node_count; ++i)
    if (both::program.nodes[i].op == sw::op_code::param) CHECK(std::ranges::equal(run.value(i), source.value(i)));
}

// A group whose parameters have no elements.
template <class Bound = sw::unbound>
struct nothing : sw::module<nothing<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<0>, sw::init::ones>, none));
  constexpr auto forward(const auto& x) const { return x + sw::sum<0>(none); }
};
template <class Bound = sw::unbound>
struct with_nothing : sw::module<with_nothing<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<5, 3>, in), (nothing<>, empty));
  constexpr auto forward(const auto& x) const { return empty(in(x)); }
};
template <int D, class... Options>
using step_with_nothing =
    sw::train_step<with_nothing, fit<D>,
                   sw::plan<sw::fully_shard<dp<D>, Options...>, sw::at<"empty", sw::fully_shard<dp<D>, Options...>>>,
                   sw::mesh<dp<D>>, sw::adam<>, sw::pipeline<>, double>;
TEST_CASE("flat_parameters: a group without elements") {
  CHECK(trained<step_with_nothing<2, sw::flat_parameters>>(3, every_check) == trained<step_with_nothing<2>>(3, every_check));
  CHECK(trained<step_with_nothing<3, sw::flat_parameters>>(3, every_check) == trained<step_with_nothing<3>>(3, every_check));
}

}  // namespace
