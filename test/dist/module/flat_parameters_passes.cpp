// SPDX-License-Identifier: Apache-2.0
// fully_shard with flat_parameters under passes and checkpoints: what it computes without, under the same.
#include <flat_parameters.hpp>

#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

namespace {

using namespace test;
using namespace test::fsdp;
using namespace test::flat;

template <int D, class... Options>
using again = sw::plan<sw::fully_shard<dp<D>, Options...>, sw::at<"up", sw::fully_shard<dp<D>, Options...>>,
                       sw::at<"in", sw::checkpoint>, sw::at<"up", sw::checkpoint>>;
TEST_CASE("flat_parameters under passes") {
  check_same<3, three, sw::sgd<true>, sw::cancel_redistributions, sw::merge_common>(0);
  check_same<3, freed, sw::sgd<true>, sw::rematerialise<0>>(0);
  check_same<3, three, sw::sgd<true>, sw::expedite_comms, sw::reorder_compute_for_overlap<>, sw::sink_waits>(0);
  check_same<3, three, sw::sgd<true>, sw::rematerialise<100>, sw::merge_products, sw::fuse_kernels>(1e-12);
  check_same<3, three, sw::adam<>, sw::prefetch<1>, sw::raise_comms, sw::sink_waits>(0);
}
TEST_CASE("flat_parameters of modules that are computed again") { check_same<3, again, sw::sgd<true>>(0); }

}  // namespace
