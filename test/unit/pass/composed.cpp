// SPDX-License-Identifier: Apache-2.0
// Passes one after another over a whole step: every order that the compiler admits gives the values of the step without.
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/optimizer/optimizer_blocks.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/pass/communication/waits.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <models.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using namespace test;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
template <class... Passes>
using step = sw::train_step<relu_stack<3, 7>::template model, sum_task<double, 10, 7, sw::on<dp, sw::shard<0>>>,
                            sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>, sw::pipeline<Passes...>, double>;

// The parameters of both ranks after three iterations.
template <class Step>
std::vector<double> train() {
  std::vector<double> of[2];
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<Step> ex(rank, sw::executor_checks::poison);
    ex.initialise(3);
    const auto in = ex.template input<double>(0);
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = static_cast<double>((i * 37 + static_cast<std::size_t>(rank.index()) * 11) % 19) / 9.5 - 1;
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 3; ++env.step) ex.run(env);
    for (int i = 0; i < ex.parameter_count(); ++i)
      for (const double x : ex.parameter(i)) of[rank.index()].push_back(x);
  });
  CHECK(of[0] == of[1]);
  return of[0];
}

template <class... Passes>
void check() {
  static const std::vector<double> want = train<step<>>();
  const std::vector<double> got = train<step<Passes...>>();
  REQUIRE(want.size() == got.size());
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::abs(want[i] - got[i]));
  CHECK(worst < 1e-12);
  CHECK(want.size() == 3 * (7 * 7 + 7));
}

using sw::fuse_kernels;
using buckets = sw::comm_fusion_in_place<1>;
using reorder = sw::reorder_compute_for_overlap<sw::run_time<>>;

TEST_CASE("passes together: buckets and fused kernels") {
  check<buckets, fuse_kernels>();
  check<fuse_kernels, buckets>();
  check<sw::comm_fusion_with_concat<1>, sw::schedule_comm_wait, fuse_kernels>();
  check<buckets, sw::schedule_comm_wait, fuse_kernels>();
}
TEST_CASE("passes together: lists, buckets and fused kernels") {
  check<sw::fused_optimizer, buckets, sw::remove_copy_from_optimizer, fuse_kernels>();
  check<sw::foreach_optimizer, buckets, sw::remove_copy_from_optimizer, fuse_kernels>();
}
TEST_CASE("passes together: overlap and fused kernels") {
  check<fuse_kernels, sw::expedite_comms, reorder, sw::sink_waits, sw::raise_comms>();
  check<buckets, sw::expedite_comms, reorder, sw::sink_waits, sw::raise_comms, fuse_kernels>();
}
TEST_CASE("passes together: recomputation") {
  check<sw::cancel_redistributions, sw::merge_common, sw::rematerialise<0>, buckets, fuse_kernels>();
  check<sw::rematerialise<50>, fuse_kernels, sw::expedite_comms, sw::schedule_comm_wait>();
}

}  // namespace
