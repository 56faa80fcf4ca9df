// SPDX-License-Identifier: Apache-2.0
// Collectives between processes give the bits of threads and send as many bytes, alone and as batches; MPI's own reduction gives the
// same sums where they are exact.
#include <doctest/doctest.h>

#include <collective_cases.hpp>
#include <cstring>
#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/runtime/threads/collectives.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "world.hpp"

namespace {

using namespace test;
using sw::runtime::call;
using sw::runtime::result;

template <int N>
struct line_axis : sw::axis<N> {};
struct rows : sw::axis<2> {};
struct cols : sw::axis<2> {};
template <int N>
using line = sw::mesh<line_axis<N>>;
using grid = sw::mesh<rows, cols>;

// Numbers whose sums depend on the order.
template <class T>
T rough_value(sw::reduction op, int rank, std::int64_t i) {
  const T exact = value_of<T>(op, 0, rank, i);
  if constexpr (sw::is_floating_element<T>)
    return static_cast<T>(static_cast<float>(exact) * (1 + 0.1F * static_cast<float>(i % 13 + rank)));
  return exact;
}

// One redistribution on one rank: the call, and the memory that it is about.
template <class T>
struct prepared {
  call c;
  std::vector<T> from, to;
  std::vector<std::byte> scratch;

  template <class Mesh>
  prepared(Mesh, const change& x, const std::array<int, sw::max_axes>& at, int rank, bool exact) {
    const sw::spec in = spec_for<Mesh>(x, sw::dtype_v<T>);
    sw::spec out = in;
    out.place[x.axis] = x.to;
    c.l[0] = sw::runtime::local_layout(in, at.data());
    c.l[result] = sw::runtime::local_layout(out, at.data());
    sw::runtime::lower_redistribute(c, x.axis, in, out, at.data());
    sw::op_attr a{};
    a.v[0] = x.axis;
    a.v[1] = sw::pack(x.to);
    scratch.resize(static_cast<std::size_t>(sw::host_backend::collective_workspace(a, in, out)) + 8);
    from = std::vector<T>(static_cast<std::size_t>(c.l[0].numel()));
    to = std::vector<T>(static_cast<std::size_t>(c.l[result].numel()), T(77));
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto k = static_cast<std::int64_t>(i);
      from[i] = exact ? value_of<T>(c.from.op, 0, rank, k) : rough_value<T>(c.from.op, rank, k);
    }
    c.p[0] = from.data();
    c.p[result] = to.data();
    c.workspace = scratch.data();
  }
};

// The result of each case on one rank, and the bytes sent for it; `together` cases of one kind and axis go as a batch.
template <class T>
struct results {
  std::vector<std::vector<T>> values;
  std::vector<std::int64_t> bytes;
};
template <class T, class Rank>
results<T> run_cases(Rank& rank, const std::vector<change>& cases, std::size_t together, bool exact) {
  using mesh = typename Rank::mesh_type;
  results<T> all;
  for (std::size_t i = 0; i < cases.size();) {
    std::vector<prepared<T>> batch;
    do batch.emplace_back(mesh{}, cases[i++], rank.coordinate(), rank.index(), exact);
    while (i < cases.size() && batch.size() < together &&
           prepared<T>(mesh{}, cases[i], rank.coordinate(), rank.index(), exact).c.kind == batch[0].c.kind &&
           cases[i].axis == batch[0].c.axis);
    std::vector<call> calls;
    for (auto& p : batch) calls.push_back(p.c);
    for (call& c : calls) {
      c.batch = calls.data();
      c.members = static_cast<std::int32_t>(calls.size());
    }
    rank.reset_counts();
    sw::runtime::communicate<T>(calls[0], rank);
    for (int a = 0; a < mesh::axes; ++a) all.bytes.push_back(rank.bytes_written(a));
    for (auto& p : batch) all.values.push_back(std::move(p.to));
  }
  return all;
}

// Equal bits, or NaN both.
template <class T>
bool same(const std::vector<std::vector<T>>& a, const std::vector<std::vector<T>>& b) {
  bool all = a.size() == b.size();
  for (std::size_t i = 0; all && i < a.size(); ++i) {
    all = a[i].size() == b[i].size();
    for (std::size_t k = 0; all && k < a[i].size(); ++k) {
      const T x = a[i][k], y = b[i][k];
      all = (x != x && y != y) || std::memcmp(&x, &y, sizeof(T)) == 0;
    }
  }
  return all;
}

template <class Mesh, class T>
int check_cases(const std::vector<change>& all, bool fast = false) {
  if (world_size() != Mesh::size) return 0;
  std::vector<change> cases;
  for (const change& x : all) {
    const sw::spec in = spec_for<Mesh>(x, sw::dtype_v<T>);
    if (in.place[x.axis].is_norm() && !std::is_floating_point_v<T>) continue;  // of two-byte elements refused
    if (sw::communicates(sw::transition_of(in.place[x.axis], x.to, in.axis_size[x.axis]))) cases.push_back(x);
  }
  for (const std::size_t together : {1U, 3U}) {
    results<T> want, got;
    sw::launch<Mesh>([&](auto& rank) {
      results<T> mine = run_cases<T>(rank, cases, together, fast);
      if (rank.index() == world_rank()) want = std::move(mine);
    });
    sw::launch_mpi<Mesh>([&](auto& rank) { got = run_cases<T>(rank, cases, together, fast); }, {30, fast});
    CHECK(same(got.values, want.values));
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
