// SPDX-License-Identifier: Apache-2.0
// Collectives between processes give the bits of threads and send as many bytes, alone and as batches; MPI's own reduction gives the
// same sums where they are exact.
#include <doctest/doctest.h>

#include <prepared_call.hpp>
#include <shardwise/runtime/threads/collectives.hpp>
#include <string>
#include <vector>

#include "world.hpp"

namespace {

using namespace test;

template <int N>
struct line_axis : sw::axis<N> {};
struct rows : sw::axis<2> {};
struct cols : sw::axis<2> {};
template <int N>
using line = sw::mesh<line_axis<N>>;
using grid = sw::mesh<rows, cols>;

template <class Mesh, class T>
int check_cases(const std::vector<change>& all, bool fast = false) {
  if (world_size() != Mesh::size) return 0;
  const std::vector<change> cases = communicating<Mesh, T>(all);
  for (const std::size_t together : {1U, 3U}) {
    results<T> want, got;
    sw::launch<Mesh>([&](auto& rank) {
      results<T> mine = run_cases<T>(rank, cases, together, fast);
      if (rank.index() == world_rank()) want = std::move(mine);
    });
    sw::launch_mpi<Mesh>([&](auto& rank) { got = run_cases<T>(rank, cases, together, fast); }, {30, fast});
    CHECK(same_bits(got.values, want.values));
    CHECK(got.bytes == want.bytes);
  }
  return static_cast<int>(cases.size());
}

template <class Mesh>
void check_types(const std::vector<change>& cases) {
  int run = check_cases<Mesh, float>(cases);
  run += check_cases<Mesh, double>(cases);
  run += check_cases<Mesh, std::int32_t>(cases);
  run += check_cases<Mesh, sw::bf16>(cases);
  run += check_cases<Mesh, sw::f16>(cases);
  run += check_cases<Mesh, std::int64_t>(cases);
  CHECK((run > 300 || world_size() != Mesh::size));
}

}  // namespace

TEST_CASE("collectives of 2 processes equal those of threads") { check_types<line<2>>(changes_of_line(2)); }
TEST_CASE("collectives of 3 processes equal those of threads") { check_types<line<3>>(changes_of_line(3)); }
TEST_CASE("collectives of 4 processes equal those of threads") { check_types<line<4>>(changes_of_line(4)); }
TEST_CASE("collectives of 2 x 2 processes equal those of threads") { check_types<grid>(changes_of_grid()); }

TEST_CASE("MPI's own reduction gives exact sums") {
  check_cases<line<3>, float>(changes_of_line(3), true);
  check_cases<line<3>, std::int64_t>(changes_of_line(3), true);
  check_cases<line<3>, sw::bf16>(changes_of_line(3), true);
  check_cases<grid, double>(changes_of_grid(), true);
}

TEST_CASE("words that ranks have set apart come together") {
  const auto combine = [](auto& rank) {
    const auto me = static_cast<std::size_t>(rank.index()), n = static_cast<std::size_t>(rank.size());
    std::vector<double> v(n, 0);
    std::vector<std::uint8_t> bytes(n, 0);
    v[me] = -0.5 * static_cast<double>(me + 1);
    bytes[me] = 200;
    rank.combine_disjoint(v);
    rank.combine_disjoint(bytes);
    for (std::size_t r = 0; r < n; ++r) CHECK((v[r] == -0.5 * static_cast<double>(r + 1) && bytes[r] == 200));
  };
  if (world_size() == 3) sw::launch_mpi<line<3>>(combine, {30, false});
  if (world_size() == 4) sw::launch_mpi<grid>(combine, {30, false});
}

TEST_CASE("a launch whose mesh is of another size is refused, and the next one runs") {
  const auto refusal = [](const auto& launch) -> std::string {
    try {
      launch();
    } catch (const std::exception& e) {
      return e.what();
    }
    return "no exception";
  };
  const int n = world_size();
  CHECK(refusal([] { sw::launch_mpi<line<7>>([](auto&) {}); }) ==
        "shardwise: launch_mpi: the mesh 7 has 7 ranks; MPI knows " + std::to_string(n) +
            (n == 1 ? " process" : " processes") + "; start as many as the mesh has ranks: mpirun -n 7");
  int ran = 0;
  if (n == 1) sw::launch_mpi<line<1>>([&](auto& rank) { ran += 1 + rank.index(); });
  if (n == 2) sw::launch_mpi<line<2>>([&](auto&) { ++ran; });
  if (n == 3) sw::launch_mpi<line<3>>([&](auto&) { ++ran; });
  if (n == 4) sw::launch_mpi<grid>([&](auto&) { ++ran; });
  CHECK(ran == 1);
}
