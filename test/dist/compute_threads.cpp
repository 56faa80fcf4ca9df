// SPDX-License-Identifier: Apache-2.0
// Ranks that compute with several threads: the bits of one thread, on one rank and on four; exceptions of the threads; many short
// steps; how many are allowed.
#include <doctest/doctest.h>

#include <atomic>
#include <gpt.hpp>
#include <stdexcept>
#include <string>
#include <thrown.hpp>
#include <type_traits>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

// Large enough that products, attention, rows, elements and updates are cut into five parts each.
struct wide : sizes {
  static constexpr int width = 144;
  static constexpr int heads = 9;
  static constexpr int time = 61;
  static constexpr int layers = 1;
  static constexpr double dropout = 0.1;
};
template <class T, int D, int N>
using wide_step = sw::train_step<test::transformer<wide>::template model, test::language_task<wide, 6, dp<D>>,
                                 typename tensor_parallel<dp<D>, tp<N>>::type, sw::mesh<dp<D>, tp<N>>,
                                 sw::clip_norm<sw::adamw<true>>, sw::pipeline<>, T>;

template <class T>
struct trained {
  std::vector<T> losses;
  std::vector<std::vector<T>> parameters;
  bool operator==(const trained&) const = default;
};

// Every rank with the number of threads that threads_of(rank, step) says.
template <class Step, class F>
trained<typename Step::element> train_with(int steps, const F& threads_of) {
  using element = typename Step::element;
  trained<element> t;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank);
    ex.initialise(7);
    std::vector<std::int32_t> tokens(6 * wide::time), targets(tokens.size()), positions(wide::time);
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int32_t>(i);
    for (int s = 1; s <= steps; ++s) {
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = static_cast<std::int32_t>((i * 37 + static_cast<std::size_t>(s) * 11) % wide::vocabulary);
        targets[i] = static_cast<std::int32_t>((i * 53 + static_cast<std::size_t>(s)) % wide::vocabulary);
      }
      ex.set_input(0, tokens);
      ex.set_input(1, targets);
      ex.set_input(2, positions);
      rank.compute_threads(threads_of(rank.index(), s));
      ex.run(environment(s));
      if (rank.index() == 0) t.losses.push_back(ex.loss());
    }
    for (int i = 0; i < ex.parameter_count(); ++i) {
      const std::vector<element> whole = ex.full_parameter(ex.parameter_name(i));
      if (rank.index() == 0) t.parameters.push_back(whole);
    }
  });
  return t;
}
template <class Step>
void check_threads() {
  const auto alone = train_with<Step>(3, [](int, int) { return 1; });
  REQUIRE(alone.losses.size() == 3);
  CHECK(alone.losses[2] != alone.losses[0]);
  for (const int threads : {2, 3, 5}) {
    CAPTURE(threads);
    CHECK(train_with<Step>(3, [threads](int, int) { return threads; }) == alone);
  }
  // another number for each rank and each step
  CHECK(train_with<Step>(3, [](int rank, int step) { return 1 + (2 * rank + step) % 4; }) == alone);
}

TEST_CASE("compute threads: a transformer trains to the same bits on 1, 2, 3 and 5 threads") {
  check_threads<wide_step<float, 1, 1>>();
  check_threads<wide_step<double, 1, 1>>();
}
TEST_CASE("compute threads: so do four ranks, each with threads of its own, far more than cores") {
  check_threads<wide_step<float, 2, 2>>();
}

// --- many short steps --------------------------------------------------------------------------------------------------

struct line : sw::axis<1> {};
using one = sw::mesh<line>;
struct summed_rows {
  constexpr auto operator()(const auto& x) const { return sw::sum<1>(sw::gelu(x * x)); }
};
using short_step = sw::function_step<summed_rows, one, sw::inputs<sw::input_tensor<float, sw::shape<257, 129>>>>;

TEST_CASE("compute threads: thousands of short runs, with pauses in which threads fall asleep") {
  sw::launch<one>([&](auto& rank) {
    sw::executor<short_step> ex(rank);
    std::vector<float> x(257 * 129);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 101) / 50 - 1;
    ex.set_input(0, x);
    ex.run({});
    const std::vector<float> want(ex.output().begin(), ex.output().end());
    for (const int threads : {2, 3, 5}) {
      rank.compute_threads(threads);
      CHECK(rank.compute_threads() == threads);
      int wrong = 0;
      for (int i = 0; i < 2000; ++i) {
        ex.run({});
        wrong += std::equal(want.begin(), want.end(), ex.output().begin()) ? 0 : 1;
        if (i % 500 == 0) sw::threads::pass_time(0.002);
      }
      CHECK(wrong == 0);
    }
  });
}

// --- run-time sizes ----------------------------------------------------------------------------------------------------

struct weighed {
  constexpr auto operator()(const auto& x) const { return sw::softmax(sw::gelu(x)); }
};
using sized = sw::function_step<weighed, one, sw::inputs<sw::input_tensor<float, sw::shape<sw::dyn<701>, 131>>>>;

TEST_CASE("compute threads: after another run-time size parts are those of its blocks") {
  std::vector<std::vector<float>> of_one;
  for (const int threads : {1, 3})
    sw::launch<one>([&](auto& rank) {
      sw::executor<sized> ex(rank);
      std::size_t at = 0;
      for (const int n : {352, 701, 5, 700}) {
        ex.resize(n);
        std::vector<float> x(static_cast<std::size_t>(n) * 131);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7919U + at) % 1013U) / 200 - 2;
        ex.set_input(0, x);
        rank.compute_threads(threads);  // parts are planned for the first size, and then for the others
        ex.run({});
        const std::vector<float> y(ex.output().begin(), ex.output().end());
        CHECK(y.size() == x.size());
        if (threads == 1) of_one.push_back(y);
        else CHECK(y == of_one[at]);
        ++at;
      }
    });
}

// --- exceptions --------------------------------------------------------------------------------------------------------

struct looked_up {
  constexpr auto operator()(const auto& table, const auto& ids) const { return sw::embedding(table, ids); }
};
using look_up = sw::function_step<
    looked_up, one,
    sw::inputs<sw::input_tensor<float, sw::shape<10, 64>>, sw::input_tensor<std::int32_t, sw::shape<40, 50>>>>;

TEST_CASE("compute threads: a thread's exception is the rank's, and of several the one that one thread would meet") {
  sw::launch<one>([&](auto& rank) {
    sw::executor<look_up> ex(rank);
    ex.set_input(0, std::vector<float>(640, 1.0F));
    std::vector<std::int32_t> ids(2000, 3);
    ids[1990] = 77;  // in the last part
    ids[900] = 55;   // and before that
    ex.set_input(1, ids);
    const std::string alone = test::thrown([&] { ex.run({}); });
    CHECK(alone.find("index 55 is outside 0..9") != std::string::npos);
    CHECK(alone.find("in embedding") != std::string::npos);
    for (const int threads : {2, 3, 5}) {
      rank.compute_threads(threads);
      for (int i = 0; i < 50; ++i) CHECK(test::thrown([&] { ex.run({}); }) == alone);
    }
    ids[900] = ids[1990] = 4;
    ex.set_input(1, ids);
    ex.run({});  // the team works on
    CHECK(ex.output()[1990 * 64] == 1.0F);
  });
}
TEST_CASE("compute threads: of two exceptions the first part's is thrown, whichever comes first") {
  struct job {
    std::atomic<bool> both{false};
    int late = 0;  // the part that throws behind the other one
  };
  const auto work = [](const void* p, int part, int) {
    job& j = *static_cast<job*>(const_cast<void*>(p));
    if (part == 1) j.both = true;
    while (!j.both) sw::threads::pass_time(0.0001);
    if (part == j.late) sw::threads::pass_time(0.01);
    throw std::runtime_error("part " + std::to_string(part));
  };
  sw::launch<one>([&](auto& rank) {
    rank.compute_threads(2);
    for (const int late : {0, 1, 0, 1}) {
      job j;
      j.late = late;
      CHECK(test::thrown([&] { rank.team().run(work, &j, 2); }) == "part 0");
    }
  });
}
TEST_CASE("compute threads: an exception in a thread of one rank releases the others, and launch throws it") {
  using mesh = sw::mesh<dp<2>, tp<2>>;
  CHECK_THROWS_WITH_AS(sw::launch<mesh>([&](auto& rank) {
                         rank.compute_threads(3);
                         std::atomic<int> ran{0};
                         const auto work = [](const void* p, int part, int) {
                           if (part == 4) throw std::runtime_error("part 4");
                           if (part == 6) throw std::runtime_error("part 6");
                           static_cast<std::atomic<int>*>(const_cast<void*>(p))->fetch_add(1);
                         };
                         if (rank.index() == 2) rank.team().run(work, &ran, 9);
                         rank.barrier();
                       }),
                       "part 4", std::runtime_error);
}

// --- how many ----------------------------------------------------------------------------------------------------------

TEST_CASE("compute threads: from 1 to the largest number that is allowed, and what else is given is said") {
  sw::launch<one>([&](auto& rank) {
    CHECK(rank.compute_threads() == 1);
    for (const int bad : {0, -3, sw::most_compute_threads + 1, 1 << 30}) {
      const std::string said = test::thrown([&] { rank.compute_threads(bad); });
      CHECK(said.find(std::to_string(bad) + " is given; a rank computes with 1 to 128 threads") != std::string::npos);
      CHECK(rank.compute_threads() == 1);
    }
    rank.compute_threads(sw::most_compute_threads);
    std::atomic<int> ran{0};
    const auto count = [](const void* p, int, int) { static_cast<std::atomic<int>*>(const_cast<void*>(p))->fetch_add(1); };
    rank.team().run(count, &ran, 255);
    CHECK(ran == 255);
    rank.compute_threads(1);
    CHECK(rank.compute_threads() == 1);
  });
}

}  // namespace
