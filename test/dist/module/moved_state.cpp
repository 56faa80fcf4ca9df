// SPDX-License-Identifier: Apache-2.0
// What a program holds, by name: blocks, whole tensors, and moves between any two plans and meshes of 1, 2, 3, 4 and 8 ranks, with
// uneven and empty shards: gathered to full, parameters, buffers and the optimizer's states are equal element by element.
#include <doctest/doctest.h>

#include <placed_steps.hpp>

#include <shardwise/pass/optimizer/list_optimizer.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace test;
using namespace test::placed;

// Trained in From, moved to To, trained on in both: before, the same elements, and then the same but for the order of sums.
template <class From, class To>
void check_move() {
  sw::launch<typename From::mesh_type, typename To::mesh_type>([](auto& rank, auto& other) {
    sw::executor<From> from(rank);
    sw::executor<To> to(other);
    from.initialise(3);
    train(from, 1, 2);
    to.initialise(4);
    const auto want = everything(from);
    CHECK(want[0].size() == 35);
    CHECK(everything(to) != want);
    to.copy_parameters(std::as_const(from));
    CHECK(everything(to) != want);  // the states are still zeros
    to.copy_state(from);
    const auto got = everything(to);
    CHECK(got == want);
    CHECK(everything(from) == want);
    train(from, 3, 4);
    train(to, 3, 4);
    const auto a = everything(from), b = everything(to);
    double largest = 0;
    for (std::size_t k = 0; k < a.size(); ++k)
      for (std::size_t i = 0; i < a[k].size(); ++i) largest = std::max(largest, std::abs(a[k][i] - b[k][i]));
    CHECK(largest < 1e-12);
    CHECK(a != want);
  });
}
template <class A, class... All>
void check_with() {
  (check_move<A, All>(), ...);
}

}  // namespace

TEST_CASE("state in memory: moves between plans and meshes of 1, 2 and 3 ranks") {
  check_move<adam_step<1, 1>, adam_step<1, 1>>();
  check_with<whole2, rows2, columns2>();
  check_with<rows2, whole2, columns2>();
  check_move<split_step<3, 1, rows<dp<3>, 0>>, split_step<1, 3, rows<tp<3>, 1>, rows<tp<3>, 0>>>();
}
TEST_CASE("state in memory: moves between plans and meshes of 4 ranks") {
  check_with<both4, whole4, strided4, rows4>();
  check_with<strided4, both4, rows4>();
  check_with<rows4, strided4>();
}
TEST_CASE("state in memory: moves between plans and meshes of 8 ranks, most blocks empty") {
  check_with<rows8, whole8, strided8>();
  check_with<strided8, rows8>();
}

TEST_CASE("state in memory: by name, block by block and whole") {
  sw::launch<mesh<2, 2>>([](auto& rank) {
    sw::executor<both4> ex(rank);
    ex.initialise(3);
    train(ex, 1, 2);
    const auto all = everything(ex);
    // a block is its part of the whole
    const auto& read = std::as_const(ex);
    const auto w = read.parameter("first.weight");
    const auto m = read.state("first.weight", moment::first);
    const auto& l = ex.parameter_layout(0);
    CHECK(ex.state_layout("first.weight", moment::second).ext[0] == l.ext[0]);
    CHECK(l.ext[0] == (rank.coordinate(0) == 0 ? 4 : 3));
    REQUIRE(w.size() == static_cast<std::size_t>(l.numel()));
    REQUIRE(m.size() == w.size());
    std::size_t k = 0;
    for (std::int64_t i = 0; i < l.ext[0]; ++i)
      for (std::int64_t j = 0; j < l.ext[1]; ++j, ++k) {
        const auto at = static_cast<std::size_t>((l.origin[0] + i) * 5 + l.origin[1] + j);
        CHECK(w[k] == all[0][at]);
        CHECK(m[k] == all[1][at]);
      }
    CHECK(read.buffer("second.seen").size() == read.buffer(1).size());
    // on one rank alone
    const auto one = everything(ex, 2);
    if (rank.index() == 2) CHECK(one == all);
    else
      for (const auto& v : one) CHECK(v.empty());
    // from full, and back
    const auto some = numbers(35);
    ex.set_parameter("second.weight", some);
    ex.set_state("second.weight", moment::second, some);
    ex.set_buffer("second.seen", std::vector<double>{1, 2, 3, 4, 5});
    CHECK(ex.full_parameter("second.weight") == some);
    CHECK(ex.full_state("second.weight", moment::second) == some);
    CHECK(ex.full_state("second.weight", moment::first) == all[7]);
    CHECK(ex.full_buffer("second.seen") == std::vector<double>{1, 2, 3, 4, 5});
    CHECK(ex.full_parameter("first.weight") == all[0]);

    CHECK_THROWS_WITH(ex.parameter("first.wieght"),
                      "shardwise: the model has no parameter named 'first.wieght'; the nearest names are 'first.weight', "
                      "'first.bias', 'second.weight'");
    CHECK_THROWS_WITH(ex.buffer("second.bias"),
                      doctest::Contains("no buffer named 'second.bias'; the nearest names are 'second.seen'"));
    CHECK_THROWS_WITH(ex.state("first.weight", moment::steps),
                      doctest::Contains("keeps no count of steps of parameter 'first.weight', and another moment of it"));
    CHECK_THROWS_WITH(ex.set_state("first.bias", moment::first, some),
                      "shardwise: set_state: 35 elements are given; the whole tensor has 5");
    CHECK_THROWS_WITH(ex.full_parameter("first.bias", 4), doctest::Contains("rank 4 is asked for; the mesh has ranks 0..3"));
  });
}

TEST_CASE("state in memory: momentum, lists with their counts of steps, frozen modules") {
  using momentum = step<2, 1, sw::sgd<true>, sw::pipeline<>>;
  using lists = step<2, 1, sw::adam<>, sw::pipeline<sw::fused_optimizer>, sw::at<"first", rows<dp<2>, 0>>>;
  using lists_whole = step<1, 2, sw::adam<>, sw::pipeline<sw::foreach_optimizer>>;
  using freezes = step<2, 1, sw::adam<>, sw::pipeline<>, sw::at<"first", sw::frozen>>;
  sw::launch<mesh<2, 1>, mesh<1, 2>>([](auto& rank, auto& other) {
    sw::executor<momentum> plain(rank);
    plain.initialise(3);
    sw::step_env env;
    env.lr = 0.05;
    env.momentum = 0.5;
    env.step = 1;
    plain.set_input(0, numbers(56));
    plain.run(env);
    CHECK(plain.full_state("first.bias", moment::first) != std::vector<double>(5, 0));
    CHECK_THROWS_WITH(plain.full_state("first.bias", moment::second),
                      doctest::Contains("no second moment of parameter 'first.bias'"));

    sw::executor<lists> fused(rank);
    sw::executor<lists_whole> foreach (other);
    fused.initialise(3);
    train(fused, 1, 3);
    CHECK(fused.full_state("second.bias", moment::steps) == std::vector<double>{3});
    foreach
      .copy_parameters(fused);
    foreach
      .copy_state(fused);
    CHECK(everything(foreach) == everything(fused));
    CHECK(foreach.full_state("first.weight", moment::steps) == std::vector<double>{3});

    sw::executor<freezes> still(rank);
    still.copy_parameters(fused);
    CHECK(still.full_parameter("first.weight") == fused.full_parameter("first.weight"));
    CHECK_THROWS_WITH(still.full_state("first.weight", moment::first),
                      doctest::Contains("nor any other state of it: it is frozen"));
    CHECK(still.full_state("second.weight", moment::first) == std::vector<double>(35, 0));
  });
}

TEST_CASE("state in memory: who fails in one mesh releases those who wait in the other") {
  CHECK_THROWS_WITH((sw::launch<mesh<2, 1>, mesh<1, 2>>([](auto& rank, auto& other) {
                      sw::executor<whole2> from(rank);
                      sw::executor<rows2> to(other);
                      from.initialise(3);
                      if (rank.index() == 1) throw std::runtime_error("on purpose");
                      to.copy_parameters(from);
                    })),
                    "on purpose");
  CHECK_THROWS_WITH((sw::launch<mesh<2, 1>, mesh<1, 2>>([](auto& rank, auto& other) {
                      sw::executor<whole2> from(rank);
                      sw::executor<rows2> to(other);
                      to.copy_parameters(from);
                    })),
                    doctest::Contains("copy_parameters: parameter 'first.weight' has no value"));
}
