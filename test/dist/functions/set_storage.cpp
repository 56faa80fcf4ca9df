// SPDX-License-Identifier: Apache-2.0
// set_: an input gets the storage of what the program computed, at once and compiled, run after run, whatever the mesh.
#include <cstddef>
#include <string>
#include <vector>

#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include "thrown.hpp"

namespace {

namespace sw = shardwise;

struct one : sw::axis<1> {};
struct dp : sw::axis<2> {};
using mesh = sw::mesh<one>;
using mesh2 = sw::mesh<dp>;

// Not looked into.
struct add_one {
  template <class T>
  void operator()(std::span<T> out, std::span<const T> in) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] + T(1);
  }
};

// x + 1 is written into a view of a buffer, and x gets the buffer's storage; then x is read again.
struct repoint {
  constexpr auto operator()(auto& x) const {
    const auto buffer = sw::zeros_like(x);
    const auto view = sw::flatten(buffer);
    sw::copy_(view, sw::opaque<add_one>(x));
    sw::set_(x, sw::flatten(buffer));
    return sw::sum(x);
  }
};
template <class Mesh, class... Placed>
using pair_of = sw::input_tensor<double, sw::shape<2>, Placed...>;
using step = sw::function_step<repoint, mesh, sw::inputs<pair_of<mesh>>>;

template <class Step>
constexpr int count_of(sw::op_code op) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op;
  return n;
}
// no copy in the final graph, and what says that the value lies in the input's next storage is alive
static_assert(count_of<step>(sw::op_code::copy_) == 0 && count_of<step>(sw::op_code::assign) == 0 &&
              count_of<step>(sw::op_code::contiguous) == 0);
static_assert(count_of<step>(sw::op_code::in_place) == 1);
static_assert(count_of<step>(sw::op_code::opaque) == 1);

// Two inputs, of which each gets something computed of both, on two ranks; a third is written in place as ever.
struct rotate {
  constexpr auto operator()(auto& x, auto& y, auto& z) const {
    const auto turned = x - 2.0 * y, other = sw::relu(y) + x;
    const auto before = 1.0 * x;
    sw::set_(x, turned);
    sw::set_(y, other);
    sw::copy_(z, x * y);
    return std::tuple{x, before, y + z};
  }
};
using rows = sw::input_tensor<double, sw::shape<5, 3>, sw::on<dp, sw::shard<0>>>;
template <class Pipeline>
using rotated_by = sw::function_step<rotate, mesh2, sw::inputs<rows, rows, rows>, Pipeline>;
using rotated = rotated_by<sw::pipeline<>>;
using fused = rotated_by<sw::pipeline<sw::cancel_redistributions, sw::merge_common, sw::fuse_kernels>>;
static_assert(count_of<rotated>(sw::op_code::in_place) == 2 && count_of<rotated>(sw::op_code::assign) == 1);

template <class Step>
void check_rotated(sw::executor_checks checks) {
  std::vector<double> x(15), y(15), z(15, 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 0.1 * static_cast<double>(i) - 0.4;
    y[i] = 0.7 - 0.2 * static_cast<double>(i);
  }
  sw::launch<mesh2>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::eager on(rank);
    using tensor = sw::dtensor_of<double, sw::shape<5, 3>, mesh2, sw::on<dp, sw::shard<0>>>;
    auto a = tensor::distribute(on, x), b = tensor::distribute(on, y), c = tensor::distribute(on, z);
    sw::executor<Step, rank_type> run(rank, checks);
    run.set_input(0, x);
    run.set_input(1, y);
    run.set_input(2, z);
    const auto same = [](const auto& have, const auto& want) {
      const auto w = want.to_local();
      for (std::size_t i = 0; i < w.data.size(); ++i) CHECK(have[i] == w.data[i]);
    };
    for (int k = 0; k < 5; ++k) {
      const auto [first, before, last] = rotate{}(a, b, c);
      const auto a_now = 1.0 * first, before_now = 1.0 * before, last_now = 1.0 * last;
      run.run(sw::step_env{});
      same(run.template input<double>(0), a);
      same(run.template input<double>(1), b);
      same(run.template input<double>(2), c);
      same(run.output(0).data, a_now);
      same(run.output(1).data, before_now);
      same(run.output(2).data, last_now);
      if (k < 4) continue;
      run.set_input(0, std::vector<double>(15, 99));  // the input, not what was given out of it
      same(run.output(0).data, a_now);
      CHECK(run.template input<double>(0)[0] == 99);
    }
  });
}

}  // namespace

TEST_CASE("fsdp compile: test_trace_fsdp_set_") {
  sw::launch<mesh>([](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::eager on(rank);
    auto x = sw::dtensor_of<double, sw::shape<2>, mesh>::zeros(on);
    const auto original = x;
    const auto at_once = repoint{}(x);
    CHECK(at_once.item() == 2);
    CHECK(x.to_local().data[0] == 1);
    CHECK(x.to_local().data[1] == 1);
    CHECK(original.to_local().data[0] == 0);
    CHECK(original.to_local().data[1] == 0);
    CHECK(!x.shares_storage_with(original));

    sw::executor<step, rank_type> run(rank);
    run.set_input(0, std::vector<double>{0, 0});
    const double* const storage = run.template input<double>(0).data();
    run.run(sw::step_env{});
    const double* const buffer = run.template input<double>(0).data();
    CHECK(buffer != storage);
    CHECK(run.output()[0] == at_once.item());
    CHECK(buffer[0] == 1);
    CHECK(buffer[1] == 1);
    CHECK(storage[0] == 0);
    CHECK(storage[1] == 0);
    // storage(x) is what the value was computed in
    for (int i = 0; i < step::program.node_count; ++i)
      if (step::program.nodes[i].op == sw::op_code::in_place)
        CHECK(run.value(step::program.nodes[i].in[1]) == std::vector<double>{1, 1});
    // the next runs go on from there, in the storage that is free
    run.run(sw::step_env{});
    CHECK(run.template input<double>(0).data() == storage);
    CHECK(storage[0] == 2);
    CHECK(buffer[0] == 1);
    CHECK(run.output()[0] == 4);
    run.set_input(0, std::vector<double>{7, 8});
    run.run(sw::step_env{});
    CHECK(run.template input<double>(0)[0] == 8);
    CHECK(run.template input<double>(0)[1] == 9);
    CHECK(run.output()[0] == 17);
  });
}

TEST_CASE(
    "set_: several inputs over two ranks, run after run, fused or not, with dead storage poisoned, are those at once") {
  check_rotated<rotated>(sw::executor_checks::none);
  check_rotated<rotated>(sw::executor_checks::poison | sw::executor_checks::finite);
  check_rotated<fused>(sw::executor_checks::poison);
}
