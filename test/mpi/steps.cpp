// SPDX-License-Identifier: Apache-2.0
// Programs over processes give the bits of threads: training steps, collectives beside kernels, eager tensors, whole tensors, copies
// between plans, and checkpoints that either of them saves and the other loads.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <gpt.hpp>
#include <placed_steps.hpp>
#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "world.hpp"

namespace {

using namespace test;
using namespace test::placed;

template <int N>
struct worker : sw::axis<N> {};

template <class Step, class Rank>
using executor_on = sw::executor<Step, std::remove_reference_t<Rank>>;
constexpr sw::mpi_options in_time{60, false};

// What body(rank) gives on this process's rank, of as many threads as there are processes, and of the processes.
template <class Mesh, class Body>
void check_equal(const Body& body) {
  if (world_size() != Mesh::size) return;
  std::invoke_result_t<const Body&, sw::thread_rank<Mesh>&> want{}, got{};
  sw::launch<Mesh>([&](auto& rank) {
    auto mine = body(rank);
    if (rank.index() == world_rank()) want = std::move(mine);
  });
  sw::launch_mpi<Mesh>([&](auto& rank) { got = body(rank); }, in_time);
  CHECK(got == want);
  CHECK(!got.empty());
}

using values = std::vector<double>;
void append(values& all, const auto& more) { all.insert(all.end(), std::begin(more), std::end(more)); }

// Losses and all that the program holds, whole.
template <class Step>
void check_placed() {
  check_equal<typename Step::mesh_type>([](auto& rank) {
    executor_on<Step, decltype(rank)> ex(rank, sw::executor_checks::poison);
    ex.initialise(3);
    rank.reset_counts();
    train(ex, 1, 3);
    values all{ex.loss()};
    for (int a = 0; a < Step::mesh_type::axes; ++a) all.push_back(static_cast<double>(rank.bytes_written(a)));
    for (const auto& whole : everything(ex)) append(all, whole);
    append(all, ex.full_parameter("first.weight", Step::mesh_type::size - 1));
    values shared(35);
    ex.gather_parameter(0, shared);
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(rank)>, sw::mpi_rank<typename Step::mesh_type>>)
      CHECK(shared == ex.full_parameter("first.weight"));
    return all;
  });
}

using three = split_step<1, 3, rows<tp<3>, 0>, rows<tp<3>, 1>>;

// From trains over processes and saves; To, of any mesh, loads as threads and over processes if there are as many.
template <class From, class To>
void check_checkpoint(bool consolidated) {
  if (world_size() != From::mesh_type::size) return;
  const std::string folder = folder_of_run("shardwise-mpi-");
  std::vector<values> then;
  first_alone([&] { std::filesystem::remove_all(folder); });
  sw::launch_mpi<typename From::mesh_type>(
      [&](auto& rank) {
        executor_on<From, decltype(rank)> ex(rank);
        ex.initialise(3);
        train(ex, 1, 2);
        sw::save(ex, folder, {.step = 2, .seed = 7}, {.consolidated = consolidated});
        then = everything(ex);
      },
      in_time);
  const auto load = [&](auto& rank) {
    executor_on<To, decltype(rank)> ex(rank);
    CHECK(sw::load(ex, folder).step == 2);
    CHECK(everything(ex) == then);
  };
  sw::launch<typename To::mesh_type>(load);
  if constexpr (To::mesh_type::size == From::mesh_type::size) sw::launch_mpi<typename To::mesh_type>(load, in_time);
  first_alone([&] { std::filesystem::remove_all(folder); });
}

}  // namespace

TEST_CASE("a step on 1 process") { check_placed<adam_step<1, 1>>(); }
TEST_CASE("a step on 2 processes") { check_placed<rows2>(); }
TEST_CASE("a step on 3 processes") { check_placed<three>(); }
TEST_CASE("a step on 2 x 2 processes") { check_placed<both4>(); }

TEST_CASE("three layers under data parallelism on 3 processes, gradients averaged") {
  using step =
      sw::train_step<relu_stack<3, 33>::template model, sum_task<double, 21, 33, sw::on<worker<3>, sw::shard<0>>, 3>,
                     sw::plan<sw::data_parallel<worker<3>>>, sw::mesh<worker<3>>, sw::adam<>, sw::pipeline<>, double>;
  check_equal<sw::mesh<worker<3>>>([](auto& rank) {
    executor_on<step, decltype(rank)> ex(rank);
    ex.initialise(5);
    values all;
    for (int s = 1; s <= 3; ++s) {
      ex.set_input(0, numbers(21 * 33));
      sw::step_env env;
      env.step = s;
      env.lr = 0.01;
      ex.run(env);
      all.push_back(ex.loss());
    }
    for (int i = 0; i < ex.parameter_count(); ++i) append(all, std::as_const(ex).parameter(i));
    return all;
  });
}

// Attention by heads, feed-forward by columns, dropout, a clipped norm; collectives on the stream.
TEST_CASE("a language model on 2 x 2 processes, collectives beside kernels") {
  using step = gpt::step<float, 2, 2, gpt::tensor_parallel, gpt::dropout_sizes, place, sw::pipeline<sw::schedule_comm_wait>>;
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
  check_equal<step::mesh_type>(body);
  if (world_size() != 4) return;
  // MPI's own reductions: the same up to rounding
  values exact, fast;
  sw::launch_mpi<step::mesh_type>([&](auto& rank) { exact = body(rank); }, in_time);
  sw::launch_mpi<step::mesh_type>([&](auto& rank) { fast = body(rank); }, {60, true});
  double apart = 0;
  for (std::size_t i = 0; i < 3; ++i) apart = std::max(apart, std::abs(exact[i] - fast[i]));
  CHECK(apart < 1e-5);
}

TEST_CASE("eager tensors on 2 processes, some on their way") {
  using mesh = sw::mesh<worker<2>>;
  check_equal<mesh>([](auto& rank) {
    sw::eager on(rank);
    using rank_type = std::remove_reference_t<decltype(rank)>;
    values all;
    const auto x =
        sw::dtensor_of<double, sw::shape<7, 3>, mesh, sw::on<worker<2>, sw::shard<0>>>::distribute(on, numbers(21));
    auto p = sw::redistribute_async<worker<2>, sw::shard<1>>(x);
    auto q = sw::redistribute_async<worker<2>, sw::replicate>(sw::exp(x));
    append(all, sw::sum(x * x).full_tensor().to_local().data);
    append(all, std::move(p).wait().to_local().data);
    append(all, std::move(q).wait().to_local().data);
    static_assert(sw::host_rank<rank_type>);
    return all;
  });
}

TEST_CASE("what a program holds moves to one of another plan, between processes") {
  check_equal<both4::mesh_type>([](auto& rank) {
    executor_on<both4, decltype(rank)> from(rank);
    executor_on<strided4, decltype(rank)> to(rank);
    from.initialise(3);
    train(from, 1, 2);
    to.copy_parameters(from);
    to.copy_state(from);
    CHECK(everything(to) == everything(from));
    return everything(to);
  });
}

TEST_CASE("checkpoints of processes are those of threads") {
  check_checkpoint<adam_step<1, 1>, rows2>(false);
  check_checkpoint<rows2, columns2>(false);
  check_checkpoint<rows2, three>(true);
  check_checkpoint<three, three>(false);
  check_checkpoint<both4, strided4>(false);
  check_checkpoint<both4, rows2>(true);
}
