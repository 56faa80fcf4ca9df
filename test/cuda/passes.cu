// SPDX-License-Identifier: Apache-2.0
// Passes that move work and change no arithmetic give the same bits on GPUs: losses and parameters of a language model.
#define SHARDWISE_TEST_DEVICES 1
#include <equivalence.hpp>

#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/communication/waits.hpp>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

constexpr int steps = 5;

template <int D, int N, class... Passes>
void check_same(const char* what, const history<float>& want) {
  CAPTURE(what);
  const history<float> got = train<step<float, D, N, tensor_parallel, sizes, test::place, sw::pipeline<Passes...>>>(steps);
  CHECK(want.losses == got.losses);
  CHECK(want.parameters == got.parameters);
}

template <int D, int N>
void check_all() {
  if (!test::place::has(D * N)) return;
  using model = sw::run_time<60'000, 4'800>;
  const history<float> want = train<step<float, D, N, tensor_parallel, sizes, test::place, sw::pipeline<>>>(steps);
  check_same<D, N, sw::comm_fusion_in_place<1>>("buckets", want);
  check_same<D, N, sw::comm_fusion_with_concat<1>, sw::schedule_comm_wait>("copied buckets", want);
  check_same<D, N, sw::expedite_comms, sw::reorder_compute_for_overlap<model>, sw::sink_waits, sw::raise_comms>("overlap",
                                                                                                                want);
  check_same<D, N, sw::rematerialise<0>>("recomputed", want);
}

TEST_CASE("passes on two gpus, data parallel") { check_all<2, 1>(); }
TEST_CASE("passes on two gpus, tensor parallel") { check_all<1, 2>(); }

}  // namespace
