// SPDX-License-Identifier: Apache-2.0
// Programs with several run-time sizes on GPUs: what they compute is what they compute on threads, size by size, of no rows too.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <place.hpp>
#include <run_time.hpp>

#include <shardwise/module/function.hpp>

namespace device_run_time {

namespace sw = shardwise;
using run_time::two_sizes;

struct one : sw::axis<1> {};
struct dp : sw::axis<2> {};

template <class Place, class Axis>
std::vector<double> of_sentences() {
  using step = run_time::sentences_step<sw::dyn<5>, sw::dyn<6, 1>, Axis, typename Place::backend>;
  const std::vector<two_sizes> sizes = {{5, 6}, {2, 6}, {0, 4}, {1, 3}, {5, 1}, {0, 0}, {3, 4}};
  return run_time::numbers_of<step>(sizes, true, Place::checks,
                                    [](auto&& f) { Place::template launch<typename step::mesh_type>(f); });
}
template <class Place, class Axis>
std::vector<double> of_rows() {
  using step = run_time::rows_step<sw::dyn<7>, sw::dyn<5, 1>, Axis, typename Place::backend>;
  return run_time::all_numbers_of<step, 4>(
      {{7, 5}, {6, 2}, {1, 4}, {0, 3}, {2, 3}}, 3, [](auto& run, const two_sizes& n) { run.resize(n.batch, n.length); },
      Place::checks, [](auto&& f) { Place::template launch<typename step::mesh_type>(f); });
}
void near(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(!a.empty());
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-11));
}
template <class Axis>
void equal() {
  if (!test::on_devices::has(Axis::size)) return;
  near(of_sentences<test::on_devices, Axis>(), of_sentences<test::on_threads, Axis>());
  near(of_rows<test::on_devices, Axis>(), of_rows<test::on_threads, Axis>());
}

}  // namespace device_run_time

TEST_CASE("dyn on a GPU: a batch and a length of a run's own, and rows of both, are what they are on threads") {
  device_run_time::equal<device_run_time::one>();
}
TEST_CASE("dyn on 2 GPUs: a batch and a length of a run's own, and rows of both, are what they are on threads") {
  device_run_time::equal<device_run_time::dp>();
}
