// SPDX-License-Identifier: Apache-2.0
// A checkpoint goes into a program that holds nothing yet without a second copy of its blocks, and into one that holds something by way of
// one.
#include <shardwise/shardwise.hpp>
#include <shardwise/io/checkpoint/checkpoint.hpp>

#include <doctest/doctest.h>

#include <files.hpp>
#include <placed_steps.hpp>

#include "counter.hpp"

#if defined(__GLIBC__) && !defined(SHARDWISE_TEST_SANITIZED)

namespace {

namespace sw = shardwise;

template <int N>
struct worker : sw::axis<N> {};
template <class Bound = sw::unbound>
struct stack : sw::module<stack<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<256, 256>, one), (sw::linear<256, 256>, two), (sw::linear<256, 256>, three),
                    (sw::linear<256, 256>, four));
  constexpr auto forward(const auto& x) const { return four(three(two(one(x)))); }
};
template <int N>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<2, 256>, sw::on<worker<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
template <int N>
using program = sw::train_step<stack, task<N>, sw::plan<sw::fully_shard<worker<N>>>, sw::mesh<worker<N>>, sw::adam<>,
                               sw::pipeline<>, double>;

template <class Step>
void check_memory(const std::string& from) {
  constexpr long weights = 4 * 256 * 257 * 8 / Step::mesh_type::size, largest = 256 * 256 * 8 / Step::mesh_type::size;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank);
    const auto load = [&] {
      counter::held = counter::most_held = 0;
      counter::weighing = true;
      sw::load(ex, from);
      counter::weighing = false;
      return counter::most_held;
    };
    const long first = load();
    const auto values = ex.full_parameter("three.weight");
    CHECK(first < largest + (1 << 19) + 300000);  // what is read at once, in whole chunks at both ends, and the index
    CHECK(first < weights);
    const long again = load();
    CHECK(again > 3 * weights);  // parameters and two moments
    CHECK(ex.full_parameter("three.weight") == values);
  });
}

}  // namespace

TEST_CASE("a load takes no second copy of what nobody has given yet") {
  const test::folder scratch;
  sw::launch<sw::mesh<worker<2>>>([&](auto& rank) {
    sw::executor<program<2>> ex(rank);
    ex.initialise(3);
    ex.set_input(0, test::placed::numbers(512));
    sw::step_env env;
    env.lr = 0.01;
    env.step = 1;
    ex.run(env);
    sw::save(ex, scratch.path());
  });
  check_memory<program<1>>(scratch.path());
  check_memory<program<2>>(scratch.path());
}

#else

TEST_CASE("a load takes no second copy of what nobody has given yet" * doctest::skip()) {}

#endif
