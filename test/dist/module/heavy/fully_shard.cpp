// SPDX-License-Identifier: Apache-2.0
// Runs under fully_shard: what data parallelism computes, bit for bit, on ranks that divide neither rows nor batch, some without
// any row; with buffers that are written, dropout, tensor parallelism beside it, passes and iterations.
#include <running_norm.hpp>

#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

#include <doctest/doctest.h>

namespace {

using namespace test::running;
namespace sw = shardwise;

// A group of the first layer, one of the norm that keeps what it has gathered, and one of the rest.
template <int D, int N>
using sharded = sw::plan<sw::fully_shard<dp<D>>, sw::at<"up", sw::fully_shard<dp<D>>>,
                         sw::at<"norm", sw::fully_shard<dp<D>, sw::reshard_after_forward<false>>>>;
template <int D, int N>
using one_group = sw::plan<sw::fully_shard<dp<D>, sw::reshard_after_forward<true>>>;
template <int D, int N>
using sharded_and_split =
    sw::plan<sw::fully_shard<dp<D>>, sw::at<"up", sw::fully_shard<dp<D>>>, sw::at<"up", sw::colwise<tp<N>>>,
             sw::at<"norm", split_features<tp<N>>>, sw::at<"down", sw::rowwise<tp<N>>>>;

template <int D, int N, template <int, int> class Plan, class... P>
history<double> trained(int steps) {
  return train_and_judge<training<D, N, Plan, sw::pipeline<P...>>, evaluation<D, N, Plan>>(steps);
}

// The initial values are those of one rank, and so are those after training, up to the order of sums; those of data parallelism on
// the same ranks they are to the last bit.
template <int D>
void check_ranks() {
  CAPTURE(D);
  const history<double> whole = trained<D, 1, whole_plan>(4);
  CHECK(difference(trained<D, 1, sharded>(0), trained<1, 1, whole_plan>(0)) < 1e-14);
  CHECK(trained<D, 1, sharded>(0).parameters == trained<1, 1, whole_plan>(0).parameters);
  CHECK(difference(trained<D, 1, sharded>(4), whole) == 0);
  CHECK(difference(trained<D, 1, one_group>(4), whole) == 0);
  CHECK(difference(trained<D, 1, sharded>(4), trained<1, 1, whole_plan>(4)) < 1e-12);
}
TEST_CASE("fully_shard on 1, 2, 3, 4 and 8 ranks is data parallelism") {
  check_ranks<1>();
  check_ranks<2>();
  check_ranks<3>();
  check_ranks<4>();
  check_ranks<8>();
}

TEST_CASE("fully_shard beside tensor parallelism is data parallelism beside it") {
  CHECK(difference(trained<2, 2, sharded_and_split>(4), trained<2, 2, split_plan>(4)) == 0);
  CHECK(difference(trained<3, 2, sharded_and_split>(4), trained<3, 2, split_plan>(4)) == 0);
  CHECK(difference(trained<2, 4, sharded_and_split>(4), trained<2, 4, split_plan>(4)) == 0);
  CHECK(difference(trained<4, 2, sharded_and_split>(4), trained<4, 2, split_plan>(4)) == 0);
}

TEST_CASE("fully_shard under passes") {
  const history<double> plain = trained<3, 1, sharded>(3);
  CHECK(difference(plain, trained<3, 1, sharded, sw::cancel_redistributions, sw::merge_common>(3)) == 0);
  CHECK(difference(plain, trained<3, 1, sharded, sw::rematerialise<0>>(3)) == 0);
  CHECK(difference(plain, trained<3, 1, sharded, sw::merge_common, sw::rematerialise<60>, sw::raise_comms>(3)) == 0);
  CHECK(difference(plain,
                   trained<3, 1, sharded, sw::expedite_comms, sw::reorder_compute_for_overlap<>, sw::sink_waits>(3)) == 0);
  CHECK(difference(plain, trained<3, 1, sharded, sw::rematerialise<100>, sw::merge_products, sw::fuse_kernels>(3)) < 1e-12);
}

// Adam over the list of all shards, some of them without a row.
template <template <int, int> class Plan, class... P>
using adam_step =
    sw::train_step<models<dp<4>>::net_of, fit<double, 4, 7>, Plan<4, 1>, mesh<4, 1>, sw::adam<>, sw::pipeline<P...>, double>;
TEST_CASE("fully_shard: Adam over lists of shards") {
  using judge = evaluation<4, 1, sharded>;
  const history<double> plain = train_and_judge<adam_step<sharded>, judge>(4);
  CHECK(difference(plain, train_and_judge<adam_step<sharded, sw::fused_optimizer>, judge>(4)) == 0);
  CHECK(difference(plain, train_and_judge<adam_step<sharded, sw::foreach_optimizer>, judge>(4)) == 0);
  CHECK(difference(plain, train_and_judge<adam_step<whole_plan>, evaluation<4, 1, whole_plan>>(4)) == 0);
}

// The last layer's gradients are scattered, and its parameters updated, in the next iteration, before they are gathered there.
TEST_CASE("fully_shard: a group's update in the next iteration") {
  using step = training<4, 1, sharded>;
  using moves = sw::iterated<step, sw::move_descendants<"all_gather_4", "reduce_scatter", "reduce_scatter_1">>;
  const history<double> plain = trained<4, 1, sharded>(4);
  history<double> h = plain;
  for (auto& v : h.parameters) std::fill(v.begin(), v.end(), 0);
  sw::launch<mesh<4, 1>>([&](auto& rank) {
    sw::iterated_executor<moves> run(rank, sw::executor_checks::poison);
    auto& main = run.main();
    main.initialise(5);
    for (int s = 1; s <= 4; ++s) {
      main.set_input(0, numbers<double>(35, s));
      main.set_input(1, numbers<double>(21, s + 20));
      run.run(step_numbers(s), s == 4);
      if (rank.index() == 0) h.losses[static_cast<std::size_t>(s - 1)] = run.loss();
    }
    for (int i = 0; i < main.parameter_count(); ++i) main.gather_parameter(i, h.parameters[static_cast<std::size_t>(i)]);
  });
  CHECK(difference(plain, h) == 0);
}

}  // namespace
