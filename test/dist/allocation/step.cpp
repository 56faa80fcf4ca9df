// SPDX-License-Identifier: Apache-2.0
// A step allocates nothing: the counting allocator of this executable counts while ranks run steps.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <gpt.hpp>
#include <new>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <vector>

#include "counter.hpp"

#if defined(__GLIBC__) && !defined(SHARDWISE_TEST_SANITIZED)

namespace {

namespace sw = shardwise;
using namespace test::gpt;
using counter::allocations;
using counter::counting;
using counter::counting_all;

template <class Step>
long allocations_of_steps(int threads = 1) {
  using mesh = typename Step::mesh_type;
  const long before = allocations.load();
  sw::launch<mesh>([&](auto& rank) {
    rank.compute_threads(threads);
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank);
    ex.initialise(7);
    for (int s = 1; s <= 3; ++s) {
      const data d = batch_of(s);
      const sw::step_env env = environment(s);
      counting = true;  // from the very first step
      ex.set_input(0, d.tokens);
      ex.set_input(1, d.targets);
      ex.set_input(2, d.positions);
      ex.run(env);
      counting = false;
    }
  });
  return allocations.load() - before;
}

TEST_CASE("the counter sees an allocation") {
  const long before = allocations.load();
  counting = true;
  ::operator delete(::operator new(10));
  ::operator delete(::operator new(100, std::align_val_t{64}), std::align_val_t{64});
  std::free(std::malloc(10));
  counting = false;
  CHECK(allocations.load() == before + 3);
}

TEST_CASE("a training step allocates nothing") {
  CHECK(allocations_of_steps<step<float, 1, 1>>() == 0);
  CHECK(allocations_of_steps<step<float, 2, 2>>() == 0);
  CHECK(allocations_of_steps<step<double, 3, 1>>() == 0);
  CHECK(allocations_of_steps<step<double, 2, 3, sequence_parallel, dropout_sizes>>() == 0);
  CHECK(allocations_of_steps<step<float, 1, 1>>(3) == 0);
}

using overlapped =
    sw::train_step<test::transformer<sizes>::template model, test::language_task<sizes, batch, dp<2>>,
                   typename sequence_parallel<dp<2>, tp<2>>::type, sw::mesh<dp<2>, tp<2>>, sw::adamw<>,
                   sw::pipeline<sw::expedite_comms, sw::reorder_compute_for_overlap<>, sw::sink_waits, sw::raise_comms>>;

// Parameters in shards, gathered a group ahead.
using prefetched = sw::train_step<test::transformer<sizes>::template model, test::language_task<sizes, batch, dp<2>>,
                                  sw::plan<sw::fully_shard<dp<2>>, sw::at<"layers.*", sw::fully_shard<dp<2>>>>,
                                  sw::mesh<dp<2>>, sw::adamw<>, sw::pipeline<sw::prefetch<1>>>;

template <class Step>
void check_all_threads() {
  std::vector<sw::timeline> lines(Step::mesh_type::size, sw::timeline(1));
  const long before = allocations.load();
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank);
    ex.initialise(7);
    feed(ex, 1);
    const sw::step_env env = environment(1);
    const auto counted_run = [&] {
      rank.barrier();
      counting_all = true;
      rank.barrier();
      ex.run(env);
      rank.barrier();
      counting_all = false;
      rank.barrier();
    };
    counted_run();
    ex.record(&lines[static_cast<std::size_t>(rank.index())]);
    counted_run();
    counted_run();  // there is no room left
  });
  CHECK(allocations.load() == before);
  for (const sw::timeline& t : lines) {
    CHECK(t.missed() == 1);
    std::size_t calls = 0, launches = 0;  // an event of a batch is several calls
    for (const sw::timeline_event& e : t.events(t.runs()[0])) {
      if (e.kind == sw::event_kind::call) calls += static_cast<std::size_t>(e.calls);
      if (e.kind == sw::event_kind::launch) ++launches;
    }
    CHECK(calls == t.program_of(t.runs()[0]).calls.size());
    CHECK(launches > 0);
  }
}

TEST_CASE("a training step with collectives beside its kernels allocates nothing, on any thread, recorded or not") {
  check_all_threads<overlapped>();
  check_all_threads<prefetched>();
}

}  // namespace

#else

TEST_CASE("a training step allocates nothing" * doctest::skip()) {}

#endif
