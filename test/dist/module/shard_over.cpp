// SPDX-License-Identifier: Apache-2.0
// Runs under fully_shard over two axes: what one axis of all these ranks computes, on ranks that divide neither rows nor batch, some
// without any row; beside tensor parallelism, in hybrid shards, under passes, with Adam over lists.
#include <uneven_net.hpp>

#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/pass/fuse/partial_lower.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>

#include <doctest/doctest.h>

namespace {

namespace sw = shardwise;
using namespace test::fsdp;
using namespace test::uneven;
using test::running::difference;
using test::running::history;

template <class Mesh, class Axes, class Plan, class Optimizer, class... P>
history<double> trained(int steps) {
  using step = sw::train_step<net, fit<Axes>, Plan, Mesh, Optimizer, sw::pipeline<P...>, double>;
  using judge = sw::forward_step<net, predict<Axes>, Plan, Mesh, sw::pipeline<>, double>;
  return test::running::train_and_judge<step, judge>(steps);
}

// A group of each layer, of which the second one keeps what Kept says, and one of the rest.
template <int O, int I, class Kept>
using plan_of = sw::plan<sw::fully_shard<node<O>, sw::shard_over<local<I>>>,
                         sw::at<"in", sw::fully_shard<node<O>, sw::shard_over<local<I>>>>,
                         sw::at<"up", sw::fully_shard<node<O>, sw::shard_over<local<I>>, Kept>>>;
template <int O, int I, class Kept, class... P>
history<double> over_two(int steps) {
  return trained<sw::mesh<node<O>, local<I>>, batch_axes<node<O>, local<I>>, plan_of<O, I, Kept>, sw::sgd<true>, P...>(
      steps);
}
template <int N>
history<double> over_one(int steps) {
  using sharded = sw::fully_shard<dp<N>>;
  return trained<sw::mesh<dp<N>>, batch_axes<dp<N>>, sw::plan<sharded, sw::at<"in", sharded>, sw::at<"up", sharded>>,
                 sw::sgd<true>>(steps);
}

// What is kept is the same to the last bit, and so is a second run.
template <int O, int I>
void check_ranks() {
  CAPTURE(O);
  CAPTURE(I);
  const history<double> kept = over_two<O, I, sw::reshard_after_forward<I>>(4);
  CHECK(over_two<O, I, sw::reshard_after_forward<I>>(0).parameters == over_one<O * I>(0).parameters);
  CHECK(difference(kept, over_one<O * I>(4)) < 1e-12);
  CHECK(difference(kept, over_two<O, I, sw::reshard_after_forward<I>>(4)) == 0);
  CHECK(difference(kept, over_two<O, I, sw::reshard_after_forward<true>>(4)) == 0);
  CHECK(difference(kept, over_two<O, I, sw::reshard_after_forward<false>>(4)) == 0);
}
TEST_CASE("shard_over on 2 x 2 and 3 x 1 ranks is fully_shard over one axis") {
  check_ranks<2, 2>();
  check_ranks<3, 1>();
}
TEST_CASE("shard_over on 2 x 3 and 3 x 2 ranks, which divide no rows") {
  check_ranks<2, 3>();
  check_ranks<3, 2>();
}

TEST_CASE("shard_over beside tensor parallelism is data parallelism beside it") {
  using sharded = sw::fully_shard<node<2>, sw::shard_over<local<2>>, sw::reshard_after_forward<2>>;
  using in = sw::at<"in", sw::colwise<tp<2>, 1, sw::output<sw::replicate>>>;
  using up = sw::at<"up", sw::colwise<tp<2>>>;
  using down = sw::at<"down", sw::rowwise<tp<2>>>;
  using axes = batch_axes<node<2>, local<2>>;
  const auto whole =
      trained<sw::mesh<node<2>, local<2>, tp<2>>, axes,
              sw::plan<sw::data_parallel<node<2>>, sw::data_parallel<local<2>>, in, up, down>, sw::sgd<true>>(4);
  const auto last = trained<sw::mesh<node<2>, local<2>, tp<2>>, axes, sw::plan<sharded, in, up, down>, sw::sgd<true>>(4);
  const auto first = trained<sw::mesh<tp<2>, local<2>, node<2>>, axes, sw::plan<sharded, in, up, down>, sw::sgd<true>>(4);
  CHECK(difference(whole, last) < 1e-12);
  CHECK(difference(whole, first) < 1e-12);
}

TEST_CASE("shard_over in hybrid shards is data parallelism") {
  using mesh = sw::mesh<rep<2>, node<2>, local<2>>;
  using axes = batch_axes<rep<2>, node<2>, local<2>>;
  using sharded =
      sw::fully_shard<node<2>, sw::shard_over<local<2>>, sw::replicate_over<rep<2>>, sw::reshard_after_forward<2>>;
  const auto hybrid = trained<mesh, axes, sw::plan<sharded, sw::at<"up", sharded>>, sw::sgd<true>>(4);
  CHECK(difference(hybrid, over_one<8>(4)) < 1e-12);
}

// The first layer's shards lie within a machine, with a copy in each, and the others' on all ranks.
TEST_CASE("shard_over beside groups in hybrid shards, on the same axes") {
  using mesh = sw::mesh<node<2>, local<2>>;
  using axes = batch_axes<node<2>, local<2>>;
  using within = sw::fully_shard<local<2>, sw::replicate_over<node<2>>>;
  using all = sw::fully_shard<node<2>, sw::shard_over<local<2>>, sw::reshard_after_forward<2>>;
  CHECK(difference(trained<mesh, axes, sw::plan<all, sw::at<"in", within>>, sw::sgd<true>>(4), over_one<4>(4)) < 1e-12);
}

TEST_CASE("shard_over under passes, and with Adam over lists of shards") {
  using kept = sw::reshard_after_forward<3>;
  const history<double> plain = over_two<2, 3, kept>(3);
  CHECK(difference(plain, over_two<2, 3, kept, sw::rematerialise<0>>(3)) == 0);
  CHECK(difference(plain, over_two<2, 3, kept, sw::expedite_comms, sw::sink_waits>(3)) == 0);
  CHECK(difference(plain, over_two<2, 3, kept, sw::expedite_comms, sw::prefetch<1>>(3)) == 0);
  CHECK(difference(plain, over_two<2, 3, sw::reshard_after_forward<true>, sw::expedite_comms, sw::prefetch<2>>(3)) == 0);
  CHECK(difference(plain, over_two<2, 3, kept, sw::schedule_comm_wait, sw::partial_lower<sw::core_operations, 2>>(3)) <
        1e-12);
  using mesh = sw::mesh<node<2>, local<3>>;
  using axes = batch_axes<node<2>, local<3>>;
  const history<double> adam = trained<mesh, axes, plan_of<2, 3, kept>, sw::adam<>>(3);
  CHECK(difference(adam, trained<mesh, axes, plan_of<2, 3, kept>, sw::adam<>, sw::fused_optimizer>(3)) == 0);
}

}  // namespace
