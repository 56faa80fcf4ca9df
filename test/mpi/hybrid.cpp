// SPDX-License-Identifier: Apache-2.0
// Meshes of which some axes lie within processes and the others between them: collectives, training steps, eager tensors, copies between
// plans and checkpoints give the bits of as many threads, and send as many bytes. Of 1 to 4 processes of 1 to 3 threads.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <gpt.hpp>
#include <placed_steps.hpp>
#include <prepared_call.hpp>
#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/runtime/mpi/hybrid.hpp>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <vector>

#include "world.hpp"

namespace {

using namespace test;
using namespace test::placed;

template <class... Axes>
using within = sw::within_process<Axes...>;
template <class Step, class Rank>
using executor_on = sw::executor<Step, std::remove_reference_t<Rank>>;
constexpr sw::mpi_options in_time{60, false};

using values = std::vector<double>;
void append(values& all, const auto& more) { all.insert(all.end(), std::begin(more), std::end(more)); }

template <class Mesh, class Within>
bool is_for_this_run() {
  return world_size() == sw::processes::layout_of<Mesh, Within>::processes;
}

// What body(rank) gives on each rank of as many threads as there are ranks is what it gives on those of this process.
template <class Mesh, class Within, class Body, class Same>
void check_equal(const Body& body, const Same& same) {
  using layout = sw::processes::layout_of<Mesh, Within>;
  if (world_size() != layout::processes) return;
  using result = std::invoke_result_t<const Body&, sw::thread_rank<Mesh>&>;
  std::vector<result> want(Mesh::size), got(Mesh::size);
  sw::launch<Mesh>([&](auto& rank) { want[static_cast<std::size_t>(rank.index())] = body(rank); });
  std::atomic<int> ran{0};
  sw::launch_mpi<Mesh, Within>(
      [&](auto& rank) {
        ++ran;
        got[static_cast<std::size_t>(rank.index())] = body(rank);
      },
      in_time);
  CHECK(ran == layout::threads);
  for (int t = 0; t < layout::threads; ++t) {
    const auto r = static_cast<std::size_t>(layout::rank_of(world_rank(), t));
    CHECK(same(got[r], want[r]));
  }
}
template <class Mesh, class Within, class Body>
void check_equal(const Body& body) {
  check_equal<Mesh, Within>(body, [](const values& a, const values& b) {
    return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
  });
}

// --- collectives ----------------------------------------------------------------------------------------------------------

struct rows_of_grid : sw::axis<2> {};
struct cols_of_grid : sw::axis<2> {};
using grid = sw::mesh<rows_of_grid, cols_of_grid>;
template <int N>
struct line_axis : sw::axis<N> {};

template <class Mesh, class Within, class T>
void check_collectives(const std::vector<change>& all) {
  if (!is_for_this_run<Mesh, Within>()) return;
  const std::vector<change> cases = communicating<Mesh, T>(all);
  CHECK(cases.size() > 50);
  for (const std::size_t together : {1U, 3U})
    check_equal<Mesh, Within>(
        [&](auto& rank) { return run_cases<T>(rank, cases, together, false); },
        [](const results<T>& a, const results<T>& b) { return same_bits(a.values, b.values) && a.bytes == b.bytes; });
}

// --- programs -------------------------------------------------------------------------------------------------------------

// Losses and all that the program holds, whole.
template <class Step, class Within>
void check_placed() {
  check_equal<typename Step::mesh_type, Within>([](auto& rank) {
    executor_on<Step, decltype(rank)> ex(rank, sw::executor_checks::poison);
    ex.initialise(3);
    rank.reset_counts();
    train(ex, 1, 3);
    values all{ex.loss()};
    for (int a = 0; a < Step::mesh_type::axes; ++a) all.push_back(static_cast<double>(rank.bytes_written(a)));
    for (const auto& whole : everything(ex)) append(all, whole);
    append(all, ex.full_parameter("first.weight", Step::mesh_type::size - 1));
    return all;
  });
}

// Every parameter split over both axes' ranks, one after the other.
template <int D, int N>
using sharded = split_step<D, N, rows<dp<D>, 0>, rows<tp<N>, 1>>;

}  // namespace

TEST_CASE("collectives along an axis within a process, and along one between processes") {
  check_collectives<grid, within<cols_of_grid>, float>(changes_of_grid());
  check_collectives<grid, within<rows_of_grid>, double>(changes_of_grid());
  check_collectives<grid, within<rows_of_grid>, sw::bf16>(changes_of_grid());
  check_collectives<grid, within<rows_of_grid, cols_of_grid>, std::int32_t>(changes_of_grid());
  check_collectives<sw::mesh<line_axis<3>>, within<line_axis<3>>, float>(changes_of_line(3));
  check_collectives<sw::mesh<line_axis<3>>, within<>, float>(changes_of_line(3));
}

TEST_CASE("steps on 1 process of 1, 2 and 3 threads") {
  check_placed<adam_step<1, 1>, within<tp<1>>>();
  check_placed<rows2, within<dp<1>, tp<2>>>();
  check_placed<sharded<1, 3>, within<tp<3>>>();
}
TEST_CASE("steps on 2 processes of 1, 2 and 3 threads") {
  check_placed<rows2, within<dp<1>>>();
  check_placed<both4, within<tp<2>>>();
  check_placed<both4, within<dp<2>>>();
  check_placed<sharded<2, 3>, within<tp<3>>>();
}
TEST_CASE("steps on 3 processes of 1, 2 and 3 threads") {
  check_placed<sharded<1, 3>, within<>>();
  check_placed<sharded<2, 3>, within<dp<2>>>();
  check_placed<sharded<3, 3>, within<tp<3>>>();
}
TEST_CASE("steps on 4 processes of 1, 2 and 3 threads") {
  check_placed<both4, within<>>();
  check_placed<strided8, within<dp<2>>>();
  check_placed<sharded<3, 4>, within<dp<3>>>();
}

// Attention by heads, feed-forward by columns, dropout, a clipped norm; collectives on the streams of the ranks.
TEST_CASE("a language model on 2 processes of 2 threads, collectives beside kernels") {
  using step = gpt::step<float, 2, 2, gpt::tensor_parallel, gpt::dropout_sizes, place, sw::pipeline<sw::schedule_comm_wait>>;
  static_assert(sw::has_waits(step::program));
  const auto body = [](auto& rank) {
    executor_on<step, decltype(rank)> ex(rank);
    ex.initialise(7);
    values all;
    for (int s = 1; s <= 3; ++s) {
      gpt::feed(ex, s);
      ex.run(gpt::environment(s));
      all.push_back(ex.loss());
    }
    for (int i = 0; i < ex.parameter_count(); ++i) append(all, std::as_const(ex).parameter(i));
    return all;
  };
  using first = sw::detail::axis_at<step::mesh_type, 0>;
  using second = sw::detail::axis_at<step::mesh_type, 1>;
  check_equal<step::mesh_type, within<second>>(body);
  check_equal<step::mesh_type, within<first>>(body);
}

TEST_CASE("eager tensors of 2 processes of 2 threads, some on their way") {
  check_equal<grid, within<cols_of_grid>>([](auto& rank) {
    sw::eager on(rank);
    values all;
    const auto x = sw::dtensor_of<double, sw::shape<7, 3>, grid, sw::on<rows_of_grid, sw::shard<0>>,
                                  sw::on<cols_of_grid, sw::shard<1>>>::distribute(on, numbers(21));
    auto p = sw::redistribute_async<rows_of_grid, sw::replicate>(x);
    auto q = sw::redistribute_async<cols_of_grid, sw::replicate>(sw::exp(x));
    append(all, sw::sum(x * x).full_tensor().to_local().data);
    append(all, std::move(p).wait().to_local().data);
    append(all, std::move(q).wait().to_local().data);
    return all;
  });
}

TEST_CASE("ranks of processes of threads agree, meet and combine words") {
  const auto body = [](auto& rank) {
    const auto me = static_cast<std::size_t>(rank.index()), n = static_cast<std::size_t>(rank.size());
    values all;
    for (int turn = 0; turn < 20; ++turn) {
      rank.agree(7, "the seed");
      rank.barrier();
      std::vector<double> v(n, 0);
      std::vector<std::uint8_t> few(n + 2, 0);
      v[me] = -0.5 * static_cast<double>(me + 1);
      few[me] = 200;
      if constexpr (requires { rank.combine_disjoint(v); }) {
        rank.combine_disjoint(v);
        rank.combine_disjoint(few);
      } else {
        for (std::size_t r = 0; r < n; ++r) {
          v[r] = -0.5 * static_cast<double>(r + 1);
          few[r] = 200;
        }
      }
      append(all, v);
      append(all, few);
    }
    return all;
  };
  check_equal<grid, within<cols_of_grid>>(body);
  check_equal<grid, within<rows_of_grid, cols_of_grid>>(body);
  check_equal<mesh<3, 3>, within<dp<3>>>(body);
  check_equal<mesh<3, 4>, within<dp<3>>>(body);
}

TEST_CASE("what a program holds moves to one of another plan, over processes of threads") {
  const auto body = [](auto& rank) {
    executor_on<both4, decltype(rank)> from(rank);
    executor_on<strided4, decltype(rank)> to(rank);
    from.initialise(3);
    train(from, 1, 2);
    to.copy_parameters(from);
    to.copy_state(from);
    values all;
    for (const auto& whole : everything(to)) append(all, whole);
    return all;
  };
  check_equal<both4::mesh_type, within<tp<2>>>(body);
  check_equal<both4::mesh_type, within<dp<2>, tp<2>>>(body);
}

TEST_CASE("checkpoints of processes of threads are those of threads") {
  if (!is_for_this_run<both4::mesh_type, within<tp<2>>>()) return;
  const std::string folder = folder_of_run("shardwise-hybrid-");
  first_alone([&] { std::filesystem::remove_all(folder); });
  std::vector<values> then;
  sw::launch_mpi<both4::mesh_type, within<tp<2>>>(
      [&](auto& rank) {
        executor_on<both4, decltype(rank)> ex(rank);
        ex.initialise(3);
        train(ex, 1, 2);
        sw::save(ex, folder, {.step = 2, .seed = 7});
        const auto all = everything(ex);
        if (sw::processes::layout_of<both4::mesh_type, within<tp<2>>>::thread_of(rank.index()) == 0) then = all;
      },
      in_time);
  const auto load = [&](auto& rank) {
    executor_on<strided4, decltype(rank)> ex(rank);
    CHECK(sw::load(ex, folder).step == 2);
    CHECK(everything(ex) == then);
  };
  sw::launch<strided4::mesh_type>(load);
  sw::launch_mpi<strided4::mesh_type, within<dp<2>>>(load, in_time);
  first_alone([&] { std::filesystem::remove_all(folder); });
}

struct host : sw::axis<2> {};
struct core : sw::axis<3> {};

TEST_CASE("the mesh of docs/gpus.md on 2 processes of 3 threads") {
  if (world_size() != 2) return;
  std::atomic<int> sum{0};
  sw::launch_mpi<sw::mesh<host, core>, sw::within_process<core>>([&](auto& rank) {
    sum += rank.index();  // 0, 1, 2 in the first process, 3, 4, 5 in the second
  });
  CHECK(sum == 3 + 9 * world_rank());
}

TEST_CASE("another number of processes than the mesh needs is refused, and the next launch runs") {
  std::string said = "no exception";
  try {
    sw::launch_mpi<mesh<7, 2>, within<tp<2>>>([](auto&) {});
  } catch (const std::exception& e) {
    said = e.what();
  }
  const int n = world_size();
  CHECK(said == "shardwise: launch_mpi: the mesh 7 x 2 has 14 ranks, 2 of them in each process; MPI knows " +
                    std::to_string(n) + (n == 1 ? " process" : " processes") +
                    "; start as many as the axes between processes have ranks: mpirun -n 7");
  std::atomic<int> ran{0};
  if (n == 1) sw::launch_mpi<mesh<1, 3>, within<tp<3>>>([&](auto&) { ++ran; });
  if (n == 2) sw::launch_mpi<mesh<2, 3>, within<tp<3>>>([&](auto&) { ++ran; });
  if (n == 3) sw::launch_mpi<mesh<3, 3>, within<tp<3>>>([&](auto&) { ++ran; });
  if (n == 4) sw::launch_mpi<mesh<4, 3>, within<tp<3>>>([&](auto&) { ++ran; });
  CHECK((ran == 3 || n > 4));
}
