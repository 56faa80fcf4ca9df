// SPDX-License-Identifier: Apache-2.0
// A program whose input is still on its way when it starts.
#include <doctest/doctest.h>

#include <both_ways.hpp>
#include <cmath>
#include <shardwise/graph/text/render.hpp>

namespace {

using namespace test;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using sharded = sw::dtensor_of<float, sw::shape<8, 4>, mesh, sw::shard<0>>;  // (4, 4) on each rank
using local = sw::dtensor_of<float, sw::shape<16, 4>, mesh, sw::shard<0>>;   // the ranks' (8, 4) side by side

struct sine_of_sine {
  constexpr auto operator()(const auto& x) const { return sw::sin(sw::sin(x)); }
};
// The same with what a backward program can start from.
struct with_saved {
  constexpr auto operator()(const auto& x) const {
    const auto w = sw::wait(x);
    return std::tuple{sw::sin(sw::sin(w)), x, w};
  }
};
// The gradient from the waited tensor alone; the first sine is computed again.
struct from_saved {
  constexpr auto operator()(const auto& w, const auto& dy) const { return dy * sw::cos(sw::sin(w)) * sw::cos(w); }
};

using arriving = sw::inputs<sw::arriving<sw::input_like<local>>>;
using forward = sw::function_step<sine_of_sine, mesh, arriving>;
using forward_saving = sw::function_step<with_saved, mesh, sw::inputs<sw::input_like<local>>>;
using both = sw::gradient_step<sine_of_sine, mesh, arriving, sw::wrt<0>>;

TEST_CASE("dtensor compile: test_graph_input_is_async") {
  // the wait is put at the start where the function does not say it
  CHECK(sw::to_text(forward::program) ==
        "%input = input() (16, 4) [shard<0>]\n"
        "%wait = wait(%input) (16, 4) [shard<0>]\n"
        "%sin = sin(%wait) (16, 4) [shard<0>]\n"
        "%sin_1 = sin(%sin) (16, 4) [shard<0>]\n"
        "return %sin_1\n");
  CHECK(sw::to_text(forward_saving::program) ==
        "%input = input() (16, 4) [shard<0>]\n"
        "%wait = wait(%input) (16, 4) [shard<0>]\n"
        "%sin = sin(%wait) (16, 4) [shard<0>]\n"
        "%sin_1 = sin(%sin) (16, 4) [shard<0>]\n"
        "return %sin_1\nreturn %input\nreturn %wait\n");
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    std::vector<float> values(32);
    for (std::size_t i = 0; i < 32; ++i) values[i] = static_cast<float>(i * 13 % 32) / 8 - 2;
    const sharded x = sharded::distribute(on, values);
    rank.slow_down({0.001, 0});
    const auto start = [&] {
      return sw::redistribute_async<tp, sw::replicate>(x).then([](const auto& whole) { return sw::to_local(whole); });
    };

    // at once: the blocks of the pending tensor, when they are there
    const auto block = start().wait();
    static_assert(std::is_same_v<std::remove_const_t<decltype(block)>, local>);
    for (std::size_t i = 0; i < 32; ++i) CHECK(block.to_local().data[i] == values[i]);
    const auto y = sine_of_sine{}(block);
    const auto [same_y, dx] = sw::value_and_grad<sine_of_sine, 0>(block);
    for (std::size_t i = 0; i < 32; ++i)
      CHECK(y.to_local().data[i] == doctest::Approx(std::sin(std::sin(static_cast<double>(values[i])))).epsilon(1e-6));

    // as a program that starts without it
    sw::executor<forward> run(rank, sw::executor_checks::poison);
    sw::executor<forward_saving> saving(rank, sw::executor_checks::poison);
    sw::executor<both> joint(rank, sw::executor_checks::poison);
    for (int round = 0; round < 2; ++round) {
      run.set_input(0, start());
      saving.set_input(0, start());
      joint.set_input(0, start());
      run.run({});
      saving.run({});
      joint.run({});
      CHECK(same_bits(run.output(0), y.to_local()));
      CHECK(same_bits(saving.output(0), y.to_local()));
      CHECK(same_bits(saving.output(1), block.to_local()));
      CHECK(same_bits(saving.output(2), block.to_local()));
      CHECK(same_bits(joint.output(0), y.to_local()));
      CHECK(same_bits(joint.output(1), dx.to_local()));
    }
    const auto saved = local::from_local(on, values_of(saving.output(2)));
    const auto ones = local::ones(on);
    CHECK(same_bits(from_saved{}(saved, ones).to_local(), dx.to_local()));
  });
}

}  // namespace
