// SPDX-License-Identifier: Apache-2.0
// The schedule of two streams keeps every dependency of a program, waits no more than it must, and separates only
// collectives that kernels can run beside.
#include <doctest/doctest.h>

#include <gpt.hpp>
#include <settled.hpp>
#include <shardwise/runtime/cuda/backend.hpp>
#include <shardwise/runtime/program/schedule.hpp>

namespace {

namespace sw = shardwise;
using namespace test::gpt;
using sw::runtime::scheduled_call;

struct on_paper : test::on_threads {
  using backend = sw::cuda_backend;
};
template <int D, int N>
using program = step<float, D, N, tensor_parallel, sizes, on_paper>;

// Whether call `before` is surely done when call `after` starts, by streams and waits alone.
bool ordered(const sw::dynamic_array<scheduled_call>& s, int before, int after) {
  if (s[static_cast<std::size_t>(before)].stream == s[static_cast<std::size_t>(after)].stream) return true;
  for (int k = after; k >= 0; --k) {
    const scheduled_call& c = s[static_cast<std::size_t>(k)];
    if (c.stream == s[static_cast<std::size_t>(after)].stream && c.wait >= before) return true;
  }
  return false;
}

template <class Step>
void check_schedule() {
  for (int rank = 0; rank < Step::mesh_type::size; ++rank) {
    const auto calls = test::calls_of<Step>(rank);
    const auto s = sw::runtime::schedule(sw::runtime::tables_of<Step>::get(), calls);
    sw::dynamic_array<sw::dynamic_array<sw::runtime::access>> touched;
    for (const auto& c : calls) touched.push_back(sw::runtime::accesses_of(sw::runtime::tables_of<Step>::get(), c));
    int unordered = 0, unmarked = 0, idle = 0, last_collective = -1, out_of_order = 0;
    for (int i = 0; i < static_cast<int>(calls.size()); ++i) {
      const scheduled_call& c = s[static_cast<std::size_t>(i)];
      for (int j = 0; j < i; ++j)
        if (sw::runtime::conflict(touched[static_cast<std::size_t>(i)], touched[static_cast<std::size_t>(j)]) &&
            !ordered(s, j, i))
          ++unordered;
      if (c.wait >= 0) {
        const scheduled_call& other = s[static_cast<std::size_t>(c.wait)];
        if (!other.awaited || other.stream == c.stream || c.wait >= i) ++unmarked;
      }
      if (!sw::communicates(calls[static_cast<std::size_t>(i)].kind)) {
        if (c.stream != sw::runtime::compute_stream) ++idle;
        continue;
      }
      if (last_collective >= 0 && !ordered(s, last_collective, i)) ++out_of_order;
      last_collective = i;
    }
    CHECK(unordered == 0);
    CHECK(unmarked == 0);
    CHECK(idle == 0);
    CHECK(out_of_order == 0);
    CHECK(last_collective >= 0);
  }
}

TEST_CASE("the schedule keeps the order of calls that touch the same bytes, tensor parallel") {
  check_schedule<program<1, 2>>();
}
TEST_CASE("the schedule keeps the order of calls that touch the same bytes, two axes") { check_schedule<program<2, 2>>(); }

TEST_CASE("scratch on a device holds the needs of every kernel and collective") {
  constexpr auto scratch = sw::cuda_backend::scratch_of(program<2, 2>::program);
  static_assert(scratch.compute >= sw::device_scratch::product_bytes);
  static_assert(program<2, 2>::memory::value.workspace == scratch.total());
  CHECK(program<2, 2>::peak_bytes > scratch.total());
}

}  // namespace
