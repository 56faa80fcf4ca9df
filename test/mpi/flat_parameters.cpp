// SPDX-License-Identifier: Apache-2.0
// Flat parameters over processes: names, whole tensors, blocks and copies as between threads.
#include <doctest/doctest.h>

#include <flat_parameters.hpp>

#include "world.hpp"

namespace {

using namespace test;
using namespace test::flat;

using flat3 = step<3, three<3, sw::flat_parameters>, sw::adam<>>;
using other3 = step<3, one<3, sw::flat_parameters>, sw::adam<>>;
using plain3 = step<3, three<3>, sw::adam<>>;

// What each rank sees of training `From` and moving it to `To`.
template <class From, class To, class Rank>
std::vector<double> seen(Rank& rank) {
  sw::executor<From, Rank> from(rank);
  sw::executor<To, Rank> to(rank);
  from.initialise(5);
  std::vector<double> all = all_of(from);
  const auto append = [&](const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
  for (int s = 1; s <= 2; ++s) {
    one_step(from, s);
    all.push_back(from.loss());
  }
  CHECK(padding_is_zero(from));
  for (int i = 0; i < from.parameter_count(); ++i) append(std::as_const(from).parameter(i));
  append(from.full_parameter("up.weight", 2));
  append(from.full_state("in.weight", sw::moment::first, 1));
  std::vector<double> weight(42);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<double>(i) - 20;
  from.set_parameter("up.weight", weight);
  from.set_state("up.weight", sw::moment::second, weight);
  append(all_of(from));
  append(moments_of(from));
  to.initialise(6);
  to.copy_parameters(from);
  to.copy_state(from);
  append(all_of(to));
  append(moments_of(to));
  return all;
}

template <class From, class To>
void check_processes() {
  if (world_size() != 3) return;
  std::vector<double> want, got;
  sw::launch<typename From::mesh_type>([&](auto& rank) {
    auto mine = seen<From, To>(rank);
    if (rank.index() == world_rank()) want = std::move(mine);
  });
  sw::launch_mpi<typename From::mesh_type>([&](auto& rank) { got = seen<From, To>(rank); }, sw::mpi_options{60, false});
  CHECK(got == want);
  CHECK(!got.empty());
}

}  // namespace

TEST_CASE("flat parameters on 3 processes, moved to other flat ones") { check_processes<flat3, other3>(); }
TEST_CASE("flat parameters on 3 processes, moved to what is not flat") { check_processes<flat3, plain3>(); }
TEST_CASE("parameters on 3 processes, moved to flat ones") { check_processes<plain3, flat3>(); }
