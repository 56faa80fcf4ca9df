// SPDX-License-Identifier: Apache-2.0
// Buffers on GPUs: running statistics, losses and evaluations are those of one host thread, replayed as a graph and launched call by
// call; blocks are set and read.
#define SHARDWISE_TEST_DEVICES 1
#include <running_norm.hpp>

#include <doctest/doctest.h>

#include <shardwise/pass/fuse/fuse.hpp>

namespace {

using namespace test::running;
namespace sw = shardwise;
using test::on_threads;
using test::place;

const history<double>& one() {
  static const history<double> h =
      train_and_judge<training<1, 1, whole_plan, sw::pipeline<>, 7, double, on_threads>,
                      evaluation<1, 1, whole_plan, sw::pipeline<>, 7, double, on_threads>, 7, on_threads>(5);
  return h;
}
template <int D, int N, template <int, int> class Plan, class... P>
void check() {
  if (!place::has(D * N)) return;
  CHECK(difference(one(),
                   train_and_judge<training<D, N, Plan, sw::pipeline<P...>>, evaluation<D, N, Plan, sw::pipeline<P...>>>(
                       5)) < 1e-9);
}

}  // namespace

TEST_CASE("buffers on one gpu") { check<1, 1, whole_plan>(); }
TEST_CASE("buffers on one gpu, fused") { check<1, 1, whole_plan, sw::fuse_kernels>(); }
TEST_CASE("buffers on two gpus that split the batch") { check<2, 1, whole_plan>(); }
TEST_CASE("buffers on two gpus that split the features") { check<1, 2, split_plan>(); }
TEST_CASE("buffers on two times two gpus") { check<2, 2, split_plan>(); }

TEST_CASE("a buffer's block is set and read on a gpu") {
  if (!place::has(1)) return;
  using step = training<1, 1, whole_plan>;
  place::launch<step::mesh_type>([](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> run(rank, sw::device_execution::stream);
    run.initialise(5);
    CHECK(run.get_buffer(1) == std::vector<double>(6, 1));
    const std::vector<double> values{1, 2, 3, 4, 5, 6};
    run.set_buffer(0, values);
    CHECK(run.get_buffer(0) == values);
    run.set_input(0, numbers<double>(35, 1));
    run.set_input(1, numbers<double>(21, 2));
    run.run(step_numbers(1));
    CHECK(run.get_buffer(0) != values);
  });
}

// test/unit/runtime/initial_values.cpp holds the formula; here a device's bits are the host's. Extents that no block divides.
TEST_CASE("initial values on a gpu are the host's, bit for bit") {
  if (!place::has(1)) return;
  test::place::launch<training<1, 1, whole_plan>::mesh_type>([](auto& rank) {
    sw::cuda::step_state state(rank.multiprocessors());
    const auto same = [&]<class T>(T, const sw::runtime::layout& l, sw::init_kind kind) {
      const auto n = static_cast<std::size_t>(l.numel());
      std::vector<T> want(n), got(n);
      sw::host::initialise_block(std::span<T>(want), l, kind, 0.02, 9, "net.w");
      const sw::cuda::device_memory block(n * sizeof(T));
      sw::cuda::initialise_block(reinterpret_cast<T*>(block.data()), l, kind, 0.02, 9, "net.w", state.of_stream(0));
      sw::cuda::check(cudaStreamSynchronize(state.of_stream(0).stream), "cudaStreamSynchronize");
      sw::cuda::check(cudaMemcpy(got.data(), block.data(), n * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
      CHECK(std::memcmp(want.data(), got.data(), n * sizeof(T)) == 0);
    };
    sw::runtime::layout whole;
    whole.rank = 3;
    const std::int64_t extents[] = {50, 71, 233};
    for (int d = 0; d < 3; ++d) whole.ext[d] = whole.global[d] = extents[d];
    whole.make_dense();
    sw::runtime::layout part = whole;
    for (int d = 0; d < 3; ++d) part.origin[d] = 3 * d + 1, part.ext[d] -= 7 * d + 5;
    part.make_dense();
    for (const auto kind : {sw::init_kind::zeros, sw::init_kind::ones, sw::init_kind::normal, sw::init_kind::uniform}) {
      same(0.0, whole, kind);
      same(0.0F, whole, kind);
      same(0.0, part, kind);
    }
  });
}
